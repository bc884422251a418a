"""Functions that take the values of a tensor out of PyTorch, past its dispatcher."""

from __future__ import annotations

import sys
from types import FrameType
from typing import TYPE_CHECKING, Any

import torch

from sardonyx import _torch_private
from sardonyx.aten.location import (
    Place,
    innermost_user_place,
    is_called_from_torch,
)
from sardonyx.capture.function_overrides.function_mode import FunctionOverride
from sardonyx.errors import CaptureError
from sardonyx.notes import error_at

if TYPE_CHECKING:
    from sardonyx.capture.recorder.recorder import Recorder

_BECOMES = {
    torch.Tensor.numpy: "a tensor becomes a NumPy array",
    torch.Tensor.__array__: "a tensor becomes a NumPy array",
    torch.Tensor.__dlpack__: "a tensor leaves PyTorch by DLPack",
    torch.Tensor.data_ptr: "the address of a tensor is read",
    torch.Tensor.untyped_storage: "the memory of a tensor is read",
    torch.Tensor.storage: "the memory of a tensor is read",
    torch.Tensor.tolist: "a tensor becomes a Python list",
    torch.Tensor.__complex__: "a tensor becomes a Python complex number",
}
_NUMBERS: dict[Any, str] = {
    torch.Tensor.__int__: "a tensor becomes a Python int",
    torch.Tensor.__float__: "a tensor becomes a Python float",
    torch.Tensor.__index__: "a tensor becomes a Python index",
    torch.Tensor.__bool__: "a tensor decides a Python branch",
    torch.Tensor.__contains__: "a tensor decides a Python branch",
    torch.Tensor.__len__: "len() of a tensor is a constant",
    torch.Tensor.__iter__: "a Python loop runs over a tensor",
    torch.Tensor.unbind: "a Python loop runs over a tensor",
}
"""Functions that give Python numbers: what a value that they look at becomes."""
_TEXTS = frozenset((torch.Tensor.__format__, torch.Tensor.__repr__, torch.Tensor.__str__))
_ASKED_BY_TORCH_TOO = frozenset(
    (torch.Tensor.data_ptr, torch.Tensor.untyped_storage, torch.Tensor.storage)
)
_ITEMS = frozenset((torch.Tensor.tolist, torch.Tensor.__iter__, torch.Tensor.unbind))
_GIVE_COPIES = frozenset((torch.Tensor.tolist, torch.Tensor.__complex__))
_GRADIENTS = frozenset((torch.autograd.grad, torch.autograd.backward, torch.Tensor.backward))


class GradientsRequestedError(CaptureError):
    """The model computes gradients, which a recording below autograd does not see."""


class DataAccess(FunctionOverride):
    """Gives such functions the values of the example, or refuses them; writes of code outside of
    PyTorch to memory that it can access are refused after the run."""

    def __init__(self, recorder: Recorder) -> None:
        super().__init__()
        self._recorder = recorder
        self.has_read_items = False
        """Whether the items of a tensor of dynamic length were made Python numbers, one by one."""
        self._shown: list[tuple[torch.Tensor, torch.Tensor, Place]] = []
        self._shared: list[tuple[torch.Tensor, int, Place]] = []
        """Tensors of the model that an array shares memory with, and how often each was written."""

    def watch(self, tensor: torch.Tensor, place: Place = ("", 0, "")) -> None:
        """Code outside of PyTorch may write the memory of a real tensor."""
        memory = _torch_private.whole_memory(tensor)
        self._shown.append((memory, memory.clone(), place))

    def check_unwritten(self) -> None:
        written = [entry for entry in self._shown if not torch.equal(entry[0], entry[1])]
        for memory, content, _ in written:
            memory.copy_(content)
        for _, _, place in written:
            what = "a tensor" if place[0] else "a tensor that was made of a NumPy array"
            raise error_at(
                CaptureError,
                place,
                f"the memory of {what} is written outside of PyTorch, which no capture records",
                "a write to the tensor itself: x[0] = 1.0",
            )
        for tensor, writes, place in self._shared:
            if self._recorder.writes_of(tensor) != writes:
                raise error_at(
                    CaptureError,
                    place,
                    "a tensor is written after its memory was given to code outside of PyTorch,"
                    " where the write is not visible while the model is recorded",
                    "x.clone() there",
                )

    def applies(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        return func in _BECOMES or func in _NUMBERS or func in _TEXTS or func in _GRADIENTS

    def call(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        try:
            return self._given(func, args, kwargs, sys._getframe(1))
        except CaptureError as error:  # which the model may catch
            self._recorder.refuse(error)
            raise

    def _given(
        self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], frame: FrameType
    ) -> Any:
        recorder = self._recorder
        if func in _GRADIENTS:
            if recorder.dispatch.is_below_autograd:
                raise GradientsRequestedError("the model computes gradients")
            return func(*args, **kwargs)
        tensor = args[0]
        if tensor.dim() and isinstance(tensor.shape[0], torch.SymInt):
            self.has_read_items |= func in _ITEMS
        if func in _NUMBERS:
            with recorder.example.values_become(_NUMBERS[func], frame) as became:
                became.result = func(*args, **kwargs)
                return became.result
        if func in _TEXTS:
            return self._text(func, tensor, args[1:], frame)
        if func in _ASKED_BY_TORCH_TOO and is_called_from_torch(frame):
            return func(*args, **kwargs)
        place = innermost_user_place(frame)
        with recorder.dispatch.outside(), _torch_private.no_modes():
            is_outside = not _torch_private.is_fake(tensor)
            if is_outside and not recorder.is_written(tensor):
                self._share(func, tensor, place)
                if func not in _GIVE_COPIES:
                    self.watch(tensor, place)
                return func(*args, **kwargs)
            is_constant = recorder.example.is_constant(recorder.tensors.fake_of(tensor))
        if func is torch.Tensor.tolist and not is_constant:
            return _numbers(tensor)
        with recorder.dispatch.outside(), _torch_private.no_modes():
            if not is_constant and not recorder.example.follows:
                raise error_at(
                    CaptureError,
                    place,
                    f"{_BECOMES[func]}, which a recording cannot follow",
                    'operators of PyTorch on the tensor, or capture="trace"',
                )
            self._share(func, tensor, place)
            real = recorder.example.of(tensor).clone()
            result = func(real, *args[1:], **kwargs)
            if not is_constant:
                recorder.example.looked.append((tensor, place))
                recorder.example.note(_BECOMES[func], result, frame)
            self.watch(real, place)
            return result

    def _share(self, func: Any, tensor: torch.Tensor, place: Place) -> None:
        if func not in _GIVE_COPIES:
            self._shared.append((tensor, self._recorder.writes_of(tensor), place))

    def _text(self, func: Any, tensor: torch.Tensor, options: tuple[Any, ...], frame: Any) -> str:
        """Of the values in the example; what is decided by it is not recorded."""
        recorder = self._recorder
        with recorder.dispatch.outside(), _torch_private.no_modes():
            if not _torch_private.is_fake(tensor):
                return str(func(tensor, *options))
            if recorder.example.can_run(tensor):
                real = recorder.example.of(tensor)
                text = str(func(real, *options))
                if not recorder.example.is_constant(recorder.tensors.fake_of(tensor)):
                    recorder.example.note_text(text, frame)
                return text
            recorder.example.note_text("", frame)
            return f"tensor(..., size={tuple(tensor.shape)}, dtype={tensor.dtype})"


def _numbers(tensor: torch.Tensor) -> Any:
    """The elements, each of them read."""
    return [_numbers(row) for row in tensor] if tensor.dim() else tensor.item()
