"""Calls that cannot be recorded as they are, made by calls that can."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

import torch

from sardonyx import _torch_private
from sardonyx.aten.pytree import leaves_in
from sardonyx.aten.shape_rules.layers import with_kernel
from sardonyx.capture.function_overrides.function_mode import FunctionOverride
from sardonyx.capture.function_overrides.resize import RESIZE_OVERRIDES
from sardonyx.capture.function_overrides.symbolic_variants import SYMBOLIC_VARIANTS
from sardonyx.capture.function_overrides.symint_operators import SYMINT_OVERRIDES


class OperatorOverrides(FunctionOverride):
    """Comparisons that give a Python bool compute a tensor and read it. Index tensors without dims
    are read as numbers, and masks beside other index tensors become indices. Slices are taken
    before they are written. Sizes that PyTorch would specialize stay symbols."""

    def applies(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        if func in _INDEXED:
            parts = args[1] if isinstance(args[1], tuple) else (args[1],)
            return any(map(_is_unplain, parts)) or (
                func is torch.Tensor.__setitem__ and _has_symbolic_slice(args[0], parts)
            )
        return func in _WITH_FUNCTION or func in _REPLACED

    def call(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if func in _INDEXED:
            tensor, index, *assigned = args
            index = _with_read_bounds(index)
            tensor, index = _with_plain_masks(tensor, index, *assigned)
            tensor, index = _recordable(tensor, index)
            if assigned:
                tensor, index = _sliced(tensor, index)
            return func(tensor, index, *assigned)
        if func in _WITH_FUNCTION:
            return _WITH_FUNCTION[func](func, *args, **kwargs)
        return _REPLACED.get(func, func)(*args, **kwargs)


def _is_unplain(part: Any) -> bool:
    if isinstance(part, slice):
        return any(isinstance(b, torch.Tensor) for b in (part.start, part.stop, part.step))
    return isinstance(part, (torch.Tensor, torch.SymInt, list))


def _with_read_bounds(index: Any) -> Any:
    """Bounds of slices that are tensors, as the numbers that they hold."""
    if isinstance(index, tuple):
        return tuple(map(_with_read_bounds, index))
    if not isinstance(index, slice) or not _is_unplain(index):
        return index
    bounds = (index.start, index.stop, index.step)
    return slice(*(b.item() if isinstance(b, torch.Tensor) else b for b in bounds))


_INDEXED = (torch.Tensor.__getitem__, torch.Tensor.__setitem__)
_WITH_FUNCTION = {**SYMINT_OVERRIDES, **RESIZE_OVERRIDES}


def _with_plain_masks(
    tensor: torch.Tensor, index: Any, assigned: Any = None
) -> tuple[torch.Tensor, Any]:
    """The parts of tensor[index], or of tensor[index] = assigned, with masks of bools that have
    dims."""
    parts = index if isinstance(index, tuple) else (index,)
    if any(map(_is_of_bytes, parts)) and not _is_refused(assigned):
        parts = tuple(part.to(torch.bool) if _is_of_bytes(part) else part for part in parts)
        index = parts if isinstance(index, tuple) else parts[0]
    mask = index[0] if isinstance(index, tuple) and len(index) == 1 else index
    if isinstance(mask, torch.Tensor) and mask.dim() == 0 and mask.dtype == torch.bool:
        # It stands for a dim of the result that has the size 1 or 0.
        return tensor.unsqueeze(0), mask.reshape(1)
    return tensor, index


def _is_refused(assigned: Any) -> bool:
    """Whether PyTorch takes no masks of uint8 for what is assigned: a single number."""
    if isinstance(assigned, torch.Tensor):
        return bool(assigned.numel() == 1)
    return assigned is not None


def _is_of_bytes(index: Any) -> bool:
    return isinstance(index, torch.Tensor) and index.dtype == torch.uint8


def _recordable(tensor: torch.Tensor, index: Any) -> tuple[torch.Tensor, Any]:
    indices = list(index) if isinstance(index, tuple) else [index]
    for position in reversed([p for p, i in enumerate(indices) if _is_number(i)]):
        dim = _dim_indexed_at(position, indices, tensor.dim())
        at: Any = indices[position]
        number: Any = at.item() if isinstance(at, torch.Tensor) else at
        tensor = tensor.select(dim, number)
        del indices[position]
    if sum(isinstance(i, (torch.Tensor, list)) for i in indices) > 1:
        indices = [place for i in indices for place in _places(i)]
    return tensor, tuple(indices) if isinstance(index, tuple) or not indices else index


def _has_symbolic_slice(tensor: torch.Tensor, parts: Sequence[Any]) -> bool:
    slices = [part for part in parts if isinstance(part, slice) and part != slice(None)]
    sizes = [*tensor.shape, *(bound for s in slices for bound in (s.start, s.stop, s.step))]
    return bool(slices) and any(isinstance(size, torch.SymInt) for size in sizes)


def _sliced(tensor: torch.Tensor, index: Any) -> tuple[torch.Tensor, Any]:
    """What tensor[index] = ... writes, and where in it, without slices. PyTorch drops those that
    are as long as the dim, and assumes that dynamic sizes are at least 2."""
    parts = list(index) if isinstance(index, tuple) else [index]
    if not _has_symbolic_slice(tensor, parts):
        return tensor, index
    for position, part in enumerate(parts):
        if isinstance(part, slice):
            dim = _dim_indexed_at(position, parts, tensor.dim())
            bounds = (part.start, part.stop, 1 if part.step is None else part.step)
            tensor = torch.ops.aten.slice.Tensor(tensor, dim, *bounds)
            parts[position] = slice(None)
    return tensor, tuple(parts)


def _dim_indexed_at(position: int, indices: Sequence[Any], rank: int) -> int:
    before = indices[:position]
    if any(i is Ellipsis for i in before):
        return rank - sum(map(_dims_taken, indices[position:]))
    return sum(map(_dims_taken, before))


def _dims_taken(index: Any) -> int:
    if index is None or index is Ellipsis or isinstance(index, bool):
        return 0
    if isinstance(index, torch.Tensor) and index.dtype in (torch.bool, torch.uint8):
        return index.dim()
    return 1


def _is_number(index: Any) -> bool:
    return isinstance(index, torch.SymInt) or (
        isinstance(index, torch.Tensor)
        and not _torch_private.is_transformed(index)
        and index.dim() == 0
        and not index.dtype.is_floating_point
        and index.dtype not in (torch.bool, torch.uint8)
    )


def _places(index: Any) -> Sequence[Any]:
    """The index tensors that a mask stands for."""
    if isinstance(index, torch.Tensor) and index.dtype == torch.bool and index.dim() > 0:
        return index.nonzero(as_tuple=True)
    return [index]


def _equal(input: torch.Tensor, other: torch.Tensor) -> Any:
    if input.shape != other.shape:
        return False
    return (input == other).all().item()


def _allclose(
    input: torch.Tensor,
    other: torch.Tensor,
    rtol: float = 1e-05,
    atol: float = 1e-08,
    equal_nan: bool = False,
) -> Any:
    return torch.isclose(input, other, rtol, atol, equal_nan).all().item()


def _group_norm(
    input: torch.Tensor,
    num_groups: int,
    weight: torch.Tensor | None = None,
    bias: torch.Tensor | None = None,
    eps: float = 1e-5,
) -> torch.Tensor:
    """Without its check of the size of the batch, which data may decide."""
    return torch.group_norm(input, num_groups, weight, bias, eps)


def _as_tensor(data: Any, dtype: Any = None, device: Any = None, **options: Any) -> torch.Tensor:
    """As torch.tensor makes it of numbers and tensors without dims, which may be symbols: it would
    read their values."""
    if _has_symbol(data):
        return _stacked(data, dtype or _dtype_of(list(leaves_in(data))), device)
    return torch.as_tensor(data, dtype=dtype, device=device)


def _tensor(data: Any, **options: Any) -> torch.Tensor:
    if _has_symbol(data):
        return _as_tensor(data, options.get("dtype"), options.get("device"))
    return torch.tensor(data, **options)


_NUMBERS = (torch.SymInt, torch.SymFloat, torch.SymBool)


def _stacked(item: Any, dtype: torch.dtype, device: Any) -> torch.Tensor:
    if isinstance(item, (list, tuple)):
        return torch.stack([_stacked(inner, dtype, device) for inner in item])
    if isinstance(item, torch.Tensor):
        return item.to(device=device, dtype=dtype)
    return torch.scalar_tensor(item, dtype=dtype, device=device)


def _has_symbol(data: Any) -> bool:
    """Whether it is a symbolic number, or a list with those or with tensors in it."""
    if not isinstance(data, (list, tuple)):
        return isinstance(data, _NUMBERS)
    return any(isinstance(n, (torch.Tensor, *_NUMBERS)) for n in leaves_in(data))


def _dtype_of(numbers: Sequence[Any]) -> torch.dtype:
    kinds = [n.dtype if isinstance(n, torch.Tensor) else _kind(n) for n in numbers]
    return reduce(torch.promote_types, kinds)


def _kind(number: Any) -> torch.dtype:
    if isinstance(number, (bool, torch.SymBool)):
        return torch.bool
    return torch.int64 if isinstance(number, (int, torch.SymInt)) else torch.get_default_dtype()


def _deepcopy(tensor: torch.Tensor, memo: dict[int, Any]) -> torch.Tensor:
    if id(tensor) not in memo:
        memo[id(tensor)] = tensor.clone()
    copy: torch.Tensor = memo[id(tensor)]
    return copy


def _same_memory(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.detach()


def _reduced(tensor: torch.Tensor, protocol: int) -> Any:
    """copy.copy(x) is another tensor of the same memory."""
    if _torch_private.is_fake(tensor):
        return _same_memory, (tensor,)
    return tensor.__reduce_ex__(protocol)  # type: ignore[no-untyped-call]


def _zeros(*sizes: Any, **options: Any) -> torch.Tensor:
    """The first state of a layer has as many rows as the first step of packed sequences, a number
    that torch.nn reads off a tensor."""
    numbers: list[Any] = [s.item() if isinstance(s, torch.Tensor) else s for s in sizes]
    return torch.zeros(*numbers, **options)


def _pad_packed_sequence(*args: Any) -> Any:
    """A symbolic length is that of the longest sequence, which the operator takes by itself: -1."""
    *others, length = args
    given = -1 if isinstance(length, torch.SymInt) else length
    return _torch_private.PAD_PACKED_SEQUENCE(*others, given)


_REPLACED: dict[Any, Callable[..., Any]] = {
    torch.zeros: _zeros,
    _torch_private.PAD_PACKED_SEQUENCE: _pad_packed_sequence,
    torch.Tensor.__deepcopy__: _deepcopy,
    torch.Tensor.__reduce_ex__: _reduced,
    **SYMBOLIC_VARIANTS,
    torch.Tensor.nbytes.__get__: lambda x: x.numel() * x.element_size(),  # type: ignore[attr-defined]
    torch.nn.functional.group_norm: _group_norm,
    **{
        attend: with_kernel(attend)
        for attend in (
            torch.nn.functional.scaled_dot_product_attention,
            torch.nn.functional.multi_head_attention_forward,
        )
    },
    torch.as_tensor: _as_tensor,
    torch.asarray: _as_tensor,
    torch.tensor: _tensor,
    torch.Tensor.new_tensor: lambda x, data, **options: _tensor(
        data, **{"dtype": x.dtype, "device": x.device, **options}
    ),
    torch.equal: _equal,
    torch.Tensor.equal: _equal,
    torch.allclose: _allclose,
    torch.Tensor.allclose: _allclose,
}
