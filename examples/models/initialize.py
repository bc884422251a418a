"""Seeded weights that keep the signal alive through deep networks, in place of trained ones."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import torch
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm

Model = TypeVar("Model", bound=nn.Module)


@contextmanager
def seeded(seed: int = 0) -> Iterator[None]:
    """Seed the random numbers inside the block and leave those outside untouched."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        yield


def he_normal_(model: Model) -> Model:
    """He-normal weights for convolutions and linear layers, small nonzero biases."""
    for module in model.modules():
        if isinstance(module, (nn.Conv2d, nn.ConvTranspose2d, nn.Linear)):
            # A transposed convolution stores (in, out, ...): torch calls its fan-in fan-out.
            mode = "fan_out" if isinstance(module, nn.ConvTranspose2d) else "fan_in"
            nn.init.kaiming_normal_(module.weight, mode=mode, nonlinearity="relu")
            if module.bias is not None:
                nn.init.normal_(module.bias, std=0.05)
    return model


def settle_batch_norm_(model: Model, inputs: tuple[Any, ...]) -> Model:
    """Give each BatchNorm a random scale and shift and the statistics of one batch.

    Fresh ones (mean 0, variance 1, scale 1, shift 0) would hide a mistake in exporting or folding.
    """
    norms = [module for module in model.modules() if isinstance(module, _BatchNorm)]
    momenta = [norm.momentum for norm in norms]
    for norm in norms:
        nn.init.uniform_(norm.weight, 0.8, 1.2)
        nn.init.normal_(norm.bias, std=0.1)
        norm.momentum = None  # a cumulative mean: after one batch, the statistics of that batch
    with torch.no_grad():
        model.train()(*inputs)
    for norm, momentum in zip(norms, momenta, strict=True):
        norm.momentum = momentum
    return model


def seeded_normal(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(1))
