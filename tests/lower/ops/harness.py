"""Export, run in ONNX Runtime, compare with eager PyTorch: the one check all operator tests use.

A case is exported once by each capture, at the newest opset that ONNX Runtime loads. The older
opsets are legalized from there: a lowering does not depend on the opset, and recording a model
takes far longer than all that follows.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import onnx_ir as ir
import torch
from torch.utils._pytree import keystr, tree_flatten, tree_flatten_with_path

import sardonyx
from sardonyx.legalize import legalize, store_constants, use_available_kernels
from sardonyx.optimize.pipeline import optimize

CAPTURES = ("trace", "export")
NEWEST = 26
"""The newest opset that ONNX Runtime loads."""
OLDER = (20, 17, 13, 9)
"""Opsets that a case is legalized to, from the last of its captures."""
ALWAYS = 17
"""Below this opset, a case may be refused for want of a form."""

_TOLERANCES = {
    torch.float16: (2e-3, 2e-3),
    torch.bfloat16: (2e-2, 2e-2),
    torch.float32: (1e-4, 1e-5),
    torch.float64: (1e-7, 1e-8),
    torch.complex64: (1e-4, 1e-5),
    torch.complex128: (1e-7, 1e-8),
}


class _Call(torch.nn.Module):
    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *args: Any) -> Any:
        return self.function(*args)


def check(
    model: Callable[..., Any],
    *args: Any,
    dynamic: Mapping[int, Sequence[int]] | None = None,
    others: Sequence[tuple[Any, ...]] = (),
    captures: Sequence[str] = CAPTURES,
    opsets: Sequence[int] | None = None,
    rtol: float | None = None,
    atol: float | None = None,
    training: sardonyx.TrainingMode = sardonyx.TrainingMode.EVAL,
) -> sardonyx.ONNXProgram:
    """`model(*args)` agrees with its export in dtype, shape and value, here and for `others`.

    `dynamic` maps the position of an argument to its dynamic axes.
    """
    module = model if isinstance(model, torch.nn.Module) else _Call(model)
    module.train(training == sardonyx.TrainingMode.TRAINING)
    names = [f"in{i}" for i, a in enumerate(args) if isinstance(a, torch.Tensor)]
    tensor_names = iter(names)
    by_position = {i: next(tensor_names) for i, a in enumerate(args) if isinstance(a, torch.Tensor)}
    axes = {by_position[i]: list(dims) for i, dims in (dynamic or {}).items()}
    newest, *older = sorted(opsets or (NEWEST, *OLDER), reverse=True)
    runs = [(each, _results(module, each)) for each in (args, *others)]
    program = None
    for capture in captures:
        program = sardonyx.export(
            module,
            args,
            kwargs={},
            capture=capture,
            input_names=names,
            dynamic_axes=axes,
            opset_version=newest,
            training=training,
        )
        for inputs, expected in runs:
            label = f"{capture}, opset {newest}"
            compare(expected, program(*_cloned(inputs)), label, rtol, atol)
    assert program is not None
    for opset in older:
        try:
            legalized = at_opset(program, opset)
        except sardonyx.UnsupportedOpsetError:
            assert opset < ALWAYS, f"refused at opset {opset}"
            continue
        for inputs, expected in runs:
            compare(expected, legalized(*_cloned(inputs)), f"opset {opset}", rtol, atol)
    return program


def at_opset(program: sardonyx.ONNXProgram, opset: int) -> sardonyx.ONNXProgram:
    """As an export at an older opset gives it."""
    model = ir.from_proto(program.model_proto)
    legalize(model, opset)
    use_available_kernels(model)
    optimize(model, fold_parameters=True)
    store_constants(model)
    return sardonyx.ONNXProgram(
        model,
        signature=program.signature,
        options=replace(program.options, opset_version=opset),
        verifier_context=None,
    )


def _results(module: torch.nn.Module, inputs: tuple[Any, ...]) -> Any:
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # eager PyTorch says some things once in a process
        return copy.deepcopy(module)(*_cloned(inputs))


def compare(
    expected: Any, actual: Any, label: str, rtol: float | None = None, atol: float | None = None
) -> None:
    wanted, _ = tree_flatten_with_path(expected)
    got, _ = tree_flatten(actual)
    assert len(wanted) == len(got), label
    for (path, e), a in zip(wanted, got, strict=True):
        index = keystr(path)
        if not isinstance(e, torch.Tensor):
            e = torch.tensor(e, dtype=a.dtype) if isinstance(a, torch.Tensor) else e
        if not isinstance(a, torch.Tensor):
            assert e == a, f"{label}: output {index}"
            continue
        assert e.dtype == a.dtype, f"{label}: output {index} is {a.dtype}, eager {e.dtype}"
        assert e.shape == a.shape, f"{label}: output {index} is {a.shape}, eager {e.shape}"
        relative, absolute = _TOLERANCES.get(e.dtype, (0.0, 0.0))
        torch.testing.assert_close(
            a,
            e,
            rtol=relative if rtol is None else rtol,
            atol=absolute if atol is None else atol,
            equal_nan=True,
            msg=lambda m, index=index: f"{label}: output {index}: {m}",
        )


def _cloned(inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(i.clone() if isinstance(i, torch.Tensor) else i for i in inputs)
