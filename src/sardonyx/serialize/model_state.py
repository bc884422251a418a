"""Weights that a program was exported without: read where they lie, tensor by tensor, as it is
written.

They come from a state_dict, a `.pt` or `.safetensors` file, the index of a sharded checkpoint, or
the folder that has one of these.
"""

from __future__ import annotations

import ctypes
import difflib
import functools
import json
import mmap
import os
import pickle
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import torch

from sardonyx.errors import InvalidOptionError, first_line, format_message
from sardonyx.lower.values import TORCH_TO_ONNX
from sardonyx.lower.weights import COPY_LIMIT, TorchTensor, pieces

ModelState: TypeAlias = Mapping[str, torch.Tensor] | str | os.PathLike[str]

_IN_FOLDERS = (
    "model.safetensors.index.json",
    "model.safetensors",
    "pytorch_model.bin.index.json",
    "pytorch_model.bin",
)
"""The checkpoints to look for in a folder, as Hugging Face models have them."""

_SAFETENSORS_DTYPES = {
    "BOOL": torch.bool,
    "U8": torch.uint8,
    "I8": torch.int8,
    "U16": torch.uint16,
    "I16": torch.int16,
    "U32": torch.uint32,
    "I32": torch.int32,
    "U64": torch.uint64,
    "I64": torch.int64,
    "F16": torch.float16,
    "BF16": torch.bfloat16,
    "F32": torch.float32,
    "F64": torch.float64,
    "C64": torch.complex64,
    "F8_E4M3": torch.float8_e4m3fn,
    "F8_E5M2": torch.float8_e5m2,
    "F8_E8M0": torch.float8_e8m0fnu,
}


class StoredTensor(NamedTuple):
    """A tensor of a state."""

    tensor: torch.Tensor
    is_mapped: bool
    """Whether its memory is a file, mapped for this purpose: pages can go once they are read."""


class GivenWeight(TorchTensor):
    """A weight as the model declares it, read from a tensor of another dtype perhaps."""

    def __init__(self, stored: StoredTensor, name: str, dtype: torch.dtype) -> None:
        source = stored.tensor
        if source.dtype.is_complex and not dtype.is_complex:
            source = torch.view_as_real(source.detach().resolve_conj())
        super().__init__(source, name)
        self._dtype = TORCH_TO_ONNX[dtype]
        self._torch_dtype = dtype
        self._is_mapped = stored.is_mapped

    def numpy(self) -> np.ndarray[Any, Any]:
        return TorchTensor(self.raw.detach().to(self._torch_dtype)).numpy()

    def blocks(self) -> Iterator[memoryview]:
        if self.raw.dtype == self._torch_dtype and not self._is_mapped:
            yield from super().blocks()
            return
        most = max(1, COPY_LIMIT // max(self.raw.element_size(), self._torch_dtype.itemsize))
        for piece in pieces(self.raw.detach(), most):
            # One after the other, through one block: neither casts nor pages read add up.
            yield from TorchTensor(piece.to(self._torch_dtype)).blocks()
            if self._is_mapped:
                _give_pages_back(piece)


def given_weights(
    wanted: Mapping[str, TorchTensor],
    model_state: ModelState | Sequence[ModelState],
    other_names: Mapping[str, Sequence[str]],
) -> dict[str, GivenWeight]:
    """What `model_state` has for each of `wanted`, by the same keys.

    A tensor is looked up by its own name, then by the `other_names` that the model has for it.
    """
    state = opened_state(model_state)
    found: dict[str, GivenWeight] = {}
    missing: list[str] = []
    for key, tensor in wanted.items():
        names = [tensor.name or key, *other_names.get(tensor.name or key, ())]
        name = next((name for name in names if name in state), None)
        if name is None:
            missing.append(names[0])
            continue
        weight = GivenWeight(state[name], key, tensor.raw.dtype)
        if weight.shape != tensor.shape:
            raise InvalidOptionError(
                f"model_state has {name} of shape {list(weight.shape)}, the model declares"
                f" {list(tensor.shape)}"
            )
        found[key] = weight
    if missing:
        raise InvalidOptionError(_missing_message(missing, state))
    return found


def _missing_message(missing: Sequence[str], state: Mapping[str, StoredTensor]) -> str:
    close = difflib.get_close_matches(missing[0], list(state), n=1)
    return format_message(
        f"model_state lacks {len(missing)} of the model's weights",
        [
            ("lacks", [*missing[:5], *(["..."] if len(missing) > 5 else [])]),
            ("has", [f"{len(state)} tensors", f"{close[0]}, for one" if close else ""]),
            ("try", "the state_dict of the same model; what no state_dict holds is made for real"),
        ],
    )


# -- where weights lie -------------------------------------------------------------------------


def opened_state(given: ModelState | Sequence[ModelState]) -> Mapping[str, StoredTensor]:
    """The tensors by name; each is read when its values are."""

    if isinstance(given, Mapping):
        return _state_of(given, "model_state", is_mapped=False)
    if isinstance(given, str | os.PathLike):
        return _from_path(Path(given))
    if isinstance(given, Sequence):
        return {name: tensor for part in given for name, tensor in opened_state(part).items()}
    raise InvalidOptionError(
        "model_state must be a state_dict, or the path of a .pt or .safetensors file, of the index"
        f" of a sharded checkpoint, or of their folder, not {type(given).__name__}"
    )


def _from_path(path: Path) -> Mapping[str, StoredTensor]:
    if path.is_dir():
        names = [name for name in _IN_FOLDERS if (path / name).is_file()]
        if not names:
            raise InvalidOptionError(
                f"model_state: the folder {path} has no checkpoint, none of"
                f" {', '.join(_IN_FOLDERS)}"
            )
        return _from_path(path / names[0])
    if not path.is_file():
        raise InvalidOptionError(f"model_state: there is no file {path}")
    if path.suffix == ".json":
        return _Shards(path)
    if path.suffix == ".safetensors":
        return _SafetensorsFile(path)
    return _from_torch_file(path)


def _state_of(
    state: Mapping[Any, Any], label: str, *, is_mapped: bool
) -> Mapping[str, StoredTensor]:
    """The state_dict itself, or the one that a checkpoint has beside other things."""
    for key in ("state_dict", "model_state_dict", "model"):
        if isinstance(state.get(key), Mapping):
            return _state_of(state[key], label, is_mapped=is_mapped)
    tensors = {
        key: StoredTensor(value, is_mapped)
        for key, value in state.items()
        if isinstance(value, torch.Tensor)
    }
    if not tensors and state:
        raise InvalidOptionError(f"{label} holds no tensors: it is no state_dict")
    return tensors


def _from_torch_file(path: Path) -> Mapping[str, StoredTensor]:
    is_mapped = is_zip(path)
    try:
        state = torch.load(path, map_location="cpu", weights_only=True, mmap=is_mapped)
    except (pickle.UnpicklingError, RuntimeError, EOFError) as error:
        raise InvalidOptionError(
            f"model_state: {path} cannot be read: {first_line(error)}",
            [
                (
                    "try",
                    "a file with nothing but a state_dict: torch.save(model.state_dict(), f)",
                )
            ],
        ) from error
    if not isinstance(state, Mapping):
        raise InvalidOptionError(f"model_state: {path} holds a {type(state).__name__}")
    return _state_of(state, str(path), is_mapped=is_mapped)


def is_zip(path: str | os.PathLike[str]) -> bool:
    """Whether a file of torch.save can be mapped into memory: those of old versions cannot."""
    with open(path, "rb") as file:
        return file.read(2) == b"PK"


class _SafetensorsFile(Mapping[str, StoredTensor]):
    """The file's tensors, mapped into memory: 8 bytes of length, a header in JSON, the data."""

    def __init__(self, path: Path) -> None:
        self._path = path
        with open(path, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            length = int.from_bytes(file.read(8), "little")
            if size < 8 or length > size - 8:
                raise self._broken("its header is longer than the file")
            try:
                header = json.loads(file.read(length))
            except ValueError as error:
                raise self._broken("its header is no JSON") from error
            if not isinstance(header, dict):
                raise self._broken("its header is no JSON object")
            # Copied on write, so that tensors may lie there; nothing writes.
            self._data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
        self._start = 8 + length
        self._entries = {name: entry for name, entry in header.items() if name != "__metadata__"}

    def __getitem__(self, name: str) -> StoredTensor:
        entry = self._entries[name]
        try:
            dtype_name, shape = entry["dtype"], entry["shape"]
            begin, end = entry["data_offsets"]
        except (KeyError, TypeError, ValueError) as error:
            raise self._broken(f"its entry for {name} is not of the format") from error
        dtype = _SAFETENSORS_DTYPES.get(dtype_name)
        if dtype is None:
            raise InvalidOptionError(
                f"model_state: {self._path} has {name} as {dtype_name}, which is not known here"
            )
        count = int(np.prod(shape, dtype=np.int64))
        fits = 0 <= begin <= end <= len(self._data) - self._start
        if not fits or end - begin != count * dtype.itemsize:
            raise self._broken(f"{name} does not lie where its header says")
        if count == 0:
            return StoredTensor(torch.empty(shape, dtype=dtype), is_mapped=False)
        data = torch.frombuffer(
            self._data, dtype=torch.uint8, count=end - begin, offset=self._start + begin
        )
        return StoredTensor(data.view(dtype).reshape(shape), is_mapped=True)

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def _broken(self, reason: str) -> InvalidOptionError:
        return InvalidOptionError(f"model_state: {self._path} is no safetensors file: {reason}")


class _Shards(Mapping[str, StoredTensor]):
    """The files of a sharded checkpoint, each opened when one of its tensors is first read."""

    def __init__(self, index: Path) -> None:
        try:
            files = json.loads(index.read_text())["weight_map"]
        except (ValueError, KeyError, TypeError) as error:
            raise InvalidOptionError(
                f"model_state: {index} is no index of a checkpoint: it has no weight_map"
            ) from error
        self._files: dict[str, Path] = {name: index.parent / file for name, file in files.items()}
        self._open = functools.cache(_from_path)

    def __getitem__(self, name: str) -> StoredTensor:
        file = self._files[name]
        tensors = self._open(file)
        if name not in tensors:
            raise InvalidOptionError(f"model_state: {file} lacks {name}, which the index promises")
        return tensors[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._files)

    def __len__(self) -> int:
        return len(self._files)


# -- pages -------------------------------------------------------------------------------------

_ADVICE_DONT_NEED = 4
_LIBC = ctypes.CDLL(None) if os.name == "posix" else None


def _give_pages_back(read: torch.Tensor) -> None:
    """Of a file that is mapped into memory: they were read, and are not needed again."""
    madvise = getattr(_LIBC, "madvise", None)
    if madvise is None or not read.is_contiguous():
        return
    page = mmap.PAGESIZE
    start = -(-read.data_ptr() // page) * page
    end = (read.data_ptr() + read.nbytes) // page * page
    if end > start:
        madvise(
            ctypes.c_void_p(start), ctypes.c_size_t(end - start), ctypes.c_int(_ADVICE_DONT_NEED)
        )
