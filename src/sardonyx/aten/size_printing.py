"""Size expressions, printed as Python."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import sympy
from sympy.printing.str import StrPrinter


class _AsInPython(StrPrinter):  # type: ignore[misc]
    """Prints PyTorch's sympy functions: math.ceil(n / 2) is CeilToInt(IntTrueDiv(n, 2))."""

    def _quotient(self, expression: Any, operator: str = "/") -> str:
        left, right = expression.args
        level = sympy.printing.precedence.PRECEDENCE["Mul"]
        return f"{self.parenthesize(left, level)} {operator} {self.parenthesize(right, level + 1)}"

    _print_IntTrueDiv = _print_FloatTrueDiv = _quotient

    def _print_PythonMod(self, expression: Any) -> str:
        return self._quotient(expression, "%")

    def _print_ToFloat(self, expression: Any) -> str:
        return str(self._print(expression.args[0]))

    def _rounded(self, expression: Any) -> str:
        function = _ROUNDING[type(expression).__name__]
        return f"{function}({self._print(expression.args[0])})"

    _print_CeilToInt = _print_FloorToInt = _print_TruncToInt = _print_RoundToInt = _rounded


_ROUNDING = {"CeilToInt": "ceil", "FloorToInt": "floor", "TruncToInt": "int", "RoundToInt": "round"}


def text_of(expression: sympy.Basic) -> str:
    return str(_AsInPython().doprint(expression))


_SYMBOL = re.compile(r"\b(?:s|u|zf|zuf)\d+\b")


def in_callers_names(
    text: str, names: Mapping[sympy.Symbol, str], of_data: str | None = "data"
) -> str:
    """A message of PyTorch with the caller's names for size symbols, and `of_data` for symbols that
    depend on data."""
    known = {symbol.name: name for symbol, name in names.items()}

    def renamed(symbol: re.Match[str]) -> str:
        unnamed = of_data if "u" in symbol[0] else None
        return known.get(symbol[0], unnamed or symbol[0])

    return _SYMBOL.sub(renamed, text)
