"""DenseNet-121 (Huang et al., 2016): growth 32, blocks of 6, 12, 24, 16; 7,978,856 parameters."""

import torch
from torch import nn
from torch.nn import functional as F

from .initialize import he_normal_, seeded, seeded_normal, settle_batch_norm_

GROWTH = 32
BOTTLENECK = 4
BLOCKS = (6, 12, 24, 16)


class DenseLayer(nn.Module):
    def __init__(self, in_channels: int) -> None:
        super().__init__()
        self.norm1 = nn.BatchNorm2d(in_channels)
        self.relu1 = nn.ReLU(inplace=True)
        self.conv1 = nn.Conv2d(in_channels, BOTTLENECK * GROWTH, kernel_size=1, bias=False)
        self.norm2 = nn.BatchNorm2d(BOTTLENECK * GROWTH)
        self.relu2 = nn.ReLU(inplace=True)
        self.conv2 = nn.Conv2d(BOTTLENECK * GROWTH, GROWTH, kernel_size=3, padding=1, bias=False)

    def forward(self, features: list[torch.Tensor]) -> torch.Tensor:
        x = torch.cat(features, 1)
        x = self.conv1(self.relu1(self.norm1(x)))
        return self.conv2(self.relu2(self.norm2(x)))


class DenseBlock(nn.ModuleDict):
    def __init__(self, layers: int, in_channels: int) -> None:
        super().__init__(
            {f"denselayer{i + 1}": DenseLayer(in_channels + i * GROWTH) for i in range(layers)}
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        features = [x]
        for layer in self.values():
            features.append(layer(features))
        return torch.cat(features, 1)


class Transition(nn.Sequential):
    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__()
        self.norm = nn.BatchNorm2d(in_channels)
        self.relu = nn.ReLU(inplace=True)
        self.conv = nn.Conv2d(in_channels, out_channels, kernel_size=1, bias=False)
        self.pool = nn.AvgPool2d(kernel_size=2, stride=2)


class DenseNet121(nn.Module):
    def __init__(self, num_classes: int = 1000) -> None:
        super().__init__()
        channels = 64
        self.features = nn.Sequential()
        self.features.conv0 = nn.Conv2d(3, channels, 7, stride=2, padding=3, bias=False)
        self.features.norm0 = nn.BatchNorm2d(channels)
        self.features.relu0 = nn.ReLU(inplace=True)
        self.features.pool0 = nn.MaxPool2d(kernel_size=3, stride=2, padding=1)
        for i, layers in enumerate(BLOCKS, start=1):
            self.features.add_module(f"denseblock{i}", DenseBlock(layers, channels))
            channels += layers * GROWTH
            if i < len(BLOCKS):
                self.features.add_module(f"transition{i}", Transition(channels, channels // 2))
                channels //= 2
        self.features.norm5 = nn.BatchNorm2d(channels)
        self.classifier = nn.Linear(channels, num_classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = F.relu(self.features(x), inplace=True)
        x = torch.flatten(F.adaptive_avg_pool2d(x, (1, 1)), 1)
        return self.classifier(x)


def make() -> DenseNet121:
    with seeded():
        return settle_batch_norm_(he_normal_(DenseNet121()), example_inputs()).eval()


def example_inputs(batch: int = 2) -> tuple[torch.Tensor]:
    return (seeded_normal(batch, 3, 224, 224),)


def dynamic_batch() -> dict[str, dict[int, str]]:
    return {"image": {0: "batch"}}
