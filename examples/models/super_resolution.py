"""Sub-pixel super resolution (Shi et al., 2016), upscale factor 3, as in pytorch/examples."""

import torch
from torch import nn

from .initialize import seeded, seeded_normal


class SuperResolution(nn.Module):
    def __init__(self, upscale_factor: int = 3) -> None:
        super().__init__()
        self.relu = nn.ReLU()
        self.conv1 = nn.Conv2d(1, 64, kernel_size=5, padding=2)
        self.conv2 = nn.Conv2d(64, 64, kernel_size=3, padding=1)
        self.conv3 = nn.Conv2d(64, 32, kernel_size=3, padding=1)
        self.conv4 = nn.Conv2d(32, upscale_factor**2, kernel_size=3, padding=1)
        self.pixel_shuffle = nn.PixelShuffle(upscale_factor)
        gain = nn.init.calculate_gain("relu")
        for conv in (self.conv1, self.conv2, self.conv3):
            nn.init.orthogonal_(conv.weight, gain)
        nn.init.orthogonal_(self.conv4.weight)

    def forward(self, luminance: torch.Tensor) -> torch.Tensor:
        x = self.relu(self.conv1(luminance))
        x = self.relu(self.conv2(x))
        x = self.relu(self.conv3(x))
        return self.pixel_shuffle(self.conv4(x))


def make() -> SuperResolution:
    with seeded():
        return SuperResolution().eval()


def example_inputs(batch: int = 2) -> tuple[torch.Tensor]:
    return (seeded_normal(batch, 1, 224, 224),)


def dynamic_batch() -> dict[str, dict[int, str]]:
    return {"luminance": {0: "batch"}}
