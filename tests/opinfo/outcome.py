"""What becomes of one sample: exported, run in ONNX Runtime, compared with eager PyTorch."""

from __future__ import annotations

import contextlib
import copy
import signal
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch.utils import _pytree as pytree

import sardonyx
from sardonyx.verify.onnxruntime_session import Session
from tests.opinfo.entries import Call

OPSET = 20
SECONDS = 90
RANDOM_RUNS = 100
TOLERANCES = {
    torch.float16: 5e-3,
    torch.bfloat16: 4e-2,
    torch.float32: 1e-5,
    torch.complex64: 1e-5,
    torch.float64: 1e-6,
}
"""Absolute error allowed where the largest value is 1, and ten times that as relative error."""
UNSET = ("empty", "empty_like", "empty_permuted", "empty_strided", "new_empty", "new_empty_strided")
"""Operators whose result is whatever lies in memory."""
HALVES = (torch.float16, torch.bfloat16)
PASSED = "passed"


@dataclass(frozen=True)
class Outcome:
    state: str
    """passed, refused, mismatch, not run (by ONNX Runtime), failed or timeout"""
    reason: str = ""


class CallModel(torch.nn.Module):
    """Calls as a model: the tensors among the arguments are its inputs."""

    def __init__(self, calls: Sequence[Call]) -> None:
        super().__init__()
        self.functions = [call.function for call in calls]
        self.children_of_calls = torch.nn.ModuleList(
            call.function for call in calls if isinstance(call.function, torch.nn.Module)
        )
        self.templates = []
        self.tensors: list[torch.Tensor] = []
        for call in calls:
            leaves, structure = pytree.tree_flatten((call.args, call.kwargs))
            self.templates.append((leaves, structure))
            self.tensors += [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]
        self.train(any(f.training for f in self.functions if isinstance(f, torch.nn.Module)))

    def forward(self, *tensors: torch.Tensor) -> list[Any]:
        given = iter(tensors)
        results: list[Any] = []
        for function, (leaves, structure) in zip(self.functions, self.templates, strict=True):
            filled = [next(given) if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves]
            args, kwargs = pytree.tree_unflatten(filled, structure)
            result = function(*args, **kwargs)
            results += [leaf for leaf in pytree.tree_leaves(result) if _is_result(leaf)]
        return results


def _is_result(leaf: Any) -> bool:
    return isinstance(
        leaf, (torch.Tensor, bool, int, float, torch.SymInt, torch.SymFloat, torch.SymBool)
    )


def outcomes(
    calls: Sequence[Call], fresh: Sequence[Call], capture: str, *, unset: bool = False
) -> list[Outcome]:
    """One outcome for each call that eager PyTorch takes. All are exported as one model; where that
    does not pass, each on its own."""
    pairs = [
        # A module is the same one with other inputs: the file has its weights.
        (call, replace(other, function=call.function) if _alike(call, other) else None)
        for call, other in zip(calls, fresh, strict=True)
        if _runs(call)
    ]
    if len(pairs) > 1:
        together = _outcome([c for c, _ in pairs], [f for _, f in pairs], capture, unset=unset)
        if together.state == PASSED:
            return [together] * len(pairs)
    return [_outcome([call], [other], capture, unset=unset) for call, other in pairs]


def _outcome(calls: list[Call], fresh: list[Call | None], capture: str, *, unset: bool) -> Outcome:
    try:
        with _time_limit(SECONDS):
            return _compared(calls, fresh, capture, unset=unset)
    except sardonyx.SardonyxError as error:
        return Outcome("refused", _why(error))
    except TimeoutError:
        return Outcome("timeout", f"{SECONDS} s")
    except Exception as error:
        return Outcome("failed", f"{type(error).__name__}: {_line(error)}")


def _compared(calls: list[Call], fresh: list[Call | None], capture: str, *, unset: bool) -> Outcome:
    model = CallModel(calls)
    training = sardonyx.TrainingMode.PRESERVE
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        program = sardonyx.export(
            model,
            tuple(t.clone() for t in model.tensors),
            capture=capture,
            opset_version=OPSET,
            training=training,
        )
    try:
        session = Session(program.model)
    except sardonyx.VerificationError as error:
        return Outcome("not run", _reason(error))
    again = [other if other is not None else call for call, other in zip(calls, fresh, strict=True)]
    for attempt in (calls, again):
        tried = CallModel(attempt)
        if attempt is again and not all(map(_runs, attempt)):
            break
        expected = _eager(tried)
        try:
            found = _run(session, tried.tensors)
        except sardonyx.VerificationError as error:
            return Outcome("not run", _reason(error))
        if len(found) != len(expected):
            return Outcome("mismatch", f"{len(found)} outputs, PyTorch gives {len(expected)}")
        for index, (ours, theirs) in enumerate(zip(found, expected, strict=True)):
            difference = _difference(ours, theirs, compare_values=False)
            if difference:
                return Outcome("mismatch", f"output {index}: {difference}")
        if unset:
            continue
        if _is_random(tried):
            return _compared_as_random(session, tried)
        exact = None
        for index, (ours, theirs) in enumerate(zip(found, expected, strict=True)):
            difference = _difference(ours, theirs, compare_values=True)
            if difference and ours.dtype in HALVES:
                exact = exact or _in_double(tried)
                if exact and not _difference(
                    ours, exact[index].to(ours.dtype), compare_values=True
                ):
                    continue
            if difference:
                return Outcome("mismatch", f"output {index}: {difference}")
    return Outcome(PASSED)


def _in_double(model: CallModel) -> list[torch.Tensor] | None:
    """What the calls give without rounding in between: PyTorch's own kernels for 16 bits round
    positions and partial sums, or overflow, where the runtime computes in float32."""
    wide = [t.double() if t.dtype in HALVES else t for t in model.tensors]
    try:
        with torch.no_grad(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return [_tensor(r) for r in copy.deepcopy(model).double()(*wide)]
    except Exception:
        return None


def _eager(model: CallModel) -> list[torch.Tensor]:
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = model(*(t.clone() for t in model.tensors))
    return [_tensor(r).cpu().resolve_conj().resolve_neg() for r in results]


def _tensor(result: Any) -> torch.Tensor:
    return result if isinstance(result, torch.Tensor) else torch.tensor(result)


def _runs(call: Call) -> bool:
    try:
        _eager(CallModel([call]))
    except Exception:
        return False
    return True


def _alike(call: Call, other: Call) -> bool:
    """Whether two calls differ in nothing but the values of their tensors."""
    (own, structure), (theirs, other_structure) = (
        pytree.tree_flatten((c.args, c.kwargs)) for c in (call, other)
    )
    return structure == other_structure and all(
        (
            isinstance(b, torch.Tensor)
            and a.shape == b.shape
            and a.dtype == b.dtype
            and a.stride() == b.stride()
        )
        if isinstance(a, torch.Tensor)
        else (callable(a) or repr(a) == repr(b))
        for a, b in zip(own, theirs, strict=True)
    )


def _run(session: Session, tensors: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    if len(session.input_names) != len(tensors):
        raise AssertionError(f"{len(session.input_names)} inputs, the model has {len(tensors)}")
    held = (_in_the_file(t) for t in tensors)
    return list(session.run(dict(zip(session.input_names, held, strict=True))).values())


def _in_the_file(tensor: torch.Tensor) -> torch.Tensor:
    """Complex numbers are pairs of reals there."""
    tensor = tensor.resolve_conj().resolve_neg()
    return torch.view_as_real(tensor) if tensor.is_complex() else tensor


def _difference(ours: torch.Tensor, theirs: torch.Tensor, *, compare_values: bool) -> str:
    theirs = _in_the_file(theirs)
    if ours.dtype != theirs.dtype:
        return f"{ours.dtype}, PyTorch gives {theirs.dtype}"
    if ours.shape != theirs.shape:
        return f"shape {list(ours.shape)}, PyTorch gives {list(theirs.shape)}"
    if not compare_values or torch.equal(ours, theirs):
        return ""
    finite = theirs[theirs.isfinite()].double().abs()
    scale = max(1.0, float(finite.max())) if finite.numel() else 1.0
    allowed = TOLERANCES.get(theirs.dtype, 0.0)
    close = torch.isclose(
        ours.double(), theirs.double(), rtol=10 * allowed, atol=allowed * scale, equal_nan=True
    )
    if bool(close.all()):
        return ""
    worst = int((ours.double() - theirs.double()).abs().nan_to_num(nan=torch.inf).argmax())
    return (
        f"{int((~close).sum())} of {close.numel()} differ,"
        f" {ours.flatten()[worst].item()} for {theirs.flatten()[worst].item()}"
    )


def _is_random(model: CallModel) -> bool:
    """Whether two runs differ; results of few elements may be the same by chance."""
    runs = []
    for seed in range(4):
        torch.manual_seed(seed)
        runs.append(_eager(model))
    return any(
        not torch.equal(a.nan_to_num(), b.nan_to_num())
        for other in runs[1:]
        for a, b in zip(runs[0], other, strict=True)
    )


def _compared_as_random(session: Session, model: CallModel) -> Outcome:
    ours = [_run(session, model.tensors) for _ in range(RANDOM_RUNS)]
    theirs = [_eager(model) for _ in range(RANDOM_RUNS)]
    for index in range(len(theirs[0])):
        own, other = (
            torch.stack([_in_the_file(run[index]) for run in runs]).double().flatten()
            for runs in (ours, theirs)
        )
        if own.numel() and not _same_distribution(own, other):
            return Outcome("mismatch", f"output {index}: another distribution")
    return Outcome(PASSED)


def _same_distribution(left: torch.Tensor, right: torch.Tensor) -> bool:
    """The test of Kolmogorov and Smirnov, at a level that chance does not reach; of numbers that
    differ by no more than rounding as one."""
    step = 1e-4 * max(1.0, float(right.nan_to_num(posinf=0, neginf=0).abs().max()))
    left, right = (left / step).round(), (right / step).round()
    points = torch.cat([left, right]).unique()
    below = [torch.searchsorted(side.sort().values, points, right=True) for side in (left, right)]
    distance = (below[0] / left.numel() - below[1] / right.numel()).abs().max()
    # Elements of one run may be copies of each other: the runs alone count.
    return float(distance) < 2.5 * (2 / RANDOM_RUNS) ** 0.5


def _reason(error: sardonyx.VerificationError) -> str:
    """The line of ONNX Runtime's own message."""
    lines = [line.strip() for line in str(error).splitlines()]
    told = [line.removeprefix("reason").strip() for line in lines if line.startswith("reason")]
    return (told or lines)[0][:200]


def _why(error: sardonyx.SardonyxError) -> str:
    """The first operator that has no form, and why; or else the first line."""
    lines = [" ".join(line.split()) for line in str(error).splitlines()]
    if lines and lines[0].startswith("no ONNX form for"):
        return next((line for line in lines[1:] if "::" in line.split(" ")[0]), lines[0])[:200]
    return _line(error)


def _line(error: BaseException) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0][:200]


@contextlib.contextmanager
def _time_limit(seconds: int) -> Iterator[None]:
    def ring(*_: object) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, ring)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
