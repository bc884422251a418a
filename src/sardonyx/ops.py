"""Nodes that a model asks for by their names: ONNX's, or those of a domain of one's own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import onnx_ir as ir
import torch

from sardonyx.errors import InvalidOptionError
from sardonyx.extend.onnx_operators import OWN_NAMESPACE
from sardonyx.extend.symbolic_functions.node_attributes import letter_of
from sardonyx.lower.values import ONNX_TO_TORCH, TORCH_TO_ONNX

Attribute: TypeAlias = int | float | str | bool | Sequence[int] | Sequence[float] | Sequence[str]

_library = torch.library.Library(OWN_NAMESPACE, "FRAGMENT")  # type: ignore[no-untyped-call]
_library.define(  # type: ignore[no-untyped-call]
    "symbolic(Tensor?[] inputs, str op_type, int[] onnx_dtypes, *, SymInt[][] shapes,"
    " str[] attr_keys, str[] attr_types, int[][] attr_pos, int[] attr_ints, float[] attr_floats,"
    " str[] attr_strs, str[] metadata_props_keys, str[] metadata_props_values, str domain='',"
    " int? version=None) -> Tensor[]"
)


def _results(
    inputs: Any, op_type: str, onnx_dtypes: Sequence[int], *, shapes: Any, **rest: Any
) -> list[torch.Tensor]:
    """Without a file to run, nobody knows what the node computes: zeros."""
    dtypes = [ONNX_TO_TORCH[ir.DataType(number)] for number in onnx_dtypes]
    return [torch.zeros(list(s), dtype=d) for s, d in zip(shapes, dtypes, strict=True)]


_library.impl("symbolic", _results, "CompositeExplicitAutograd")  # type: ignore[no-untyped-call]
torch.library.register_fake(f"{OWN_NAMESPACE}::symbolic", _results, lib=_library)


def symbolic(
    domain_op: str,
    /,
    inputs: Sequence[torch.Tensor | None],
    attrs: Mapping[str, Attribute] | None = None,
    *,
    dtype: torch.dtype | int,
    shape: Sequence[int | torch.SymInt],
    version: int | None = None,
    metadata_props: Mapping[str, str] | None = None,
) -> torch.Tensor:
    """The result of a node `domain::Name`, or `Name` of ONNX, in a model that is to be exported.

    Eager PyTorch does not know what it computes, and gives zeros.

    Args:
        domain_op: The node's name.
        inputs: Its inputs, None for one that is left out.
        attrs: Its attributes: numbers, strings, or lists of either.
        dtype: The dtype of the result, or ONNX's number of it.
        shape: The sizes of the result.
        version: The opset that the node is of; by default that of the export.
        metadata_props: What the node says of itself in the file.
    """
    (result,) = symbolic_multi_out(
        domain_op,
        inputs,
        attrs,
        dtypes=(dtype,),
        shapes=(shape,),
        version=version,
        metadata_props=metadata_props,
    )
    return result


def symbolic_multi_out(
    domain_op: str,
    /,
    inputs: Sequence[torch.Tensor | None],
    attrs: Mapping[str, Attribute] | None = None,
    *,
    dtypes: Sequence[torch.dtype | int],
    shapes: Sequence[Sequence[int | torch.SymInt]],
    version: int | None = None,
    metadata_props: Mapping[str, str] | None = None,
) -> Sequence[torch.Tensor]:
    """The results of a node that has several; as `symbolic` otherwise."""
    domain, separator, name = domain_op.rpartition("::")
    if not name or bool(separator) != bool(domain):
        raise InvalidOptionError(f"{domain_op!r} is no node: write Name or domain::Name")
    if len(dtypes) != len(shapes):
        raise InvalidOptionError(f"these are {len(dtypes)} dtypes and {len(shapes)} shapes")
    told = metadata_props or {}
    found: Sequence[torch.Tensor] = torch.ops.sardonyx.symbolic.default(
        list(inputs),
        name,
        [_onnx_dtype(dtype) for dtype in dtypes],
        shapes=[list(shape) for shape in shapes],
        **_encoded(attrs or {}),
        metadata_props_keys=list(told),
        metadata_props_values=list(told.values()),
        domain=domain,
        version=version,
    )
    return found


def _onnx_dtype(dtype: torch.dtype | int) -> int:
    found = TORCH_TO_ONNX.get(dtype) if isinstance(dtype, torch.dtype) else dtype
    if found is None or found not in set(ONNX_TO_TORCH):
        raise InvalidOptionError(f"{dtype!r} is no dtype of ONNX")
    return int(found)


def _encoded(attrs: Mapping[str, Attribute]) -> dict[str, Any]:
    """Attributes as lists of their parts, which operators of PyTorch can take."""
    lists: dict[str, list[Any]] = {"i": [], "f": [], "s": []}
    types: list[str] = []
    places: list[list[int]] = []
    for name, value in attrs.items():
        is_list = isinstance(value, Sequence) and not isinstance(value, str)
        items: list[Any] = [*value] if isinstance(value, Sequence) and is_list else [value]
        letter = _letter(name, items)
        held = lists[letter]
        places.append([len(held), len(held) + len(items)])
        held += [_KINDS[letter](item) for item in items]
        types.append(letter + "s" * is_list)
    return {
        "attr_keys": list(attrs),
        "attr_types": types,
        "attr_pos": places,
        "attr_ints": lists["i"],
        "attr_floats": lists["f"],
        "attr_strs": lists["s"],
    }


_KINDS: dict[str, type] = {"i": int, "f": float, "s": str}


def _letter(name: str, items: Sequence[Any]) -> str:
    letter = letter_of(items)
    if letter not in _KINDS or isinstance(items[0], bytes):
        raise InvalidOptionError(
            f"the attribute {name} must be a number, a string or a list of either, not"
            f" {list(items)!r}"
        )
    return letter


__all__ = ["symbolic", "symbolic_multi_out"]
