"""The functional variant of operators that write: `add_` becomes `add`, `add.out` `add.Tensor`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from sardonyx.aten.graph import Argument, Node, Value
from sardonyx.aten.schema import functional_overload, parameters_of

aten = torch.ops.aten


@dataclass(frozen=True, slots=True)
class FunctionalVariant:
    """A functional call, and which of its results goes where."""

    op: Any
    arguments: dict[str, Argument]
    written: dict[str, int]
    """The written argument -> the position of its new content among the results."""
    returned: dict[int, str]
    """The output of the original node -> the written argument that it is."""


WITHOUT_EFFECT = frozenset({"aten::requires_grad_", "aten::detach_", "aten::rename_"})
"""Operators that return their argument as it is."""


_OTHER_NAMES = {
    "_index_put_impl_": "index_put",
    "normal_": "normal_functional",
    "bernoulli_": "bernoulli",
    "geometric_": "geometric",
}
RESIZES = frozenset(
    f"aten::{name}"
    for name in (
        "set_", "set_data", "resize_", "resize_as_", "resize_as_sparse_", "_resize_output_",
    )
)  # fmt: skip
"""Operators that replace or resize memory."""
_DTYPE_OF_OUT = frozenset({"sum", "nansum", "mean", "prod", "cumsum", "cumprod"})
"""Operators that compute in the dtype of `out` where none is given; factories do, too."""


def has_hidden_writes(node: Node) -> bool:
    """Whether an operator writes although its schema does not say so."""
    switch = _HIDDEN_WRITERS.get(node.name)
    return (
        switch is not None
        and bool(node.arguments[switch])
        and isinstance(node.arguments["running_mean"], Value)
    )


_HIDDEN_WRITERS = {
    "aten::batch_norm": "training",
    "aten::native_batch_norm": "training",
    "aten::instance_norm": "use_input_stats",
}


def functional_variant(node: Node) -> FunctionalVariant | None:
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


def _in_place(node: Node, name: str) -> FunctionalVariant | None:
    base = _OTHER_NAMES.get(name)
    if base is None:
        base = "__" + name.removeprefix("__i") if name.startswith("__i") else name[:-1]
    if name == "copy_" and "other" in node.arguments:  # TorchScript's own overloads
        return _scripted_copy(node)
    op = functional_overload(base, node.op)
    if op is None:
        return None
    return _of_self(op, node.arguments)


def _scripted_copy(node: Node) -> FunctionalVariant:
    arguments = dict(node.arguments)
    other = arguments.pop("other")
    if isinstance(other, Value):
        return _of_self(aten.copy.default, {**arguments, "src": other})
    return _of_self(aten.fill.Scalar, {**arguments, "value": other})


def _of_self(op: Any, arguments: dict[str, Argument]) -> FunctionalVariant:
    return FunctionalVariant(op, _given(op, arguments), {"self": 0}, {0: "self"})


def _without_out(node: Node, name: str, written: list[str]) -> FunctionalVariant | None:
    op = functional_overload(name, node.op)
    if op is None:
        return None
    return FunctionalVariant(
        op,
        _given(op, node.arguments) | _dtype_of_out(op, name, node, written[0]),
        {name: position for position, name in enumerate(written)},
        dict(enumerate(written)),
    )


def _dtype_of_out(op: Any, name: str, node: Node, out: str) -> dict[str, Argument]:
    target = node.arguments[out]
    is_factory = not any(v is not target for v in node.inputs())
    if (is_factory or name in _DTYPE_OF_OUT) and isinstance(target, Value):
        knows = any(p.is_dtype for p in parameters_of(op))
        if knows and node.arguments.get("dtype") is None:
            return {"dtype": target.dtype}
    return {}


def _functional_twin(node: Node, name: str, written: list[str]) -> FunctionalVariant | None:
    """`op_functional` returns the results and then the new contents of what `op` writes."""
    op = getattr(getattr(aten, f"{name}_functional", None), "default", None)
    if op is None:
        return None
    count = len(node.op._schema.returns)
    return FunctionalVariant(
        op,
        _given(op, node.arguments),
        {argument: count + position for position, argument in enumerate(written)},
        {},
    )


def _batch_norm(node: Node) -> FunctionalVariant:
    """In training `batch_norm` updates the running statistics, which its schema does not say."""
    op = aten._native_batch_norm_legit_functional.default
    arguments = {**_given(op, node.arguments), "training": True}
    return FunctionalVariant(op, arguments, {"running_mean": 3, "running_var": 4}, {})


def _given(op: Any, arguments: dict[str, Argument]) -> dict[str, Argument]:
    known = {p.name for p in parameters_of(op)}
    return {k: v for k, v in arguments.items() if k in known}
