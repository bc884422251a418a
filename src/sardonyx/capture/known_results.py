"""Results on fake tensors that are known: models call an operator on tensors of one shape again and
again, layer by layer, and PyTorch takes long over a shape that has symbols."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import Any

import sympy
import torch

from sardonyx import _torch_private
from sardonyx._torch_private import OpOverload
from sardonyx.capture.watched_calls import tensors_in

_SYMBOLIC = (torch.SymInt, torch.SymFloat, torch.SymBool)


class KnownResults:
    """What operators gave for arguments of these types, sizes and strides. Calls that are alike get
    tensors that are alike, and never the same: of a fake tensor PyTorch remembers how many
    elements are not 0, and two masks of one shape have different numbers of them. Nor do they
    share memory, by which is told later what is a view of what."""

    def __init__(self, mode: Any) -> None:
        self._mode = mode
        self._known: dict[Hashable, tuple[Any, list[torch.Tensor]]] = {}
        """The results, and the tensors that they were made of."""

    def of(self, op: OpOverload, arguments: Mapping[str, Any], run: Callable[[], Any]) -> Any:
        """`run` is asked where the result is not known, or is another one for each call: operators
        that write return what they were given, and what data decides is never the same."""
        if op._schema.is_mutable:
            return run()
        symbols: set[sympy.Basic] = set()
        key = (op, *((name, _key(a, symbols)) for name, a in arguments.items()))
        try:
            known = self._known.get(key)
        except TypeError:  # an argument that cannot be a key
            return run()
        if known is not None:
            return self._another(*known)
        result = run()
        of_result: set[sympy.Basic] = set()
        _key(result, of_result)
        data = (s for s in symbols if _torch_private.depends_on_data(self._mode, s))
        given = list(tensors_in([*arguments.values()]))
        can_be_made = all(_is_plain(t) or _is_view(t, given) for t in tensors_in(result))
        if can_be_made and of_result <= symbols and not any(data):
            self._known[key] = _detached(result), given
        return result

    def _another(self, result: Any, given: list[torch.Tensor]) -> Any:
        if isinstance(result, (list, tuple)):
            return [self._another(item, given) for item in result]
        if not isinstance(result, torch.Tensor):
            return result
        if _is_view(result, given):
            return result.detach()
        sizes, strides = list(result.shape), list(result.stride())
        return _torch_private.fake_from_strides(self._mode, result, sizes, strides)


def _detached(result: Any) -> Any:
    if isinstance(result, (list, tuple)):
        return [_detached(item) for item in result]
    return result.detach() if isinstance(result, torch.Tensor) else result


def _is_plain(tensor: torch.Tensor) -> bool:
    """Whether its sizes and strides say all of it."""
    return (
        tensor.layout == torch.strided
        and not (tensor.is_quantized or tensor.is_conj() or tensor.is_neg())
        and _torch_private.dim_of(tensor.storage_offset()) == 0
    )


def _is_view(tensor: torch.Tensor, given: list[torch.Tensor]) -> bool:
    return tensor.layout == torch.strided and any(
        other.layout == torch.strided and _torch_private.shares_memory(tensor, other)
        for other in given
    )


def _key(argument: Any, symbols: set[sympy.Basic]) -> Any:
    """What a result may depend on; `symbols` gets those of its sizes."""
    if isinstance(argument, torch.Tensor):
        is_known = getattr(argument, "constant", None) is not None  # its values decide then
        if is_known or argument.layout != torch.strided or not _torch_private.is_fake(argument):
            return _Unlike()
        numbers = (*argument.shape, *argument.stride(), argument.storage_offset())
        sizes = tuple(_key(number, symbols) for number in numbers)
        return argument.dtype, argument.device, argument.is_conj(), argument.is_neg(), sizes
    if isinstance(argument, (list, tuple)):
        return tuple(_key(item, symbols) for item in argument)
    if isinstance(argument, _SYMBOLIC):
        expression = _torch_private.dim_of(argument)
        if isinstance(expression, sympy.Basic):
            symbols |= expression.free_symbols
        return type(argument), expression
    return type(argument), argument


class _Unlike:
    """Equal to nothing."""
