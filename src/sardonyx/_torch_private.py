"""The only file that touches torch's private APIs."""

from __future__ import annotations

import contextlib
import contextvars
import functools
import importlib
import inspect
import linecache
import logging
import math
import os
import re
import sys
import traceback
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from types import FrameType
from typing import Any, NamedTuple, TypeAlias

import sympy
import torch
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

OpOverload: TypeAlias = torch._ops.OpOverload
WITHOUT_TORCH_FUNCTION: Any = torch._C._disabled_torch_function_impl
"""The `__torch_function__` of a class of tensors whose operators give plain tensors."""


def open_registered_pytree(
    tree: Any,
) -> tuple[list[str], list[Any], Callable[[list[Any]], Any]] | None:
    """Keys, children and constructor of a user's registered pytree node."""
    definition = pytree.SUPPORTED_NODES.get(type(tree))
    if definition is None:
        return None
    if definition.flatten_with_keys_fn is not None:
        keyed, context = definition.flatten_with_keys_fn(tree)
        keys = [_key_text(key) for key, _ in keyed]
        children = [child for _, child in keyed]
    else:
        children, context = definition.flatten_fn(tree)
        children = list(children)
        keys = [str(i) for i in range(len(children))]
    return keys, children, lambda items: definition.unflatten_fn(items, context)


def _key_text(key: Any) -> str:
    for attribute in ("key", "name", "idx"):
        if hasattr(key, attribute):
            return str(getattr(key, attribute))
    return str(key)


@contextlib.contextmanager
def in_onnx_export() -> Iterator[None]:
    """Raise the flag that model code reads as `torch.onnx.is_in_onnx_export()`."""
    flags = _export_flags()
    before = flags.in_onnx_export
    flags.in_onnx_export = True
    try:
        yield
    finally:
        flags.in_onnx_export = before


def is_in_onnx_export() -> bool:
    return bool(_export_flags().in_onnx_export)


def _export_flags() -> Any:
    from torch.onnx._internal.torchscript_exporter._globals import GLOBALS

    return GLOBALS


def dim_of(size: Any) -> Any:
    """A size as the graph holds it: int, or the sympy expression of a symbolic one."""
    if isinstance(size, (torch.SymInt, torch.SymFloat, torch.SymBool)):
        expression = plain_number(size.node.expr)
        if isinstance(expression, sympy.Expr):
            return _of_its_type(expression, isinstance(size, torch.SymInt))
        return expression
    return size


def _of_its_type(expression: Any, is_whole: bool) -> Any:
    """The expression, so that sympy knows whether it is an integer: it takes any remainder for one
    and no combination of bits."""
    from torch.utils._sympy.functions import ToFloat, TruncToInt

    if is_whole == bool(expression.is_integer):
        return expression
    return (TruncToInt if is_whole else ToFloat)(expression)


def plain_number(expression: Any) -> Any:
    """The Python number that a sympy expression is, or the expression."""
    if expression.is_Integer:
        return int(expression)
    if expression.is_Float or expression.is_Rational:
        return float(expression)
    if expression.is_Boolean and expression in (True, False):
        return bool(expression)
    return expression


def is_scripted(function: Any) -> bool:
    """Whether it is TorchScript: Python knows nothing of its arguments, or what a wrapper says that
    parts of torch put around all of them."""
    return isinstance(function, (torch._C.ScriptMethod, torch._C.ScriptFunction))


def is_fake(value: Any) -> bool:
    from torch._subclasses.fake_tensor import FakeTensor

    return isinstance(value, FakeTensor)


def higher_order_name(target: Any) -> str:
    return str(getattr(target, "_name", "") or getattr(target, "__name__", ""))


def is_refusal_of_control_flow(error: BaseException | None) -> bool:
    """Whether torch.jit.trace met torch.cond, torch.while_loop or another such operator."""
    text = str(error)
    return "dynamo-optimized function" in text or "HigherOrderOperator" in text


def leaves_modes_to_be_applied(program: Any) -> bool:
    """Whether an exported program only says that operators run under autocast or torch.vmap."""
    return any(_is_under_vmap(node) or _is_autocast(node) for node in _all_nodes(program))


def _all_nodes(program: Any) -> Iterator[Any]:
    for module in program.graph_module.modules():
        if isinstance(module, torch.fx.GraphModule):
            yield from module.graph.nodes


def _is_under_vmap(node: Any) -> bool:
    return getattr(node.target, "__module__", "") == "torch._functorch.predispatch"


def _is_autocast(node: Any) -> bool:
    name = higher_order_name(node.target)
    return name == "_enter_autocast" or (name == "wrap_with_autocast" and bool(node.args[2]))


def with_modes_applied(program: Any, shape_rules: Mapping[Any, Callable[..., Any]]) -> Any:
    """The program with the casts of autocast and the batch dims of torch.vmap in its operators."""
    values = (node.meta.get("val") for node in program.graph.nodes)
    modes = [mode for value in values if (mode := fake_mode_of(value)) is not None]
    with contextlib.ExitStack() as stack:
        stack.enter_context(warnings.catch_warnings(action="ignore"))
        stack.enter_context(quiet_loggers())
        if modes:
            stack.enter_context(_shapes_replaced(modes[0], shape_rules))
        entered = stack.enter_context(_autocast_watched())
        return program.run_decompositions(_unknown_to_autocast(program, entered))


def _unknown_to_autocast(
    program: Any, entered: list[frozenset[str]]
) -> dict[Any, Callable[..., Any]]:
    """Decompositions of the operators that autocast does not know: it casts where their parts are.
    PyTorch would run them with autocast off."""
    key = torch._C.DispatchKey
    keys = {"cpu": key.AutocastCPU, "cuda": key.AutocastCUDA}

    def in_parts(op: Any, *args: Any, **kwargs: Any) -> Any:
        excluded = torch._C._dispatch_tls_local_exclude_set()
        for device in entered[-1] & keys.keys():
            excluded = excluded - torch._C.DispatchKeySet(keys[device])
        included = torch._C._dispatch_tls_local_include_set()
        with torch._C._ForceDispatchKeyGuard(included, excluded):
            return op._op_dk(key.CompositeImplicitAutograd, *args, **kwargs)

    if not any(map(_is_autocast, _all_nodes(program))):
        return {}
    operators = {node.target for node in _all_nodes(program)}
    return {
        op: functools.partial(in_parts, op)
        for op in operators
        if isinstance(op, OpOverload) and is_composite(op) and not _is_known_to_autocast(op)
    }


def _is_known_to_autocast(op: Any) -> bool:
    return bool(torch._C._dispatch_has_kernel_for_dispatch_key(op.name(), "AutocastCPU"))


@contextlib.contextmanager
def _autocast_watched() -> Iterator[list[frozenset[str]]]:
    """For each autocast region that is entered, the devices for which autocast is on there."""
    entered: list[frozenset[str]] = [frozenset()]
    kind: Any = torch.autocast
    enter, leave = kind.__enter__, kind.__exit__

    def watched_enter(self: Any) -> Any:
        device = {self.device}
        entered.append(entered[-1] | device if self._enabled else entered[-1] - device)
        return enter(self)

    def watched_leave(self: Any, *error: Any) -> Any:
        entered.pop()
        return leave(self, *error)

    kind.__enter__, kind.__exit__ = watched_enter, watched_leave
    try:
        yield entered
    finally:
        kind.__enter__, kind.__exit__ = enter, leave


@contextlib.contextmanager
def _shapes_replaced(mode: Any, by: Mapping[Any, Callable[..., Any]]) -> Iterator[None]:
    """As `kernels_replaced`, below the modes that make a program functional."""
    original = mode.dispatch
    running: set[Any] = set()

    def dispatch(func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func not in by or func in running:
            return original(func, types, args, kwargs)
        running.add(func)
        try:
            with mode:
                return by[func](*args, **(kwargs or {}))
        finally:
            running.remove(func)

    mode.dispatch = dispatch
    try:
        yield
    finally:
        del mode.dispatch


@contextlib.contextmanager
def associative_scans_recorded() -> Iterator[None]:
    """Scans over a dim of open size stay one operator: PyTorch makes as many calls of them as the
    example's size takes."""
    module: Any = importlib.import_module("torch._higher_order_ops.associative_scan")
    original = module.generic_associative_scan

    def recorded(operator: Any, leaves: Any, dim: int = 0, additional_inputs: Any = ()) -> Any:
        if all(isinstance(leaf.shape[dim], int) for leaf in leaves):
            return original(operator, leaves, dim, additional_inputs)
        # What it is given is the user's function under torch.vmap.
        combine = inspect.getclosurevars(operator.keywords["combine_fn"]).nonlocals["func"]
        of_items = functools.partial(operator.func, **{**operator.keywords, "combine_fn": combine})

        def run(combine: Any, leaves: Any) -> Any:
            return module.associative_scan_op(combine, leaves, additional_inputs=())

        return pytree.tree_leaves(module._maybe_compile_and_run_fn(run, of_items, leaves))

    module.generic_associative_scan = recorded
    try:
        yield
    finally:
        module.generic_associative_scan = original


def flex_attention_form(node: Any) -> tuple[torch.fx.GraphModule, list[Any]]:
    """What a call of flex_attention computes, as a graph of ATen operators; the tensors it takes.

    PyTorch's own form for any device, run on the fake tensors of the program.
    """
    from torch._higher_order_ops.flex_attention import math_attention
    from torch.fx.experimental.proxy_tensor import make_fx

    owner = node.graph.owning_module
    query, key, value, score, block_mask, scale, options, score_more, mask_more = node.args
    score_mod, mask_mod = (getattr(owner, part.target) for part in (score, block_mask[-1]))
    operands = [query, key, value, *score_more, *mask_more]
    count = len(score_more)

    def form(query: Any, key: Any, value: Any, *more: Any) -> Any:
        return math_attention(
            query, key, value, score_mod, (mask_mod,), scale, options, more[:count], more[count:]
        )

    fakes = [o.meta["val"] if isinstance(o, torch.fx.Node) else o for o in operands]
    with fake_mode_of(fakes[0]), torch.no_grad():
        graph = make_fx(form)(*fakes)
    return graph, operands


@contextlib.contextmanager
def quiet_loggers() -> Iterator[None]:
    """Keeps from the user what torch logs of a failed attempt: it is answered, or our own error."""
    names = (
        "torch._subclasses.fake_tensor",
        "torch.export._trace",
        "torch.fx.experimental.symbolic_shapes",
    )
    loggers = [logging.getLogger(name) for name in names]
    before = [logger.disabled for logger in loggers]
    for logger in loggers:
        logger.disabled = True
    try:
        yield
    finally:
        for logger, disabled in zip(loggers, before, strict=True):
            logger.disabled = disabled


@contextlib.contextmanager
def export_without_prints() -> Iterator[None]:
    """Keeps torch.export from printing the graph of an attempt that fails; the model may print."""
    from torch.export import _trace

    module: Any = _trace
    module.print = lambda *texts, **options: None
    try:
        yield
    finally:
        del module.print


def new_fake_mode() -> Any:
    from torch._subclasses.fake_tensor import FakeTensorMode

    return FakeTensorMode(shape_env=_sizes_without_conclusions(), static_shapes=True)


def _sizes_without_conclusions() -> Any:
    """A ShapeEnv that does not make one size of two, of which data decides one, because an operator
    wants them equal: it may not be reached."""
    import sympy
    from torch.fx.experimental.symbolic_shapes import ShapeEnv

    class Sizes(ShapeEnv):
        makes_one = True
        makes_numbers = True

        def _set_replacement(self, a: Any, tgt: Any, msg: str) -> None:
            if self.makes_numbers if tgt.is_Integer else self.makes_one:
                super()._set_replacement(a, tgt, msg)

        def create_symbol(self, *args: Any, **kwargs: Any) -> Any:
            with sizes_that_may_be_zero():
                return super().create_symbol(*args, **kwargs)

        def guard_or_defer_runtime_assert(  # type: ignore[override]
            self, orig_expr: Any, msg: str, fx_node: Any = None
        ) -> bool:
            if isinstance(orig_expr, sympy.Eq) and not (
                orig_expr.free_symbols <= _example_values(self).keys()
            ):
                with self.suppress_guards():
                    return bool(super().guard_or_defer_runtime_assert(orig_expr, msg, fx_node))
            return bool(super().guard_or_defer_runtime_assert(orig_expr, msg, fx_node))

    return Sizes()


@contextlib.contextmanager
def sizes_that_may_be_zero() -> Iterator[None]:
    """Size symbols made meanwhile are not negative, where PyTorch's own are positive: to it, x[1:]
    is one shorter than x whatever x is, and x[:1] + 1 has a row."""
    from torch import _prims_common, _refs
    from torch._subclasses import fake_impls
    from torch.fx.experimental import symbolic_shapes
    from torch.fx.experimental.sym_node import SymNode

    replaced: list[tuple[Any, str, Callable[[Any], Any]]] = [
        (symbolic_shapes, "make_symbol", _symbols_not_negative),
        (fake_impls, "infer_size", _common_shape_with_open_sizes),
        (_refs, "_maybe_broadcast", _broadcast_to_open_sizes),
        (_prims_common, "sym_max", _of_strides),
        (SymNode, "sym_max", _of_strides),
        (torch.SymInt, "__sym_max__", _asked_for),
    ]
    # Not every release of PyTorch has all of them.
    before = [
        (owner, name, getattr(owner, name)) for owner, name, _ in replaced if hasattr(owner, name)
    ]
    for owner, name, other_form in replaced:
        if hasattr(owner, name):
            setattr(owner, name, other_form(getattr(owner, name)))
    try:
        yield
    finally:
        for owner, name, function in before:
            setattr(owner, name, function)


_IN_FULL = contextvars.ContextVar("_IN_FULL", default=False)


def _asked_for(maximum: Callable[..., Any]) -> Callable[..., Any]:
    """The maximum that a program asks for, in full."""

    def larger(left: Any, right: Any) -> Any:
        token = _IN_FULL.set(True)
        try:
            return maximum(left, right)
        finally:
            _IN_FULL.reset(token)

    return larger


def _of_strides(maximum: Callable[..., Any]) -> Callable[..., Any]:
    """The larger of a size and 1, of which strides are made: the size, as it is to PyTorch."""

    def larger(left: Any, right: Any) -> Any:
        if not _IN_FULL.get() and getattr(right, "expr", right) == 1 and not isinstance(left, int):
            size = (left.node if isinstance(left, torch.SymInt) else left).expr
            if size.is_nonnegative and not size.is_number:
                return left
        return maximum(left, right)

    return larger


def _symbols_not_negative(make_symbol: Callable[..., Any]) -> Callable[..., Any]:
    from torch.utils._sympy.symbol import SymT

    def made(prefix: Any, index: int, **assumptions: Any) -> Any:
        if prefix is SymT.SIZE and assumptions.pop("positive", None):
            assumptions["nonnegative"] = True
        return make_symbol(prefix, index, **assumptions)

    return made


def _common_shape_with_open_sizes(infer_size: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *shapes: tuple(with_open_sizes(infer_size(*shapes), shapes))


def _broadcast_to_open_sizes(maybe_broadcast: Callable[..., Any]) -> Callable[..., Any]:
    def broadcast(*args: Any, **kwargs: Any) -> Any:
        made = maybe_broadcast(*args, **kwargs)
        shapes = [a.shape for a in args if isinstance(a, torch.Tensor)]
        common = max((m.shape for m in made if isinstance(m, torch.Tensor)), key=len, default=())
        sizes = with_open_sizes(common, shapes)
        if not any(isinstance(size, torch.SymInt) for size in sizes):
            return made
        return [
            m.expand(sizes) if isinstance(m, torch.Tensor) and m.dim() == len(sizes) else m
            for m in made
        ]

    return broadcast


def with_open_sizes(common: Sequence[Any], shapes: Sequence[Sequence[Any]]) -> list[Any]:
    """Of sizes that PyTorch takes for 1, a result has those that are 0 where x is empty, too:
    Min(1, n), the rows of x[:1]."""
    sizes = list(common)
    for axis in range(-len(sizes), 0):
        if isinstance(sizes[axis], int) and sizes[axis] == 1:
            met = [shape[axis] for shape in shapes if len(shape) >= -axis]
            for size in {m.node.expr: m for m in met if isinstance(m, torch.SymInt)}.values():
                sizes[axis] *= size
    return sizes


@contextlib.contextmanager
def without_conclusions(mode: Any, *, but_numbers: bool = False) -> Iterator[None]:
    """Of the operators run meanwhile: that one takes two sizes for equal says nothing of the rest
    of the program, which may not reach it. `but_numbers`: that it takes a size for one does."""
    env = mode.shape_env
    before = env.makes_one, env.makes_numbers
    env.makes_one = False
    env.makes_numbers = env.makes_numbers and but_numbers
    try:
        yield
    finally:
        env.makes_one, env.makes_numbers = before


def depends_on_data(mode: Any, size: Any) -> bool:
    """Whether a size, a number or an expression, is not known from the inputs' sizes alone."""
    if isinstance(size, int):
        return False
    return not size.free_symbols <= _example_values(mode.shape_env).keys()


def _example_values(env: Any) -> dict[Any, Any]:
    # torch 2.11 calls the table var_to_val.
    has_it = hasattr(env, "backed_var_to_val")
    values: dict[Any, Any] = env.backed_var_to_val if has_it else env.var_to_val
    return values


def fake_mode_of(tensor: Any) -> Any:
    """The mode a fake tensor belongs to; None for any other tensor."""
    return tensor.fake_mode if is_fake(tensor) else None


def fake_from(mode: Any, tensor: torch.Tensor) -> torch.Tensor:
    """A fake tensor with the sizes and strides of `tensor`."""
    if is_weightless(tensor) and tensor.fake_mode is not mode:  # type: ignore[attr-defined]
        return fake_from_strides(mode, tensor, list(tensor.shape), list(tensor.stride()))
    made: torch.Tensor = mode.from_tensor(tensor.detach(), static_shapes=True)
    return made


def fake_from_sizes(mode: Any, sizes: list[Any], dtype: torch.dtype) -> torch.Tensor:
    with mode:
        return torch.empty(sizes, dtype=dtype)


def dynamic_fake(mode: Any, tensor: torch.Tensor, axes: set[int], name: str) -> torch.Tensor:
    """A fake of `tensor` with a size symbol for each axis in `axes`."""
    from torch._dynamo.source import ConstantSource
    from torch.fx.experimental.symbolic_shapes import DimDynamic, StatelessSymbolicContext

    context: Any = StatelessSymbolicContext(
        dynamic_sizes=[
            DimDynamic.DYNAMIC if axis in axes else DimDynamic.STATIC
            for axis in range(tensor.dim())
        ]
    )
    # static_shapes is a property of the whole mode: lifted for the tensors that have symbols.
    before, mode.static_shapes = mode.static_shapes, False
    try:
        made: torch.Tensor = mode.from_tensor(
            tensor.detach(), symbolic_context=context, source=ConstantSource(name)
        )
    finally:
        mode.static_shapes = before
    return made


def new_data_dependent_size(mode: Any) -> Any:
    """A size symbol for an integer that is only known at run time."""
    return mode.shape_env.create_unbacked_symint()


def new_data_dependent_size_of(fake: Any) -> Any:
    """As new_data_dependent_size, for a size of a result that `fake` decides."""
    mode = fake_mode_of(fake) or active_fake_mode()
    size = mode.shape_env.create_unbacked_symint()
    torch._check(size >= 0)  # type: ignore[no-untyped-call]
    return size


def new_symbol_like(mode: Any, symbol: Any) -> Any:
    """Another symbol for a number of the same kind and range that is only known at run time."""
    env = mode.shape_env
    make = env.create_unbacked_symint if symbol.is_integer else env.create_unbacked_symfloat
    new = make().node.expr
    if symbol in env.var_to_range:
        env.var_to_range[new] = env.var_to_range[symbol]
    return new


def fake_from_strides(
    mode: Any, like: torch.Tensor, sizes: list[Any], strides: list[Any]
) -> torch.Tensor:
    with mode:
        return torch.empty_strided(sizes, strides, dtype=like.dtype, device=like.device)


def sym_int(mode: Any, expression: Any) -> Any:
    """The torch.SymInt or SymFloat of a size expression."""
    from torch.fx.experimental.sym_node import SymNode

    env = mode.shape_env
    hint = sympy.sympify(expression.xreplace(example_sizes(mode)))
    if expression.is_integer:
        return env.create_symintnode(expression, hint=int(hint) if hint.is_Integer else None)
    node = SymNode(expression, env, float, float(hint) if hint.is_number else None)
    return torch.SymFloat(node)  # type: ignore[no-untyped-call]


def floor_quotient(expression: Any, divisor: int) -> Any:
    """expression // divisor of a size expression, in PyTorch's own form of it."""
    from torch.utils._sympy.functions import FloorDiv

    return FloorDiv(expression, divisor)


def fixed_symbols(mode: Any) -> dict[Any, int]:
    """The size symbols that the operators run so far have turned into numbers."""
    return {
        symbol: int(replacement)
        for symbol, replacement in mode.shape_env.replacements.items()
        if replacement.is_Integer
    }


def shares_memory(left: torch.Tensor, right: torch.Tensor) -> bool:
    return bool(left.untyped_storage()._cdata == right.untyped_storage()._cdata)


class Recorder(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Notes every operator that reaches the dispatcher, with what it took and gave; in place of
    a prim, the ATen operators it is made of."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.calls: list[tuple[Any, tuple[Any, ...], dict[str, Any], Any]] = []

    def __torch_dispatch__(
        self,
        func: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        if func.namespace == "prims" and hasattr(func, "impl_aten"):
            with self:
                return func.impl_aten(*args, **(kwargs or {}))
        result = func(*args, **(kwargs or {}))
        self.calls.append((func, args, kwargs or {}, result))
        return result


def memory_address(tensor: torch.Tensor) -> int:
    """Equal for tensors that share memory; 0 for those without any."""
    with torch._C.DisableTorchFunction():
        if torch._C._functorch.is_functorch_wrapped_tensor(
            tensor
        ):  # inside torch.vmap and the like
            return 0
        if tensor.layout != torch.strided or is_fake(tensor) or tensor.device.type == "meta":
            return 0
        return tensor.untyped_storage().data_ptr()


def has_foreign_memory(tensor: torch.Tensor) -> bool:
    """Whether PyTorch did not allocate where a tensor lies, as for one made of a NumPy array."""
    with torch._C.DisableTorchFunction():
        return not tensor.untyped_storage().resizable()


def whole_memory(tensor: torch.Tensor) -> torch.Tensor:
    """All the bytes a tensor is a view of."""
    with torch._C.DisableTorchFunction():
        empty = torch.empty(0, dtype=torch.uint8, device=tensor.device)
        return empty.set_(tensor.untyped_storage())


def record_decomposition(
    op: Any, args: tuple[Any, ...], kwargs: dict[str, Any], mode: Any
) -> tuple[list[tuple[Any, tuple[Any, ...], dict[str, Any], Any]], Any] | None:
    """PyTorch's own expansion of one call on fake tensors; None where it has none."""
    from torch._decomp import decomposition_table

    if op is torch.ops.aten.meshgrid.default:  # its Python form wants to be told the indexing
        op, kwargs = torch.ops.aten.meshgrid.indexing, {"indexing": "ij"}
    recorder = Recorder()
    with quiet_loggers(), torch.no_grad(), mode, recorder:
        if op in decomposition_table:
            result = decomposition_table[op](*args, **kwargs)
        elif op._can_decompose():
            result = op.decompose(*args, **kwargs)
        elif op._schema.name.startswith("aten::_foreach_"):
            # Its kernel for all devices: one call for each tensor of the list.
            result = op._op_dk(torch._C.DispatchKey.CompositeExplicitAutograd, *args, **kwargs)
        else:
            return None
    if result is NotImplemented or any(call[0] is op for call in recorder.calls):
        return None
    return recorder.calls, result


@contextlib.contextmanager
def kernels_replaced(by: Mapping[Any, Callable[..., Any]]) -> Iterator[None]:
    """While a model is recorded on fake tensors, these operators run other functions."""
    keys = (torch._C.DispatchKey.CompositeImplicitAutograd, torch._C.DispatchKey.Autograd)
    before = {op: dict(op.py_kernels) for op in by}
    for op, function in by.items():
        op.py_kernels.update(dict.fromkeys(keys, function))
        op._dispatch_cache.clear()
    try:
        yield
    finally:
        for op, kernels in before.items():
            op.py_kernels.clear()
            op.py_kernels.update(kernels)
            op._dispatch_cache.clear()


def run_on_fakes(
    op: Any, args: dict[str, Any], mode: Any, function: Callable[..., Any] | None = None
) -> Any:
    """What `op`, or `function` in its place, gives for fake tensors."""
    from torch._dispatch.python import enable_python_dispatcher

    # Composite operators written in C++ turn size symbols into numbers; their Python forms do not.
    with (
        quiet_loggers(),
        torch.no_grad(),
        mode,
        enable_python_dispatcher(),
        sizes_that_may_be_zero(),
    ):
        positional = [args[a.name] for a in op._schema.arguments if not a.kwarg_only]
        keyword = {a.name: args[a.name] for a in op._schema.arguments if a.kwarg_only}
        return (function or op)(*positional, **keyword)


def slice_of_fake(tensor: torch.Tensor, dim: int, start: Any, end: Any, step: Any) -> Any:
    """A slice by PyTorch's own shape rule, also while `kernels_replaced` has another one."""
    with torch._C._AutoDispatchBelowAutograd():
        return torch.ops.aten.slice.Tensor(tensor, dim, start, end, step)


def is_input_size(fake: Any, size: Any) -> bool:
    """Whether a size follows from the inputs, not from data; numbers do."""
    if isinstance(size, int):
        return True
    mode = fake_mode_of(fake) or active_fake_mode()
    return bool(size.node.expr.free_symbols <= example_sizes(mode).keys())


def arguments_like(program: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """(args, kwargs) of an ExportedProgram: fake tensors, example numbers and constants."""
    values = {n.name: n.meta.get("val") for n in program.graph.nodes if n.op == "placeholder"}
    leaves = []
    for spec in _user_inputs(program):
        if _is_constant(spec.arg):
            leaves.append(spec.arg.value)
        else:
            value = values[spec.arg.name]
            leaves.append(value.node.hint if isinstance(value, torch.SymInt) else value)
    args, kwargs = pytree.tree_unflatten(leaves, program.call_spec.in_spec)
    return args, kwargs


def user_input_names(program: Any) -> list[str]:
    return [
        getattr(spec.arg, "name", "") or f"input_{i}"
        for i, spec in enumerate(_user_inputs(program))
    ]


def fixed_numbers(program: Any) -> set[str]:
    """The names of number inputs that an ExportedProgram holds one value of."""
    return {
        spec.arg.name
        for spec in _user_inputs(program)
        if _is_constant(spec.arg) and isinstance(spec.arg.value, (int, float))
    }


def module_classes(program: Any) -> dict[str, str]:
    """Class names by module path, as far as the program's nodes tell."""
    qualified = qualified_module_classes(program)
    return {path: name.split(".")[-1] for path, name in qualified.items()}


def qualified_module_classes(program: Any) -> dict[str, str]:
    """Class names with those of the Python modules they are defined in."""
    classes: dict[str, str] = {}
    for node in program.graph.nodes:
        for path, kind in (node.meta.get("nn_module_stack") or {}).values():
            name = kind if isinstance(kind, str) else f"{kind.__module__}.{kind.__qualname__}"
            classes.setdefault(path.split("@")[0], name)
    return classes


def scripted_class(module: torch.nn.Module) -> str:
    """`torch.nn.modules.linear.Linear`: the class that a script module was made from."""
    name = str(module._c._type().qualified_name())  # type: ignore[operator,union-attr]
    parts = name.removeprefix("__torch__.").split(".")
    return ".".join(part for part in parts if not part.startswith("___torch_mangle_"))


def _user_inputs(program: Any) -> list[Any]:
    return [s for s in program.graph_signature.input_specs if s.kind.name == "USER_INPUT"]


def _is_constant(argument: Any) -> bool:
    return type(argument).__name__ == "ConstantArgument"


def result_like(program: Any, leaves: list[Any]) -> Any:
    """The nested result of an ExportedProgram around the given leaves."""
    return pytree.tree_unflatten(leaves, program.call_spec.out_spec)


@contextlib.contextmanager
def answers_watched(note: Callable[[Any, FrameType], None]) -> Iterator[None]:
    """Tells of every condition on sizes that the model's own Python asks for and that holds, as it
    is noted, for all sizes that torch.export takes to be possible: those from 2 on."""
    from torch.fx.experimental.sym_node import SymNode
    from torch.fx.experimental.symbolic_shapes import uninteresting_files

    kind: Any = SymNode
    original = kind.guard_bool
    passing_on = uninteresting_files()

    def guard_bool(self: Any, file: str, line: int) -> bool:
        guards = self.shape_env.guards
        known = len(guards)
        answer = bool(original(self, file, line))
        expression: Any = self.expr
        if len(guards) == known and expression.free_symbols:
            frame = sys._getframe(1)
            while frame.f_back is not None and frame.f_code.co_filename in passing_on:
                frame = frame.f_back
            asker = frame.f_code.co_filename
            if not asker.startswith((_TORCH_FOLDER, _OWN_FOLDER)) or asker.startswith(_OF_WINDOWS):
                note(expression if answer else sympy.Not(expression), frame)
        return answer

    kind.guard_bool = guard_bool
    passing_on.add(guard_bool.__code__.co_filename)
    try:
        yield
    finally:
        passing_on.discard(guard_bool.__code__.co_filename)
        kind.guard_bool = original


@contextlib.contextmanager
def float_arithmetic_in_order() -> Iterator[None]:
    """Sums and products of floats that sizes decide are rounded one by one, as Python does it;
    sympy would multiply the numbers of h * 0.29 * 100 first."""
    from torch.fx.experimental.sym_node import SymNode
    from torch.utils._sympy.functions import Identity

    kind: Any = SymNode
    before = {name: getattr(kind, name) for name in ("add", "sub", "mul")}

    def in_order(compute: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
        def computed(left: Any, right: Any) -> Any:
            result = compute(left, right)
            if isinstance(result, SymNode) and result.pytype is float and not result.is_constant():
                expression: Any = result._expr
                if expression.free_symbols and not isinstance(expression, Identity):
                    result._expr = Identity(expression)
                    result._optimized_summation = False
            return result

        return computed

    for name, compute in before.items():
        setattr(kind, name, in_order(compute))
    try:
        yield
    finally:
        for name, compute in before.items():
            setattr(kind, name, compute)


class Guard(NamedTuple):
    """A condition on sizes that a capture took for granted."""

    expression: Any
    place: tuple[str, int, str] | None
    """File, line and text where the model's own code asks; None where an operator does."""
    in_model_code: bool
    is_layout_check: bool
    """Asked to know a stride, which ONNX does not have."""


_STRICT_PLACE = re.compile(r"^(?P<text>.*?)\s+# (?P<file>\S+):(?P<line>\d+) in ")
_TORCH_FOLDER = os.path.dirname(os.path.abspath(torch.__file__)) + os.sep
_OWN_FOLDER = os.path.dirname(os.path.abspath(__file__)) + os.sep
_OF_WINDOWS = os.path.join(_TORCH_FOLDER, "signal") + os.sep
"""torch.signal is Python, too, and asks whether a window has the length 1."""
_LAYOUT_FUNCTIONS = ("contiguous", "stride", "dense", "channels_last")


def guards(mode: Any, start: int = 0) -> list[Guard]:
    found = []
    for guard in mode.shape_env.guards[start:]:
        frame = guard.sloc.framework_loc
        file, line = getattr(frame, "filename", ""), getattr(frame, "lineno", 0) or 0
        # torch.export's strict mode runs the model's Python in an interpreter of its own.
        strict = _STRICT_PLACE.match(guard.sloc.maybe_user_loc or "")
        in_torch = file.startswith(_TORCH_FOLDER)
        # A frame of ours is a mode that runs the operator which asks.
        in_model_code = (
            "/_dynamo/" in file if strict else not file.startswith((_TORCH_FOLDER, _OWN_FOLDER))
        )
        place = None
        if strict:
            place = (os.path.basename(strict["file"]), int(strict["line"]), strict["text"])
        elif in_model_code:
            place = (file, line, linecache.getline(file, line).strip())
        function = getattr(frame, "name", "") or ""
        asks_layout = in_torch and any(word in function for word in _LAYOUT_FUNCTIONS)
        found.append(Guard(guard.expr, place, in_model_code, asks_layout))
    return found


@contextlib.contextmanager
def lines_of_functions() -> Iterator[None]:
    """Lets torch.export note every frame of the model's code, not those of `forward` alone, and no
    others: it would read each frame of the whole stack for each node, the most of its time."""
    from torch.fx import proxy

    tracer = proxy.TracerBase
    if not hasattr(tracer, "_filter_traceback_frames") or not hasattr(proxy, "CapturedTraceback"):
        yield
        return
    before = proxy.CapturedTraceback, tracer._filter_traceback_frames
    proxy.CapturedTraceback = _StackOfModel
    tracer._filter_traceback_frames = lambda self, frames: frames  # type: ignore[method-assign,assignment]
    try:
        yield
    finally:
        proxy.CapturedTraceback, tracer._filter_traceback_frames = before  # type: ignore[method-assign]


class _StackOfModel:
    """The frames of a model's code, in the form that torch.fx asks for."""

    def __init__(self, frame: FrameType | None) -> None:
        self._frame = frame

    @classmethod
    def extract(cls) -> _StackOfModel:
        return cls(sys._getframe(1))

    def summary(self) -> traceback.StackSummary:
        frames: list[traceback.FrameSummary] = []
        kept = 0
        frame = self._frame
        while frame is not None:
            code = frame.f_code
            file, is_forward = code.co_filename, code.co_name == "forward"
            if not file.startswith(_OWN_FOLDER) and (
                is_forward or not file.startswith(_TORCH_FOLDER)
            ):
                frames.append(
                    traceback.FrameSummary(file, frame.f_lineno, code.co_name, lookup_line=False)
                )
            if is_forward:
                kept = len(frames)
            frame = frame.f_back
        return traceback.StackSummary.from_list(frames[:kept][::-1])


def example_sizes(mode: Any) -> dict[Any, int]:
    """The sizes that the symbols of a mode had in the example."""
    sizes = _example_values(mode.shape_env)
    return {symbol: int(size) for symbol, size in sizes.items()}


def guard_count(mode: Any) -> int:
    return len(mode.shape_env.guards)


def active_fake_mode() -> Any:
    """The fake mode that a running torch.export uses; None outside of one."""
    from torch._guards import detect_fake_mode

    return detect_fake_mode()


def symbol_places(mode: Any) -> dict[Any, tuple[int, int | None]]:
    """(index of the input, axis) for each size symbol that torch.export made for an input; the
    axis is None where the input is a number."""
    places: dict[Any, tuple[int, int | None]] = {}
    for symbol, sources in mode.shape_env.var_to_sources.items():
        for source in sources:
            found = _SYMBOL_SOURCE.fullmatch(
                source.name if isinstance(source.name, str) else source.name()
            )
            if found is not None:
                axis = found["axis"]
                places.setdefault(
                    symbol, (int(found["input"]), None if axis is None else int(axis))
                )
    return places


_SYMBOL_SOURCE = re.compile(
    r"L\['(?:tensors|flat_args)'\]\[(?P<input>\d+)\](?:\.size\(\)\[(?P<axis>\d+)\])?"
)


class _CallNames(dict[Any, str]):
    """What the tracer asks for the name of a module when it is called: one for each call."""

    def __init__(self, paths: dict[Any, str]) -> None:
        super().__init__(paths)
        self._counts: dict[Any, int] = {}

    def __getitem__(self, module: Any) -> str:
        self._counts[module] = self._counts.get(module, -1) + 1
        return f"{super().__getitem__(module)}@{self._counts[module]}"

    def get(self, module: Any, default: Any = None) -> Any:
        return self[module] if module in self else default  # noqa: SIM401


def trace_graph(
    module: torch.nn.Module, inputs: tuple[torch.Tensor, ...], state: list[torch.Tensor]
) -> Any:
    """The graph that torch.jit.trace records, as a function of the inputs and then the state.

    torch.jit.trace itself makes a script module of every module first, which takes longer than the
    recording. None where PyTorch cannot clean up a graph without that: a Python bool in arithmetic
    is an argument that no overload has.
    """
    from torch.jit import _trace

    paths = {m: f"__module.{path}" if path else "__module" for path, m in module.named_modules()}
    outer, _trace._trace_module_map = _trace._trace_module_map, _CallNames(paths)
    try:
        graph, _ = torch._C._create_graph_by_tracing(
            lambda *tensors: module(*tensors[: len(inputs)]),
            [*inputs, *state],
            lambda _: "",
            False,
            False,
        )
    except RuntimeError as error:
        if "alias_analysis.cpp" not in str(error):
            raise
        return None
    finally:
        _trace._trace_module_map = outer
    torch._C._jit_pass_inline(graph)
    return graph


def inlined_subgraph(node: Any) -> Any:
    """The graph that prim::fork runs, its calls of functions replaced by what they do."""
    graph = node.g("Subgraph").copy()
    torch._C._jit_pass_inline(graph)
    return graph


def overload_of(node: Any) -> Any:
    """The operator overload that a TorchScript node calls; None for what is no operator."""
    text = node.schema()
    if not text.startswith(node.kind()):
        return None
    namespace, name = node.kind().split("::")
    head = text[len(node.kind()) :].split("(", 1)[0]
    packet = getattr(getattr(torch.ops, namespace), name)
    return getattr(packet, head.lstrip(".") or "default")


def is_known_to_dispatcher(op: Any) -> bool:
    """False for what TorchScript alone has: arithmetic of Python numbers, lists and strings."""
    return bool(torch._C._dispatch_has_kernel(op.name()))


def takes_numbers_for_tensors(op: Any) -> bool:
    """Whether PyTorch takes a Python number where the schema of `op` says Tensor."""
    name = op._schema.name.split("::")[-1]
    return bool(torch._C._should_allow_numbers_as_tensors(name))


def is_tracing() -> bool:
    return bool(torch._C._is_tracing())


def _traced_value(tensor: torch.Tensor) -> Any:
    """What stands for a tensor in the graph that is being traced; None where nothing can."""
    try:
        return torch._C._get_value_trace(tensor)  # type: ignore[attr-defined]
    except RuntimeError:  # it requires grad and is no input
        return None


def use_count(tensor: torch.Tensor) -> int:
    """How often the graph that is being traced takes a tensor."""
    value = _traced_value(tensor)
    return 0 if value is None else len(value.uses())


def is_traced_constant(tensor: torch.Tensor) -> bool:
    value = _traced_value(tensor)
    return value is not None and value.node().kind() == "prim::Constant"


class TracedOrigins:
    """What the tensors of a graph that is being traced are computed from."""

    def __init__(self) -> None:
        self._of_fixed_size: set[Any] = set()
        """Nodes whose results have sizes that follow from the sizes of the inputs."""

    def of(self, tensor: torch.Tensor) -> str:
        """One of "data" (what the inputs hold, or a size that this decides), "sizes" (of the
        inputs, and nothing else) and "constant"."""
        value = _traced_value(tensor)
        return "constant" if value is None else self._origin(value)

    def _origin(self, value: Any) -> str:
        origin = "constant"
        pending, seen = [value], set()
        while pending:
            node = pending.pop().node()
            if node in seen:
                continue
            seen.add(node)
            if node.kind() == "prim::Param":
                return "data"
            if node.kind() in ("aten::size", "aten::numel", "aten::dim"):
                origin = "sizes"
                if not self._is_of_fixed_size(next(node.inputs())):
                    return "data"
            else:
                pending.extend(node.inputs())
        return origin

    def _is_of_fixed_size(self, value: Any) -> bool:
        pending, seen = [value], set()
        while pending:
            node = pending.pop().node()
            if node in seen or node in self._of_fixed_size:
                continue
            seen.add(node)
            kind = node.kind()
            if kind in _READS_NUMBERS:
                if self._origin(next(node.inputs())) == "data":
                    return False
            elif _may_have_size_of_data(kind) or (
                kind == "aten::where" and len(list(node.inputs())) == 1
            ):
                return False
            else:
                pending.extend(node.inputs())
        self._of_fixed_size |= seen
        return True


_READS_NUMBERS = ("aten::Int", "aten::IntImplicit", "aten::ScalarImplicit", "aten::Float")
_OF_DATA_WITHOUT_TAG = frozenset(
    f"aten::{name}"
    for name in (
        "_pack_padded_sequence",
        "_pad_packed_sequence",
        "_unsafe_index",
        "combinations",
        "index",
        "nonzero_numpy",
        "one_hot",
        "tensor_split",
    )
)


@functools.cache
def _may_have_size_of_data(kind: str) -> bool:
    """Whether the results of an operator may have as many elements as the data says."""
    namespace, name = kind.split("::")
    if namespace == "prim":
        return name == "PythonOp"
    if namespace != "aten" or kind in _OF_DATA_WITHOUT_TAG:
        return True
    packet = getattr(torch.ops.aten, name, None)
    if packet is None:
        return True
    tags = (getattr(packet, overload).tags for overload in packet.overloads())
    return any(torch.Tag.dynamic_output_shape in given for given in tags)


@contextlib.contextmanager
def autograd_function_calls(by: Callable[..., Any]) -> Iterator[None]:
    """Every call of a `torch.autograd.Function` is one of `by(apply, class, args, kwargs)`, also
    where `apply` was given another name before."""
    # `Function.apply` looks for the tracked one behind itself, at each call.
    kind: Any = torch.autograd.function._SingleLevelFunction
    before = vars(kind).get("apply")

    def apply(cls: Any, *args: Any, **kwargs: Any) -> Any:
        return by(super(kind, cls).apply, cls, args, kwargs)

    kind.apply = classmethod(apply)
    try:
        yield
    finally:
        if before is None:
            del kind.apply
        else:
            kind.apply = before


@contextlib.contextmanager
def calls_left_to_run(kinds: Collection[type]) -> Iterator[None]:
    """Where torch.export compiles Python, in strict mode and in the branches of torch.cond, calls
    of these `torch.autograd.Function`s are run as they are."""
    if not kinds:
        yield
        return
    rules: Any = importlib.import_module("torch._dynamo.trace_rules")
    allowed = rules._allowed_callable_ids
    added = [id(kind) for kind in kinds if id(kind) not in allowed]
    for number in added:
        allowed.add(number)
    try:
        yield
    finally:
        for number in added:
            allowed.remove(number)


def autograd_function_of(node: Any) -> Any:
    """The class of the `torch.autograd.Function` that a node of TorchScript calls, or None."""
    kind = getattr(node.pyobj(), "__self__", None)
    is_class = isinstance(kind, type) and issubclass(kind, torch.autograd.Function)
    return kind if is_class else None


def set_decomposition(op: Any, function: Callable[..., Any]) -> None:
    """Lets an operator be expanded into what `function` runs."""
    op.py_impl(torch._C.DispatchKey.CompositeImplicitAutograd)(function)


def sets_up_context_apart(kind: Any) -> bool:
    """Whether the `forward` of a torch.autograd.Function takes no `ctx`."""
    is_defined: Any = torch.autograd.function._is_setup_context_defined
    return bool(is_defined(kind.setup_context))


@contextlib.contextmanager
def tracing_paused() -> Iterator[None]:
    """What runs in the body is no part of a trace that is being made."""
    state = torch._C._get_tracing_state()
    torch._C._set_tracing_state(None)  # type: ignore[attr-defined]
    try:
        yield
    finally:
        torch._C._set_tracing_state(state)  # type: ignore[attr-defined]


def is_composite(op: Any) -> bool:
    """Whether an operator is made of others, and so may return its argument or a view of it."""
    key = torch._C.DispatchKey.CompositeImplicitAutograd
    return bool(torch._C._dispatch_has_kernel_for_dispatch_key(op.name(), key))


def register_chunked_losses() -> None:
    """Makes torch.ops.torch_nn known, where PyTorch has it: losses computed chunk by chunk."""
    with contextlib.suppress(ModuleNotFoundError):
        importlib.import_module("torch.nn.modules.linear_cross_entropy")


def register_decomposed_quantization() -> None:
    """Makes torch.ops.quantized_decomposed known: quantization with integers and scale apart.

    Not done before it is needed: what PyTorch imports with it takes long.
    """
    importlib.import_module("torch.ao.quantization.fx._decomposed")


def new_data_dependent_length(mode: Any) -> Any:
    """A size symbol for a length that is only known at run time: not negative."""
    size = mode.shape_env.create_unbacked_symint()
    torch._check(size >= 0)  # type: ignore[no-untyped-call]
    return size


def new_data_dependent_float(mode: Any) -> Any:
    """A symbol for a float that is only known at run time."""
    return mode.shape_env.create_unbacked_symfloat()


def sym_bool(mode: Any, expression: Any) -> Any:
    """The torch.SymBool of a condition on sizes."""
    from torch.fx.experimental.sym_node import SymNode

    return torch.SymBool(  # type: ignore[no-untyped-call]
        SymNode(expression, mode.shape_env, bool, None)
    )


def run_script_operator(name: str, *arguments: Any) -> Any:
    """What an operator that TorchScript alone has gives for Python values."""
    operator, _ = torch._C._jit_get_operation(name)
    return operator(*arguments)


def script_schema(program: Any) -> Any:
    """The schema of a scripted function, or of a scripted module's forward."""
    scripted = program.forward if isinstance(program, torch.jit.ScriptModule) else program
    return scripted.schema  # type: ignore[union-attr]


# -- weightless tensors: parameters that have a shape and no memory ----------------------------


@functools.cache
def _weightless_mode() -> Any:
    """One for all: tensors of two models can meet."""
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.fx.experimental.symbolic_shapes import ShapeEnv

    class WeightlessMode(FakeTensorMode):  # type: ignore[no-untyped-call]
        def __deepcopy__(self, memo: Any) -> Any:  # a copied module has tensors of the same mode
            return self

    mode = WeightlessMode(shape_env=ShapeEnv(), allow_non_fake_inputs=True)
    # A note of every tensor would keep Module.to() and the like from exchanging parameters.
    converter: Any = mode.fake_tensor_converter
    converter.set_tensor_memo = lambda tensor, fake: None
    return mode


def is_weightless(tensor: Any) -> bool:
    """Whether a tensor was made to have no values; torch.export's own fakes were not."""
    return is_fake(tensor) and tensor.fake_mode is _weightless_mode()


def weightless_like(tensor: torch.Tensor) -> torch.Tensor:
    return fake_from_strides(_weightless_mode(), tensor, list(tensor.shape), list(tensor.stride()))


class LargeTensorsWeightless(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Uninitialized and random tensors of many bytes get no memory."""

    def __init__(self, from_bytes: int) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._from_bytes = from_bytes

    def __torch_dispatch__(
        self,
        func: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        kwargs = kwargs or {}
        if func.name().split(".")[0] in _MAKES_NO_VALUES and self._is_large(args, kwargs):
            with _weightless_mode():
                return func(*args, **kwargs)
        return func(*args, **kwargs)

    def _is_large(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        size = args[0] if args else kwargs.get("size", ())
        if not isinstance(size, (list, tuple)) or not all(isinstance(n, int) for n in size):
            return False
        dtype = kwargs.get("dtype") or torch.get_default_dtype()
        return math.prod(size) * dtype.itemsize >= self._from_bytes


_MAKES_NO_VALUES = ("aten::empty", "aten::empty_strided", "aten::rand", "aten::randn")


@contextlib.contextmanager
def weightless_tensors_adopted() -> Iterator[None]:
    """torch.export gets to know the weightless tensors of a model as tensors of its own mode."""
    from torch._subclasses.fake_tensor import FakeTensorMode

    kind: Any = FakeTensorMode
    original = kind.from_tensor
    adopted: dict[tuple[int, int], tuple[Any, torch.Tensor]] = {}

    def from_tensor(self: Any, tensor: torch.Tensor, **options: Any) -> Any:
        if not is_weightless(tensor) or tensor.fake_mode is self:  # type: ignore[attr-defined]
            return original(self, tensor, **options)
        key = (id(self), id(tensor))
        if key not in adopted:
            made = fake_from_strides(self, tensor, list(tensor.shape), list(tensor.stride()))
            if isinstance(tensor, torch.nn.Parameter):
                made = torch.nn.Parameter(made, requires_grad=tensor.requires_grad)
            adopted[key] = (made, tensor)  # which keeps its id from being another's
        return adopted[key][0]

    kind.from_tensor = from_tensor
    try:
        yield
    finally:
        kind.from_tensor = original


def storage_identity(tensor: torch.Tensor) -> int:
    """Which storage a tensor is a view of, whether or not that has memory."""
    return int(tensor.untyped_storage()._cdata)


def rival_exporter() -> Any:
    """The module whose names `sardonyx.install()` takes over; nothing in it is called."""
    return importlib.import_module("torch.onnx")


def is_script_method(function: Any) -> bool:
    """Whether it is a method of a scripted module, whose first argument is the module."""
    return isinstance(function, torch._C.ScriptMethod)
