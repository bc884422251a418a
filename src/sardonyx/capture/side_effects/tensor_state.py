"""The tensors a model holds: which they are, and how they survive a run of the model."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from typing import Any, TypeAlias

import torch
from torch.overrides import TorchFunctionMode

from sardonyx import _torch_private
from sardonyx.aten.location import is_called_from_torch
from sardonyx.aten.module_tree import (
    attribute_path,
    modules_of,
    named_buffers,
    named_modules,
    named_parameters,
)
from sardonyx.aten.pytree import tensors_in
from sardonyx.capture.function_overrides.function_mode import addresses
from sardonyx.capture.side_effects.python_state import attributes_restored


def state_tensors(model: Any) -> Iterator[tuple[str, torch.Tensor]]:
    """Parameters, buffers and the tensors that are plain attributes, by their path; of one that
    wraps others, these."""
    for path, tensor in _held_tensors(model):
        yield from _torch_private.plain_tensors(path, tensor)


def _held_tensors(model: Any) -> Iterator[tuple[str, torch.Tensor]]:
    yield from named_parameters(model)
    yield from named_buffers(model)
    for path, module in named_modules(model):
        for name, attribute in vars(module).items():
            if isinstance(attribute, torch.Tensor):
                yield attribute_path(path, name), attribute


@contextlib.contextmanager
def state_restored(model: Any) -> Iterator[None]:
    """Runs the model's own code; the tensors that were there before hold what they held, and the
    model holds those."""
    before = BeforeWrites(model)
    try:
        with attributes_restored(model), before:
            yield
    finally:
        before.restore()


_Place: TypeAlias = tuple[tuple[int, ...], tuple[int, ...], int]


class BeforeWrites(TorchFunctionMode):
    """Copies a tensor that was not made during the run when it is about to be written."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        strided = [t for _, t in state_tensors(model) if t.layout == torch.strided]
        self._places = [(tensor, _place(tensor)) for tensor in strided]
        """`transpose_` and the like change how a tensor lies, not what is in memory."""
        self._made: set[int] = set()
        self._kept: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}
        for tensor in (*_written_unseen(model), *filter(may_alias_array, strided)):
            self._keep(tensor)

    def restore(self) -> None:
        for tensor, place in self._places:
            if _place(tensor) != place:
                with torch.inference_mode(tensor.is_inference()), torch.no_grad():
                    tensor.as_strided_(*place)
        # Writing an unchanged tensor would still disturb an autograd graph that saved it.
        for memory, content in self.changed():
            memory.copy_(content)

    def changed(self) -> list[tuple[torch.Tensor, torch.Tensor]]:
        """Memory that was written, and what it held before."""
        return [kept for kept in self._kept.values() if not torch.equal(*kept)]

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if torch.compiler.is_dynamo_compiling():
            return func(*args, **kwargs)
        given = list(tensors_in((*args, *kwargs.values())))
        shown = given[:1] if _shows_memory(func) else []
        for tensor in (*_written_by(func, given, args, kwargs), *shown):
            self._keep(tensor)
        result = func(*args, **kwargs)
        self._made |= addresses(tensors_in(result)) - addresses(given)
        return result

    def _keep(self, tensor: torch.Tensor) -> None:
        for _, plain in _torch_private.plain_tensors("", tensor):
            address = _torch_private.memory_address(plain)
            if address and address not in self._made and address not in self._kept:
                memory = _torch_private.whole_memory(plain)
                self._kept[address] = (memory, memory.clone())


def _written_unseen(model: Any) -> Iterator[torch.Tensor]:
    """What norms write (their statistics), operators of the user's, and TorchScript, without a call
    that shows it."""
    for _, tensor in state_tensors(model):
        if not isinstance(tensor, torch.nn.Parameter):
            yield tensor
    for module in modules_of(model):
        if isinstance(module, torch.jit.ScriptModule):
            yield from module.parameters()


_ASKED_BY_TORCH_TOO = ("data_ptr", "untyped_storage", "storage", "_typed_storage")
_SHOWS_MEMORY = frozenset(("numpy", "__array__", "__dlpack__", *_ASKED_BY_TORCH_TOO))
_LARGEST_COPIED = 1 << 16


def may_alias_array(tensor: torch.Tensor) -> bool:
    """Whether a NumPy array may be the same memory; large tensors are weights out of a file."""
    return (
        tensor.layout == torch.strided
        and not _torch_private.is_fake(tensor)
        and bool(_torch_private.memory_address(tensor))
        and _torch_private.has_foreign_memory(tensor)
        and tensor.untyped_storage().nbytes() <= _LARGEST_COPIED
    )


def _shows_memory(func: Any) -> bool:
    """Whether the model lets code outside of PyTorch see the memory of a tensor."""
    name = getattr(func, "__name__", "")
    if name not in _SHOWS_MEMORY:
        return False
    return name not in _ASKED_BY_TORCH_TOO or not is_called_from_torch(sys._getframe(2))


def _written_by(
    func: Any, given: list[torch.Tensor], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Iterator[torch.Tensor]:
    """The tensors that a call may write, by what its name and its switches tell."""
    name = getattr(func, "__name__", "")
    if not given:
        return
    if isinstance(func, _torch_private.OpOverload):
        name = name.split(".")[0]  # `add_` of `add_.Tensor`
        yield from _written_by_schema(func, args, kwargs)
    if kwargs.get("out") is not None:
        yield from tensors_in(kwargs["out"])
    if _renormalizes(name, args, kwargs):
        yield from given
    elif (
        _ends_in_place(name)
        or any(a is True for a in args)
        or any(a is True for a in kwargs.values())
    ):
        # F.relu(x, inplace=True) is one of those; torch.nn.init names all that it is given.
        yield from tensors_in(args[0]) if args else given


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
