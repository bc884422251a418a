"""What a symbolic function gets and gives: values with the methods that TorchScript's have."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import onnx_ir as ir
import sympy
import torch

from sardonyx.aten.graph import Dim, Node, Value, values_in
from sardonyx.aten.scalar_types import dtype_of_name, scalar_type_name
from sardonyx.errors import SymbolicFunctionError
from sardonyx.lower.provenance import SCOPE_KEY, SOURCE_KEY
from sardonyx.lower.values import ONNX_TO_TORCH, Tensor

if TYPE_CHECKING:
    from sardonyx.extend.symbolic_functions.graph_values import Values

_KINDS: dict[type, str] = {
    type(None): "NoneType",
    bool: "BoolType",
    int: "IntType",
    float: "FloatType",
    complex: "ComplexType",
    str: "StringType",
    torch.device: "DeviceObjType",
}


@dataclass(frozen=True, slots=True)
class ValueType:
    """What is known of a value. A dim is None where its size is not a number."""

    type_kind: str
    tensor_dtype: torch.dtype | None = None
    shape: tuple[Dim | None, ...] | None = None
    element: ValueType | None = None
    needs_grad: bool = False

    @classmethod
    def of_tensor(
        cls,
        dtype: torch.dtype | None,
        shape: tuple[Dim | None, ...] | None,
        *,
        requires_grad: bool = False,
    ) -> ValueType:
        return cls("TensorType", dtype, shape, needs_grad=requires_grad)

    def kind(self) -> str:
        """`TensorType`, `NoneType`, `IntType`, `ListType`, ..."""
        return self.type_kind

    def dim(self) -> int | None:
        """The rank, None where it is not known."""
        return None if self.shape is None else len(self.shape)

    def sizes(self) -> list[int] | None:
        """Every size; None unless all are numbers."""
        sizes = self.varyingSizes()
        if sizes is None:
            return None
        known = [size for size in sizes if size is not None]
        return known if len(known) == len(sizes) else None

    def varyingSizes(self) -> list[int | None] | None:
        """The sizes, None for those that are not numbers."""
        if self.shape is None:
            return None
        return [d if isinstance(d, int) else None for d in self.shape]

    symbolic_sizes = varyingSizes

    def scalarType(self) -> str | None:
        """`Float`, `Long`, ...; None where the dtype is not known."""
        return None if self.tensor_dtype is None else scalar_type_name(self.tensor_dtype)

    def dtype(self) -> torch.dtype | None:
        return self.tensor_dtype

    def strides(self) -> list[int] | None:
        """As for a contiguous tensor: ONNX has no others."""
        sizes = self.sizes()
        return None if sizes is None else list(torch.empty(sizes, device="meta").stride())

    def device(self) -> torch.device:
        return torch.device("cpu")

    def requiresGrad(self) -> bool:
        return self.needs_grad

    requires_grad = requiresGrad

    def getElementType(self) -> ValueType:
        if self.element is None:
            raise SymbolicFunctionError(f"{self} has no elements")
        return self.element

    def with_sizes(self, sizes: Sequence[int | None] | None) -> ValueType:
        return replace(self, shape=None if sizes is None else tuple(sizes))

    def with_dtype(self, dtype: torch.dtype) -> ValueType:
        return replace(self, tensor_dtype=dtype)

    def __str__(self) -> str:
        if self.type_kind == "TensorType":
            if self.tensor_dtype is None:
                return "Tensor"
            dims = "*" if self.shape is None else ", ".join(map(_dim_text, self.shape))
            return f"{self.scalarType()}({dims})"
        if self.element is not None:
            return f"{self.element}[]"
        return self.type_kind.removesuffix("Type").lower()


def _dim_text(dim: Dim | None) -> str:
    return "*" if dim is None else str(dim)


def type_given(given: Any) -> ValueType:
    """A type as `setType` takes it: one of ours, or a TorchScript tensor type."""
    if isinstance(given, ValueType):
        return given
    if not callable(getattr(given, "kind", None)):
        raise SymbolicFunctionError(f"setType() takes a type, as another value's type(): {given!r}")
    if given.kind() != "TensorType":
        return ValueType(given.kind())
    name, sizes = given.scalarType(), given.varyingSizes()
    dtype = None if name is None else dtype_of_name(name)
    return ValueType.of_tensor(dtype, None if sizes is None else tuple(sizes))


@dataclass(frozen=True, slots=True)
class Use:
    """A node that reads a value, and at which of its inputs."""

    user: SymbolicNode
    offset: int


class SymbolicValue:
    """A tensor of the ONNX graph, or an argument that is none: a number, a string, None, a list.

    `content` is an `ir.Value`, a list of SymbolicValues, a size expression, or the Python value.
    """

    def __init__(
        self,
        values: Values,
        content: Any,
        type_: ValueType,
        const: torch.Tensor | None = None,
    ) -> None:
        self._values = values
        self.content = content
        self._type = type_
        self.const = const
        """What a tensor holds, where that is known now."""

    @classmethod
    def of_tensor(cls, values: Values, tensor: Tensor) -> SymbolicValue:
        type_ = ValueType.of_tensor(tensor.dtype, tensor.shape)
        if tensor.is_sequence:
            type_ = ValueType("ListType", element=ValueType.of_tensor(tensor.dtype, tensor.shape))
        return cls(values, tensor.value, type_, tensor.const)

    @classmethod
    def of_python(cls, values: Values, content: Any) -> SymbolicValue:
        """An argument that is no tensor; a list of them, of tensors too, has SymbolicValues."""
        if isinstance(content, list):
            element = content[0].type() if content else ValueType("IntType")
            return cls(values, content, ValueType("ListType", element=element))
        if isinstance(content, sympy.Basic):
            kind = "IntType" if content.is_integer else "FloatType"
            return cls(values, content, ValueType(kind))
        kind = next((k for t, k in _KINDS.items() if isinstance(content, t)), "AnyType")
        return cls(values, content, ValueType(kind))

    # -- for this package ------------------------------------------------------------------------

    @property
    def is_tensor(self) -> bool:
        return isinstance(self.content, ir.Value)

    @property
    def is_list(self) -> bool:
        return isinstance(self.content, list)

    @property
    def is_computed_size(self) -> bool:
        return isinstance(self.content, sympy.Basic)

    @property
    def is_python(self) -> bool:
        """Whether it is a Python value that is known now, None among them."""
        return not (self.is_tensor or self.is_list or self.is_computed_size)

    @property
    def dtype(self) -> torch.dtype | None:
        return self._type.tensor_dtype

    @property
    def shape(self) -> tuple[Dim | None, ...] | None:
        return self._type.shape

    # -- as TorchScript's values -----------------------------------------------------------------

    def type(self) -> ValueType:
        return self._type

    def setType(self, type_: Any) -> SymbolicValue:
        """Say what is known of the result of an operator; gives the value back."""
        self._type = type_given(type_)
        if self.is_tensor:
            self._values.declare(self)
        return self

    def setTypeAs(self, other: SymbolicValue) -> SymbolicValue:
        return self.setType(other.type())

    def node(self) -> SymbolicNode:
        """What computes it: `onnx::Elu`, `onnx::Constant`, `prim::ListConstruct`, `prim::Param`."""
        if not isinstance(self.content, ir.Value):
            return _node_of_python(self)
        producer = self.content.producer()
        if producer is None:
            return SymbolicNode("prim::Param", [], [self], {})
        return node_of_onnx(self._values, producer)

    def debugName(self) -> str:
        return str(self.content.name) if self.is_tensor else f"{self.content}"

    def isCompleteTensor(self) -> bool:
        """Whether its dtype and every one of its sizes are known."""
        return self._type.tensor_dtype is not None and self._type.sizes() is not None

    def requiresGrad(self) -> bool:
        return self._type.needs_grad

    requires_grad = requiresGrad

    def uses(self) -> list[Use]:
        """The nodes written so far that read it."""
        if not isinstance(self.content, ir.Value):
            return []
        return [Use(node_of_onnx(self._values, use.node), use.idx) for use in self.content.uses()]

    def __repr__(self) -> str:
        return f"%{self.debugName()} : {self._type}"


class SymbolicNode:
    """A node of the ONNX graph, the node that is exported, or the source of an argument."""

    def __init__(
        self,
        kind: str,
        inputs: Sequence[SymbolicValue],
        outputs: Sequence[SymbolicValue],
        attributes: dict[str, Any],
        onnx_node: ir.Node | None = None,
        original: Node | None = None,
    ) -> None:
        self._kind = kind
        self._inputs = list(inputs)
        self._outputs = list(outputs)
        self._attributes = attributes
        self.onnx_node = onnx_node
        self.original = original

    def kind(self) -> str:
        return self._kind

    def mustBeNone(self) -> bool:
        return self._kind == "prim::Constant" and self._attributes.get("value", 0) is None

    def inputs(self) -> Iterator[SymbolicValue]:
        return iter(self._inputs)

    def outputs(self) -> Iterator[SymbolicValue]:
        return iter(self._outputs)

    def inputsAt(self, index: int) -> SymbolicValue:
        return self._inputs[index]

    def outputsAt(self, index: int) -> SymbolicValue:
        return self._outputs[index]

    def inputsSize(self) -> int:
        return len(self._inputs)

    def outputsSize(self) -> int:
        return len(self._outputs)

    def input(self) -> SymbolicValue:
        (only,) = self._inputs
        return only

    def output(self) -> SymbolicValue:
        (only,) = self._outputs
        return only

    def type(self) -> ValueType:
        """The type of its first result."""
        return self._outputs[0].type()

    def attributeNames(self) -> list[str]:
        return list(self._attributes)

    def hasAttribute(self, name: str) -> bool:
        return name in self._attributes

    def __getitem__(self, name: str) -> Any:
        if name not in self._attributes:
            raise SymbolicFunctionError(
                f"{self._kind} has no attribute {name!r}: it has {', '.join(self._attributes)}"
            )
        return self._attributes[name]

    t = i = f = s = fs = is_ = ss = ts = g = z = ival = __getitem__

    def schema(self) -> str:
        return "" if self.original is None else str(self.original.op._schema)

    def scopeName(self) -> str:
        if self.original is not None:
            return self.original.location.class_path
        return self._property(SCOPE_KEY)

    def sourceRange(self) -> str:
        if self.original is not None:
            return self.original.location.describe()
        return self._property(SOURCE_KEY)

    def _property(self, name: str) -> str:
        return "" if self.onnx_node is None else self.onnx_node.metadata_props.get(name, "")

    def __repr__(self) -> str:
        outputs = ", ".join(map(repr, self._outputs))
        inputs = ", ".join(f"%{v.debugName()}" for v in self._inputs)
        attributes = ", ".join(f"{k}={v}" for k, v in self._attributes.items())
        listed = f"[{attributes}]" if attributes else ""
        return f"{outputs} = {self._kind}{listed}({inputs})"


def _node_of_python(value: SymbolicValue) -> SymbolicNode:
    if value.is_list:
        kind = "Tuple" if value.type().kind() == "TupleType" else "List"
        return SymbolicNode(f"prim::{kind}Construct", value.content, [value], {})
    if value.is_computed_size:
        return SymbolicNode("aten::size", [], [value], {})
    return SymbolicNode("prim::Constant", [], [value], {"value": value.content})


def node_of_onnx(values: Values, node: ir.Node) -> SymbolicNode:
    attributes = {
        name: _attribute_value(attribute)
        for name, attribute in node.attributes.items()
        if not attribute.is_ref()
    }
    return SymbolicNode(
        f"{node.domain or 'onnx'}::{node.op_type}",
        [values.of_onnx(v) for v in node.inputs if v is not None],
        [values.of_onnx(v) for v in node.outputs],
        attributes,
        onnx_node=node,
    )


def _attribute_value(attribute: ir.Attr) -> Any:
    if attribute.type == ir.AttributeType.TENSOR:
        held = getattr(attribute.value, "raw", attribute.value)
        return held if isinstance(held, torch.Tensor) else torch.from_numpy(held.numpy().copy())
    return list(attribute.value) if isinstance(attribute.value, tuple) else attribute.value


def node_of_call(values: Values, node: Node, arguments: Sequence[SymbolicValue]) -> SymbolicNode:
    """The node that is being exported, with PyTorch's types of its results."""

    def typed(value: Value) -> SymbolicValue:
        needs_grad = any(a.requiresGrad() for a in arguments)
        made = ir.Value(name=value.name)
        return SymbolicValue(
            values, made, ValueType.of_tensor(value.dtype, value.shape, requires_grad=needs_grad)
        )

    attributes = {k: a for k, a in node.arguments.items() if not list(values_in(a))}
    return SymbolicNode(
        node.name.partition(".")[0],
        arguments,
        [typed(v) for v in node.outputs],
        attributes,
        original=node,
    )


def onnx_type(value: ir.Value) -> ValueType:
    """What the graph says of a value."""
    shape = None
    if value.shape is not None:
        shape = tuple(d if isinstance(d, int) else None for d in value.shape)
    dtype = None if value.dtype is None else ONNX_TO_TORCH.get(value.dtype)
    return ValueType.of_tensor(dtype, shape)
