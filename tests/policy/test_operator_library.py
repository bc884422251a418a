"""The operator library keeps its promises: signatures are schemas, nothing writes, no opsets."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
import torch.ao.quantization.fx._decomposed  # the operators of quantized_decomposed

import sardonyx
from sardonyx.lower.lower import LIBRARY
from sardonyx.lower.registry import HAVE_NO_MEANING_IN_ONNX, Lowering, Registry

LIBRARIES = {"aten": LIBRARY}
NAMES = LIBRARY.names()
ENTRIES = [(kind, name) for kind, library in LIBRARIES.items() for name in library.names()]
OPERATORS = Path(sardonyx.__file__).parent / "lower" / "ops"


def overload(name: str) -> torch._ops.OpOverload:
    namespace, rest = name.split("::")
    packet, _, overload_name = rest.partition(".")
    return getattr(getattr(getattr(torch.ops, namespace), packet), overload_name or "default")


def lowering_of(kind: str, name: str) -> Lowering:
    lowering = LIBRARIES[kind].get(name)
    assert lowering is not None
    return lowering


def test_the_library_covers_the_operators_of_common_models() -> None:
    packets = {name.split(".")[0] for name in NAMES}
    assert len(packets) >= 220, f"{len(packets)} operators, {len(NAMES)} overloads"


def test_a_signature_is_its_schema() -> None:
    """Every schema argument without a default is declared, and those a lowering adds for other
    overloads have a default."""
    assert [fault for kind, name in ENTRIES for fault in _faults(kind, name)] == []


def _faults(kind: str, name: str) -> Iterator[str]:
    schema = overload(name)._schema
    lowering = lowering_of(kind, name)
    names = {argument.name for argument in schema.arguments}
    known = {lowering.parameter(argument) for argument in names}
    declared = lowering.parameters
    required = {
        lowering.parameter(argument.name)
        for argument in schema.arguments
        if not argument.has_default_value() and argument.name not in HAVE_NO_MEANING_IN_ONNX
    }
    extra = [
        parameter.name
        for parameter in declared.values()
        if parameter.name not in known and parameter.default is inspect.Parameter.empty
    ]
    if extra:
        yield f"{schema} has no {extra}"
    if lowering.given.keys() & known or not lowering.renamed.keys() <= names:
        yield f"{schema} does not have what is renamed, or has what is given"
    undeclared = required - set(declared)
    if undeclared:
        yield f"{name} does not declare {undeclared}"


def test_every_registered_operator_is_pure() -> None:
    assert [name for _, name in ENTRIES if overload(name)._schema.is_mutable] == []


def test_no_operator_asks_for_the_opset_or_the_capture() -> None:
    asking = re.compile(r"\bopset|captured_by|\bcapture ==", re.IGNORECASE)
    found = [
        f"{path.name}:{number}: {line.strip()}"
        for path in sorted(OPERATORS.glob("*.py"))
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if asking.search(line) and not line.lstrip().startswith("#")
    ]
    assert not found


def test_an_in_place_name_cannot_be_registered() -> None:
    with pytest.raises(sardonyx.SardonyxError, match="writes in place"):
        Registry().register(Lowering("aten::add_.Tensor", lambda b, self: self))
