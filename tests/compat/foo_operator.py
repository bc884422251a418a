"""`torch.ops.custom_ops.foo_forward`, the C++ operator of the reference's examples, which do not
say what it computes. tests/extend/test_custom_kernels.py compiles one in C++."""

from __future__ import annotations

import torch

LIBRARY = torch.library.Library("custom_ops", "DEF")
LIBRARY.define("foo_forward(Tensor input1, Tensor input2, float attr1, int attr2) -> Tensor")
LIBRARY.define("foo(Tensor input_0, Tensor input_1) -> Tensor")
LIBRARY.impl(
    "foo_forward",
    lambda input1, input2, attr1, attr2: input1 * attr1 + input2 * attr2,
    "CompositeExplicitAutograd",
)
LIBRARY.impl("foo", lambda input_0, input_1: input_0 - input_1, "CompositeExplicitAutograd")
