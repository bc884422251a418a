"""Every attribute that is patched while a model is recorded, in one table.

The user's modules are not patched. A patch only affects the thread that records.
"""

from __future__ import annotations

import builtins
import collections
import contextlib
import copyreg
import functools
import importlib
import inspect
import itertools
import pkgutil
import sys
import threading
import types
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import torch
from torch.utils import _pytree as pytree

from sardonyx._torch_private import torchvision_functions
from sardonyx._torch_private.paths import TORCH_FOLDER
from sardonyx._torch_private.symbolic_shapes import empty_sizes
from sardonyx._torch_private.symbolic_shapes.numbers import as_model_number


@dataclass(frozen=True)
class Hooks:
    """Called by the patches for what the model does."""

    module_called: Callable[..., Any] | None = None
    """Gets each call of a module: (call, module, args, kwargs)."""
    script_called: Callable[..., Any] | None = None
    """Gets each call of a scripted function or method: (call, script, args, kwargs)."""
    function_applied: Callable[..., Any] | None = None
    """Gets each call of a torch.autograd.Function: (apply, class, args, kwargs)."""
    thread: int = field(default_factory=threading.get_ident)

    @property
    def is_elsewhere(self) -> bool:
        return threading.get_ident() != self.thread


class Patch(NamedTuple):
    owner: str
    """A module, or `module:attribute`."""
    name: str
    replacement: Callable[[Any, Hooks], Any]
    why: str
    torch: str = "2.11 - 2.13"


@contextlib.contextmanager
def recording_patches(hooks: Hooks) -> Iterator[Callable[[], object]]:
    """Applies `PATCHES`. What it yields applies `PYTHON_PATCHES`, which only models with symbolic
    sizes need."""
    apply, undo = _prepared(PYTHON_PATCHES, hooks)
    with _applied(PATCHES, hooks):
        try:
            yield apply
        finally:
            undo()


def sizes_that_may_be_zero() -> contextlib.AbstractContextManager[None]:
    """The patches for sizes alone, where operators run on fake tensors outside of a recording."""
    return _applied(_SIZE_PATCHES, Hooks())


def export_without_prints() -> contextlib.AbstractContextManager[None]:
    """Keeps torch.export from printing the graph of an attempt that fails; the model may print."""
    return _applied(_EXPORT_PATCHES, Hooks())


def exporting_answers() -> contextlib.AbstractContextManager[None]:
    """Models that ask whether they are traced are told that they are."""
    return _applied(_EXPORTING_PATCHES, Hooks())


def autograd_function_calls(by: Callable[..., Any]) -> contextlib.AbstractContextManager[None]:
    """Every call of a `torch.autograd.Function` becomes `by(apply, class, args, kwargs)`, also
    where `apply` was bound to another name before."""
    return _applied(_AUTOGRAD_PATCHES, Hooks(function_applied=by))


_active: set[Patch] = set()


@contextlib.contextmanager
def _applied(patches: tuple[Patch, ...], hooks: Hooks) -> Iterator[None]:
    apply, undo = _prepared(patches, hooks)
    try:
        apply()
        yield
    finally:
        undo()


def _prepared(
    patches: tuple[Patch, ...], hooks: Hooks
) -> tuple[Callable[[], object], Callable[[], object]]:
    """A function that applies the patches that are not active yet, and one that undoes that.
    Neither runs Python code: an interrupt leaves nothing half done. A second call does nothing."""
    found = [(patch, *_found(patch)) for patch in patches if patch not in _active]
    rows = [row for row in found if row[1] is not None]
    others = [(owner, patch.name, patch.replacement(had, hooks)) for patch, owner, had in rows]
    own = [(owner, patch.name, had) for patch, owner, had in rows if had is not _INHERITED]
    added = [(owner, patch.name) for patch, owner, had in rows if had is _INHERITED]
    mine = [patch for patch, _, _ in rows]
    apply = itertools.chain(map(_active.add, mine), itertools.starmap(setattr, others))
    undo = itertools.chain(
        itertools.starmap(setattr, own),
        map(_active.discard, mine),
        itertools.starmap(delattr, added),
    )
    run: Callable[..., Any] = collections.deque
    return functools.partial(run, apply, 0), functools.partial(run, undo, 0)


_INHERITED: Any = object()


def _found(patch: Patch) -> tuple[Any, Any]:
    """The owner of an attribute, None where this process has none; and its value."""
    module, _, path = patch.owner.partition(":")
    if not module.startswith("torch.") and module not in sys.modules:
        return None, None  # a package that the model does not use
    try:
        owner: Any = importlib.import_module(module)
    except ModuleNotFoundError:
        return None, None
    owner = functools.reduce(getattr, path.split(".") if path else (), owner)
    if not hasattr(owner, patch.name) and not hasattr(builtins, patch.name):
        return None, None
    # An inherited attribute is deleted again, not assigned to the class.
    return owner, vars(owner).get(patch.name, _INHERITED)


# -- PyTorch ---------------------------------------------------------------------------------------


def _module_call(original: Any, hooks: Hooks) -> Any:
    return _hooked(original, hooks, hooks.module_called)


def _script_call(original: Any, hooks: Hooks) -> Any:
    return _hooked(original, hooks, hooks.script_called)


def _hooked(original: Any, hooks: Hooks, hook: Callable[..., Any] | None) -> Any:
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        if hook is None or hooks.is_elsewhere:
            return original(self, *args, **kwargs)
        return hook(original, self, args, kwargs)

    return call


def _compile(model: Any = None, **options: Any) -> Any:
    if model is None:
        return lambda function: function
    is_branch = getattr(model, "__name__", "") == "_cond_op_wrapper"
    return _cond_of_leaves if is_branch else model


def _cond_of_leaves(condition: Any, then: Any, otherwise: Any, operands: Any) -> Any:
    leaves, structure = pytree.tree_flatten(operands)

    def nested(branch: Any) -> Any:
        return lambda *given: branch(*pytree.tree_unflatten(given, structure))

    return torch.ops.higher_order.cond(condition, nested(then), nested(otherwise), leaves)


def _unless_packed(original: Any, hooks: Hooks) -> Any:
    def check_forward_args(self: Any, input: Any, hidden: Any, batch_sizes: Any) -> None:
        if batch_sizes is None or hooks.is_elsewhere:
            original(self, input, hidden, batch_sizes)

    return check_forward_args


def _one_associative_scan(original: Any, hooks: Hooks) -> Any:
    module: Any = importlib.import_module("torch._higher_order_ops.associative_scan")

    def recorded(operator: Any, leaves: Any, dim: int = 0, additional_inputs: Any = ()) -> Any:
        if hooks.is_elsewhere or all(isinstance(leaf.shape[dim], int) for leaf in leaves):
            return original(operator, leaves, dim, additional_inputs)
        # `combine_fn` is the user's function under torch.vmap.
        combine = inspect.getclosurevars(operator.keywords["combine_fn"]).nonlocals["func"]
        of_items = functools.partial(operator.func, **{**operator.keywords, "combine_fn": combine})
        made = module.associative_scan_op(of_items, leaves, additional_inputs=())
        return pytree.tree_leaves(made)

    return recorded


def _no_swap(original: Any, hooks: Hooks) -> Any:
    def swap(left: Any, right: Any) -> None:
        if not hooks.is_elsewhere:
            raise RuntimeError("torch.utils.swap_tensors goes past what can be recorded")
        original(left, right)

    return swap


def _function_apply(original: Any, hooks: Hooks) -> Any:
    kind: Any = torch.autograd.function._SingleLevelFunction

    def apply(cls: Any, *args: Any, **kwargs: Any) -> Any:
        call = super(kind, cls).apply
        if hooks.function_applied is None or hooks.is_elsewhere:
            return call(*args, **kwargs)
        return hooks.function_applied(call, cls, args, kwargs)

    return classmethod(apply)


def _replaced_by(function: Callable[..., Any]) -> Callable[[Any, Hooks], Any]:
    def replacement(original: Any, hooks: Hooks) -> Any:
        @functools.wraps(original)
        def call(*args: Any, **kwargs: Any) -> Any:
            return (original if hooks.is_elsewhere else function)(*args, **kwargs)

        return call

    return replacement


# -- Python ----------------------------------------------------------------------------------------


class _PatchedBuiltin:
    """A function of Python's while it is patched. Other threads may keep it: it stays callable,
    equals the original and pickles as the original, also once the patch is undone."""

    def __init__(self, original: Any, by: Callable[..., Any]) -> None:
        functools.update_wrapper(self, original)
        self._original, self._by = original, by

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._by(*args, **kwargs)

    def __eq__(self, other: object) -> bool:
        return other is self or other is self._original

    def __hash__(self) -> int:
        return hash(self._original)

    def __repr__(self) -> str:
        return repr(self._original)

    def __reduce__(self) -> Any:
        return pkgutil.resolve_name, (f"{self._original.__module__}:{self._original.__name__}",)


def _pickled_builtin(function: Any) -> Any:
    """As ever; but pickle refuses a function that is not the one under its name, as the original is
    while it is patched."""
    found = getattr(sys.modules.get(function.__module__), function.__name__, None)
    return found.__reduce__() if isinstance(found, _PatchedBuiltin) else function.__reduce__()


copyreg.pickle(types.BuiltinFunctionType, _pickled_builtin)


def _extreme(of_two: Callable[..., Any]) -> Callable[[Any, Hooks], Any]:
    """max or min, of any number of sizes; torch.export records that of two integers only."""

    def replacement(original: Any, hooks: Hooks) -> Any:
        def extreme(*values: Any, **options: Any) -> Any:
            items = values
            if len(values) == 1 and isinstance(values[0], Iterable):
                if isinstance(values[0], torch.Tensor):  # its rows' values are asked for
                    return original(*values, **options)
                values = (items := tuple(values[0]),)
            if hooks.is_elsewhere or "key" in options or not _are_sizes(items):
                return original(*values, **options)
            return as_model_number(functools.reduce(of_two, items))

        return _PatchedBuiltin(original, extreme)

    return replacement


def _length(original: Any, hooks: Hooks) -> Any:
    def length(value: Any, /) -> Any:
        if not isinstance(value, torch.Tensor) or hooks.is_elsewhere or not value.dim():
            return original(value)
        size: Any = value.shape[0]
        return as_model_number(size) if isinstance(size, torch.SymInt) else original(value)

    return _PatchedBuiltin(original, length)


def _function_of_size(name: str) -> Callable[[Any, Hooks], Any]:
    def replacement(original: Any, hooks: Hooks) -> Any:
        of_size: Any = getattr(torch, f"_sym_{name}")

        def function(x: Any, /) -> Any:
            return as_model_number(of_size(x)) if isinstance(x, _SIZES) else original(x)

        return _PatchedBuiltin(original, function)

    return replacement


def _are_sizes(items: Any) -> bool:
    """Whether there is a size among numbers."""
    return any(isinstance(item, _SIZES) for item in items) and all(
        isinstance(item, (int, float, *_SIZES)) for item in items
    )


_SIZES = (torch.SymInt, torch.SymFloat)


def _true_for_models(original: Any, hooks: Hooks) -> Any:
    def answer() -> bool:
        is_torchs = sys._getframe(1).f_code.co_filename.startswith(TORCH_FOLDER)
        return bool(original()) if is_torchs or hooks.is_elsewhere else True

    return answer


def _alone(form: Callable[[Any], Any]) -> Callable[[Any, Hooks], Any]:
    return lambda original, hooks: form(original)


_NODE = "torch.fx.experimental.sym_node:SymNode"
_SIZE_PATCHES: tuple[Patch, ...] = (
    Patch(
        "torch._subclasses.fake_impls",
        "infer_size",
        _alone(empty_sizes.common_shape_with_open_sizes),
        "x[:1] + 1 has no row where x has none",
    ),
    Patch(
        "torch._refs",
        "_maybe_broadcast",
        _alone(empty_sizes.broadcast_to_open_sizes),
        "the same, for operators that PyTorch has in Python",
    ),
    Patch(
        "torch._prims_common",
        "sym_max",
        _alone(empty_sizes.stride_maximum),
        "strides are products of sizes, not of Max(1, size)",
    ),
    Patch(_NODE, "sym_max", _alone(empty_sizes.stride_maximum), "the same, called from C++"),
    Patch(
        "torch:SymInt",
        "__sym_max__",
        _alone(empty_sizes.full_maximum),
        "a maximum in the model keeps the 1",
    ),
)
_EXPORT_PATCHES: tuple[Patch, ...] = (
    Patch(
        "torch.export._trace",
        "print",
        lambda original, hooks: lambda *texts, **options: None,
        "prints the graph of a model that it refuses",
    ),
)
_EXPORTING_PATCHES: tuple[Patch, ...] = (
    Patch("torch.jit", "is_tracing", _true_for_models, "models look at data unless this is true"),
)
_AUTOGRAD_PATCHES: tuple[Patch, ...] = (
    # `Function.apply` looks for the tracked one behind itself, at each call.
    Patch(
        "torch.autograd.function:_SingleLevelFunction",
        "apply",
        _function_apply,
        "a function with a custom symbolic is one node",
    ),
)
_DETECTION = "torchvision.models.detection"
_TORCHVISION_PATCHES: tuple[Patch, ...] = (
    Patch(
        f"{_DETECTION}.transform:GeneralizedRCNNTransform",
        "batch_images",
        _replaced_by(torchvision_functions.batch_images),
        "computes with float(size), which is a number",
    ),
    Patch(
        "torchvision.ops.poolers",
        "_infer_scale",
        _replaced_by(torchvision_functions.infer_scale),
        "the same",
    ),
    Patch(
        f"{_DETECTION}.transform",
        "paste_masks_in_image",
        _replaced_by(torchvision_functions.paste_masks_in_image),
        "a Python loop over detections",
    ),
    Patch(
        f"{_DETECTION}.roi_heads",
        "heatmaps_to_keypoints",
        _replaced_by(torchvision_functions.heatmaps_to_keypoints),
        "the same",
    ),
)
PATCHES: tuple[Patch, ...] = (
    Patch("torch.nn:Module", "__call__", _module_call, "nodes know the module they come from"),
    Patch(
        "torch._C:ScriptFunction",
        "__call__",
        _script_call,
        "TorchScript's own operators write memory that fake tensors do not have",
    ),
    Patch("torch._C:ScriptMethod", "__call__", _script_call, "the same"),
    Patch(
        "torch",
        "compile",
        _replaced_by(_compile),
        "torch.cond and the like, and flex_attention, compile their operator before they call it",
    ),
    Patch(
        "torch.nn:RNNBase",
        "check_forward_args",
        _unless_packed,
        "compares states with the number of packed sequences, which is data-dependent",
    ),
    Patch("torch.nn:LSTM", "check_forward_args", _unless_packed, "the same"),
    Patch(
        "torch._higher_order_ops.associative_scan",
        "generic_associative_scan",
        _one_associative_scan,
        "a scan over a dynamic dim is one operator, not unrolled at the example's size",
    ),
    Patch("torch._C", "_swap_tensor_impl", _no_swap, "swaps tensors without a dispatched call"),
    *_SIZE_PATCHES,
    *_TORCHVISION_PATCHES,
)
PYTHON_PATCHES: tuple[Patch, ...] = (
    Patch("builtins", "max", _extreme(torch.sym_max), "would compare the example's sizes"),
    Patch("builtins", "min", _extreme(torch.sym_min), "the same"),
    Patch("builtins", "len", _length, "would specialize the size of a tensor"),
    *(
        Patch("math", name, _function_of_size(name), "would specialize the size")
        for name in ("sqrt", "log2")
    ),
)
