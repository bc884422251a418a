"""Sizes of operands that may, or may not, broadcast.

A size that data decides may be 1 in one run and not in another. PyTorch takes it for equal to what
it meets; here the size of the result is one of its own, read off the result.
"""

from __future__ import annotations

from typing import Any

import sympy
import torch

from sardonyx import _torch_private
from sardonyx.aten.pytree import tensors_in


def with_common_sizes(
    op: Any, arguments: dict[str, Any], mode: Any, *, of_data: bool = False
) -> dict[str, Any]:
    """The arguments of a pointwise operator, fakes whose sizes may broadcast made by others of the
    size they have in common. `of_data`: only sizes that data decides, as where the operator runs at
    the sizes of the example."""
    if not _is_pointwise(op):
        return arguments
    tensors = list(tensors_in([*arguments.values()]))
    if len(tensors) < 2 or not any(isinstance(d, torch.SymInt) for t in tensors for d in t.shape):
        return arguments
    written = arguments["self"] if op._schema.is_mutable else None
    sizes: dict[int, Any] = {}
    for axis in range(1, 1 + max(t.dim() for t in tensors)):
        met = [t.shape[-axis] for t in tensors if t.dim() >= axis]
        common = _common_size(met, mode, of_data)
        if common is not None:
            if written is not None and written.dim() >= axis:
                common = written.shape[-axis]
            sizes[axis] = common
    if not sizes:
        return arguments
    return {name: _replaced(a, sizes, mode) for name, a in arguments.items()}


def with_open_sizes(op: Any, arguments: dict[str, Any], result: Any, mode: Any) -> Any:
    """What a pointwise operator gives, of sizes that are 0 where an operand is empty: PyTorch takes
    Min(1, n), the rows of x[:1], for 1."""
    if op._schema.is_mutable or not _is_pointwise(op):
        return result
    if not isinstance(result, torch.Tensor):
        return result
    found = list(result.shape)
    shapes = [t.shape for t in tensors_in([*arguments.values()])]
    sizes = _torch_private.with_open_sizes(found, shapes)
    if all(size is old for size, old in zip(sizes, found, strict=True)):
        return result
    return _torch_private.fake_from_sizes(mode, sizes, result.dtype, result.device)


def _is_pointwise(op: Any) -> bool:
    return torch.Tag.pointwise in op.tags or op._schema.name in _ALSO_POINTWISE


def _common_size(sizes: list[Any], mode: Any, of_data: bool) -> Any:
    """None where PyTorch knows it."""
    dims = {_torch_private.dim_of(size): size for size in sizes}
    dims.pop(1, None)
    if len(dims) < 2:
        return None
    if not any(_torch_private.depends_on_data(mode, dim) for dim in dims):
        if of_data:
            return None
        # Unequal in the example, too: an operator in a branch for other sizes.
        sizes_met = _torch_private.example_sizes(mode)
        met = {sympy.sympify(dim).xreplace(sizes_met) for dim in dims} - {1}
        if len(met) < 2 or all(isinstance(dim, int) for dim in dims):
            return None
    fixed = [size for dim, size in dims.items() if isinstance(dim, int)]
    return fixed[0] if fixed else _torch_private.new_data_dependent_length(mode)


def _replaced(argument: Any, sizes: dict[int, Any], mode: Any) -> Any:
    if isinstance(argument, (list, tuple)):
        return [_replaced(item, sizes, mode) for item in argument]
    if not isinstance(argument, torch.Tensor):
        return argument
    shape = list(argument.shape)
    changed = [
        axis for axis in sizes if len(shape) >= axis and _torch_private.dim_of(shape[-axis]) != 1
    ]
    for axis in changed:
        shape[-axis] = sizes[axis]
    if not changed:
        return argument
    return _torch_private.fake_from_sizes(mode, shape, argument.dtype, argument.device)


_ALSO_POINTWISE = frozenset(
    {
        "aten::masked_fill",
        "aten::masked_fill_",
        *(f"aten::__{prefix}{name}__" for name in ("and", "or", "xor") for prefix in ("", "i")),
    }
)
"""Operators that PyTorch does not tag so."""
