"""The tensors a model holds: which they are, and how they survive a run of the model."""

from __future__ import annotations

import contextlib
import dataclasses
import sys
from collections.abc import Iterator
from typing import Any, TypeAlias

import torch

from sardonyx import _torch_private
from sardonyx.capture.held_attributes import attributes_restored
from sardonyx.capture.location import (
    Place,
    innermost_user_place,
    is_asked_by_torch,
    place_text,
)
from sardonyx.capture.watched_calls import Call, WatchingMode, addresses, tensors_in
from sardonyx.errors import CaptureError, format_message


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
    """Runs the model's own code; the tensors that were there before hold what they held, and the
    model holds those."""
    before = _BeforeWrites([tensor for _, tensor in state_tensors(model)])
    try:
        with attributes_restored(model), before:
            yield
    finally:
        before.restore()


_Place: TypeAlias = tuple[tuple[int, ...], tuple[int, ...], int]


class _BeforeWrites(WatchingMode):
    """Copies a tensor that was not made during the run when it is about to be written."""

    def __init__(self, tensors: list[torch.Tensor]) -> None:
        super().__init__()
        strided = [t for t in tensors if t.layout == torch.strided]
        self._places = [(tensor, _place(tensor)) for tensor in strided]
        """`transpose_` and the like change how a tensor lies, not what is in memory."""
        self._made: set[int] = set()
        self._kept: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}
        self._shown: dict[int, _Shown] = {}
        self._written_unseen: list[Place] = []
        for tensor in strided:
            if _may_be_known_outside(tensor):
                self._show(tensor, ("", 0, ""))

    def check_all_seen(self) -> None:
        for place in self._written_unseen:
            raise CaptureError(
                format_message(
                    "the memory of a tensor is written from outside of PyTorch, which no capture"
                    " records",
                    [
                        ("at", place_text(place) or "an array of NumPy that a tensor was made of"),
                        ("try", "a write of the tensor itself: x[0] = 1.0"),
                    ],
                )
            )

    def restore(self) -> None:
        for address in self._shown:
            self._look_at(address)
        for tensor, place in self._places:
            if _place(tensor) != place:
                with torch.inference_mode(tensor.is_inference()), torch.no_grad():
                    tensor.as_strided_(*place)
        for memory, content in self._kept.values():
            if not torch.equal(memory, content):
                memory.copy_(content)

    def before(self, call: Call) -> None:
        for tensor in written_by(call):
            self._keep(tensor)
            self._look_at(_torch_private.memory_address(tensor))
        if shows_memory(call):
            self._show(call.given[0], innermost_user_place(sys._getframe(1)))

    def after(self, call: Call) -> None:
        if self._shown:
            for address in addresses(written_by(call)) & self._shown.keys():
                self._shown[address].known = self._shown[address].memory.clone()
        if makes_literals(call):  # a trace holds it by its memory
            self._made -= addresses(tensors_in(call.result))
        else:
            self._made |= call.new_addresses

    def _show(self, tensor: torch.Tensor, place: Place) -> None:
        address = _torch_private.memory_address(tensor)
        if address and address not in self._shown:
            self._keep(tensor)
            memory = _torch_private.whole_memory(tensor)
            self._shown[address] = _Shown(memory, memory.clone(), place)

    def _look_at(self, address: int) -> None:
        shown = self._shown.get(address)
        if shown is None:
            return
        if not torch.equal(shown.memory, shown.known):
            self._written_unseen.append(shown.place)

    def _keep(self, tensor: torch.Tensor) -> None:
        address = _torch_private.memory_address(tensor)
        if address and address not in self._made and address not in self._kept:
            memory = _torch_private.whole_memory(tensor)
            self._kept[address] = (memory, memory.clone())


@dataclasses.dataclass(slots=True)
class _Shown:
    """Memory that code outside of PyTorch can write."""

    memory: torch.Tensor
    known: torch.Tensor
    """What PyTorch left there."""
    place: Place


_ASKED_BY_TORCH_TOO = ("data_ptr", "untyped_storage", "storage", "_typed_storage")
_SHOWS_MEMORY = frozenset(("numpy", "__array__", "__dlpack__", *_ASKED_BY_TORCH_TOO))
_LARGEST_COPIED = 1 << 16


def _may_be_known_outside(tensor: torch.Tensor) -> bool:
    """Whether an array may be the same memory. Not large ones, which are weights that lie in a file
    or were written to one."""
    return (
        bool(_torch_private.memory_address(tensor))
        and _torch_private.has_foreign_memory(tensor)
        and tensor.untyped_storage().nbytes() <= _LARGEST_COPIED
    )


_LITERALS = (torch.tensor, torch.as_tensor, torch.asarray, torch.from_numpy)
_STATISTICS_SWITCHES = {
    "batch_norm": "training",
    "native_batch_norm": "training",
    "instance_norm": "use_input_stats",
}


def shows_memory(call: Call) -> bool:
    """Whether the model lets code outside of PyTorch see the memory of a tensor."""
    if call.name not in _SHOWS_MEMORY or not call.given:
        return False
    return call.name not in _ASKED_BY_TORCH_TOO or not is_asked_by_torch(sys._getframe(2))


def makes_literals(call: Call) -> bool:
    """Whether it makes tensors of Python values."""
    return call.func in _LITERALS


def written_by(call: Call) -> Iterator[torch.Tensor]:
    """The tensors that a call may write, by what its name and its switches tell."""
    name, args, kwargs = call.name, call.args, call.kwargs
    if not call.given:
        return
    if isinstance(call.func, _torch_private.OpOverload):
        name = name.split(".")[0]  # `add_` of `add_.Tensor`
        yield from _written_by_schema(call.func, args, kwargs)
    if kwargs.get("out") is not None:
        yield from tensors_in(kwargs["out"])
    if _updates_statistics(name, args, kwargs) or _renormalizes(name, args, kwargs):
        yield from call.given
    elif (
        _ends_in_place(name)
        or any(a is True for a in args)
        or any(a is True for a in kwargs.values())
    ):
        # F.relu(x, inplace=True) is one of those; torch.nn.init names all that it is given.
        yield from tensors_in(args[0]) if args else call.given


def _updates_statistics(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether a norm may write its running statistics: its sixth argument says whether to."""
    if name not in _STATISTICS_SWITCHES:
        return False
    given = kwargs.get(_STATISTICS_SWITCHES[name], args[5] if len(args) > 5 else None)
    return given is not False


def _renormalizes(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether an embedding changes the weights it reads: `max_norm` is the fourth argument."""
    if name not in ("embedding", "embedding_bag"):
        return False
    max_norm = kwargs.get("max_norm", args[3] if len(args) > 3 else None)
    return isinstance(max_norm, (int, float)) and not isinstance(max_norm, bool)


def _written_by_schema(
    op: _torch_private.OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Iterator[torch.Tensor]:
    for index, argument in enumerate(op._schema.arguments):
        if argument.is_write:
            yield from tensors_in(args[index] if index < len(args) else kwargs.get(argument.name))


def _ends_in_place(name: str) -> bool:
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


def _place(tensor: torch.Tensor) -> _Place:
    return tuple(tensor.shape), tensor.stride(), int(tensor.storage_offset())
