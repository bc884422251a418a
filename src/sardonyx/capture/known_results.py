"""Results on fake tensors that are known: models call an operator on tensors of one shape again and
again, layer by layer, and PyTorch takes long over a shape that has symbols."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import Any

import sympy
import torch

from sardonyx import _torch_private
from sardonyx._torch_private import OpOverload

_SYMBOLIC = (torch.SymInt, torch.SymFloat, torch.SymBool)


class KnownResults:
    """What operators gave for arguments of these types, sizes and strides. Calls that are alike get
    tensors that are alike, and never the same: of a fake tensor PyTorch remembers how many
    elements are not 0, and two masks of one shape have different numbers of them."""

    def __init__(self, mode: Any) -> None:
        self._mode = mode
        self._known: dict[Hashable, Any] = {}

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
            return _another(known)
        result = run()
        of_result: set[sympy.Basic] = set()
        _key(result, of_result)
        data = (s for s in symbols if _torch_private.depends_on_data(self._mode, s))
        if of_result <= symbols and not any(data):
            self._known[key] = _another(result)
        return result


def _another(result: Any) -> Any:
    if isinstance(result, (list, tuple)):
        return [_another(item) for item in result]
    return result.detach() if isinstance(result, torch.Tensor) else result


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
