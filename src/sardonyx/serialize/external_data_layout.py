"""External data: when weights go into a separate file, which of them, and at which offsets."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass

import onnx_ir as ir

from sardonyx.aten.storage import storage_key
from sardonyx.errors import SerializeError
from sardonyx.lower.weights import TorchTensor
from sardonyx.options import ExternalData

PROTOBUF_LIMIT = 2**31 - 1
"""Protobuf readers take no message of this size or more."""

_PAGE = 4096
_PAGE_ALIGNED_FROM = 2**20
_CACHE_LINE = 64


def resolve_external_data(
    option: bool | ExternalData | None, total_bytes: int, has_path: bool
) -> ExternalData | None:
    """What the caller's `external_data` means for a model of `total_bytes` in one file."""
    too_large = total_bytes >= PROTOBUF_LIMIT
    size = f"the model takes {total_bytes / 2**30:.2f} GiB, and one file holds less than 2 GiB"
    if not has_path:
        if option:
            raise SerializeError(
                "external_data needs a path: f is a stream, with no folder for the weights file"
            )
        if too_large:
            raise SerializeError(f"{size}: give f as a path, so that weights go into a second file")
        return None
    if option is False:
        if too_large:
            raise SerializeError(f"{size}: leave external_data=False away")
        return None
    if option is None:
        return ExternalData() if too_large else None
    return ExternalData() if option is True else option


@dataclass(frozen=True)
class Placement:
    """Where in the weights file a tensor lies."""

    offset: int
    length: int


def place(tensors: Iterable[ir.TensorProtocol]) -> list[Placement]:
    """One place per tensor, in order; tied tensors share theirs."""
    placements: dict[Hashable, Placement] = {}
    result: list[Placement] = []
    end = 0
    for tensor in tensors:
        key = _identity(tensor)
        if key not in placements:
            alignment = _PAGE if tensor.nbytes >= _PAGE_ALIGNED_FROM else _CACHE_LINE
            offset = -(-end // alignment) * alignment
            placements[key] = Placement(offset, tensor.nbytes)
            end = offset + tensor.nbytes
        result.append(placements[key])
    return result


def _identity(tensor: ir.TensorProtocol) -> Hashable:
    # A weight that is cast as it is written shares its place with none of another dtype.
    is_torch = isinstance(tensor, TorchTensor)
    return (tensor.dtype, storage_key(tensor.raw)) if is_torch else id(tensor)
