"""VGG-16 (Simonyan and Zisserman, 2014), configuration D; 138,357,544 parameters."""

import torch
from torch import nn

from .initialize import he_normal_, seeded, seeded_normal

# Convolutions per stage, as (count, channels); a max pool ends each stage.
STAGES = ((2, 64), (2, 128), (3, 256), (3, 512), (3, 512))


class VGG16(nn.Module):
    def __init__(self, num_classes: int = 1000, dropout: float = 0.5) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        in_channels = 3
        for count, channels in STAGES:
            for _ in range(count):
                layers.append(nn.Conv2d(in_channels, channels, kernel_size=3, padding=1))
                layers.append(nn.ReLU(inplace=True))
                in_channels = channels
            layers.append(nn.MaxPool2d(kernel_size=2, stride=2))
        self.features = nn.Sequential(*layers)
        self.avgpool = nn.AdaptiveAvgPool2d((7, 7))
        self.classifier = nn.Sequential(
            nn.Linear(512 * 7 * 7, 4096),
            nn.ReLU(inplace=True),
            nn.Dropout(dropout),
            nn.Linear(4096, 4096),
            nn.ReLU(inplace=True),
            nn.Dropout(dropout),
            nn.Linear(4096, num_classes),
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.features(x)
        x = self.avgpool(x)
        x = torch.flatten(x, 1)
        return self.classifier(x)


def make() -> VGG16:
    with seeded():
        return he_normal_(VGG16()).eval()


def example_inputs(batch: int = 2) -> tuple[torch.Tensor]:
    return (seeded_normal(batch, 3, 224, 224),)


def dynamic_batch() -> dict[str, dict[int, str]]:
    return {"image": {0: "batch"}}
