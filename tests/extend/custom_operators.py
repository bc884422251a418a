"""Operators of other libraries that the tests of this folder export."""

from __future__ import annotations

import torch

LIBRARY = torch.library.Library("extend_tests", "DEF")
LIBRARY.define("foo_forward(Tensor input1, Tensor input2, float attr1, int attr2) -> Tensor")
LIBRARY.define("two(Tensor x, int[] sizes, str mode, bool flag=False) -> (Tensor, Tensor)")


def _foo(input1, input2, attr1, attr2):
    return input1 * attr1 + input2 * attr2


def _two(x, sizes, mode, flag=False):
    return x + sum(sizes), x - 1


LIBRARY.impl("foo_forward", _foo, "CompositeExplicitAutograd")
LIBRARY.impl("two", _two, "CompositeExplicitAutograd")


@torch.library.custom_op("extend_tests::scaled", mutates_args=())
def scaled(x: torch.Tensor, factor: float) -> torch.Tensor:
    return x * factor


@scaled.register_fake
def _(x, factor):
    return torch.empty_like(x)


@torch.library.custom_op("extend_tests::typeless", mutates_args=())
def typeless(x: torch.Tensor) -> torch.Tensor:
    """Without a fake kernel: nothing says its shape but a run."""
    return x * 2
