"""Vision Transformer B/16 (Dosovitskiy et al., 2020) at 224x224; 86,567,656 parameters."""

import torch
from torch import nn

from .initialize import seeded, seeded_normal

IMAGE = 224
PATCH = 16
WIDTH = 768
HEADS = 12
MLP_WIDTH = 3072
LAYERS = 12
LAYER_NORM_EPS = 1e-6


class EncoderBlock(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.ln_1 = nn.LayerNorm(WIDTH, eps=LAYER_NORM_EPS)
        self.self_attention = nn.MultiheadAttention(WIDTH, HEADS, batch_first=True)
        self.ln_2 = nn.LayerNorm(WIDTH, eps=LAYER_NORM_EPS)
        self.mlp = nn.Sequential(
            nn.Linear(WIDTH, MLP_WIDTH), nn.GELU(), nn.Linear(MLP_WIDTH, WIDTH)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.ln_1(x)
        y, _ = self.self_attention(y, y, y, need_weights=False)
        x = x + y
        return x + self.mlp(self.ln_2(x))


class VisionTransformer(nn.Module):
    def __init__(self, num_classes: int = 1000) -> None:
        super().__init__()
        self.conv_proj = nn.Conv2d(3, WIDTH, kernel_size=PATCH, stride=PATCH)
        self.class_token = nn.Parameter(0.02 * torch.randn(1, 1, WIDTH))
        tokens = (IMAGE // PATCH) ** 2 + 1
        self.pos_embedding = nn.Parameter(0.02 * torch.randn(1, tokens, WIDTH))
        self.layers = nn.Sequential(*(EncoderBlock() for _ in range(LAYERS)))
        self.ln = nn.LayerNorm(WIDTH, eps=LAYER_NORM_EPS)
        self.head = nn.Linear(WIDTH, num_classes)

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        patches = self.conv_proj(image).flatten(2).transpose(1, 2)
        class_token = self.class_token.expand(image.shape[0], -1, -1)
        x = torch.cat([class_token, patches], dim=1) + self.pos_embedding
        x = self.ln(self.layers(x))
        return self.head(x[:, 0])


def make() -> VisionTransformer:
    with seeded():
        return VisionTransformer().eval()


def example_inputs(batch: int = 2) -> tuple[torch.Tensor]:
    return (seeded_normal(batch, 3, IMAGE, IMAGE),)


def dynamic_batch() -> dict[str, dict[int, str]]:
    return {"image": {0: "batch"}}
