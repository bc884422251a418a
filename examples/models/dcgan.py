"""The generator of DCGAN (Radford et al., 2015), as in pytorch/examples; 3,576,704 parameters."""

import torch
from torch import nn

from .initialize import he_normal_, seeded, seeded_normal, settle_batch_norm_


class Generator(nn.Module):
    """Noise of shape (batch, 100, 1, 1) to images of 64x64."""

    def __init__(self, noise: int = 100, features: int = 64, channels: int = 3) -> None:
        super().__init__()
        self.main = nn.Sequential(
            nn.ConvTranspose2d(noise, features * 8, 4, stride=1, padding=0, bias=False),
            nn.BatchNorm2d(features * 8),
            nn.ReLU(inplace=True),
            nn.ConvTranspose2d(features * 8, features * 4, 4, stride=2, padding=1, bias=False),
            nn.BatchNorm2d(features * 4),
            nn.ReLU(inplace=True),
            nn.ConvTranspose2d(features * 4, features * 2, 4, stride=2, padding=1, bias=False),
            nn.BatchNorm2d(features * 2),
            nn.ReLU(inplace=True),
            nn.ConvTranspose2d(features * 2, features, 4, stride=2, padding=1, bias=False),
            nn.BatchNorm2d(features),
            nn.ReLU(inplace=True),
            nn.ConvTranspose2d(features, channels, 4, stride=2, padding=1, bias=False),
            nn.Tanh(),
        )

    def forward(self, noise: torch.Tensor) -> torch.Tensor:
        return self.main(noise)


def make() -> Generator:
    with seeded():
        return settle_batch_norm_(he_normal_(Generator()), example_inputs()).eval()


def example_inputs(batch: int = 2) -> tuple[torch.Tensor]:
    return (seeded_normal(batch, 100, 1, 1),)


def dynamic_batch() -> dict[str, dict[int, str]]:
    return {"noise": {0: "batch"}}
