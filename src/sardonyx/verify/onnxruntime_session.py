"""Runs a model in ONNX Runtime, torch tensors in and out."""

from __future__ import annotations

import ctypes
import io
import os
import shutil
import tempfile
import weakref
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, TypeAlias

import numpy as np
import onnx_ir as ir
import torch

from sardonyx.aten.storage import array_of, holds_memory
from sardonyx.aten.type_inference import type_of
from sardonyx.errors import (
    InvalidOptionError,
    MissingDependencyError,
    NotRunnableError,
    VerificationError,
)
from sardonyx.lower.values import ONNX_TO_TORCH, TORCH_TO_ONNX
from sardonyx.options import ExternalData
from sardonyx.serialize.writer import write_model
from sardonyx.verify.failed_node import place_of_failed_node

Output: TypeAlias = torch.Tensor | list[torch.Tensor]
"""Of the file; a sequence is a list."""

IN_MEMORY_LIMIT = 256 * 1024 * 1024
"""Models with more weight bytes than this reach ONNX Runtime through a temporary folder: it maps
weights kept outside the .onnx file, where a model given as bytes would be copied twice."""

_WITHOUT_VERIFICATION = (
    "an older opset_version, or no verification (verify=False, --no-verify on the command line) if"
    " the file is for another runtime"
)

_WITH_LIBRARY = (
    "custom_op_libraries=[path] of a shared library that has this operator for ONNX Runtime, or no"
    " verification (verify=False, --no-verify on the command line)"
)

_CRASHES_ON_HALVES = ["NchwcTransformer"]
"""Optimizers of ONNX Runtime 1.31 that end the process where a transposed half is cast."""

# ONNX Runtime takes an element type over any array of the same width.
_CARRIER = {1: torch.uint8, 2: torch.uint16, 4: torch.uint32, 8: torch.uint64}


class Session:
    """A model loaded in ONNX Runtime.

    `source` is an .onnx file or a model in memory. Tensors of every dtype both sides know go in
    and come out (bfloat16 and float8 included); results live on the CPU. `libraries` are shared
    libraries with operators of custom domains.
    """

    def __init__(
        self,
        source: str | os.PathLike[str] | ir.Model,
        *,
        providers: Sequence[str] = ("CPUExecutionProvider",),
        libraries: Sequence[str | os.PathLike[str]] = (),
        has_halves: bool = False,
    ) -> None:
        self._runtime = _import_onnxruntime()
        self._source = source
        options = self._runtime.SessionOptions()
        options.log_severity_level = 3
        options.intra_op_num_threads = torch.get_num_threads()
        try:
            for library in libraries:
                options.register_custom_ops_library(os.fspath(library))
            self._session = self._runtime.InferenceSession(
                self._loadable(source),
                options,
                providers=list(providers),
                disabled_optimizers=_CRASHES_ON_HALVES if has_halves else None,
            )
        except Exception as error:
            is_unknown = "is not a registered function/op" in str(error)
            remedy = _WITH_LIBRARY if is_unknown else _WITHOUT_VERIFICATION
            raise self._failure("cannot load the model", error, ("try", remedy)) from error
        self.providers: tuple[str, ...] = tuple(self._session.get_providers())
        self.input_names: tuple[str, ...] = tuple(i.name for i in self._session.get_inputs())
        outputs = self._session.get_outputs()
        self.output_names: tuple[str, ...] = tuple(o.name for o in outputs)
        # An OrtValue does not give out the items of a sequence; arrays lack bfloat16 and float8.
        has_sequence = any(o.type.startswith("seq(") for o in outputs)
        session = self._session
        self._run = session.run if has_sequence else session.run_with_ort_values

    def _loadable(self, source: str | os.PathLike[str] | ir.Model) -> str | bytes:
        if not isinstance(source, ir.Model):
            return os.fspath(source)
        if weight_bytes(source) <= IN_MEMORY_LIMIT:
            buffer = io.BytesIO()
            write_model(source, buffer, external_data=None)
            return buffer.getvalue()
        folder = tempfile.mkdtemp(prefix="sardonyx-")
        # The session maps the weights from there as long as it lives.
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        path = Path(folder) / "model.onnx"
        write_model(source, path, external_data=ExternalData())
        return str(path)

    def run(self, inputs: Mapping[str, torch.Tensor]) -> dict[str, Output]:
        """Every output by name, a sequence as a list. `inputs` must give every input the model has
        no default for."""
        missing = [name for name in self.input_names if name not in inputs]
        unknown = [name for name in inputs if name not in self.input_names]
        if missing or unknown:
            raise VerificationError(
                "the inputs do not fit the ONNX model",
                [
                    ("missing", ", ".join(missing)),
                    ("unknown", ", ".join(unknown)),
                    ("expected", ", ".join(self.input_names)),
                ],
            )
        # The tensors must outlive the run: an OrtValue only refers to their memory.
        tensors = {name: _host_tensor(name, tensor) for name, tensor in inputs.items()}
        feeds = {name: self._to_ort(name, tensor) for name, tensor in tensors.items()}
        try:
            outputs = self._run(list(self.output_names), feeds)
        except Exception as error:
            shapes = [f"{name}: {type_of(tensor)}" for name, tensor in tensors.items()]
            failure = self._failure("failed while running the model", error, ("inputs", shapes))
            raise failure from error
        return {
            name: _to_torch(name, value)
            for name, value in zip(self.output_names, outputs, strict=True)
        }

    def _failure(
        self, what: str, error: Exception, row: tuple[str, str | list[str]]
    ) -> NotRunnableError:
        reason = [line.strip() for line in str(error).splitlines()]
        place = place_of_failed_node(self._source, error)
        headline = f"ONNX Runtime {self._runtime.__version__} {what}"
        return NotRunnableError(headline, [("reason", reason), ("at", place), row])

    def _to_ort(self, name: str, tensor: torch.Tensor) -> Any:
        element_type = TORCH_TO_ONNX.get(tensor.dtype)
        carrier = _CARRIER.get(tensor.element_size())
        if element_type is None or element_type.bitwidth < 8 or carrier is None:
            raise VerificationError(f"input {name}: ONNX Runtime does not take {tensor.dtype}")
        return self._runtime.OrtValue.ortvalue_from_numpy_with_onnx_type(
            array_of(tensor.view(carrier)), int(element_type)
        )


def _import_onnxruntime() -> ModuleType:
    try:
        import onnxruntime
    except ImportError as error:
        raise MissingDependencyError(
            "running a model needs ONNX Runtime, which is not installed",
            [
                (
                    "try",
                    [
                        "pip install onnxruntime",
                        "or no verification: verify=False, --no-verify on the command line",
                    ],
                )
            ],
        ) from error
    module: ModuleType = onnxruntime
    return module


def weight_bytes(model: ir.Model) -> int:
    """The size of all initializers of the graph."""
    return sum(
        value.const_value.nbytes
        for value in model.graph.initializers.values()
        if value.const_value is not None
    )


def _host_tensor(name: str, tensor: torch.Tensor) -> torch.Tensor:
    if not holds_memory(tensor):
        raise InvalidOptionError(f"{name} is on the meta device: there are no values to run with")
    return as_in_file(tensor)


def as_in_file(tensor: torch.Tensor) -> torch.Tensor:
    """In the CPU's memory, complex numbers as pairs of reals."""
    tensor = tensor.detach().resolve_conj().resolve_neg().cpu().contiguous()
    return torch.view_as_real(tensor) if tensor.is_complex() else tensor


def _to_torch(name: str, value: Any) -> Output:
    if isinstance(value, list):
        return [torch.from_numpy(np.asarray(item)) for item in value]
    if isinstance(value, np.ndarray | np.generic):
        return torch.from_numpy(np.asarray(value))
    if not value.is_tensor():
        raise VerificationError(f"output {name} is not a tensor: {value.data_type()}")
    dtype = ONNX_TO_TORCH.get(ir.DataType(value.element_type()))
    if dtype is None:
        raise VerificationError(f"output {name}: PyTorch has no dtype for {value.data_type()}")
    count = value.tensor_size_in_bytes()
    if count == 0:
        return torch.empty(value.shape(), dtype=dtype)
    memory = (ctypes.c_ubyte * count).from_address(value.data_ptr())
    # Cloned while `value` still owns the memory.
    return torch.frombuffer(memory, dtype=torch.uint8).clone().view(dtype).reshape(value.shape())


def has_halves(model: ir.Model) -> bool:
    """Whether a model computes in float16 or bfloat16 somewhere."""
    values = (
        output
        for node in ir.traversal.RecursiveGraphIterator(model.graph)
        for output in node.outputs
    )
    return any(
        value.dtype in (ir.DataType.FLOAT16, ir.DataType.BFLOAT16)
        for value in (*model.graph.inputs, *model.graph.initializers.values(), *values)
    )
