"""The tensors a model holds: which they are, and how they survive a run of the model."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any, TypeAlias

import torch
from torch.overrides import TorchFunctionMode

from sardonyx import _torch_private
from sardonyx.capture.storage import holds_memory


def state_tensors(model: Any) -> Iterator[tuple[str, torch.Tensor]]:
    """Parameters, buffers and the tensors that are plain attributes, by their path."""
    if not isinstance(model, torch.nn.Module):
        return
    yield from model.named_parameters()
    yield from model.named_buffers()
    for path, module in model.named_modules():
        for name, attribute in vars(module).items():
            if isinstance(attribute, torch.Tensor):
                yield f"{path}.{name}" if path else name, attribute


@contextlib.contextmanager
def state_kept(model: Any) -> Iterator[None]:
    """Runs the model's own code; its tensors hold afterwards what they held before."""
    before = _BeforeWrites(model)
    try:
        with before:
            yield
    finally:
        before.restore()


_Place: TypeAlias = tuple[tuple[int, ...], tuple[int, ...], int]


class _BeforeWrites(TorchFunctionMode):
    """Copies a tensor of the model when the model is about to write it for the first time."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self._by_memory: dict[int, list[torch.Tensor]] = {}
        for _, tensor in state_tensors(model):
            if tensor.layout == torch.strided and holds_memory(tensor):
                key = tensor.untyped_storage().data_ptr()
                self._by_memory.setdefault(key, []).append(tensor)
        self._kept: dict[int, tuple[torch.Tensor, torch.Tensor, _Place]] = {}
        if isinstance(model, torch.nn.Module):
            # Normalization layers write their buffers unseen: copied beforehand.
            for buffer in model.buffers():
                self._keep(buffer)

    def restore(self) -> None:
        for tensor, content, place in self._kept.values():
            with torch.inference_mode(tensor.is_inference()), torch.no_grad():
                if _place(tensor) != place:
                    tensor.as_strided_(*place)
                if not torch.equal(tensor, content):
                    tensor.copy_(content)

    def __torch_function__(
        self,
        func: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        kwargs = kwargs or {}
        written = [kwargs["out"]] if kwargs.get("out") is not None else []
        if args and _writes_first_argument(getattr(func, "__name__", "")):
            written.append(args[0])
        while written:
            item = written.pop()
            if isinstance(item, torch.Tensor):
                self._keep(item)
            elif isinstance(item, (list, tuple)):
                written.extend(item)
        result = func(*args, **kwargs)
        # A trace holds a literal by its memory: what the model writes is a copy of it.
        return result.clone() if func in _LITERALS else result

    def _keep(self, written: torch.Tensor) -> None:
        with _torch_private.tracing_paused():
            if written.layout != torch.strided or not holds_memory(written):
                return
            for tensor in self._by_memory.get(written.untyped_storage().data_ptr(), ()):
                if id(tensor) not in self._kept:
                    self._kept[id(tensor)] = (tensor, tensor.detach().clone(), _place(tensor))


_LITERALS = (torch.tensor, torch.as_tensor, torch.asarray, torch.from_numpy)


def _place(tensor: torch.Tensor) -> _Place:
    return tuple(tensor.shape), tensor.stride(), int(tensor.storage_offset())


def _writes_first_argument(name: str) -> bool:
    if name.startswith("__"):
        return name == "__setitem__" or name in _IN_PLACE_ARITHMETIC
    return name.endswith("_")


_IN_PLACE_ARITHMETIC = frozenset(
    f"__i{name}__"
    for name in (
        "add", "sub", "mul", "div", "truediv", "floordiv", "mod", "pow", "and", "or", "xor",
        "lshift", "rshift",
    )
)  # fmt: skip
