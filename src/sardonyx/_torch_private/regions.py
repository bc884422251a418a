"""Control flow and modes in programs of torch.export."""

from __future__ import annotations

import contextlib
import functools
import importlib
import inspect
import warnings
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
from torch.utils import _pytree as pytree

from sardonyx._torch_private.fakes import fake_mode_of
from sardonyx._torch_private.flags import quiet_loggers
from sardonyx._torch_private.operators import OpOverload, is_composite


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
        stack.enter_context(scans_with_inputs_of_their_own())
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


@contextlib.contextmanager
def scans_with_inputs_of_their_own() -> Iterator[None]:
    """A tensor that a scan starts from twice, or starts from and reads besides, is each of them in
    its body. PyTorch makes one of them: its copies of fake tensors are the tensors themselves."""
    module: Any = importlib.import_module("torch._higher_order_ops.scan")
    original = module.trace_scan

    def trace(*args: Any, **kwargs: Any) -> Any:
        compiler: Any = importlib.import_module("torch._dynamo.utils")
        clone_input = compiler.clone_input

        def copy_of(x: torch.Tensor) -> torch.Tensor:
            copy: torch.Tensor = clone_input(x)
            return x.clone() if copy is x else copy

        compiler.clone_input = copy_of
        try:
            return original(*args, **kwargs)
        finally:
            compiler.clone_input = clone_input

    module.trace_scan = trace
    try:
        yield
    finally:
        module.trace_scan = original


def flex_attention_form(node: Any) -> tuple[torch.fx.GraphModule, list[Any]]:
    """What a call of flex_attention computes, as a graph of ATen operators; the tensors it takes.

    PyTorch's own form for any device, run on the fake tensors of the program. Raises
    FixedSizesError where that takes their sizes for numbers, as it does before PyTorch 2.12.
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
    tensors = [fake for fake in fakes if isinstance(fake, torch.Tensor)]
    sizes: list[Any] = [size for fake in tensors for size in fake.shape]
    if any(isinstance(size, torch.SymInt) and size.node.expr.is_number for size in sizes):
        raise FixedSizesError
    return graph, operands


class FixedSizesError(Exception):
    """A size that was to stay open is a number now."""
