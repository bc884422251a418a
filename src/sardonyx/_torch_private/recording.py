"""What the recorder is built on: a dispatch mode below autograd, fake tensors, symbolic sizes."""

from __future__ import annotations

import contextlib
import functools
import operator
import sys
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

import sympy
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from sardonyx._torch_private import patches
from sardonyx._torch_private.operators import is_composite, schema_arguments
from sardonyx._torch_private.paths import OWN_FOLDER, TORCH_FOLDER
from sardonyx._torch_private.symbolic_shapes import numbers
from sardonyx._torch_private.symbolic_shapes.shape_env_guards import OF_WINDOWS, asks_layout
from sardonyx._torch_private.symbolic_shapes.sizes import _shape_env_class, example_values
from sardonyx._torch_private.tensors.fake_tensors import is_fake
from sardonyx._torch_private.tensors.wrapper_subclasses import is_wrapper_class

_KEY = torch._C.DispatchKey
_AUTOGRAD = functools.reduce(
    operator.or_,
    (
        torch._C.DispatchKeySet(key)
        for name, key in _KEY.__members__.items()
        if name.startswith("Autograd") or name == "ADInplaceOrView"
    ),
)


_AUTOCAST = {"cpu": "AutocastCPU", "cuda": "AutocastCUDA"}


class RecordingMode(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Passes every operator that reaches the dispatcher to `call(op, args, kwargs)`. Below the
    autograd keys composite operators arrive undecomposed. `call` runs outside of the mode."""

    supports_higher_order_operators = True

    def __init__(self, call: Callable[[Any, tuple[Any, ...], dict[str, Any]], Any]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._call = call
        self.is_below_autograd = True
        """False where the model computes gradients: then composite operators arrive decomposed."""
        self._outside = (
            torch._C._dispatch_tls_local_include_set(),
            # A view would keep its base.
            torch._C._dispatch_tls_local_exclude_set()
            | torch._C.DispatchKeySet(_KEY.ADInplaceOrView),
        )

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if any(map(is_wrapper_class, types)):
            return NotImplemented  # its own code runs next, under this mode
        return self._call(func, args, kwargs or {})

    def outside(self) -> Any:
        """A guard with the dispatch keys that were active when the mode was made."""
        return torch._C._ForceDispatchKeyGuard(*self._outside)

    @contextlib.contextmanager
    def entered(self, autocast: tuple[str, ...] = ()) -> Iterator[None]:
        """Below autograd; with autocast on for these devices."""
        include, exclude = self._outside
        for device in autocast:
            exclude = exclude - torch._C.DispatchKeySet(getattr(_KEY, _AUTOCAST[device]))
        with self:
            include = include | torch._C._dispatch_tls_local_include_set()
            if self.is_below_autograd:
                exclude = exclude | _AUTOGRAD
            else:
                exclude = exclude - torch._C.DispatchKeySet(_KEY.ADInplaceOrView)
            with torch._C._ForceDispatchKeyGuard(include, exclude):
                yield


def is_higher_order(func: Any) -> bool:
    return isinstance(func, torch._ops.HigherOrderOperator)


def new_recording_mode(look: Callable[..., Any]) -> Any:
    """A fake mode that calls `look` where Python evaluates a size (see `_recorded_sizes`)."""
    from torch._subclasses.fake_tensor import FakeTensorMode

    env = _recorded_sizes()()
    env.look = look
    return FakeTensorMode(shape_env=env, static_shapes=True)


@contextlib.contextmanager
def observed_numbers(
    mode: Any, observer: numbers.NumberObserver, symbol_made: Callable[[], object]
) -> Iterator[None]:
    """Reports the numbers of a recording mode; calls `symbol_made` once one is symbolic."""
    env = mode.shape_env

    def made() -> None:
        # PyTorch caches results by sizes, and symbols are new in every recording: an entry of its
        # cache costs more than the result, and is never found again.
        mode.cache_enabled = False
        symbol_made()

    env.observer, env.symbol_made = observer, made
    if env.has_symbols:
        made()
    try:
        yield
    finally:
        env.observer = env.symbol_made = None


def look_no_more(mode: Any) -> None:
    """After the recording, sizes are evaluated as in PyTorch."""
    mode.shape_env.look = lambda expression, frame, is_check, evaluate: evaluate(expression)


@functools.cache
def _recorded_sizes() -> Any:
    """A ShapeEnv that reports where a size, or a condition on sizes, is evaluated, and where a
    symbol is made."""

    class RecordedSizes(_shape_env_class()):  # type: ignore[misc]
        look: Callable[..., Any]
        observer: numbers.NumberObserver | None = None
        symbol_made: Callable[[], object] | None = None
        has_symbols = False

        def guard_or_defer_runtime_assert(self, orig_expr: Any, *args: Any, **options: Any) -> bool:
            if self.observer is not None:  # torch._check reads it
                self.observer.unread.read_expression(orig_expr)
            return bool(super().guard_or_defer_runtime_assert(orig_expr, *args, **options))

        def evaluate_expr(self, expression: Any, *args: Any, **options: Any) -> Any:
            evaluate = super().evaluate_expr
            if not expression.free_symbols:
                return evaluate(expression, *args, **options)
            frame, is_check = _asker(sys._getframe(1))
            if asks_layout(frame.f_code.co_filename, frame.f_code.co_name):
                with self.suppress_guards():
                    return evaluate(expression, *args, **options)
            return self.look(expression, frame, is_check, lambda e: evaluate(e, *args, **options))

    def noted(create: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(create)
        def created(self: Any, *args: Any, **options: Any) -> Any:
            self.has_symbols = True
            if self.symbol_made is not None:
                self.symbol_made()
            return create(self, *args, **options)

        return created

    for name in ("symbol", "unbacked_symint", "unbacked_symfloat", "unbacked_symbool"):
        setattr(RecordedSizes, f"create_{name}", noted(getattr(RecordedSizes, f"create_{name}")))
    return RecordedSizes


def _asker(frame: FrameType) -> tuple[FrameType, bool]:
    """The frame that evaluates a size, without the frames that forward the evaluation; and whether
    it only checks a condition (`torch._check`)."""
    from torch.fx.experimental.symbolic_shapes import uninteresting_files

    forwarding = uninteresting_files() | {patches.__file__, numbers.__file__}
    is_check = False
    while frame.f_back is not None and frame.f_code.co_filename in forwarding:
        is_check = is_check or frame.f_code.co_name.startswith("_check")
        frame = frame.f_back
    return frame, is_check


def is_data_dependent_error(error: BaseException, asked: Any = None) -> bool:
    """Whether a condition cannot be evaluated without data; `asked`, it, is kept in the error."""
    from torch.fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode

    if not isinstance(error, GuardOnDataDependentSymNode):
        return False
    if asked is not None:
        error.asked = asked  # type: ignore[attr-defined]
    return True


def condition_of(error: BaseException) -> sympy.Basic | None:
    """The data-dependent condition, `u0 > 3`; None for a number alone."""
    condition = getattr(error, "asked", None)
    return condition if isinstance(condition, sympy.Basic) and condition.args else None


def lacks_fake_kernel(error: BaseException) -> bool:
    """Whether an operator has no kernel for fake tensors."""
    from torch._subclasses.fake_tensor import UnsupportedOperatorException

    return isinstance(error, (UnsupportedOperatorException, NotImplementedError)) or (
        type(error) is RuntimeError and "fake impl" in str(error)
    )


# -- fake tensors --------------------------------------------------------------------------------


def new_fake(mode: Any, sizes: Any, strides: Any, dtype: torch.dtype, device: Any) -> torch.Tensor:
    """A fake tensor with new memory."""
    from torch._subclasses.fake_tensor import FakeTensor, in_kernel_invocation_manager

    with in_kernel_invocation_manager(mode):
        meta = torch.empty_strided(sizes, strides, dtype=dtype, device="meta")
    return FakeTensor(mode, meta, device)


def fake_view(base: Any, sizes: Any, strides: Any, offset: Any, dtype: torch.dtype) -> torch.Tensor:
    """A fake tensor over the memory of `base`."""
    from torch._subclasses.fake_tensor import FakeTensor, in_kernel_invocation_manager

    mode = base.fake_mode
    with in_kernel_invocation_manager(mode):
        meta = torch.empty((0,), dtype=dtype, device="meta")
        meta.set_(base.untyped_storage(), offset, sizes, strides)
    return FakeTensor(mode, meta, base.fake_device)


def with_other_sizes(fake: Any, others: dict[Any, Any]) -> torch.Tensor:
    """The same memory, with symbols for sizes replaced by their expressions."""
    env = fake.fake_mode.shape_env
    symbols = {expression: size.node.expr for expression, size in others.items()}

    def other(number: Any) -> Any:
        if not isinstance(number, torch.SymInt):
            return number
        expression = number.node.expr.xreplace(symbols)
        if expression == number.node.expr:
            return number
        return env.create_symintnode(expression, hint=None)

    sizes, strides = map(other, fake.shape), map(other, fake.stride())
    return fake_view(fake, list(sizes), list(strides), other(fake.storage_offset()), fake.dtype)


def is_plain(tensor: torch.Tensor) -> bool:
    """Whether sizes, strides and storage offset describe it completely."""
    return tensor.layout == torch.strided and not (
        tensor.is_quantized or tensor.is_conj() or tensor.is_neg()
    )


def fake_device(fake: Any) -> torch.device:
    device: torch.device = fake.fake_device
    return device


def is_fake_of(mode: Any, tensor: Any) -> bool:
    return is_fake(tensor) and tensor.fake_mode is mode


def forget_numbers_of(fake: Any) -> None:
    """After a write, the number of nonzero elements and the like are not known any more."""
    for name in ("nonzero_memo", "item_memo", "unique_memo", "unique_consecutive_memo"):
        if getattr(fake, name, None) is not None:
            setattr(fake, name, None)


# -- symbols -------------------------------------------------------------------------------------


def new_input_size(mode: Any, hint: int, *, is_size: bool = True) -> Any:
    """A symbol for a size of an input, or for an integer that is one (`is_size=False`)."""
    from torch._dynamo.source import ConstantSource
    from torch.fx.experimental.symbolic_shapes import DimDynamic

    env = mode.shape_env
    source = ConstantSource(f"size_{len(example_values(env))}")
    symbol = env.create_symbol(
        hint, source, DimDynamic.DYNAMIC, None, positive=True if is_size else None
    )
    return env.create_symintnode(symbol, hint=hint, source=source)


def limit_size(size: Any, minimum: int | None, maximum: int | None) -> None:
    """Restricts the range of a size symbol."""
    from torch.utils._sympy.value_ranges import ValueRanges

    ranges = size.node.shape_env.var_to_range
    symbol = size.node.expr
    known = ranges[symbol]
    lower = known.lower if minimum is None else max(known.lower, sympy.Integer(minimum))
    upper = known.upper if maximum is None else min(known.upper, sympy.Integer(maximum))
    ranges[symbol] = ValueRanges(lower, upper)


def new_number(mode: Any, dtype: torch.dtype) -> Any:
    """A symbol for a number of this dtype that is only known at run time."""
    env = mode.shape_env
    if dtype == torch.bool:
        return env.create_unbacked_symbool()
    if dtype.is_floating_point:
        return env.create_unbacked_symfloat()
    return env.create_unbacked_symint()


# -- autocast ------------------------------------------------------------------------------------


def autocast_devices() -> tuple[str, ...]:
    """The devices for which autocast is enabled, in code above the dispatcher."""
    return tuple(device for device in _AUTOCAST if torch.is_autocast_enabled(device))


def is_cast_in_parts(op: Any, devices: tuple[str, ...]) -> bool:
    """Whether autocast, enabled for these devices, only casts the parts of a composite operator."""
    has_kernel = torch._C._dispatch_has_kernel_for_dispatch_key
    return (
        bool(devices)
        and is_composite(op)
        and not any(has_kernel(op.name(), _AUTOCAST[device]) for device in devices)
    )


def run_in_parts(op: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return op._op_dk(_KEY.CompositeImplicitAutograd, *args, **kwargs)


def run_operator(op: Any, args: dict[str, Any], mode: Any, function: Any = None) -> Any:
    """The result of `op`, or of `function` in its place, on fake tensors."""
    from torch._dispatch.python import enable_python_dispatcher

    positional, keyword = schema_arguments(op, args)
    # Composite operators written in C++ turn size symbols into numbers; their Python forms do not.
    with mode, enable_python_dispatcher():
        return (function or op)(*positional, **keyword)


@functools.cache
def returned_arguments(op: Any) -> dict[int, str]:
    """Results that are written arguments: the position of the result -> the argument."""
    written = {
        frozenset(a.alias_info.before_set): a.name
        for a in op._schema.arguments
        if a.alias_info is not None and a.alias_info.is_write
    }
    return {
        index: written[frozenset(r.alias_info.before_set)]
        for index, r in enumerate(op._schema.returns)
        if r.alias_info is not None and frozenset(r.alias_info.before_set) in written
    }


def fake_like(mode: Any, tensor: torch.Tensor, sizes: list[Any]) -> torch.Tensor:
    """A fake of `tensor` with these sizes and the same order of strides."""
    strides: list[Any] = [hint_of(stride) for stride in tensor.stride()]
    if any(isinstance(size, torch.SymInt) for size in sizes):
        order = sorted(range(len(sizes)), key=lambda axis: (strides[axis], -axis))
        step: Any = 1
        for axis in order:
            if strides[axis] != 0:
                strides[axis] = step
                step = step * sizes[axis]
    return new_fake(mode, sizes, strides, tensor.dtype, tensor.device)


def fake_contiguous(mode: Any, sizes: list[Any], dtype: torch.dtype, like: Any) -> torch.Tensor:
    """A fake tensor of these sizes, on the device of `like`."""
    device = torch.device("cpu") if like is None else like.device
    strides: list[Any] = []
    step: Any = 1
    for size in reversed(sizes):
        strides.insert(0, step)
        step = step * size
    return new_fake(mode, sizes, strides, dtype, device)


def flex_attention_in_parts(*args: Any, **kwargs: Any) -> Any:
    """PyTorch's own form of it: the scores of all positions, changed, masked and summed."""
    from torch._higher_order_ops.flex_attention import math_attention

    return math_attention(*args, **kwargs)


@contextlib.contextmanager
def no_modes() -> Iterator[None]:
    """Without the active torch-function and dispatch modes."""
    from torch.utils._python_dispatch import _disable_current_modes

    with torch._C.DisableTorchFunction(), _disable_current_modes():
        yield


def guard_expressions(mode: Any) -> list[sympy.Basic]:
    """The guards on sizes so far."""
    return [guard.expr for guard in mode.shape_env.guards]


def is_code_of_models(frame: FrameType) -> bool:
    """Whether the code is neither PyTorch's nor ours."""
    file = frame.f_code.co_filename
    return not file.startswith((TORCH_FOLDER, OWN_FOLDER)) or file.startswith(OF_WINDOWS)


def hint_of(size: Any) -> int:
    """The value of a size in the example."""
    return int(size.node.hint) if isinstance(size, torch.SymInt) else int(size)
