"""Quantized tensors, which fake tensors cannot be: the model has their integers in their place."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import torch

from sardonyx import _torch_private
from sardonyx._torch_private import OpOverload
from sardonyx.aten.control_flow import LOOP
from sardonyx.aten.graph import Argument, Node, TensorType, Value
from sardonyx.aten.pytree import tensors_in
from sardonyx.aten.schema import bind
from sardonyx.aten.type_inference import type_of
from sardonyx.capture.function_overrides.function_mode import FunctionOverride
from sardonyx.capture.quantized.reader import CREATES, QuantizedReader
from sardonyx.capture.quantized.tensor import PackedParameters, QuantizedTensor

if TYPE_CHECKING:
    from sardonyx.capture.recorder.recorder import Recorder


class QuantizedCalls:
    """The calls that take or give quantized tensors."""

    def __init__(self, recorder: Recorder, packed_names: dict[int, str]) -> None:
        """`packed_names`: what the packed weights of layers are called, by hash."""
        self._recorder = recorder
        self._packed_names = packed_names
        self._known: dict[int, QuantizedTensor] = {}
        """By the id of the tensor that the model has."""
        self._reader = QuantizedReader(
            self._emit,
            self._parameter,
            self._loop,
            lambda: _torch_private.example_sizes(recorder.mode),
        )

    def of(self, tensor: Any) -> QuantizedTensor | None:
        """What a tensor of the model stands for, if it is quantized."""
        known = self._known.get(id(tensor))
        if known is None and isinstance(tensor, torch.Tensor) and _is_real_and_quantized(tensor):
            recorder = self._recorder
            name = recorder.tensors.state_name(tensor) or recorder.tensors.new_name("constant")
            known = self._known[id(tensor)] = self._reader.constant(name, tensor)
            recorder.tensors.keep(tensor)
        return known

    def concerns(self, op: OpOverload, args: Sequence[Any], kwargs: dict[str, Any]) -> bool:
        if op.namespace == "quantized" or op._schema.name in CREATES:
            return True
        return any(
            id(tensor) in self._known or _is_real_and_quantized(tensor)
            for tensor in tensors_in((*args, *kwargs.values()))
        )

    def call(self, op: OpOverload, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        arguments = {name: self._argument(a) for name, a in bind(op, args, kwargs).items()}
        source = next((arguments[n] for n in ("src", "value", "values") if n in arguments), None)
        if isinstance(source, Value) and not source.dtype.is_floating_point:
            raise self._reader.refusal(  # PyTorch rounds 0.5 to an integer before a call is seen
                "a number is assigned to a part of a quantized tensor: write y[0].fill_(0.5)"
            )
        results = self._reader.read(op, arguments, self._recorder.location())
        given = [self._result(result, op) for result in results]
        returns = op._schema.returns
        if len(returns) != 1:
            return tuple(given)
        return given if returns[0].type.kind() == "ListType" else given[0]

    def _argument(self, argument: Any) -> Argument:
        if isinstance(argument, (list, tuple)):
            return [self._argument(item) for item in argument]
        if isinstance(argument, torch.ScriptObject):
            name = self._packed_names.get(hash(argument)) or self._recorder.tensors.new_name(
                "packed"
            )
            return PackedParameters(name, argument)
        found = self.of(argument)
        return self._recorder.argument(argument) if found is None else found

    def _result(self, result: Argument, op: OpOverload) -> Any:
        if isinstance(result, list):
            return [self._result(item, op) for item in result]
        if isinstance(result, QuantizedTensor):
            fake = self._recorder.tensors.fake_of_value(result.integers)
            if id(fake) in self._known and self._known[id(fake)] != result:
                fake = _torch_private.fake_view(
                    fake, fake.shape, fake.stride(), fake.storage_offset(), fake.dtype
                )
                self._recorder.tensors.register(fake, result.integers)
            self._known[id(fake)] = result
            return fake
        if isinstance(result, Value):
            fake = self._recorder.tensors.fake_of_value(result)
            if op._schema.name in ("aten::q_scale", "aten::q_zero_point"):
                return self._recorder.number_of(fake)
            return fake
        return result

    # -- nodes that the model itself does not make -----------------------------------------------

    def _emit(self, op: OpOverload, arguments: Sequence[Argument]) -> list[Value]:
        """The results of a call that the model itself does not make."""
        given = [self._recorder.given(argument) for argument in arguments]
        made = self._recorder.record_plain(op, tuple(given), {})
        return [self._recorder.tensors.value_of(fake) for fake in tensors_in(made)]

    def _parameter(self, name: str, tensor: torch.Tensor) -> Value:
        """A constant of the graph under a unique name."""
        while name in self._recorder.graph.parameters:
            name += "_"
        value = Value(name, type_of(tensor), constant=tensor)
        self._recorder.graph.parameters[name] = value
        self._recorder.tensors.fake_of_value(value)
        self._recorder.example.add_constant(value)
        return value

    def _loop(
        self,
        count: Argument,
        carried: Sequence[Value],
        body: Callable[[Value, list[Value]], tuple[list[Value], list[Value]]],
    ) -> list[Value]:
        """A loop that the model itself does not have: what is carried last, and what is stacked."""
        iteration = Value(self._recorder.tensors.new_name("iteration"), TensorType(torch.int64, ()))
        with self._recorder.block() as block:
            block.inputs = [
                iteration,
                *(Value(self._recorder.tensors.new_name("carried"), v.type) for v in carried),
            ]
            kept, stacked = body(block.inputs[0], block.inputs[1:])
            block.outputs = [None, *kept, *stacked]
        types = [v.type for v in carried]
        types += [TensorType(v.dtype, (count, *v.shape)) for v in stacked]
        results = [Value(self._recorder.tensors.new_name("loop"), type) for type in types]
        arguments = bind(LOOP, [count, None, list(carried)])
        self._recorder.nodes.append(
            Node(LOOP, arguments, results, self._recorder.location(), blocks=[block])
        )
        for result in results:
            self._recorder.example.varies(self._recorder.tensors.fake_of_value(result))
        return results


def _is_real_and_quantized(tensor: torch.Tensor) -> bool:
    return not _torch_private.is_fake(tensor) and tensor.is_quantized


class QuantizedAttributes(FunctionOverride):
    """Attributes of a quantized tensor, of which the model has the integers."""

    def __init__(self, quantized: QuantizedCalls) -> None:
        super().__init__()
        self._quantized = quantized

    def applies(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        return func in _QUESTIONS and self._quantized.of(args[0]) is not None

    def call(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        found = self._quantized.of(args[0])
        assert found is not None
        if func == _QUESTIONS[0]:
            return True
        if func == _QUESTIONS[1]:
            return found.dtype
        return torch.per_tensor_affine if found.axis is None else torch.per_channel_affine


_QUESTIONS: tuple[Any, ...] = (
    torch.Tensor.is_quantized.__get__,  # type: ignore[attr-defined]
    torch.Tensor.dtype.__get__,  # type: ignore[attr-defined]
    torch.Tensor.qscheme,
)
