"""The sizes of a given ExportedProgram, computed anew.

To PyTorch sizes are positive, x[1:] one shorter than x whatever x is, table[:n] as long as n says,
and h * 0.29 * 100 is h * 29. What its operators do is what counts: each is run once more on fake
tensors, by the shape rules of the captures.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import Any

import sympy
import torch
from torch.export import ExportedProgram

from sardonyx import _torch_private
from sardonyx.capture.bind import bind
from sardonyx.capture.infer import tensors_in, type_of
from sardonyx.capture.known_results import KnownResults
from sardonyx.capture.pure_forms import METADATA_WRITES
from sardonyx.capture.shapes.broadcast import with_common_sizes, with_open_sizes
from sardonyx.capture.shapes.rules import SHAPE_RULES
from sardonyx.capture.size_conditions import at_sizes

_NUMBERS = (int, float, bool, torch.SymInt, torch.SymFloat, torch.SymBool)


def with_sizes_anew(program: ExportedProgram) -> tuple[ExportedProgram, list[str]]:
    """The program, and what there is to say of it where it stays as it is: where it has regions of
    operators, and where the operators do not run on fake tensors."""
    nodes = list(program.graph.nodes)
    if not any(_is_open(node.meta.get("val")) for node in nodes):
        return program, []
    calls = [node for node in nodes if node.op == "call_function"]
    if all(map(_is_known, calls)) and not any(node.op == "get_attr" for node in nodes):
        with contextlib.suppress(Exception):
            values = _Sizes(program).values()
            if values is not None:
                return _torch_private.with_values(program, values), []
    return program, [_AS_RECORDED] if any(map(_has_arithmetic, nodes)) else []


_AS_RECORDED = (
    "the sizes that the ExportedProgram computes are taken as PyTorch has them: they may be others"
    " where a dynamic size is 0 or 1, or lies beyond the end of what is sliced"
)


def _has_arithmetic(node: torch.fx.Node) -> bool:
    """Whether a size that it gives is computed from those of the inputs."""
    sizes = [size for tensor in tensors_in(node.meta.get("val")) for size in tensor.shape]
    expressions = map(_torch_private.dim_of, sizes)
    return any(isinstance(e, sympy.Expr) and not e.is_Symbol for e in expressions)


def _is_open(value: Any) -> bool:
    return any(
        isinstance(size, torch.SymInt) for tensor in tensors_in(value) for size in tensor.shape
    )


def _is_known(node: torch.fx.Node) -> bool:
    """An operator, or a function of numbers."""
    is_operator = isinstance(node.target, _torch_private.OpOverload)
    return is_operator or getattr(node.target, "__name__", "") == "getitem" or _is_number(node)


def _changes_shapes(node: torch.fx.Node) -> bool:
    """Whether it gives a tensor that it was given another shape, and is not run as a view here."""
    target = node.target
    return (
        isinstance(target, _torch_private.OpOverload)
        and torch.Tag.inplace_view in target.tags
        and target._schema.name not in METADATA_WRITES
    )


def _is_number(node: torch.fx.Node) -> bool:
    return isinstance(node.meta.get("val"), _NUMBERS)


class _Sizes:
    def __init__(self, program: ExportedProgram) -> None:
        self._program = program
        self._mode = _torch_private.new_fake_mode()
        self._symbols: dict[sympy.Symbol, Any] = {}
        """The symbols of the program's inputs, by ours."""
        self._hints = _torch_private.hints_of(program)
        self._values: dict[torch.fx.Node, Any] = {}
        changed = any(map(_changes_shapes, program.graph.nodes))
        self._known = None if changed else KnownResults(self._mode)

    def values(self) -> dict[torch.fx.Node, Any] | None:
        """What each node gives; None where that is not what it gave to PyTorch at the example's
        sizes."""
        with _torch_private.float_arithmetic_in_order(), _torch_private.sizes_that_may_be_zero():
            for node in self._program.graph.nodes:
                recorded = node.meta.get("val")
                if node.op == "placeholder":
                    self._values[node] = self._input(recorded)
                elif node.op == "call_function":
                    self._values[node] = self._result(node)
                if node in self._values and not self._agrees(recorded, self._values[node]):
                    return None
        return self._values

    def _input(self, recorded: Any) -> Any:
        if isinstance(recorded, torch.Tensor):
            sizes, strides = (
                [self._size(size) for size in numbers]
                for numbers in (recorded.shape, recorded.stride())
            )
            return _torch_private.fake_from_strides(self._mode, recorded, sizes, strides)
        return self._size(recorded)

    def _size(self, recorded: Any) -> Any:
        expression = _torch_private.dim_of(recorded)
        if not isinstance(expression, sympy.Expr):
            return recorded
        for symbol in expression.free_symbols - self._symbols.keys():
            self._symbols[symbol] = _torch_private.new_size(self._mode, self._hints[symbol])
        ours: Mapping[Any, Any] = {
            symbol: _torch_private.dim_of(self._symbols[symbol])
            for symbol in expression.free_symbols
        }
        return _torch_private.sym_int(self._mode, expression.xreplace(ours))

    def _result(self, node: torch.fx.Node) -> Any:
        args, kwargs = torch.fx.map_arg((node.args, node.kwargs), self._values.__getitem__)
        target: Any = node.target
        if not isinstance(target, _torch_private.OpOverload) or _is_number(node):
            return target(*args, **kwargs)
        given = bind(target, list(args), dict(kwargs))
        as_view = METADATA_WRITES.get(target._schema.name)
        if as_view is not None:  # would change what an earlier node gives
            target = as_view(target)

        def run() -> Any:
            arguments = with_common_sizes(target, given, self._mode)
            rule = SHAPE_RULES.get(target)
            result = _torch_private.run_on_fakes(target, arguments, self._mode, rule)
            return with_open_sizes(target, arguments, result, self._mode)

        return run() if self._known is None else self._known.of(target, given, run)

    def _agrees(self, recorded: Any, ours: Any) -> bool:
        if isinstance(recorded, _NUMBERS):
            return isinstance(ours, _NUMBERS)
        before, after = tensors_in(recorded), tensors_in(ours)
        return len(before) == len(after) and all(map(self._are_alike, before, after))

    def _are_alike(self, recorded: torch.Tensor, ours: torch.Tensor) -> bool:
        known = type_of(recorded), type_of(ours)
        examples = self._hints, _torch_private.example_sizes(self._mode)
        shapes = [
            tuple(
                at_sizes(size, hints) if isinstance(size, sympy.Expr) else size
                for size in kind.shape
            )
            for kind, hints in zip(known, examples, strict=True)
        ]
        return (
            known[0].dtype == known[1].dtype
            and len(shapes[0]) == len(shapes[1])
            and all(
                left == right or not (_is_plain(left) and _is_plain(right))
                for left, right in zip(*shapes, strict=True)
            )
        )


def _is_plain(size: Any) -> bool:
    return isinstance(size, int) or size.is_number
