"""What every example offers: a model, its inputs at any batch, and which axes are the batch."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn


@dataclass(frozen=True)
class Example:
    make: Callable[[], nn.Module]
    example_inputs: Callable[..., tuple[Any, ...]]
    dynamic_batch: Callable[[], dict[str, dict[int, str]]]

    @property
    def input_names(self) -> list[str]:
        """One name per input tensor, in order: every input of every example has a batch axis."""
        return list(self.dynamic_batch())


def flat_tensors(nested: Any) -> Iterator[torch.Tensor]:
    """The tensors of nested tuples and lists, in the order in which an exporter flattens them."""
    if isinstance(nested, torch.Tensor):
        yield nested
    elif isinstance(nested, (tuple, list)):
        for part in nested:
            yield from flat_tensors(part)
    else:
        raise TypeError(f"expected tensors, tuples and lists, got {type(nested).__name__}")
