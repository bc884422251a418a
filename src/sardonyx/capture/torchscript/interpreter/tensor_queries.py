"""Operators that read something other than a tensor off a tensor: sizes, dtypes, comparisons, and
elements as Python numbers."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, reduce
from typing import TYPE_CHECKING

import torch

from sardonyx.aten.graph import Argument, Value
from sardonyx.capture.quantized.tensor import QuantizedTensor
from sardonyx.capture.torchscript.errors import ModelRaises, NotHere, ScriptRefusal
from sardonyx.capture.torchscript.types.values import ComputedNumber, DynamicItems

if TYPE_CHECKING:
    from sardonyx.capture.torchscript.interpreter.reader import GraphReader

_MOST_ITEMS = 64
"""Of a tensor whose `tolist()` becomes numbers one by one."""
_ELEMENTS = {0: torch.int64, 1: torch.float64, 3: torch.bool}
"""The last argument of prim::tolist."""
_aten = torch.ops.aten


class TensorQueries:
    """Each method is one operator; the tables below name them."""

    def __init__(self, reader: GraphReader) -> None:
        self._reader = reader
        self._numbers = reader.numbers
        self._lists = reader.lists

    def call(self, kind: str, arguments: list[Argument]) -> Argument:
        if not arguments or not isinstance(arguments[0], (Value, QuantizedTensor)):
            raise NotHere
        if isinstance(arguments[0], QuantizedTensor):
            if kind in _NEVER:
                return kind == "prim::is_quantized"
            if kind not in _OF_SHAPE:
                raise NotHere
        elif kind in OF_TYPES:
            return OF_TYPES[kind](arguments[0])
        question = _QUESTIONS.get(kind)
        if question is None:
            raise NotHere
        return question(self, *arguments)

    def size(self, tensor: Value, dim: Argument = None) -> Argument:
        if dim is None:
            return self._lists.new(tensor.shape)
        if isinstance(dim, int):
            rank = len(tensor.shape)
            if not -rank <= dim < rank:
                raise ModelRaises(f"size({dim}) of a tensor of {rank} dims")
            return tensor.shape[dim]
        return self._lists.at(tensor.shape, dim)

    def rank(self, tensor: Value) -> Argument:
        return len(tensor.shape)

    def length(self, tensor: Value) -> Argument:
        if not tensor.shape:
            raise ModelRaises("len() of a 0-d tensor")
        return tensor.shape[0]

    def element_count(self, tensor: Value) -> Argument:
        return reduce(self._product, tensor.shape, 1)

    def _product(self, left: Argument, right: Argument) -> Argument:
        return self._numbers.compute("aten::mul", [left, right], torch.int64)

    def byte_count(self, tensor: Value) -> Argument:
        return self._product(self.element_count(tensor), tensor.dtype.itemsize)

    def equal(self, left: Value, right: Value) -> Argument:
        """`torch.equal`: of one size, and in every element."""
        compared = partial(self._numbers.same_elements, left, right)
        return self._reader.either(self.is_same_size(left, right), compared, lambda: False)

    def all_close(self, left: Value, right: Value, *rest: Argument) -> Argument:
        close = self._numbers.call(_aten.isclose.default, left, right, *rest)
        return ComputedNumber(self._numbers.call(_aten.all.default, close))

    def is_same_size(self, left: Value, right: Value) -> Argument:
        if len(left.shape) != len(right.shape):
            return False
        return self._numbers.all_equal(left.shape, right.shape)

    def to_list(self, tensor: Value, dims: Argument, element: Argument) -> Argument:
        dtype = _ELEMENTS.get(element)
        if dtype is None or tensor.dtype.is_complex:
            raise ScriptRefusal("tolist() of complex numbers has no ONNX form")
        if len(tensor.shape) != dims:
            raise ScriptRefusal(
                f"tolist() gives lists of {dims} dims here, of a tensor of {len(tensor.shape)}"
            )
        copied = self._numbers.call(_aten._to_copy.default, tensor, dtype=dtype)
        return self._items(copied)

    def _items(self, tensor: Value) -> Argument:
        if not tensor.shape:
            return ComputedNumber(tensor)
        count = tensor.shape[0]
        if isinstance(count, int) and (count <= _MOST_ITEMS or len(tensor.shape) > 1):
            rows = [self._numbers.call(_aten.select.int, tensor, 0, i) for i in range(count)]
            return self._lists.new([self._items(row) for row in rows])
        if len(tensor.shape) > 1:
            raise ScriptRefusal(
                "tolist() gives a list of lists whose number is computed at run time",
                "index the tensor itself",
            )
        return self._lists.new(DynamicItems(tensor, of_numbers=True))


_NEVER = frozenset(
    f"prim::is_{name}"
    for name in (
        "cuda", "hpu", "ipu", "maia", "meta", "mkldnn", "mps", "mtia", "nested", "quantized",
        "sparse", "sparse_csr", "vulkan", "xla", "xpu",
    )
)  # fmt: skip
OF_TYPES: dict[str, Callable[[Value], Argument]] = {
    **dict.fromkeys(
        (*_NEVER, "aten::is_conj", "aten::is_neg", "aten::is_pinned"), lambda tensor: False
    ),
    "prim::is_cpu": lambda tensor: True,
    "prim::itemsize": lambda tensor: tensor.dtype.itemsize,
    "prim::name": lambda tensor: None,
    "prim::grad": lambda tensor: None,
    "aten::element_size": lambda tensor: tensor.dtype.itemsize,
    "aten::is_floating_point": lambda tensor: tensor.dtype.is_floating_point,
    "aten::is_complex": lambda tensor: tensor.dtype.is_complex,
    "aten::is_signed": lambda tensor: tensor.dtype.is_signed,
    "aten::get_device": lambda tensor: -1,
}
"""Answered by the type of a tensor, or by its being a plain one in memory."""
READ_NUMBERS = frozenset(
    f"aten::{name}"
    for name in (
        "Int", "Float", "Bool", "IntImplicit", "FloatImplicit", "ScalarImplicit", "item",
        "is_nonzero", "_local_scalar_dense",
    )
)  # fmt: skip
_OF_SHAPE = frozenset({"aten::size", "aten::dim", "aten::numel"})
_QUESTIONS: dict[str, Callable[..., Argument]] = {
    "aten::size": TensorQueries.size,
    "aten::dim": TensorQueries.rank,
    "aten::len": TensorQueries.length,
    "aten::numel": TensorQueries.element_count,
    "prim::nbytes": TensorQueries.byte_count,
    "prim::tolist": TensorQueries.to_list,
    "aten::equal": TensorQueries.equal,
    "aten::allclose": TensorQueries.all_close,
    "aten::is_same_size": TensorQueries.is_same_size,
}
