"""Runs the PyTorch model that was exported, and leaves no trace of having run it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch

from sardonyx import _torch_private
from sardonyx.aten.module_tree import named_buffers
from sardonyx.aten.pytree import map_leaves
from sardonyx.capture.capture_errors import model_failure
from sardonyx.capture.side_effects.restore import gradients_restored, model_mode, without_fast_path
from sardonyx.capture.side_effects.tensor_state import state_restored
from sardonyx.options import TrainingMode


@dataclass(frozen=True)
class EagerRun:
    """What the model returned, and its arguments and buffers as they were when it returned."""

    output: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    buffers: Mapping[str, torch.Tensor]


@dataclass(frozen=True)
class EagerModel:
    """The model an ONNX program was exported from, its example inputs, and the mode of the
    export."""

    model: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    training: TrainingMode = TrainingMode.EVAL

    def check_example(self) -> None:
        """Raises CaptureError where the model itself fails on the example."""
        try:
            self.run(self.args, self.kwargs)
        except Exception as error:
            raise model_failure(error) from error

    def run(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> EagerRun:
        """Run on copies of the inputs. Modes, tensors, attributes and RNG are as before then."""
        own_args, own_kwargs = map_leaves(_cloned, (args, dict(kwargs)))
        # Reading a generator would wake a device that the model does not use.
        awake = torch.cuda.is_initialized()  # type: ignore[no-untyped-call]
        devices = list(range(torch.cuda.device_count())) if awake else []
        with (
            _torch_private.modes_restored(),
            torch.no_grad(),
            torch.random.fork_rng(devices=devices),
            model_mode(self.model, self.training),
            gradients_restored(self.model),
            state_restored(self.model),
            _whole_float32(),
            without_fast_path(),
        ):
            # Cloned: the output may be a buffer, which is about to be restored in place.
            output = map_leaves(_cloned, self.model(*own_args, **own_kwargs))
            buffers = dict(named_buffers(self.model))
            buffers = {name: _cloned(value) for name, value in buffers.items()}
            left_args, left_kwargs = map_leaves(_cloned, (own_args, own_kwargs))
            return EagerRun(output, left_args, left_kwargs, buffers)


@contextlib.contextmanager
def _whole_float32() -> Iterator[None]:
    """Products of float32 in float32, as the file computes them, and not in TF32."""
    cudnn = torch.backends.cudnn
    precision = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("highest")
    try:
        with cudnn.flags(
            enabled=cudnn.enabled,
            benchmark=cudnn.benchmark,
            benchmark_limit=cudnn.benchmark_limit,
            deterministic=cudnn.deterministic,
            allow_tf32=False,
        ):
            yield
    finally:
        torch.set_float32_matmul_precision(precision)


def _cloned(leaf: Any) -> Any:
    return leaf.detach().clone() if isinstance(leaf, torch.Tensor) else leaf
