"""Whether a recording serves the sizes for which the model has a branch of its own.

The model is recorded in that branch as well, which tells the numbers that count there. The first
recording is then run in PyTorch beside the model, at sizes and values on both sides of these.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import combinations, cycle, product
from typing import Any

import sympy
import torch

from sardonyx import _torch_private
from sardonyx._torch_private import SizeCondition
from sardonyx.aten import pytree
from sardonyx.aten.control_flow import all_nodes
from sardonyx.aten.drawn_values import drawn_like
from sardonyx.aten.graph import Value
from sardonyx.aten.node_values import node_values
from sardonyx.aten.type_inference import TypeInference
from sardonyx.capture.capture_errors import SpecialSizeError, check_equal, result_on_copies
from sardonyx.capture.flat_model import Recorded, is_graph_output
from sardonyx.capture.inputs.binding import PreparedInputs
from sardonyx.capture.symbolic_shapes.guard_boundaries import guard_conditions, sizes_across
from sardonyx.capture.symbolic_shapes.guards import at_sizes

Sizes = dict[str, int]
_TRIED = (2, 1, 3, 5, 4, 9, 14, 6, 7, 8)
_LARGEST_NUMBER, _MOST_ELEMENTS, _FEWEST_SIZES = 2**20, 2**26, 3
_DRAWS = ("like", "example", "wide", "nan")


def false_decisions(recorded: Recorded, sizes: Mapping[str, int]) -> list[SizeCondition]:
    """What the model decided by, and would decide otherwise where dims have these sizes."""
    graph = recorded.graph
    known = _torch_private.example_sizes(TypeInference.for_graph(graph).mode)
    known |= {s: sizes[name] for s, name in graph.symbol_names.items() if name in sizes}
    return [c for c in recorded.decisions if at_sizes(c.expression, known) == sympy.false]


class SpecialSizes:
    """Those at which the model takes another branch than it was recorded in."""

    def __init__(
        self, capture: Callable[[Any, PreparedInputs], Recorded], model: Any, recorded: Recorded
    ) -> None:
        self._capture, self._model, self._recorded = capture, model, recorded
        inputs = recorded.inputs
        self._tensors = [p for p in inputs.input_positions if p not in inputs.number_positions]
        self._generic = inputs.free_sizes(inputs.capture_leaves, self._tensors)
        self.example = inputs.free_sizes(inputs.leaves, self._tensors)
        self.branches: dict[frozenset[str], Recorded] = {}
        self.equal_at: list[Sizes] = []

    def check(self) -> None:
        """SpecialSizeError where results differ, or cannot be compared."""
        if self._recorded.inputs.follows:  # a guess, which other sizes would not fit
            raise SpecialSizeError("a dim seems to be the sum of others")
        regions = list(self._regions())
        branches = [_numbers_in(branch) for branch in self.branches.values()]
        of_all, numbers = _numbers_in(self._recorded), Counter[float]()
        for found in branches:
            numbers |= (of_all - found) | (found - of_all)
        self._scale = 2 * max((abs(n) for n in numbers if abs(n) < 1e4), default=1.0)
        finite = [abs(n) for n in numbers if 1 / _LARGEST_NUMBER <= abs(n) <= _LARGEST_NUMBER]
        large = {int(max(n, 1 / n)) for n in finite} - {*range(max(_TRIED))}
        if not self._agrees(self.example, "example"):
            raise SpecialSizeError("the model does not run alone")
        for fixed in regions:
            base, before = {**self._generic, **fixed}, len(self.equal_at)
            varied = [name for name in base if name not in fixed]
            tried = [(base, draw) for draw in _DRAWS]
            tried += zip(self._sizes(base, varied, large), cycle(_DRAWS), strict=False)
            for sizes, draw in tried:
                if not self._agrees(sizes, draw):
                    for name in varied:
                        self._agrees({**base, name: sizes[name]}, draw)
            if fixed.items() <= self.example.items() and any(
                len({at[name] for at in self.equal_at[before:]}) < _FEWEST_SIZES for name in varied
            ):
                raise SpecialSizeError("the model takes too few sizes")

    def _regions(self) -> Iterator[Sizes]:
        """The sizes of some dims, the others being any; of the example they are recorded, unless a
        recording with fewer of them fixed holds there."""
        special = [n for n, size in self._generic.items() if size != self.example[n]]
        for count in range(1, len(special) + 1):
            for names in combinations(special, count):
                for sizes in product(*({0, 2, self.example[name]} for name in names)):
                    fixed = dict(zip(names, sizes, strict=True))
                    at = {**self._generic, **fixed}
                    held = [r for known, r in self.branches.items() if known < fixed.keys()]
                    if all(false_decisions(r, at) for r in (self._recorded, *held)):
                        if fixed.items() <= self.example.items():
                            self._record(fixed)
                        yield fixed

    def _record(self, fixed: Sizes) -> None:
        branch = self._capture(self._model, self._recorded.inputs.with_fixed(fixed))
        if {*map(str, branch.baked)} - {*map(str, self._recorded.baked)}:
            raise SpecialSizeError("data decides what the model does there")
        self.branches[frozenset(fixed)] = branch

    def _sizes(self, base: Sizes, varied: list[str], large: set[int]) -> Iterator[Sizes]:
        for turn in range(len(_TRIED)):
            yield {**base, **{n: _TRIED[(turn + i) % len(_TRIED)] for i, n in enumerate(varied)}}
        for number, more, name in product(sorted(large), (0, 3), varied):
            yield {**base, name: number + more}
        for branch in (self._recorded, *self.branches.values()):
            for condition in guard_conditions(branch.graph, branch.decisions):
                for other in sizes_across(condition, base, 2 * max(_TRIED)):
                    if all(other[name] == base[name] for name in base if name not in varied):
                        yield other

    def _agrees(self, sizes: Sizes, draw: str) -> bool:
        """Whether the model takes these sizes; the results must be equal then."""
        inputs = self._recorded.inputs
        leaves = inputs.leaves_of(sizes)
        if sum(t.numel() for t in pytree.tensors_in(leaves)) > _MOST_ELEMENTS:
            raise SpecialSizeError(f"the inputs would be too large to compare at {sizes}")
        for kind in (draw, "like", "example"):
            generator = torch.Generator().manual_seed(sum(sizes.values()))
            drawn = [_drawn(leaf, kind, generator, self._scale) for leaf in leaves]
            if self._is_equal(drawn):
                self.equal_at.append(inputs.free_sizes(leaves, self._tensors))
                return True
        return False

    def _is_equal(self, leaves: Sequence[Any]) -> bool:
        """Whether the model takes these inputs; what it returns and writes must be equal then."""
        found: list[Any] = []
        try:
            for form in (self._model, partial(_results, self._recorded)):
                with torch.no_grad(), torch.random.fork_rng(devices=()):
                    torch.manual_seed(0)
                    observed = partial(_observed, self._model, form)
                    inputs = self._recorded.inputs
                    found.append(result_on_copies(self._model, inputs, leaves, observed)[0])
            check_equal(*found)
        except Exception as error:
            if found:
                raise SpecialSizeError("results differ") from error
        return bool(found)


def _numbers_in(recorded: Recorded) -> Counter[float]:
    found: Counter[float] = Counter()
    arguments = [list(node.arguments.values()) for node in all_nodes(recorded.graph.nodes)]
    for leaf in pytree.leaves_in([*arguments, *(c.expression for c in recorded.decisions)]):
        if isinstance(leaf, sympy.Basic):
            found.update(map(float, leaf.atoms(sympy.Rational, sympy.Float)))
        elif isinstance(leaf, (int, float)):
            found[float(leaf)] += 1
        elif isinstance(leaf, Value) and leaf.constant is not None:
            found.update(map(float, leaf.constant.shape))
            if leaf.constant.dim() == 0 and not leaf.constant.is_complex():
                found[float(leaf.constant)] += 1
    return found


def _observed(model: Any, form: Any, *args: Any, **kwargs: Any) -> Any:
    """Copies of the result and of the tensors that may have been written: these are put back."""
    given = pytree.tensors_in(pytree.flatten((args, kwargs))[0])
    observed = form(*args, **kwargs), given, [*getattr(model, "buffers", tuple)()]
    return pytree.map_leaves(lambda t: t.clone() if isinstance(t, torch.Tensor) else t, observed)


def _results(recorded: Recorded, *args: Any, **kwargs: Any) -> Any:
    """What the recording gives, run in PyTorch."""
    leaves, _ = pytree.flatten((args, kwargs))
    given = [torch.as_tensor(leaves[p]) for p in recorded.inputs.input_positions]
    results = iter(node_values(recorded.graph, given)[0])
    returned: list[Any] = []
    for leaf in recorded.output.leaves:
        result = next(results) if is_graph_output(leaf) else leaf
        is_number = isinstance(result, torch.Tensor) and not isinstance(leaf, torch.Tensor)
        returned.append(result.item() if is_number else result)
    assert recorded.output.structure is not None
    return pytree.unflatten(recorded.output.structure, returned)


def _drawn(leaf: Any, kind: str, generator: torch.Generator, scale: float) -> Any:
    """The example's values; values like them; of a wider range, with zeros; or with NaN."""
    if kind == "example" or not isinstance(leaf, torch.Tensor) or not leaf.numel():
        return leaf
    shape, is_float = leaf.shape, leaf.dtype.is_floating_point
    is_mask = not is_float and torch.equal(leaf, leaf.bool().to(leaf.dtype))
    if is_mask and (kind != "wide" or leaf.dtype == torch.bool):  # even if it hides nothing
        return drawn_like(leaf.bool(), shape, generator).to(leaf.dtype)
    drawn = drawn_like(leaf, shape, generator)
    chosen = torch.randint(0, 12, shape, generator=generator)
    if kind == "nan" and is_float:
        values = torch.tensor([float("nan"), float("inf"), -float("inf")])[chosen % 3]
        return torch.where(chosen < 3, values.to(leaf.dtype), drawn)
    if kind != "wide" or leaf.is_complex():
        return drawn
    if is_float:
        return (torch.randn(shape, generator=generator) * scale * (chosen > 2)).to(leaf.dtype)
    low, high = min(int(leaf.min()), 0), 2 * max(int(leaf.max()), int(scale)) + 8
    return torch.randint(low, high, shape, generator=generator).to(leaf.dtype)
