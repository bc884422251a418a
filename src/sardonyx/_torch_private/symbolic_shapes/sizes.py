"""Sizes as expressions: the symbols of a ShapeEnv, and what is concluded of them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from functools import cache, lru_cache
from typing import Any

import sympy
import torch

from sardonyx._torch_private.tensors.fakes import active_fake_mode, fake_mode_of


def dim_of(size: Any) -> Any:
    """A size as the graph holds it: int, or the sympy expression of a symbolic one."""
    if isinstance(size, (torch.SymInt, torch.SymFloat, torch.SymBool)):
        expression = plain_number(size.node.expr)
        if isinstance(expression, sympy.Expr):
            return _of_its_type(expression, isinstance(size, torch.SymInt))
        return expression
    return size


def _of_its_type(expression: Any, is_whole: bool) -> Any:
    """The expression, so that sympy knows whether it is an integer: it takes any remainder for one
    and no combination of bits."""
    from torch.utils._sympy.functions import ToFloat, TruncToInt

    if is_whole == bool(expression.is_integer):
        return expression
    return (TruncToInt if is_whole else ToFloat)(expression)


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

    return FakeTensorMode(shape_env=_sizes_without_conclusions()(), static_shapes=True)


@cache
def _sizes_without_conclusions() -> Any:
    """A kind of ShapeEnv that does not make one size of two, of which data decides one, because an
    operator wants them equal: it may not be reached."""
    from torch.fx.experimental.symbolic_shapes import ShapeEnv
    from torch.utils._sympy.functions import Max, Min

    class Sizes(ShapeEnv):
        makes_one = True
        makes_numbers = True

        def _set_replacement(self, a: Any, tgt: Any, msg: str) -> None:
            # That a size is the length of a piece, as an operator wants it, does not make it that
            # one: it is the size of an input, which others are computed from.
            if tgt.has(Min, Max):
                return
            if self.makes_numbers if tgt.is_Integer else self.makes_one:
                super()._set_replacement(a, tgt, msg)

        def create_symbol(self, *args: Any, **kwargs: Any) -> Any:
            """A size is not negative, where PyTorch's own are positive: to it, x[1:] is one shorter
            than x whatever x is, and x[:1] + 1 has a row."""
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


@contextlib.contextmanager
def without_conclusions(mode: Any, *, but_numbers: bool = False) -> Iterator[None]:
    """Of the operators run meanwhile: that one takes two sizes for equal says nothing of the rest
    of the program, which may not reach it. `but_numbers`: that it takes a size for one does."""
    env = mode.shape_env
    before = env.makes_one, env.makes_numbers
    env.makes_one = False
    env.makes_numbers = env.makes_numbers and but_numbers
    try:
        yield
    finally:
        env.makes_one, env.makes_numbers = before


def depends_on_data(mode: Any, size: Any) -> bool:
    """Whether a size, a number or an expression, is not known from the inputs' sizes alone."""
    if isinstance(size, int):
        return False
    return not size.free_symbols <= example_values(mode.shape_env).keys()


def is_decided_by_data(size: Any) -> bool:
    """Whether a size is a symbol, or made of one, that the inputs' sizes do not tell."""
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
    before, mode.static_shapes = mode.static_shapes, False
    try:
        made: torch.Tensor = mode.from_tensor(
            tensor.detach(), symbolic_context=context, source=ConstantSource(name)
        )
    finally:
        mode.static_shapes = before
    return made


def new_data_dependent_size(mode: Any) -> Any:
    """A size symbol for an integer that is only known at run time."""
    return mode.shape_env.create_unbacked_symint()


def new_data_dependent_size_of(fake: Any) -> Any:
    """As new_data_dependent_size, for a size of a result that `fake` decides."""
    mode = fake_mode_of(fake) or active_fake_mode()
    size = mode.shape_env.create_unbacked_symint()
    torch._check(size >= 0)  # type: ignore[no-untyped-call]
    return size


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
    """Whether an expression has so many parts that it is better a symbol of its own: each step that
    uses a size twice doubles it, and sympy goes through all of it again and again."""
    count, parts = 0, [expression]
    while parts and count <= _MOST_PARTS:
        count += 1
        parts.extend(parts.pop().args)
    return count > _MOST_PARTS


def floor_quotient(expression: Any, divisor: int) -> Any:
    """expression // divisor of a size expression, in PyTorch's own form of it."""
    from torch.utils._sympy.functions import FloorDiv

    return FloorDiv(expression, divisor)


def turns(expression: Any) -> list[Any]:
    """The conditions in an expression, and those that decide the larger or smaller of its parts."""
    from torch.utils._sympy.functions import Max, Min

    found = sorted(expression.atoms(sympy.Rel), key=str)
    for extreme in sorted(expression.atoms(Max, Min), key=str):
        first, *others = sorted(extreme.args, key=lambda part: not part.is_number)
        found += [sympy.Lt(first, other) for other in others]
    return [condition for condition in found if condition.free_symbols]


def fixed_symbols(mode: Any) -> dict[Any, int]:
    """The size symbols that the operators run so far have turned into numbers."""
    return {
        symbol: int(replacement)
        for symbol, replacement in mode.shape_env.replacements.items()
        if replacement.is_Integer
    }


def is_input_size(fake: Any, size: Any) -> bool:
    """Whether a size follows from the inputs, not from data; numbers do."""
    if isinstance(size, int):
        return True
    mode = fake_mode_of(fake) or active_fake_mode()
    return bool(size.node.expr.free_symbols <= example_sizes(mode).keys())


def example_sizes(mode: Any) -> dict[Any, int]:
    """The sizes that the symbols of a mode had in the example."""
    sizes = example_values(mode.shape_env)
    return {symbol: int(size) for symbol, size in sizes.items()}


def new_data_dependent_length(mode: Any) -> Any:
    """A size symbol for a length that is only known at run time: not negative."""
    size = mode.shape_env.create_unbacked_symint()
    torch._check(size >= 0)  # type: ignore[no-untyped-call]
    return size


def new_data_dependent_float(mode: Any) -> Any:
    """A symbol for a float that is only known at run time."""
    return mode.shape_env.create_unbacked_symfloat()
