"""`alpha_f=1.0`: attributes that say their type in the last letter, checked against `onnx.defs`."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable, Mapping
from numbers import Integral, Real
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import torch

from sardonyx.errors import SymbolicFunctionError
from sardonyx.lower.weights import TorchTensor

_SPECIFIER = re.compile(r"(?P<name>.+)_(?P<letter>[fistgz])$")
_SINGLE = {
    "f": ir.AttributeType.FLOAT,
    "i": ir.AttributeType.INT,
    "s": ir.AttributeType.STRING,
    "t": ir.AttributeType.TENSOR,
    "z": ir.AttributeType.TENSOR,
    "g": ir.AttributeType.GRAPH,
}
_SEVERAL = {
    ir.AttributeType.FLOAT: ir.AttributeType.FLOATS,
    ir.AttributeType.INT: ir.AttributeType.INTS,
    ir.AttributeType.STRING: ir.AttributeType.STRINGS,
    ir.AttributeType.TENSOR: ir.AttributeType.TENSORS,
    ir.AttributeType.GRAPH: ir.AttributeType.GRAPHS,
}
_LETTERS = {kind: letter for letter, kind in _SINGLE.items() if letter != "z"}
_LETTERS |= {several: _LETTERS[single] for single, several in _SEVERAL.items()}


def attributes_of(
    operator: str,
    given: Mapping[str, Any],
    known: Mapping[str, ir.AttributeType] | None,
) -> list[ir.Attr]:
    """The attributes of a node. `known` is what the operator takes; None if nothing says."""
    made = []
    for specifier, value in given.items():
        if value is None:
            continue
        match = _SPECIFIER.match(specifier)
        if match is None:
            raise SymbolicFunctionError(_no_letter(operator, specifier, known))
        name, letter = match["name"], match["letter"]
        kind = _SINGLE[letter]
        value = _listed(value, letter)
        if isinstance(value, list):
            kind = _SEVERAL[kind]
        if known is not None:
            _check(operator, name, letter, kind, known, value)
        try:
            made.append(_attribute(name, kind, value))
        except (TypeError, ValueError) as error:
            raise SymbolicFunctionError(
                f"{operator}: {specifier}={value!r} is not {_described(kind)}: {error}"
            ) from error
    return made


def _listed(value: Any, letter: str) -> Any:
    """Several numbers, strings or tensors as a list, in whatever they are held."""
    if isinstance(value, (torch.Tensor, np.ndarray)):
        return value if letter in "tz" or value.ndim == 0 else value.tolist()
    if isinstance(value, Iterable) and letter in "fist" and not isinstance(value, (str, bytes)):
        return list(value)
    return value


def letter_of(value: Any) -> str | None:
    """The letter for an attribute whose value says what it is: a list of 1 and 2.0 is one of
    floats. None for what no attribute holds, and for an empty list."""
    items = value if isinstance(value, (list, tuple)) and value else [value]
    for letter, kind in _HELD.items():
        if all(isinstance(item, kind) for item in items):
            return letter
    return None


_HELD: dict[str, type | tuple[type, ...]] = {
    "i": Integral,
    "f": Real,
    "s": (str, bytes),
    "t": (torch.Tensor, np.ndarray, ir.TensorProtocol, onnx.TensorProto),
    "g": (onnx.GraphProto, ir.Graph),
}


def _no_letter(operator: str, specifier: str, known: Mapping[str, ir.AttributeType] | None) -> str:
    letter = _LETTERS.get((known or {}).get(specifier, ir.AttributeType.UNDEFINED))
    hint = f"{specifier}_{letter}" if letter else f"{specifier}_f, _i, _s, _t or _g"
    return (
        f"{operator}: attribute {specifier!r} does not say its type in its last letter: write"
        f" {hint}"
    )


def _check(
    operator: str,
    name: str,
    letter: str,
    kind: ir.AttributeType,
    known: Mapping[str, ir.AttributeType],
    value: Any,
) -> None:
    wanted = known.get(name)
    if wanted is None:
        listed = ", ".join(f"{n}_{_LETTERS.get(k, '?')}" for n, k in sorted(known.items()))
        raise SymbolicFunctionError(
            f"{operator} has no attribute {name!r} at this opset: "
            + (f"it has {listed}" if listed else "it has none")
        )
    if kind != wanted:
        raise SymbolicFunctionError(
            f"{operator}: {name}_{letter}={value!r} is {_described(kind)}, and {name} takes"
            f" {_described(wanted)}: {name}_{_LETTERS.get(wanted, letter)}"
        )


def _described(kind: ir.AttributeType) -> str:
    if kind in _SEVERAL.values():
        return f"a list of {kind.name.lower()}"
    article = "an" if kind.name[0] in "AEIOU" else "a"
    return f"{article} {kind.name.lower()}"


def _attribute(name: str, kind: ir.AttributeType, value: Any) -> ir.Attr:
    converters: dict[ir.AttributeType, Callable[[Any], Any]] = {
        ir.AttributeType.FLOAT: float,
        ir.AttributeType.INT: _integer,
        ir.AttributeType.STRING: _text,
        ir.AttributeType.TENSOR: functools.partial(_tensor, name),
        ir.AttributeType.GRAPH: _graph,
    }
    if kind in converters:
        return ir.Attr(name, kind, converters[kind](value))
    convert = next(converters[one] for one, several in _SEVERAL.items() if several == kind)
    return ir.Attr(name, kind, [convert(item) for item in value])


def _integer(value: Any) -> int:
    if isinstance(value, float) and not value.is_integer():
        raise ValueError("it has a fraction")
    return int(value)


def _text(value: Any) -> str:
    if isinstance(value, bytes):
        return value.decode()
    if not isinstance(value, str):
        raise TypeError(f"a {type(value).__name__}")
    return value


def _tensor(name: str, value: Any) -> ir.TensorProtocol:
    if isinstance(value, onnx.TensorProto):
        value = ir.serde.deserialize_tensor(value)
    if isinstance(value, ir.TensorProtocol):
        value = np.array(value.numpy())
    return TorchTensor(torch.as_tensor(value).detach(), name)


def _graph(value: Any) -> ir.Graph:
    if isinstance(value, onnx.GraphProto):
        return ir.serde.deserialize_graph(value)
    graph = getattr(value, "onnx_graph", value)
    if not isinstance(graph, ir.Graph):
        raise TypeError(f"a {type(value).__name__}")
    return graph
