"""Export, run in ONNX Runtime, compare with eager PyTorch: the one check all operator tests use."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

import sardonyx

CAPTURES = ("trace", "export")
OPSETS = {"trace": (17, 23), "export": (20,)}
"""Which opsets a case is exported for, by capture; every case meets the boundaries in between."""

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
    program = None
    for capture in captures:
        for opset in opsets or OPSETS[capture]:
            program = sardonyx.export(
                module,
                args,
                kwargs={},
                capture=capture,
                input_names=names,
                dynamic_axes=axes,
                opset_version=opset,
                training=training,
            )
            for inputs in (args, *others):
                with torch.no_grad():
                    expected = module(*_cloned(inputs))
                compare(
                    expected, program(*_cloned(inputs)), f"{capture}, opset {opset}", rtol, atol
                )
    assert program is not None
    return program


def compare(
    expected: Any, actual: Any, label: str, rtol: float | None = None, atol: float | None = None
) -> None:
    wanted, _ = torch.utils._pytree.tree_flatten(expected)
    got, _ = torch.utils._pytree.tree_flatten(actual)
    assert len(wanted) == len(got), label
    for index, (e, a) in enumerate(zip(wanted, got, strict=True)):
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
