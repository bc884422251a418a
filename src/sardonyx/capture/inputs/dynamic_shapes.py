"""The dims that the caller declared dynamic, from `dynamic_axes` or `dynamic_shapes`."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch.export import Dim

from sardonyx.aten import pytree
from sardonyx.aten.signature import DynamicAxes, DynamicDim
from sardonyx.capture.inputs.example_sizes import named_dims
from sardonyx.errors import InvalidOptionError


def from_dynamic_axes(
    dynamic_axes: Mapping[str, Any], names: Sequence[str | None], leaves: Sequence[Any]
) -> tuple[list[DynamicAxes], dict[str, dict[int, str]]]:
    """Dynamic dims per leaf, and the requests that name no input (they must name outputs)."""
    per_leaf: list[DynamicAxes] = [{} for _ in leaves]
    rest: dict[str, dict[int, str]] = {}
    for key, axes in dynamic_axes.items():
        named = _named_axes(key, axes)
        if key in names:
            position = names.index(key)
            rank = leaves[position].dim() if isinstance(leaves[position], torch.Tensor) else 0
            for given, spec in named.items():
                axis = _checked_axis(key, given, rank)
                if axis in per_leaf[position]:
                    raise InvalidOptionError(f"dynamic_axes[{key!r}] has dim {axis} twice: {axes}")
                default, size = f"{key}_dim_{axis}", leaves[position].shape[axis]
                dim = _dynamic_dim(spec or default, default, size, f"dim {axis} of {key!r}")
                per_leaf[position][axis] = dim or DynamicDim(default)
        else:
            rest[key] = {
                axis: spec.__name__ if isinstance(spec, Dim) else spec or f"{key}_dim_{axis}"
                for axis, spec in named.items()
            }
    return per_leaf, rest


def _named_axes(key: str, axes: Any) -> dict[int, str | Dim | None]:
    """Names by axis, or dims with their ranges; a list of axes leaves the names to us."""
    named: dict[int, str | Dim | None]
    if isinstance(axes, Mapping):
        named = dict(axes)
        for axis, name in named.items():
            if not isinstance(name, (str, Dim)) or not name:
                raise InvalidOptionError(
                    f'dynamic_axes[{key!r}] must name its dims, as {{0: "batch"}}: dim {axis} has'
                    f" {name!r} for a name"
                )
    elif isinstance(axes, (list, tuple, set)):
        named = dict.fromkeys(axes)
    else:
        raise InvalidOptionError(
            f"dynamic_axes[{key!r}] must be a list of axes or a dict of axis to name, not {axes!r}"
        )
    if not all(isinstance(axis, int) and not isinstance(axis, bool) for axis in named):
        raise InvalidOptionError(f"dynamic_axes[{key!r}] must have integers as axes, not {axes!r}")
    return named


def _checked_axis(key: str, axis: int, rank: int) -> int:
    if not isinstance(axis, int) or isinstance(axis, bool):
        raise InvalidOptionError(f"the dims of {key!r} go by their axes, which {axis!r} is not")
    if not -rank <= axis < rank:
        raise InvalidOptionError(
            f"dynamic axis {axis} of {key!r} does not exist: the example has {rank} dims"
        )
    return axis % rank


def from_dynamic_shapes(
    dynamic_shapes: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    parameter_names: Sequence[str],
    names: Sequence[str],
) -> list[DynamicAxes]:
    """Dynamic dims per leaf of (args, kwargs) from a spec nested like them."""
    arguments = [*args, *kwargs.values()]
    if isinstance(dynamic_shapes, Mapping):
        dynamic_shapes = _variadic_opened(dynamic_shapes, parameter_names)
        unknown = [k for k in dynamic_shapes if k not in parameter_names]
        if unknown:
            raise InvalidOptionError(
                f"dynamic_shapes names {unknown[0]!r}, but the inputs are"
                f" {', '.join(parameter_names)}"
            )
        specs = [dynamic_shapes.get(name) for name in parameter_names]
    elif isinstance(dynamic_shapes, (list, tuple)):
        specs = list(dynamic_shapes)
        if len(specs) != len(arguments):
            raise InvalidOptionError(
                f"dynamic_shapes has {len(specs)} entries for {len(arguments)} inputs"
            )
    else:
        raise InvalidOptionError(
            f"dynamic_shapes must be a tuple or a dict, not {dynamic_shapes!r}"
        )
    found: list[DynamicAxes] = []
    for spec, argument in zip(specs, arguments, strict=True):
        _match(spec, argument, names, found)
    return found


def _variadic_opened(
    dynamic_shapes: Mapping[str, Any], parameter_names: Sequence[str]
) -> dict[str, Any]:
    """`*args` is one name with a tuple of specs for the caller, `args.0`, `args.1` ... for us."""
    opened: dict[str, Any] = {}
    for key, spec in dynamic_shapes.items():
        members = [name for name in parameter_names if name.rpartition(".")[0] == key]
        if isinstance(spec, (list, tuple)) and len(spec) == len(members) > 0:
            opened.update(zip(members, spec, strict=True))
        else:
            opened[key] = spec
    return opened


def _match(spec: Any, value: Any, names: Sequence[str], found: list[DynamicAxes]) -> None:
    opened = pytree.open_container(value)
    if opened is None:
        found.append(_leaf_spec(spec, value, names[len(found)]))
        return
    keys, children, _ = opened
    if spec is None:
        picked: list[Any] = [None] * len(children)
    elif keys == [""]:  # a quantized tensor
        picked = [spec]
    elif isinstance(spec, Mapping):
        unknown = [key for key in spec if str(key) not in keys]
        if unknown:
            raise InvalidOptionError(
                f"dynamic_shapes has {unknown[0]!r} where the input has {', '.join(keys)}"
            )
        picked = [spec.get(key, spec.get(_number(key))) for key in keys]
    elif not isinstance(spec, (list, tuple)):
        raise InvalidOptionError(
            f"dynamic_shapes has {spec!r} where the input has {', '.join(keys)}"
        )
    else:
        picked = list(spec)
        if len(picked) != len(children):
            raise InvalidOptionError(
                f"dynamic_shapes has {len(picked)} entries where the input has {len(children)}"
            )
    for sub_spec, child in zip(picked, children, strict=True):
        _match(sub_spec, child, names, found)


def _number(key: str) -> int | str:
    return int(key) if key.isdecimal() else key


def _leaf_spec(spec: Any, value: Any, name: str) -> DynamicAxes:
    if spec is None:
        return {}
    if not isinstance(value, torch.Tensor):
        dim = _dynamic_dim(spec, name, value, repr(name))
        return {} if dim is None else {0: dim}
    items: list[tuple[Any, Any]]
    if isinstance(spec, Mapping):
        items = list(spec.items())
    elif isinstance(spec, (list, tuple)):
        if len(spec) != value.dim():
            raise InvalidOptionError(
                f"dynamic_shapes of {name!r} has {len(spec)} dims, the example has {value.dim()}"
            )
        items = list(enumerate(spec))
    else:
        raise InvalidOptionError(
            f"dynamic_shapes of {name!r} must be a dict or a tuple, not {spec!r}"
        )
    axes: DynamicAxes = {}
    for axis, dim_spec in items:
        axis = _checked_axis(name, axis, value.dim())
        place = f"dim {axis} of {name!r}"
        dim = _dynamic_dim(dim_spec, f"{name}_dim_{axis}", value.shape[axis], place)
        if dim is not None:
            axes[axis] = dim
    return axes


def _dynamic_dim(spec: Any, default_name: str, size: Any, place: str) -> DynamicDim | None:
    """The dim that `spec` declares, None for a static one; the example's `size` has to fit."""
    if spec is None or spec == Dim.STATIC:
        return None
    if isinstance(spec, int):
        if spec != size:
            raise InvalidOptionError(
                f"dynamic_shapes says that {place} is {spec}, in the example it is {size}"
            )
        return None
    dim = _asked_dim(spec, default_name)
    if isinstance(size, int) and dim.within(size) != size:
        low, high = dim.minimum or 0, "" if dim.maximum is None else dim.maximum
        raise InvalidOptionError(
            f"dynamic_shapes allows {low}..{high} for {place} ({dim.name!r}), in the example it is"
            f" {size}"
        )
    return dim


def _asked_dim(spec: Any, default_name: str) -> DynamicDim:
    if isinstance(spec, str) and spec:
        return DynamicDim(spec)
    if isinstance(spec, Dim):
        root = getattr(spec, "root", None)
        try:
            least, most = getattr(spec, "min", None), getattr(spec, "max", None)
        except AssertionError as error:  # of a derived dim, which PyTorch computes here
            raise InvalidOptionError(f"dynamic_shapes has {spec.__name__!r}: {error}") from error
        return DynamicDim(
            spec.__name__,
            minimum=least,
            maximum=_bound(most),
            roots=() if root is None else (root.__name__,),
            derive=None if root is None else getattr(spec, "fn", None),
        )
    hint = getattr(getattr(spec, "type", None), "name", "")
    if hint in ("AUTO", "DYNAMIC"):
        return DynamicDim(
            default_name, required=hint == "DYNAMIC", minimum=spec.min, maximum=spec.max
        )
    raise InvalidOptionError(f"dynamic_shapes does not know {spec!r}")


def with_expressions(dynamic: Sequence[DynamicAxes], leaves: Sequence[Any]) -> list[DynamicAxes]:
    """With dims that are called `past + new`, or `2*n`, computed from those of these names."""
    known = named_dims(leaves, dynamic)

    def computed(dim: DynamicDim) -> DynamicDim:
        roots, derive = _expression(dim.name)
        if dim.derive is not None or derive is None:
            return dim
        if missing := [root for root in roots if root not in known]:
            raise InvalidOptionError(
                f"dynamic_shapes has {dim.name!r}, and no input has a dim {missing[0]!r}"
            )
        return replace(dim, roots=roots, derive=derive)

    return [{axis: computed(dim) for axis, dim in axes.items()} for axes in dynamic]


_ARITHMETIC = (ast.Expression, ast.BinOp, ast.Add, ast.Sub, ast.Mult, ast.Name, ast.Load)


def _expression(text: str) -> tuple[tuple[str, ...], Callable[..., Any] | None]:
    """The names in sums and products of names and numbers, and a function of their values."""
    try:
        tree = ast.parse(text, mode="eval")
    except SyntaxError:
        return (), None
    parts = list(ast.walk(tree))
    names = tuple(dict.fromkeys(part.id for part in parts if isinstance(part, ast.Name)))
    is_arithmetic = all(
        isinstance(part, _ARITHMETIC) or type(getattr(part, "value", None)) is int for part in parts
    )
    if not names or isinstance(tree.body, ast.Name) or not is_arithmetic:
        return (), None
    code = compile(tree, "<dim>", "eval")
    return names, lambda *sizes: eval(code, {}, dict(zip(names, sizes, strict=True)))


def _bound(maximum: Any) -> int | None:
    return maximum if isinstance(maximum, int) and maximum < 2**31 else None
