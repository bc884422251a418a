"""Verification: the ONNX model and the PyTorch model on the same inputs, more than once."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import sympy
import torch

from sardonyx.aten import pytree
from sardonyx.aten.drawn_values import drawn_like
from sardonyx.aten.signature import ConstantLeaf, InputSpec, OutputSpec, Signature, as_returned
from sardonyx.capture.capture_errors import model_failure
from sardonyx.errors import NotRunnableError, VerificationError, first_line, format_message
from sardonyx.notes import Note, NoteKind
from sardonyx.verify.baked_reads import BakedReads
from sardonyx.verify.compare import OutputComparison, compare_output, form_problem
from sardonyx.verify.drawn_sizes import DrawnSizes, broken_guards
from sardonyx.verify.eager import EagerModel, EagerRun
from sardonyx.verify.inputs import (
    UnknownSizeError,
    example_sizes,
    mirrored,
    resized,
    sizes_label,
)
from sardonyx.verify.onnxruntime_session import Output
from sardonyx.verify.rounding import rounding_errors, run_in_float64

RunOnnx = Callable[[Sequence[torch.Tensor]], Mapping[str, Output]]
"""Takes the tensors in the order of the ONNX inputs, gives every ONNX output by name."""

_Row = tuple[str, str | Sequence[str]]
_OTHER_SEED = 0x5A4D
_MORE_DRAWS = 3
_MOST_BEYOND = 4
_MOST_TRIED = 12


@dataclass(frozen=True)
class Run:
    """One set of inputs: `label` is "example", "other values", or sizes such as "batch=3".
    `outputs` has those whose values were compared: none where all of them are random."""

    label: str
    outputs: tuple[OutputComparison, ...]


@dataclass(frozen=True)
class VerificationReport:
    """What was run and how far the results were apart; `skipped` says what was not compared."""

    runs: tuple[Run, ...]
    skipped: tuple[str, ...] = ()
    baked: tuple[str, ...] = ()
    """What the runs tell of the values that tracing baked."""
    left_out: Mapping[Note, Sequence[str]] = field(default_factory=dict)
    """Sizes at which nothing was compared, by the note whose condition does not hold there."""

    @property
    def largest_absolute(self) -> float:
        return max((o.max_abs for run in self.runs for o in run.outputs), default=0.0)

    @property
    def largest_relative(self) -> float:
        return max((o.max_rel for run in self.runs for o in run.outputs), default=0.0)

    @property
    def findings(self) -> list[str]:
        """What was found equal, and how far it was apart."""
        compared = [run for run in self.runs if run.outputs]
        labels = "; ".join(run.label for run in compared or self.runs)
        if not compared:
            return [f"runs in ONNX Runtime at {labels}; no values could be compared"]
        return [
            f"equal to PyTorch at {labels}",
            f"largest absolute error {self.largest_absolute:.3g}",
            f"largest relative error {self.largest_relative:.3g}",
        ]

    def __str__(self) -> str:
        found, *errors = self.findings
        left_out = [f"{'; '.join(sizes)}: {note}" for note, sizes in self.left_out.items()]
        return format_message(
            found,
            [
                ("error", errors),
                ("skipped", self.skipped),
                ("left out", left_out),
                ("baked", self.baked),
            ],
        )


@dataclass(frozen=True)
class _Pair:
    name: str
    path: str
    expected: torch.Tensor
    actual: torch.Tensor
    step: float = 0.0


def _is_integer(spec: InputSpec) -> bool:
    kind = spec.dtype
    is_whole = not (kind.is_floating_point or kind.is_complex or kind == torch.bool)
    return spec.kind == "tensor" and is_whole


@dataclass
class Verification:
    """A comparison at the inputs given and at drawn ones, of other sizes where dims are dynamic:
    larger and smaller ones, and those at which one of the `conditions` is answered otherwise.

    Drawn inputs that PyTorch itself rejects are skipped, sizes that break the condition of one of
    the `notes` are left out. Of the `random` outputs only dtype and
    shape are compared, and of those of `placeholders`: nodes that PyTorch has zeros for, by output.
    """

    run_onnx: RunOnnx
    signature: Signature
    eager: EagerModel
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    rtol: float | None
    atol: float | None
    random: Collection[str]
    notes: Sequence[Note]
    reads: BakedReads
    conditions: Sequence[sympy.Basic]
    placeholders: Mapping[str, str]
    runs: list[Run] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)

    def report(self) -> VerificationReport:
        """Raises VerificationError where they differ, which `notes` of the export may explain, or a
        value that was baked and is another one there."""
        inputs = self.signature.inputs
        self.drawn = DrawnSizes(inputs, self._sizes(self.args, self.kwargs), self.notes)
        try:
            with self.reads.watched():
                expected = self.eager.run(self.args, self.kwargs)
        except Exception as error:
            raise model_failure(error) from error
        self._compare("example", self.args, self.kwargs, expected)
        self._compare_other_inputs()
        self._compare_across_conditions()
        self._compare_at_other_reads()
        findings = tuple(self.reads.findings())
        for label in self.drawn.too_large:
            self._skip(f"{label}: the inputs have many more elements than the example's")
        runs, skipped = tuple(self.runs), tuple(self.skipped)
        return VerificationReport(runs, skipped, findings, self.drawn.left_out)

    def _sizes(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, int]:
        """Refuses arguments that are none of this model's."""
        return example_sizes(self.signature.inputs, self.signature.flatten(args, dict(kwargs)))

    def _compare(
        self, label: str, args: tuple[Any, ...], kwargs: Mapping[str, Any], expected: EagerRun
    ) -> None:
        broken = broken_guards(self.notes, self._sizes(args, kwargs))
        try:
            actual = self.run_onnx(self.signature.flatten(args, dict(kwargs)))
        except NotRunnableError as error:
            if not self.runs and not broken:
                raise
            raise VerificationError(self._runs_there_no_more(label, error, broken)) from error
        pairs = self._pairs(expected, actual)
        paired = {pair.name for pair in pairs}
        for name in self.signature.state_outputs:
            if name not in paired:
                self.skipped.append(f"{label}: {name} has no counterpart in PyTorch of that name")
        comparisons = [self._comparison(pair) for pair in pairs]
        if any(comparison.differing for comparison in comparisons):
            exact = self._pairs_in_float64(args, kwargs, actual)
            comparisons = [
                self._with_rounding(label, *each)
                for each in zip(comparisons, pairs, exact or pairs, strict=True)
            ]
        different = [comparison for comparison in comparisons if comparison.problem]
        if different:
            message = _message(label, different, len(pairs), self._explanations(different, broken))
            raise VerificationError(message)
        self.reads.agreed(label)
        for pair in pairs:
            if pair.name in self.random:
                self._skip(f"{pair.name} is random: only its dtype and its shape are compared")
            elif pair.name in self.placeholders:
                self._skip(
                    f"{pair.name}: only its dtype and its shape are compared, as PyTorch has zeros"
                    f" for {self.placeholders[pair.name]}"
                )
        values = [c for c in comparisons if not self._is_unknown(c.name)]
        self.runs.append(Run(label, tuple(values)))

    def _pairs_in_float64(
        self, args: tuple[Any, ...], kwargs: Mapping[str, Any], actual: Mapping[str, Output]
    ) -> list[_Pair] | None:
        """Tolerances that the caller gives are kept to."""
        if self.rtol is not None or self.atol is not None:
            return None
        run = run_in_float64(self.eager, args, kwargs)
        try:
            return None if run is None else self._pairs(run, actual)
        except VerificationError:  # another structure
            return None

    def _with_rounding(
        self, label: str, comparison: OutputComparison, pair: _Pair, exact: _Pair
    ) -> OutputComparison:
        """No problem where PyTorch itself is as far from the exact result as the file is."""
        if not comparison.differing or exact is pair:
            return comparison
        errors = rounding_errors(exact.expected, pair.expected, pair.actual)
        if errors is None:
            return comparison
        if not errors.are_alike:
            return replace(comparison, problem=f"{comparison.problem}; {errors}")
        self._skip(f"{label}: {pair.name} is apart by rounding alone: {errors}")
        return replace(comparison, problem=None, differing=0)

    def _skip(self, reason: str) -> None:
        if reason not in self.skipped:
            self.skipped.append(reason)

    def _is_unknown(self, name: str) -> bool:
        """Whether PyTorch's values of an output are not those that the file should have."""
        return name in self.random or name in self.placeholders

    def _runs_there_no_more(
        self, label: str, error: NotRunnableError, broken: Sequence[Note]
    ) -> str:
        """The message where the file ran at the example, and fails at inputs PyTorch takes."""
        return format_message(
            f"PyTorch runs at {label}, and the file does not",
            [("runtime", str(error).splitlines()), *self._explanations([], broken)],
        )

    def _explanations(
        self, different: Sequence[OutputComparison], broken: Sequence[Note]
    ) -> list[_Row]:
        """What an error says besides the difference: of all notes, those that do not hold there."""
        causes = self.reads.causes()
        return [
            ("cause", causes),
            ("broken" if broken else "notes", broken or self.notes),
            ("try", _advice(different, self.notes, causes)),
        ]

    def _compare_other_inputs(self) -> None:
        """At a larger and a smaller size, or where no other size can be had at other values."""
        inputs = self.signature.inputs
        if not any(spec.kind == "tensor" for spec in inputs):
            return
        reasons = []
        for other in self.drawn.others():
            reason = self._compare_sizes(other)
            if reason is None:
                for smaller in self.drawn.smaller():
                    if smaller != other:
                        self._compare_sizes(smaller)
                return
            reasons.append(reason)
        dynamic = sorted({dim for spec in inputs for dim in spec.dims if isinstance(dim, str)})
        if dynamic:
            # The first reason is for the plainest change of sizes, and so the clearest.
            reasons.append(f"other sizes: none can be drawn for {', '.join(dynamic)}")
            self.skipped.append(reasons[0])
        if (reason := self._compare_drawn("other values", None)) is not None:
            self.skipped.append(reason)

    def _compare_across_conditions(self) -> None:
        """At sizes on the other side of conditions, those that PyTorch takes."""
        done = {run.label for run in self.runs}
        compared = 0
        for tried, other in enumerate(self.drawn.beyond(self.conditions)):
            label = sizes_label(other)
            if compared == _MOST_BEYOND or tried == _MOST_TRIED:
                return
            if label not in done:
                done.add(label)
                compared += self._compare_sizes(other) is None

    def _compare_sizes(self, sizes: Mapping[str, int]) -> str | None:
        """As _compare_drawn. Where the file differs and a note's condition does not hold, that is
        the reason."""
        try:
            return self._compare_drawn(sizes_label(sizes), sizes)
        except VerificationError:
            broken = broken_guards(self.notes, sizes)
            if not self.drawn.leave_out(broken, sizes):
                raise
            return f"{sizes_label(sizes)}: {broken[0]}"

    def _compare_at_other_reads(self) -> None:
        """Where values were baked: at inputs for which PyTorch reads others, if some are found."""
        for number in range(1, _MORE_DRAWS + 1):
            if not self.reads.are_untried():
                return
            self._compare_drawn(f"other values {number + 1}", None, number)

    def _compare_drawn(
        self, label: str, sizes: Mapping[str, int] | None, number: int = 0
    ) -> str | None:
        """Gives the reason where there is nothing to compare. Draws after the first are for baked
        values, and of use where PyTorch reads others."""
        try:
            new_args, new_kwargs = self._drawn(sizes, number)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # they are not about the caller's inputs
                with self.reads.watched():
                    expected = self.eager.run(new_args, new_kwargs)
        except UnknownSizeError as error:
            return f"{label}: {error}"
        except Exception as error:
            return f"{label}: PyTorch rejects it: {first_line(error)}{self._advice(error)}"
        if number and not self.reads.differ():
            return f"{label}: nothing new"
        self._compare(label, new_args, new_kwargs, expected)
        return None

    def _advice(self, error: Exception) -> str:
        """Indices may follow from several inputs, and be too large where each is as it may be."""
        inputs = self.signature.inputs
        is_index = isinstance(error, IndexError) and any(_is_integer(spec) for spec in inputs)
        return _OTHER_INPUTS if is_index else ""

    def _drawn(
        self, sizes: Mapping[str, int] | None, number: int
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        # Copies are distinguished by identity even where the caller passed one tensor twice.
        separate_args, separate_kwargs = pytree.map_leaves(_aliased, (self.args, dict(self.kwargs)))
        # Each seed serves twice: the mirror of what it draws turns most conditions round.
        generator = torch.Generator().manual_seed(_OTHER_SEED + number // 2)
        drawn: dict[int, torch.Tensor] = {}
        flat = self.signature.flatten(separate_args, separate_kwargs)
        for spec, example in zip(self.signature.inputs, flat, strict=True):
            if spec.kind == "tensor":
                shape = example.shape if sizes is None else resized(spec, sizes)
                made = drawn_like(example, shape, generator)
                drawn[id(example)] = mirrored(made) if number % 2 else made
        new_args, new_kwargs = pytree.map_leaves(
            lambda leaf: drawn.get(id(leaf), leaf), (separate_args, separate_kwargs)
        )
        return new_args, new_kwargs

    def _pairs(self, expected: EagerRun, actual: Mapping[str, Output]) -> list[_Pair]:
        """Every ONNX output beside the leaf of PyTorch's result it stands for; of a list, every
        item."""
        outputs = [as_returned(spec, actual[spec.name]) for spec in self.signature.outputs]
        by_leaf: list[OutputSpec | ConstantLeaf] = []
        counts = iter([len(o) if isinstance(o, list) else 1 for o in outputs])
        for leaf in self.signature.output_leaves:
            by_leaf += [leaf] * (next(counts) if isinstance(leaf, OutputSpec) else 1)
        want, want_structure = pytree.flatten(expected.output)
        got, got_structure = pytree.flatten(self.signature.unflatten(outputs))
        if want_structure != got_structure:
            places = _places(want_structure), _places(got_structure)
            if places[0] == places[1]:
                places = pytree.difference(want_structure, got_structure) or places
            raise VerificationError(
                "PyTorch returns another structure than the one that was exported",
                [("torch", places[0]), ("onnx", places[1])],
            )
        pairs = []
        for want_leaf, got_leaf, spec in zip(want, got, by_leaf, strict=True):
            if isinstance(spec, OutputSpec):
                if not isinstance(want_leaf, torch.Tensor):
                    want_leaf = torch.tensor(want_leaf, dtype=got_leaf.dtype)
                pairs.append(_Pair(spec.name, spec.path, want_leaf, got_leaf, spec.step))
            elif want_leaf is not got_leaf and want_leaf != got_leaf:
                raise VerificationError(
                    f"the model returned {want_leaf!r} where {got_leaf!r} was exported"
                )
        state = self._state(expected)
        for name in self.signature.state_outputs:
            written = name.removesuffix(".out")
            left = actual.get(name)
            if written in state and isinstance(left, torch.Tensor):
                pairs.append(_Pair(name, written, state[written], left))
        return pairs

    def _state(self, run: EagerRun) -> dict[str, torch.Tensor]:
        """Buffers and inputs by name, as the model left them."""
        leaves = zip(
            self.signature.input_leaves, self.signature.leaves(run.args, run.kwargs), strict=True
        )
        inputs = {s.name: leaf for s, leaf in leaves if isinstance(leaf, torch.Tensor)}
        return {**run.buffers, **inputs}

    def _comparison(self, pair: _Pair) -> OutputComparison:
        if self._is_unknown(pair.name) and form_problem(pair.expected, pair.actual) is None:
            pair = replace(pair, expected=pair.actual)
        return compare_output(
            pair.name,
            pair.path,
            pair.expected,
            pair.actual,
            rtol=self.rtol,
            atol=self.atol,
            step=pair.step,
        )


_OTHER_INPUTS = (
    "; integers are drawn from the example's range: program.verify(args) takes other inputs"
)
_WITH_TOLERANCE = "a larger rtol or atol, if the error is one you accept"
_WITHOUT_BAKING = "torch.where or torch.cond where the line makes a Python value of a tensor"


_WITHIN_NOTES = (
    "sizes for which the notes hold (Dim(min=..., max=...) says which are meant), or torch.cond"
    " where a size decides"
)


def _advice(
    different: Sequence[OutputComparison], notes: Sequence[Note], causes: Sequence[str]
) -> str:
    if causes:
        return _WITHOUT_BAKING
    if any(note.kind is NoteKind.GUARD for note in notes):
        return _WITHIN_NOTES
    is_near = bool(different) and all(c.max_abs != float("inf") for c in different)
    return _WITH_TOLERANCE if is_near else ""


def _places(structure: pytree.Structure) -> str:
    return ", ".join(".".join(path) or "a single value" for path in pytree.paths(structure))


def _aliased(leaf: Any) -> Any:
    return leaf.detach().view_as(leaf) if isinstance(leaf, torch.Tensor) else leaf


def _message(
    label: str,
    different: Sequence[OutputComparison],
    total: int,
    explanations: Sequence[_Row],
) -> str:
    names = ", ".join(comparison.name for comparison in different)
    rows = []
    for c in different:
        kind = f"{str(c.dtype).removeprefix('torch.')}{list(c.shape)}"
        rows.append(" · ".join(part for part in (c.name, c.path, kind) if part))
        rows.append(f"  {c.problem}")
        if c.max_abs != float("inf"):
            rows.append(
                f"  largest absolute error {c.max_abs:.3g}, largest relative {c.max_rel:.3g}"
            )
    return format_message(
        f"ONNX Runtime and PyTorch disagree on {names} ({len(different)} of {total} outputs)",
        [("run", label), ("output", rows), *explanations],
    )
