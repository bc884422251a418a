"""The functional form of every operator that writes: `add_` is `add`, `add.out` is `add.Tensor`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch

from sardonyx.capture.bind import parameters_of
from sardonyx.capture.graph import Argument, Node, Value

aten = torch.ops.aten


@dataclass(frozen=True, slots=True)
class PureForm:
    """A functional call, and which of its results goes where."""

    op: Any
    arguments: dict[str, Argument]
    written: dict[str, int]
    """The written argument -> the position of its new content among the results."""
    returned: dict[int, str]
    """The output of the original node -> the written argument that it is."""


WITHOUT_EFFECT = frozenset({"aten::requires_grad_", "aten::detach_", "aten::rename_"})
"""Operators that return their argument as it is."""


def _out_of_place(name: str) -> Callable[[Any], Any]:
    return lambda op: _twin(name, op)


METADATA_WRITES: dict[str, Callable[[Any], Any]] = {
    f"aten::{name}_": _out_of_place(name)
    for name in ("squeeze", "unsqueeze", "t", "transpose", "swapaxes", "swapdims", "as_strided")
}
"""In-place operators that change the shape of their argument, by the view they make of it."""

_OTHER_NAMES = {
    "_index_put_impl_": "index_put",
    "normal_": "normal_functional",
    "bernoulli_": "bernoulli",
    "geometric_": "geometric",
}
_SWITCHES = frozenset({"unsafe"})
"""Arguments that only say what is checked."""
RESIZES = frozenset(
    f"aten::{name}"
    for name in (
        "set_",
        "set_data",
        "resize_",
        "resize_as_",
        "resize_as_sparse_",
        "_resize_output_",
    )
)
"""Operators that exchange or resize memory."""
_DTYPE_OF_OUT = frozenset({"sum", "nansum", "mean", "prod", "cumsum", "cumprod"})
"""Operators that compute in the dtype of `out` where no other is asked for; factories do, too."""


def writes_in_secret(node: Node) -> bool:
    """Whether an operator writes although its schema does not say so."""
    switch = _SECRET_WRITERS.get(node.name)
    return (
        switch is not None
        and bool(node.arguments[switch])
        and isinstance(node.arguments["running_mean"], Value)
    )


_SECRET_WRITERS = {
    "aten::batch_norm": "training",
    "aten::native_batch_norm": "training",
    "aten::instance_norm": "use_input_stats",
}


def pure_form(node: Node) -> PureForm | None:
    name = node.op._schema.name.split("::")[1]
    if not node.op._schema.name.startswith("aten::") or node.op._schema.name in RESIZES:
        return None
    if name.startswith("_foreach_"):
        return None
    written = [p.name for p in parameters_of(node.op) if p.is_written]
    if node.name in ("aten::batch_norm", "aten::native_batch_norm"):
        return _batch_norm(node)
    if any(p.is_out for p in parameters_of(node.op)):
        return _without_out(node, name, written)
    if name.endswith("_") or name.startswith("__i"):
        return _in_place(node, name)
    return _functional_twin(node, name, written)


def _in_place(node: Node, name: str) -> PureForm | None:
    base = _OTHER_NAMES.get(name)
    if base is None:
        base = "__" + name.removeprefix("__i") if name.startswith("__i") else name[:-1]
    if name == "copy_" and "other" in node.arguments:  # TorchScript's own overloads
        return _scripted_copy(node)
    op = _twin(base, node.op)
    if op is None or not _takes(op, node.arguments):
        return None
    return PureForm(op, _given(op, node.arguments), {"self": 0}, {0: "self"})


def _scripted_copy(node: Node) -> PureForm:
    target, other = node.arguments["self"], node.arguments["other"]
    if isinstance(other, Value):
        return PureForm(aten.copy.default, {"self": target, "src": other}, {"self": 0}, {0: "self"})
    return PureForm(aten.fill.Scalar, {"self": target, "value": other}, {"self": 0}, {0: "self"})


@cache
def _twin(base: str, written: Any) -> Any:
    """The overload of `base` that takes what the in-place operator takes."""
    packet = getattr(aten, base, None)
    if packet is None:
        return None
    same_name = written._schema.overload_name or "default"
    overloads = sorted(packet.overloads(), key=lambda overload: overload != same_name)
    names = [p.name for p in parameters_of(written) if p.name not in _SWITCHES]
    kinds = _kinds(written, names)
    for overload in overloads:
        op = getattr(packet, overload)
        if op._schema.is_mutable:
            continue
        own = set(_kinds(op, [p.name for p in parameters_of(op)]))
        added = [p for p in parameters_of(op) if p.name not in names]
        if own.issuperset(kinds) and all(p.has_default for p in added):
            return op
    return None


def _without_out(node: Node, name: str, written: list[str]) -> PureForm | None:
    """The overload with the same arguments and no `out`."""
    inputs = [p.name for p in parameters_of(node.op) if not p.is_out]
    kinds = _kinds(node.op, inputs)
    for overload in getattr(aten, name).overloads():
        op = getattr(getattr(aten, name), overload)
        if op._schema.is_mutable:
            continue
        if _kinds(op, [p.name for p in parameters_of(op)])[: len(inputs)] == kinds and _takes(
            op, {k: node.arguments[k] for k in inputs}
        ):
            return PureForm(
                op,
                {k: node.arguments[k] for k in inputs} | _dtype_of_out(op, name, node, written[0]),
                {name: position for position, name in enumerate(written)},
                dict(enumerate(written)),
            )
    return None


def _dtype_of_out(op: Any, name: str, node: Node, out: str) -> dict[str, Argument]:
    target = node.arguments[out]
    is_factory = not any(v is not target for v in node.inputs())
    if (is_factory or name in _DTYPE_OF_OUT) and isinstance(target, Value):
        knows = any(p.is_dtype for p in parameters_of(op))
        if knows and node.arguments.get("dtype") is None:
            return {"dtype": target.dtype}
    return {}


def _functional_twin(node: Node, name: str, written: list[str]) -> PureForm | None:
    """`op_functional` returns the results and then the new contents of what `op` writes."""
    op = getattr(getattr(aten, f"{name}_functional", None), "default", None)
    if op is None:
        return None
    count = len(node.op._schema.returns)
    return PureForm(
        op,
        _given(op, node.arguments),
        {argument: count + position for position, argument in enumerate(written)},
        {},
    )


def _batch_norm(node: Node) -> PureForm:
    """In training `batch_norm` updates the running statistics, which its schema does not say."""
    a = node.arguments
    return PureForm(
        aten._native_batch_norm_legit_functional.default,
        {
            "input": a["input"],
            "weight": a["weight"],
            "bias": a["bias"],
            "running_mean": a["running_mean"],
            "running_var": a["running_var"],
            "training": True,
            "momentum": a["momentum"],
            "eps": a["eps"],
        },
        {"running_mean": 3, "running_var": 4},
        {},
    )


def _kinds(op: Any, names: list[str]) -> list[tuple[str, str]]:
    types = {a.name: str(a.type) for a in op._schema.arguments}
    return [(name, types[name]) for name in names]


def _given(op: Any, arguments: dict[str, Argument]) -> dict[str, Argument]:
    known = {p.name for p in parameters_of(op)}
    return {k: v for k, v in arguments.items() if k in known}


def _takes(op: Any, arguments: dict[str, Argument]) -> bool:
    """Whether `op` knows every argument."""
    parameters = parameters_of(op)
    known = {p.name for p in parameters}
    missing = [k for k in arguments if k not in known and k not in _SWITCHES]
    required = [p.name for p in parameters if not p.has_default and p.name not in arguments]
    return not missing and not required
