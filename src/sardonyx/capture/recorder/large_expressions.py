"""Expressions of sizes that have grown large: a symbol stands for each, which the graph computes
once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import sympy
import torch

from sardonyx import _torch_private

if TYPE_CHECKING:
    from sardonyx.capture.recorder.recorder import Recorder


class LargeExpressions:
    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._symbols: dict[tuple[sympy.Basic, int], Any] = {}
        """By expression, and the block it is computed in."""
        self.expressions: dict[sympy.Basic, sympy.Basic] = {}
        """By symbol, what it stands for."""

    def replaced_in(self, result: Any) -> Any:
        """The result of an operator, its sizes symbols where their expressions are large."""
        if isinstance(result, (list, tuple)):
            return type(result)(map(self.replaced_in, result))
        if not isinstance(result, torch.Tensor) or not result._has_symbolic_sizes_strides:
            return result
        sizes: list[Any] = list(result.shape)
        expressions = [size.node.expr for size in sizes if isinstance(size, torch.SymInt)]
        large = [e for e in expressions if _torch_private.is_large(e)]
        if not large or not _torch_private.is_plain(result):
            return result
        symbols = {}
        for expression in large:
            symbols[expression] = self._known(expression)
            if symbols[expression] is None:
                mode = self._recorder.mode
                symbols[expression] = _torch_private.new_data_dependent_length(mode)
                self._note(expression, symbols[expression])
        return _torch_private.with_other_sizes(result, symbols)

    def symbol_for(self, number: Any) -> Any:
        """A symbol for a number whose expression is large."""
        recorder, expression = self._recorder, number.node.expr
        symbol = self._known(expression)
        if symbol is None:
            dtype = torch.int64 if isinstance(number, torch.SymInt) else torch.float64
            with recorder.dispatch.outside(), _torch_private.no_modes(), torch.no_grad():
                op = torch.ops.aten.scalar_tensor.default
                symbol = recorder.number_of(recorder.record_plain(op, (number,), {"dtype": dtype}))
            if expression.is_nonnegative and isinstance(number, torch.SymInt):
                _torch_private.limit_size(symbol, 0, None)
            self._note(expression, symbol)
        return symbol

    def _known(self, expression: sympy.Basic) -> Any:
        return self._symbols.get((expression, self._recorder.blocks_met))

    def _note(self, expression: sympy.Basic, symbol: Any) -> None:
        self._symbols[expression, self._recorder.blocks_met] = symbol
        self.expressions[symbol.node.expr] = expression
