"""Sizes as expressions: the symbols of a ShapeEnv, and their replacements."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Mapping
from functools import cache, lru_cache
from typing import Any

import sympy
import torch

from sardonyx._torch_private.flags import attributes_set
from sardonyx._torch_private.tensors.fake_tensors import active_fake_mode, fake_mode_of


def dim_of(size: Any) -> Any:
    """A size as the graph holds it: int, or the sympy expression of a symbolic one."""
    if isinstance(size, (torch.SymInt, torch.SymFloat, torch.SymBool)):
        expression = plain_number(size.node.expr)
        if isinstance(expression, sympy.Expr):
            return _of_its_type(expression, isinstance(size, torch.SymInt))
        return expression
    return size


def _of_its_type(expression: Any, is_whole: bool) -> Any:
    """The expression, wrapped so that sympy knows whether it is an integer: it takes any remainder
    for one, and no bitwise operation."""
    from torch.utils._sympy.functions import ToFloat, TruncToInt

    if is_whole == bool(expression.is_integer):
        return expression
    return (TruncToInt if is_whole else ToFloat)(expression)


def same_size(left: Any, right: Any) -> bool:
    return bool(dim_of(left) == dim_of(right))


def plain_number(expression: Any) -> Any:
    """The Python number that a sympy expression is, or the expression."""
    if expression.is_Integer:
        return int(expression)
    if expression.is_Float or expression.is_Rational:
        return float(expression)
    if expression.is_Boolean and expression in (True, False):
        return bool(expression)
    return expression


def new_fake_mode() -> Any:
    from torch._subclasses.fake_tensor import FakeTensorMode

    return FakeTensorMode(shape_env=_shape_env_class()(), static_shapes=True)


@cache
def _shape_env_class() -> Any:
    """A ShapeEnv that does not replace a data-dependent size by another because an operator needs
    them to be equal: the operator may not be reached."""
    from torch.fx.experimental.symbolic_shapes import ShapeEnv
    from torch.utils._sympy.functions import Max, Min

    class Sizes(ShapeEnv):
        makes_one = True
        makes_numbers = True

        def _set_replacement(self, a: Any, tgt: Any, msg: str) -> None:
            # A size of an input is not replaced by the length of a slice that an operator needs to
            # be equal to it: others are computed from it.
            if tgt.has(Min, Max):
                return
            if self.makes_numbers if tgt.is_Integer else self.makes_one:
                super()._set_replacement(a, tgt, msg)

        def create_symbol(self, *args: Any, **kwargs: Any) -> Any:
            """A size is not negative. PyTorch's are positive: x[1:] would always be one shorter
            than x, and x[:1] + 1 would always have a row."""
            made = super().create_symbol(*args, **kwargs)
            if not isinstance(made, sympy.Symbol) or not made.is_positive:
                return made
            size = sympy.Symbol(made.name, integer=True, nonnegative=True)
            for table in vars(self).values():
                if isinstance(table, dict):
                    if made in table:
                        table[size] = table.pop(made)
                    for key in [key for key, value in table.items() if value is made]:
                        table[key] = size
            return size

        def guard_or_defer_runtime_assert(  # type: ignore[override]
            self, orig_expr: Any, msg: str, fx_node: Any = None
        ) -> bool:
            if isinstance(orig_expr, sympy.Eq) and not (
                orig_expr.free_symbols <= example_values(self).keys()
            ):
                with self.suppress_guards():
                    return bool(super().guard_or_defer_runtime_assert(orig_expr, msg, fx_node))
            return bool(super().guard_or_defer_runtime_assert(orig_expr, msg, fx_node))

    return Sizes


def without_replacements(
    mode: Any, *, but_numbers: bool = False
) -> contextlib.AbstractContextManager[None]:
    """An operator run meanwhile that needs two sizes to be equal does not make them equal for
    the rest of the program, which may not reach it. `but_numbers`: numbers still replace
    sizes."""
    env = mode.shape_env
    makes_numbers = env.makes_numbers and but_numbers
    return attributes_set(env, makes_one=False, makes_numbers=makes_numbers)


def depends_on_data(mode: Any, size: Any) -> bool:
    """Whether a size, a number or an expression, is not known from the inputs' sizes alone."""
    if isinstance(size, int):
        return False
    return not size.free_symbols <= example_values(mode.shape_env).keys()


def is_decided_by_data(size: Any) -> bool:
    """Whether a size has a symbol that does not come from the sizes of the inputs."""
    return isinstance(size, torch.SymInt) and depends_on_data(size.node, dim_of(size))


def example_values(env: Any) -> dict[Any, Any]:
    # torch 2.11 calls the table var_to_val.
    has_it = hasattr(env, "backed_var_to_val")
    values: dict[Any, Any] = env.backed_var_to_val if has_it else env.var_to_val
    return values


def dynamic_fake(mode: Any, tensor: torch.Tensor, axes: set[int], name: str) -> torch.Tensor:
    """A fake of `tensor` with a size symbol for each axis in `axes`."""
    from torch._dynamo.source import ConstantSource
    from torch.fx.experimental.symbolic_shapes import DimDynamic, StatelessSymbolicContext

    context: Any = StatelessSymbolicContext(
        dynamic_sizes=[
            DimDynamic.DYNAMIC if axis in axes else DimDynamic.STATIC
            for axis in range(tensor.dim())
        ]
    )
    # static_shapes is a property of the whole mode: lifted for the tensors that have symbols.
    with attributes_set(mode, static_shapes=False):
        made: torch.Tensor = mode.from_tensor(
            tensor.detach(), symbolic_context=context, source=ConstantSource(name)
        )
    return made


def new_data_dependent_size_of(fake: Any) -> Any:
    """A length in a result that depends on the values of `fake`."""
    return new_data_dependent_length(fake_mode_of(fake) or active_fake_mode())


def sym_int(mode: Any, expression: Any) -> Any:
    """The torch.SymInt or SymFloat of a size expression."""
    from torch.fx.experimental.sym_node import SymNode

    env = mode.shape_env
    hint = sympy.sympify(expression.xreplace(example_sizes(mode)))
    if expression.is_integer:
        return env.create_symintnode(expression, hint=int(hint) if hint.is_Integer else None)
    node = SymNode(expression, env, float, float(hint) if hint.is_number else None)
    return torch.SymFloat(node)  # type: ignore[no-untyped-call]


_MOST_PARTS = 300


@lru_cache(maxsize=4096)
def is_large(expression: Any) -> bool:
    """Whether an expression has so many parts that a new symbol should stand for it: each step that
    uses a size twice doubles it, and sympy walks all of it every time."""
    count, parts = 0, [expression]
    while parts and count <= _MOST_PARTS:
        count += 1
        parts.extend(parts.pop().args)
    return count > _MOST_PARTS


def floor_quotient(expression: Any, divisor: int) -> Any:
    """expression // divisor of a size expression, in PyTorch's own form of it."""
    from torch.utils._sympy.functions import FloorDiv

    return FloorDiv(expression, divisor)


def breakpoint_conditions(expression: Any) -> list[Any]:
    """The conditions in an expression, and those that decide its maxima and minima."""
    from torch.utils._sympy.functions import Max, Min

    found = sorted(expression.atoms(sympy.Rel), key=str)
    for extreme in sorted(expression.atoms(Max, Min), key=str):
        first, *others = sorted(extreme.args, key=lambda part: not part.is_number)
        found += [sympy.Lt(first, other) for other in others]
    return [condition for condition in found if condition.free_symbols]


@lru_cache(maxsize=1024)
def condition_on_sizes(condition: Any) -> Callable[[Mapping[str, int]], bool | None]:
    """A condition as a function of sizes by name, which gives None where it means nothing
    or depends on more than these."""
    from torch.utils._sympy.printers import PythonPrinter

    names = {symbol: f"size_{index}" for index, symbol in enumerate(condition.free_symbols)}
    plain = condition.xreplace({symbol: sympy.Symbol(name) for symbol, name in names.items()})
    source = f"lambda {', '.join(names.values())}: {PythonPrinter().doprint(plain)}"
    function = eval(source, {"math": math, "torch": torch})

    def answer(sizes: Mapping[str, int]) -> bool | None:
        try:
            return bool(function(*(sizes[symbol.name] for symbol in names)))
        except (ArithmeticError, KeyError, NameError):
            return None

    return answer


def fixed_symbols(mode: Any) -> dict[Any, int]:
    """The size symbols that operators have specialized to numbers."""
    return {
        symbol: int(replacement)
        for symbol, replacement in mode.shape_env.replacements.items()
        if replacement.is_Integer
    }


def example_sizes(mode: Any) -> dict[Any, int]:
    """The sizes that the symbols of a mode had in the example."""
    sizes = example_values(mode.shape_env)
    return {symbol: int(size) for symbol, size in sizes.items()}


def new_data_dependent_length(mode: Any) -> Any:
    """A size symbol for a length that is only known at run time: not negative."""
    size = mode.shape_env.create_unbacked_symint()
    torch._check(size >= 0)  # type: ignore[no-untyped-call]
    return size
