"""Runs the PyTorch model that was exported, and leaves no trace of having run it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch

from sardonyx.capture import tree
from sardonyx.capture.purity import model_mode
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

    def run(
        self, args: tuple[Any, ...], kwargs: Mapping[str, Any], *, seed: int | None = None
    ) -> EagerRun:
        """Run on copies of the inputs. Modes, buffers, attributes and RNG are as before after it.

        `seed` asks for other random numbers than the present state of the generators gives.
        """
        own_args, own_kwargs = map_leaves(_cloned, (args, dict(kwargs)))
        module = self.model if isinstance(self.model, torch.nn.Module) else None
        # Reading a generator would wake a device that the model does not use.
        awake = torch.cuda.is_initialized()  # type: ignore[no-untyped-call]
        devices = list(range(torch.cuda.device_count())) if awake else []
        with (
            torch.no_grad(),
            torch.random.fork_rng(devices=devices),
            model_mode(self.model, self.training),
            _state_restored(module),
            _whole_float32(),
        ):
            if seed is not None:
                torch.manual_seed(seed)
            # Cloned: the output may be a buffer, which is about to be restored in place.
            output = map_leaves(_cloned, self.model(*own_args, **own_kwargs))
            buffers = {} if module is None else dict(module.named_buffers())
            buffers = {name: _cloned(value) for name, value in buffers.items()}
            return EagerRun(output, own_args, own_kwargs, buffers)


@contextlib.contextmanager
def _whole_float32() -> Iterator[None]:
    """Products of float32 in float32, as the file computes them, and not in TF32."""
    cudnn = torch.backends.cudnn
    precision, allowed = torch.get_float32_matmul_precision(), cudnn.allow_tf32
    torch.set_float32_matmul_precision("highest")
    cudnn.allow_tf32 = False
    try:
        yield
    finally:
        cudnn.allow_tf32 = allowed
        torch.set_float32_matmul_precision(precision)


def map_leaves(function: Callable[[Any], Any], nested: Any) -> Any:
    """The same structure with `function` of every leaf."""
    leaves, structure = tree.flatten(nested)
    return tree.unflatten(structure, [function(leaf) for leaf in leaves])


def _cloned(leaf: Any) -> Any:
    return leaf.detach().clone() if isinstance(leaf, torch.Tensor) else leaf


@contextlib.contextmanager
def _state_restored(module: torch.nn.Module | None) -> Iterator[None]:
    if module is None:
        yield
        return
    held = [(tensor, tensor.detach().clone()) for tensor in module.buffers()]
    # TorchScript modules keep their attributes in C++; their buffers are restored in place.
    scripted = isinstance(module, torch.jit.ScriptModule)
    attributes = {} if scripted else {each: _attributes(each) for each in module.modules()}
    try:
        yield
    finally:
        for submodule, (own, buffers) in attributes.items():
            for name in submodule.__dict__.keys() - own.keys():
                del submodule.__dict__[name]
            submodule.__dict__.update(own)
            submodule.__dict__["_buffers"].clear()
            submodule.__dict__["_buffers"].update(buffers)
        for tensor, value in held:
            # Writing an unchanged buffer would still disturb an autograd graph that saved it.
            if not torch.equal(_bytes(tensor), _bytes(value)):
                tensor.copy_(value)


def _attributes(module: torch.nn.Module) -> tuple[dict[str, Any], dict[str, Any]]:
    return dict(module.__dict__), dict(module.__dict__["_buffers"])


def _bytes(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.detach().flatten().view(torch.uint8)
