"""Control flow operators (`torch.cond`, `while_loop`, `scan` ...) as branches and loops: each
body is run on fake tensors, into a block of the graph."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial, reduce
from typing import TYPE_CHECKING, Any

import sympy
import torch

from sardonyx import _torch_private
from sardonyx.aten.control_flow import BRANCH, LOOP
from sardonyx.aten.graph import Argument, Block, Node, TensorType, Value
from sardonyx.aten.schema import bind
from sardonyx.aten.type_inference import type_of
from sardonyx.errors import CaptureError, UnsupportedOperatorError
from sardonyx.notes import error_at

if TYPE_CHECKING:
    from sardonyx.capture.recorder.recorder import Recorder

aten = torch.ops.aten
_MOST_WIDENINGS = 8


class ControlFlow:
    """Records the calls of higher-order operators."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._loop_sizes: set[sympy.Basic] = set()
        """Sizes that may be others in each iteration of a loop."""
        self._operators: dict[str, Callable[..., Any]] = {
            "cond": self._cond,
            "while_loop": self._while_loop,
            "while_loop_stack_output": partial(self._while_loop, stack=True),
            "scan": self._scan,
            "map_impl": lambda body, items, more=(): self._scan(body, [], items, more),
            "associative_scan": self._associative_scan,
            "flex_attention": self._flex_attention,
            "out_dtype": self._out_dtype,
            "print": lambda *args, **kwargs: None,
            "invoke_subgraph": lambda body, name, *operands: self._run(body, operands),
            "wrap_with_set_grad_enabled": lambda on, body, *operands: self._run(body, operands),
            "wrap_with_autocast": self._with_autocast,
            "dynamo_bypassing_wrapper": lambda wrap, body, *operands: self._run(body, operands),
            **dict.fromkeys(
                _BODY_AND_LIST, lambda body, operands, *more, **options: self._run(body, operands)
            ),
            **dict.fromkeys(
                _ONLY_MARK, lambda body, *operands, **options: self._run(body, operands)
            ),
        }

    def call(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        name = _torch_private.higher_order_name(func)
        record = self._operators.get(name)
        if record is None:
            first = self._recorder.location().describe()
            raise UnsupportedOperatorError(f"{name or func} has no ONNX form", [("first", first)])
        with self._recorder.example.logged_whole(func, args, kwargs) as logged:
            result = record(*args, **kwargs)
            logged.result = result
            return result

    # -- branches --------------------------------------------------------------------------------

    def _cond(self, condition: Any, then: Any, otherwise: Any, operands: Sequence[Any] = ()) -> Any:
        if isinstance(condition, torch.SymBool) and condition.node.expr.is_number:
            condition = bool(condition)
        if isinstance(condition, (bool, int)):  # a size that is always on one side
            return (then if condition else otherwise)(*operands)
        location = self._recorder.location()
        blocks: list[Block] = []
        results: list[list[Any]] = []
        structure: Any = None
        for body in (then, otherwise):
            with self._recorder.block() as block:
                leaves, found = _torch_private.open_pytree(self._run(body, operands))
                block.outputs = [self._recorder.output(leaf) for leaf in leaves]
            if structure is not None and found != structure:
                self._refuse(f"the branches of torch.cond return {structure} and {found}")
            structure = found
            blocks.append(block)
            results.append(leaves)
        merged = [self._merged(left, right) for left, right in zip(*results, strict=True)]
        outputs = [value for value, _ in merged]
        arguments = bind(BRANCH, [self._recorder.output(condition)])
        self._recorder.nodes.append(Node(BRANCH, arguments, outputs, location, blocks=blocks))
        return _torch_private.close_pytree([given for _, given in merged], structure)

    def _merged(self, left: Any, right: Any) -> tuple[Value, Any]:
        """What two branches give at one place: as a value, and as the model gets it."""
        if isinstance(left, torch.Tensor) and isinstance(right, torch.Tensor):
            if left.dtype != right.dtype or left.dim() != right.dim():
                self._refuse(
                    "the branches of torch.cond return tensors of different types:"
                    f" {_description(left)} and {_description(right)}"
                )
            sizes = [
                one if _torch_private.same_size(one, other) else self._new_size()
                for one, other in zip(left.shape, right.shape, strict=True)
            ]
            return self._new_value("cond", sizes, left)
        if isinstance(left, torch.Tensor) or isinstance(right, torch.Tensor):
            self._refuse("one branch of torch.cond returns a tensor, the other a number")
        if left is None and right is None:
            self._refuse("the branches of torch.cond return None")
        dtype = torch.promote_types(number_dtype(left), number_dtype(right))
        return self._new_number("cond", dtype)

    # -- loops -----------------------------------------------------------------------------------

    def _while_loop(
        self,
        condition: Any,
        body: Any,
        carried: Sequence[Any],
        more: Sequence[Any] = (),
        *,
        stack: bool = False,
    ) -> Any:
        goes_on = self._recorder.output(self._run(condition, [*carried, *more]))
        structure: Any = None

        def step(block: Block, inner: list[Any]) -> tuple[list[Any], list[Any]]:
            nonlocal structure
            after, structure = _torch_private.open_pytree(self._run(body, [*inner, *more]))
            again = self._recorder.output(self._run(condition, [*after, *more]))
            block.outputs = [again]
            return after, after if stack else []

        given = self._loop("while_loop", carried, step, None, goes_on)
        return _torch_private.close_pytree(given[len(carried) :] if stack else given, structure)

    def _scan(
        self,
        combine: Any,
        init: Sequence[Any],
        items: Sequence[torch.Tensor],
        additional_inputs: Sequence[Any] = (),
    ) -> Any:
        structure: Any = None

        def step(block: Block, inner: list[Any]) -> tuple[list[Any], list[Any]]:
            nonlocal structure
            current = [self._item(block, item) for item in items]
            made = self._run(combine, [*inner, *current, *additional_inputs])
            leaves, structure = _torch_private.open_pytree(made)
            block.outputs = [None]
            return leaves[: len(init)], leaves[len(init) :]

        given = self._loop("scan", init, step, items[0].shape[0])
        return _torch_private.close_pytree(given, structure)

    def _associative_scan(
        self,
        combine: Any,
        items: Sequence[torch.Tensor],
        additional_inputs: Sequence[Any] = (),
    ) -> Any:
        """From the first item on, one after the other: what any order gives."""
        with self._recorder.dispatch:
            first = [item.select(0, 0) for item in items]

        def step(block: Block, inner: list[Any]) -> tuple[list[Any], list[Any]]:
            current = [self._item(block, item) for item in items]
            made, _ = _torch_private.open_pytree(
                self._run(combine, [*inner, *current, *additional_inputs])
            )
            is_first = self._input_tensor(block.inputs[0])
            with self._recorder.dispatch:
                # The first item is combined with nothing.
                after = [
                    torch.where(is_first == 0, item, value)
                    for item, value in zip(current, made, strict=True)
                ]
            block.outputs = [None]
            return after, after

        return self._loop("associative_scan", first, step, items[0].shape[0])[len(items) :]

    def _loop(
        self,
        name: str,
        carried: Sequence[Any],
        step: Callable[[Block, list[Any]], tuple[list[Any], list[Any]]],
        count: Any,
        condition: Argument = None,
    ) -> list[Any]:
        """A loop whose block `step` fills; what it carries last and what it stacks, as the model
        gets it. Sizes that an iteration changes are widened to symbols."""
        location = self._recorder.location()
        start = [self._as_value(c) for c in carried]
        types = [(c.dtype, list(c.shape)) if isinstance(c, torch.Tensor) else None for c in carried]
        for _ in range(_MOST_WIDENINGS):
            with self._recorder.block() as block:
                block.inputs.append(
                    Value(self._recorder.tensors.new_name("iteration"), TensorType(torch.int64, ()))
                )
                inner = [
                    self._block_input(block, first, value, kind)
                    for first, value, kind in zip(carried, start, types, strict=True)
                ]
                after, stacked = step(block, inner)
                if len(after) != len(carried):
                    self._refuse(f"the body of {name} carries on another number of values")
                is_settled = self._widen(types, after, inner, name)
                if is_settled:
                    block.outputs += [self._recorder.output(value) for value in after]
                    block.outputs += [self._recorder.output(s) for s in stacked]
            if is_settled:
                break
        else:
            self._refuse(f"the sizes that {name} carries do not converge")
        outputs: list[Value] = []
        given: list[Any] = []
        for first, value, kind in zip(carried, start, types, strict=True):
            if kind is None:
                made, number = self._new_number(name, value.dtype)
            else:
                made, number = self._new_value(name, list(map(self._outside, kind[1])), first)
            outputs.append(made)
            given.append(number)
        for item in stacked:
            rows = self._new_size() if count is None else count
            sizes = [rows, *map(self._outside, item.shape)]
            made, tensor = self._new_value(name, sizes, item)
            outputs.append(made)
            given.append(tensor)
        total = None if count is None else _torch_private.dim_of(count)
        arguments = bind(LOOP, [total, condition, start])
        self._recorder.nodes.append(Node(LOOP, arguments, outputs, location, blocks=[block]))
        return given

    def _block_input(self, block: Block, first: Any, start: Value, kind: Any) -> Any:
        """What is carried, as the body gets it; a number is carried as a tensor and read off it."""
        if kind is None:
            value, given = self._new_number("carried", start.dtype)
        else:
            value, given = self._new_value("carried", kind[1], first)
        block.inputs.append(value)
        return given

    def _widen(self, types: list[Any], after: list[Any], inner: list[Any], name: str) -> bool:
        """Whether the body leaves what it was given; where a size differs it gets a symbol."""
        is_settled = True
        for kind, made, given in zip(types, after, inner, strict=True):
            if kind is None:
                continue
            dtype, sizes = kind
            if (
                not isinstance(made, torch.Tensor)
                or made.dim() != len(sizes)
                or made.dtype != dtype
            ):
                self._refuse(
                    f"{name} starts with {_description(given)} and its body carries on"
                    f" {_description(made)}"
                )
            for axis, (size, now) in enumerate(zip(sizes, made.shape, strict=True)):
                if not _torch_private.same_size(size, now) and not self._is_own(size):
                    sizes[axis] = self._new_size()
                    self._loop_sizes.add(_torch_private.dim_of(sizes[axis]))
                    is_settled = False
        return is_settled

    def _is_own(self, size: Any) -> bool:
        """Whether it is a size that may be another one in each iteration."""
        return isinstance(size, torch.SymInt) and _torch_private.dim_of(size) in self._loop_sizes

    def _outside(self, size: Any) -> Any:
        """A size of the body, as it is after the loop."""
        if isinstance(size, torch.SymInt):
            symbols = _torch_private.dim_of(size)
            if isinstance(symbols, sympy.Basic) and symbols.free_symbols & self._loop_sizes:
                return self._new_size()
        return size

    def _item(self, block: Block, items: torch.Tensor) -> torch.Tensor:
        """What an iteration sees of a tensor that is gone through along its first dim."""
        index = self._input_tensor(block.inputs[0])
        with self._recorder.dispatch:
            item: torch.Tensor = torch.ops.aten.index.Tensor(items, [index])
        return item

    def _input_tensor(self, value: Value) -> torch.Tensor:
        """The fake tensor of a value that a block is given."""
        fake = self._recorder.tensors.fake_of_value(value)
        self._recorder.example.varies(fake)
        return fake

    # -- operators of a region -------------------------------------------------------------------

    def _with_autocast(
        self,
        device: Any,
        dtype: Any,
        enabled: bool,
        cache: Any,
        body: Any,
        *operands: Any,
        **more: Any,
    ) -> Any:
        with self._recorder.dispatch, torch.autocast(device, dtype, enabled, cache):
            return body(*operands)

    def _flex_attention(self, *args: Any, **kwargs: Any) -> Any:
        with self._recorder.dispatch:
            return _torch_private.flex_attention_in_parts(*args, **kwargs)

    def _out_dtype(self, op: Any, dtype: torch.dtype, *args: Any) -> Any:
        """The operator on arguments that are wide enough for the result."""
        dtypes = [a.dtype for a in args if isinstance(a, torch.Tensor)]
        common = reduce(torch.promote_types, dtypes, dtype)
        with self._recorder.dispatch:
            wide = [a.to(common) if isinstance(a, torch.Tensor) else a for a in args]
            return op(*wide).to(dtype)

    # -- values ----------------------------------------------------------------------------------

    def _run(self, body: Any, operands: Sequence[Any]) -> Any:
        with self._recorder.dispatch, self._recorder.functions:
            return self._recorder.runnable(body)(*operands)

    def _new_size(self) -> Any:
        return _torch_private.new_data_dependent_length(self._recorder.mode)

    def _new_value(self, name: str, sizes: list[Any], like: torch.Tensor) -> tuple[Value, Any]:
        fake = _torch_private.fake_contiguous(self._recorder.mode, sizes, like.dtype, like)
        value = self._recorder.tensors.register_new(self._recorder.tensors.new_name(name), fake)
        self._recorder.example.varies(fake)
        return value, fake

    def _new_number(self, name: str, dtype: torch.dtype) -> tuple[Value, Any]:
        value = Value(self._recorder.tensors.new_name(name), TensorType(dtype, ()))
        number = _torch_private.new_number(self._recorder.mode, dtype)
        self._recorder.note_number(number, value)
        return value, _torch_private.as_model_number(number)

    def _as_value(self, carried: Any) -> Value:
        """A number as a tensor, which is what a loop carries."""
        if isinstance(carried, torch.Tensor):
            return self._recorder.tensors.value_of(carried)
        dtype = number_dtype(carried)
        op = aten.scalar_tensor.default
        value = Value(self._recorder.tensors.new_name("number"), TensorType(dtype, ()))
        arguments = bind(op, [self._recorder.output(carried)], {"dtype": dtype})
        self._recorder.nodes.append(Node(op, arguments, [value], self._recorder.location()))
        return value

    def _refuse(self, text: str) -> None:
        raise error_at(CaptureError, self._recorder.place(), text)


def number_dtype(number: Any) -> torch.dtype:
    """In which a Python number, or a symbolic one, loses nothing."""
    if isinstance(number, (bool, torch.SymBool)):
        return torch.bool
    return torch.int64 if isinstance(number, (int, torch.SymInt)) else torch.float64


def _description(value: Any) -> str:
    if not isinstance(value, torch.Tensor):
        return type(value).__name__
    return str(type_of(value))


_BODY_AND_LIST = ("hints_wrapper", "strict_mode", "run_const_graph")
"""The same, with the operands of the body in a list."""
_ONLY_MARK = (
    "invoke_quant",
    "invoke_quant_packed",
    "tag_activation_checkpoint",
    "wrap",
    "wrap_activation_checkpoint",
)
"""Operators that say something of a region to a compiler; its body comes first."""
