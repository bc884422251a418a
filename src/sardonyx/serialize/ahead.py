"""Large weights on their way into the file while the graph that they belong to is still made.

Which weights stay as they are is expected, not known: what was written is used only if it is, byte
for byte, how the file begins, and is thrown away otherwise.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator, Mapping, Sequence

import onnx
import onnx_ir as ir
import torch

from sardonyx.lower.weights import TorchTensor
from sardonyx.serialize.destination import Destination, Sink, is_device, path_of, staged_files
from sardonyx.serialize.external_data import PROTOBUF_LIMIT
from sardonyx.serialize.fields import Field, graph_start, inline_field
from sardonyx.version import PRODUCER, producer_version

_LARGE_BYTES = 2**20
_LEAST_BYTES = 8 * 2**20
"""Below this, all the weights are written in the time that a thread takes."""
_BATCH_BYTES = 2**28
_BATCH_LENGTH = 512


def is_large(tensor: ir.TensorProtocol) -> bool:
    """Whether a weight is one of those that come first in a file."""
    return isinstance(tensor, TorchTensor) and tensor.nbytes >= _LARGE_BYTES


class WeightsAhead:
    def __init__(self, path: str, fields: Sequence[Field]) -> None:
        self._fields = fields
        self._versions = [_version(field) for field in fields]
        size = sum(field.size for field in fields)
        self._start = len(_model_start()) + len(graph_start(size))
        self._files = contextlib.ExitStack()
        [self._sink] = self._files.enter_context(staged_files(path))
        self._error: BaseException | None = None
        self._is_wanted = True
        self._thread = threading.Thread(target=self._write, args=(_parts(fields), size))
        self._thread.start()

    def _write(self, parts: list[memoryview], size: int) -> None:
        try:
            self._sink.reserve(self._start + size)
            self._sink.skip(self._start)
            for batch in _batches(parts):
                if self._is_wanted:
                    self._sink.write_together(batch)
        except BaseException as error:  # raised where the file is wanted
            self._error = error

    def matches(self, start: bytes, fields: Sequence[Field]) -> bool:
        """Whether these are the fields that were written, behind a start of this length, and their
        tensors hold what they held."""
        return (
            len(start) == self._start
            and [f.prefix for f in fields] == [f.prefix for f in self._fields]
            and all(map(_are_alike, fields, self._fields))
            and list(map(_version, fields)) == self._versions
        )

    @contextlib.contextmanager
    def continued(self, start: bytes) -> Iterator[Sink]:
        """Takes what comes behind the weights; the file stands under its name afterwards."""
        self._thread.join()
        with self._files.pop_all():
            if self._error is not None:
                raise self._error
            yield self._sink
            self._sink.write_start(start)

    def discard(self) -> None:
        self._is_wanted = False
        self._thread.join()
        with contextlib.suppress(_Discarded), self._files.pop_all():
            raise _Discarded


class _Discarded(Exception):
    pass


@contextlib.contextmanager
def weights_ahead(
    destination: Destination | None, expected: Mapping[str, torch.Tensor]
) -> Iterator[WeightsAhead | None]:
    """`expected` are the parameters that the graph will have as they are, in their order. None
    where there is no file to write them to, or nothing to gain."""
    path = path_of(destination) if isinstance(destination, str | os.PathLike) else None
    tensors = {name: TorchTensor(tensor, name) for name, tensor in expected.items()}
    tensors = {name: tensor for name, tensor in tensors.items() if is_large(tensor)}
    size = sum(tensor.nbytes for tensor in tensors.values())
    if path is None or is_device(path) or not _LEAST_BYTES <= size < PROTOBUF_LIMIT:
        yield None
        return
    ahead = WeightsAhead(path, [inline_field(name, tensor) for name, tensor in tensors.items()])
    try:
        yield ahead
    finally:
        ahead.discard()


def _model_start() -> bytes:
    """As long as that of the file: the version takes one byte."""
    model = onnx.ModelProto(
        ir_version=1, producer_name=PRODUCER, producer_version=producer_version()
    )
    start: bytes = model.SerializeToString()
    return start


def _tensor(field: Field) -> torch.Tensor:
    assert isinstance(field.data, TorchTensor)
    return field.data.raw


def _version(field: Field) -> int:
    """How often a tensor was written."""
    return _tensor(field)._version


def _are_alike(left: Field, right: Field) -> bool:
    tensors = _tensor(left), _tensor(right)
    return len({(tensor.data_ptr(), tensor.stride()) for tensor in tensors}) == 1


def _parts(fields: Sequence[Field]) -> list[memoryview]:
    """Each as it is written; Python's own are made before the thread starts."""
    parts: list[memoryview] = []
    for field in fields:
        assert isinstance(field.data, TorchTensor)
        parts += [memoryview(field.prefix), *field.data.blocks()]
    return parts


def _batches(parts: list[memoryview]) -> Iterator[list[memoryview]]:
    """Few: for each, the thread waits until the one that makes the graph lets it run."""
    batch: list[memoryview] = []
    size = 0
    for part in parts:
        batch.append(part)
        size += len(part)
        if size >= _BATCH_BYTES or len(batch) == _BATCH_LENGTH:
            yield batch
            batch, size = [], 0
    yield batch
