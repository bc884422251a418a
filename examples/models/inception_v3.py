"""Inception v3 (Szegedy et al., 2015); 27,161,264 parameters with the auxiliary head."""

from typing import NamedTuple

import torch
from torch import nn
from torch.nn import functional as F

from .initialize import he_normal_, seeded, seeded_normal, settle_batch_norm_

KernelSize = int | tuple[int, int]


class InceptionOutputs(NamedTuple):
    logits: torch.Tensor
    aux_logits: torch.Tensor


class BasicConv2d(nn.Module):
    """Convolution, BatchNorm, ReLU; padded to keep the size unless `valid`."""

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel: KernelSize,
        *,
        stride: int = 1,
        valid: bool = False,
    ) -> None:
        super().__init__()
        height, width = (kernel, kernel) if isinstance(kernel, int) else kernel
        padding = (0, 0) if valid else (height // 2, width // 2)
        self.conv = nn.Conv2d(
            in_channels, out_channels, (height, width), stride=stride, padding=padding, bias=False
        )
        self.bn = nn.BatchNorm2d(out_channels, eps=0.001)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.relu(self.bn(self.conv(x)), inplace=True)


def same_size_average(x: torch.Tensor) -> torch.Tensor:
    return F.avg_pool2d(x, kernel_size=3, stride=1, padding=1)


class InceptionA(nn.Module):
    """35x35: 1x1, 5x5, double 3x3 and pooled branches."""

    def __init__(self, in_channels: int, pool_features: int) -> None:
        super().__init__()
        self.branch1x1 = BasicConv2d(in_channels, 64, 1)
        self.branch5x5 = nn.Sequential(BasicConv2d(in_channels, 48, 1), BasicConv2d(48, 64, 5))
        self.branch3x3dbl = nn.Sequential(
            BasicConv2d(in_channels, 64, 1), BasicConv2d(64, 96, 3), BasicConv2d(96, 96, 3)
        )
        self.branch_pool = BasicConv2d(in_channels, pool_features, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        pooled = self.branch_pool(same_size_average(x))
        return torch.cat([self.branch1x1(x), self.branch5x5(x), self.branch3x3dbl(x), pooled], 1)


class InceptionB(nn.Module):
    """35x35 to 17x17."""

    def __init__(self, in_channels: int) -> None:
        super().__init__()
        self.branch3x3 = BasicConv2d(in_channels, 384, 3, stride=2, valid=True)
        self.branch3x3dbl = nn.Sequential(
            BasicConv2d(in_channels, 64, 1),
            BasicConv2d(64, 96, 3),
            BasicConv2d(96, 96, 3, stride=2, valid=True),
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        pooled = F.max_pool2d(x, kernel_size=3, stride=2)
        return torch.cat([self.branch3x3(x), self.branch3x3dbl(x), pooled], 1)


class InceptionC(nn.Module):
    """17x17: factorized 7x7 branches of the given width."""

    def __init__(self, in_channels: int, width: int) -> None:
        super().__init__()
        self.branch1x1 = BasicConv2d(in_channels, 192, 1)
        self.branch7x7 = nn.Sequential(
            BasicConv2d(in_channels, width, 1),
            BasicConv2d(width, width, (1, 7)),
            BasicConv2d(width, 192, (7, 1)),
        )
        self.branch7x7dbl = nn.Sequential(
            BasicConv2d(in_channels, width, 1),
            BasicConv2d(width, width, (7, 1)),
            BasicConv2d(width, width, (1, 7)),
            BasicConv2d(width, width, (7, 1)),
            BasicConv2d(width, 192, (1, 7)),
        )
        self.branch_pool = BasicConv2d(in_channels, 192, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        pooled = self.branch_pool(same_size_average(x))
        return torch.cat([self.branch1x1(x), self.branch7x7(x), self.branch7x7dbl(x), pooled], 1)


class InceptionD(nn.Module):
    """17x17 to 8x8."""

    def __init__(self, in_channels: int) -> None:
        super().__init__()
        self.branch3x3 = nn.Sequential(
            BasicConv2d(in_channels, 192, 1), BasicConv2d(192, 320, 3, stride=2, valid=True)
        )
        self.branch7x7x3 = nn.Sequential(
            BasicConv2d(in_channels, 192, 1),
            BasicConv2d(192, 192, (1, 7)),
            BasicConv2d(192, 192, (7, 1)),
            BasicConv2d(192, 192, 3, stride=2, valid=True),
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        pooled = F.max_pool2d(x, kernel_size=3, stride=2)
        return torch.cat([self.branch3x3(x), self.branch7x7x3(x), pooled], 1)


class SplitConv2d(nn.Module):
    """1x3 and 3x1 convolutions of one input, side by side."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.row = BasicConv2d(channels, channels, (1, 3))
        self.column = BasicConv2d(channels, channels, (3, 1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cat([self.row(x), self.column(x)], 1)


class InceptionE(nn.Module):
    """8x8: branches that end in a split."""

    def __init__(self, in_channels: int) -> None:
        super().__init__()
        self.branch1x1 = BasicConv2d(in_channels, 320, 1)
        self.branch3x3 = nn.Sequential(BasicConv2d(in_channels, 384, 1), SplitConv2d(384))
        self.branch3x3dbl = nn.Sequential(
            BasicConv2d(in_channels, 448, 1), BasicConv2d(448, 384, 3), SplitConv2d(384)
        )
        self.branch_pool = BasicConv2d(in_channels, 192, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        pooled = self.branch_pool(same_size_average(x))
        return torch.cat([self.branch1x1(x), self.branch3x3(x), self.branch3x3dbl(x), pooled], 1)


class InceptionAux(nn.Module):
    def __init__(self, in_channels: int, num_classes: int) -> None:
        super().__init__()
        self.conv0 = BasicConv2d(in_channels, 128, 1)
        self.conv1 = BasicConv2d(128, 768, 5, valid=True)
        self.fc = nn.Linear(768, num_classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.conv1(self.conv0(F.avg_pool2d(x, kernel_size=5, stride=3)))
        return self.fc(torch.flatten(F.adaptive_avg_pool2d(x, (1, 1)), 1))


class InceptionV3(nn.Module):
    """Gives InceptionOutputs in training mode and the logits alone in evaluation mode."""

    def __init__(self, num_classes: int = 1000, dropout: float = 0.5) -> None:
        super().__init__()
        self.stem = nn.Sequential(
            BasicConv2d(3, 32, 3, stride=2, valid=True),
            BasicConv2d(32, 32, 3, valid=True),
            BasicConv2d(32, 64, 3),
            nn.MaxPool2d(kernel_size=3, stride=2),
            BasicConv2d(64, 80, 1),
            BasicConv2d(80, 192, 3, valid=True),
            nn.MaxPool2d(kernel_size=3, stride=2),
        )
        self.mixed_35 = nn.Sequential(
            InceptionA(192, 32), InceptionA(256, 64), InceptionA(288, 64), InceptionB(288)
        )
        self.mixed_17 = nn.Sequential(
            InceptionC(768, 128), InceptionC(768, 160), InceptionC(768, 160), InceptionC(768, 192)
        )
        self.aux = InceptionAux(768, num_classes)
        self.mixed_8 = nn.Sequential(InceptionD(768), InceptionE(1280), InceptionE(2048))
        self.avgpool = nn.AdaptiveAvgPool2d((1, 1))
        self.dropout = nn.Dropout(dropout)
        self.fc = nn.Linear(2048, num_classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor | InceptionOutputs:
        x = self.mixed_17(self.mixed_35(self.stem(x)))
        aux_logits = self.aux(x) if self.training else None
        x = self.dropout(self.avgpool(self.mixed_8(x)))
        logits = self.fc(torch.flatten(x, 1))
        return logits if aux_logits is None else InceptionOutputs(logits, aux_logits)


def make() -> InceptionV3:
    with seeded():
        return settle_batch_norm_(he_normal_(InceptionV3()), example_inputs()).eval()


def example_inputs(batch: int = 2) -> tuple[torch.Tensor]:
    return (seeded_normal(batch, 3, 299, 299),)


def dynamic_batch() -> dict[str, dict[int, str]]:
    return {"image": {0: "batch"}}
