"""Random graphs of everything the passes look at: the outputs never change."""

import math
import random

import numpy as np
import onnx_ir as ir
from hypothesis import given, settings
from hypothesis import strategies as st

from sardonyx.optimize.pipeline import optimize
from tests.optimize.comparison import check, floats, parse

Shape = tuple[int, ...]
KINDS = [
    *("Relu", "Identity", "Cast", "Transpose", "Reshape", "View"),
    *("Squeeze", "Unsqueeze", "Slice", "Add"),
]


class RandomGraph:
    """Nodes over float values of 24 elements, any earlier value feeding any later node."""

    def __init__(self, seed: int, count: int) -> None:
        self.random = random.Random(seed)
        self.nodes: list[str] = []
        self.initializers: dict[str, np.ndarray] = {}
        self.shapes: dict[str, Shape] = {"x": (2, 3, 4)}
        for _ in range(count):
            source = self.random.choice(list(self.shapes)[-3:])
            self._add(source, self.shapes[source])

    def _add(self, source: str, shape: Shape) -> None:
        rank, pick = len(shape), self.random.choice
        kind = pick(KINDS)
        if kind in ("Relu", "Identity"):
            self._node(f"{kind}({source})", shape)
        elif kind == "Cast":
            wide = self._node(f"Cast <to = {pick([1, 7, 11])}> ({source})", None)
            self._node(f"Cast <to = 1> ({wide})", shape)
        elif kind == "Transpose":
            perm = self.random.sample(range(rank), rank)
            self._node(f"Transpose <perm = {perm}> ({source})", tuple(shape[p] for p in perm))
        elif kind == "Reshape":
            target = pick([[24], [2, 12], [2, 3, 4], [4, 6], [1, 24], [6, 1, 4], [-1, 4]])
            known = -math.prod(target) if -1 in target else 1
            result = tuple(24 // known if size == -1 else size for size in target)
            self._node(f"Reshape({source}, {self._ints(target)})", result)
        elif kind == "Unsqueeze" and rank < 5:
            axis = self.random.randrange(rank + 1)
            name = self._ints([pick([axis, axis - rank - 1])])
            self._node(f"Unsqueeze({source}, {name})", (*shape[:axis], 1, *shape[axis:]))
        elif kind == "Squeeze" and 1 in shape:
            axis = shape.index(1)
            name = self._ints([pick([axis, axis - rank])])
            self._node(f"Squeeze({source}, {name})", (*shape[:axis], *shape[axis + 1 :]))
        elif kind == "Slice":
            axis = self.random.randrange(rank)
            reverse = pick([False, False, True])
            bounds = [-1, -(2**63)] if reverse else [0, pick([shape[axis], 2**63 - 1])]
            names = [self._ints([n]) for n in (*bounds, axis, -1 if reverse else 1)]
            self._node(f"Slice({source}, {', '.join(names)})", shape)
        elif kind == "Add":
            other = pick([name for name, dims in self.shapes.items() if dims == shape])
            self._node(f"Add({source}, {other})", shape)
        elif kind == "View":
            sizes = self._node(f"Shape({pick(list(self.shapes))})", None)
            total = self._node(f"ReduceProd <keepdims = 1> ({sizes})", None)
            self._node(f"Reshape({source}, {total})", (24,))

    def _node(self, expression: str, shape: Shape | None) -> str:
        name = f"v{len(self.nodes)}"
        self.nodes.append(f"{name} = {expression}")
        if shape is not None:
            self.shapes[name] = shape
        return name

    def _ints(self, numbers: list[int]) -> str:
        name = f"c{len(self.initializers)}"
        self.initializers[name] = np.array(numbers, np.int64)
        return name

    def model(self) -> ir.Model:
        names = list(self.shapes)
        chosen = {names[-1], *self.random.sample(names[1:], min(2, len(names) - 1))} - {"x"}
        results = ", ".join(
            f"float[{', '.join(map(str, self.shapes[name]))}] {name}" for name in sorted(chosen)
        )
        return parse(
            f"g (float[2, 3, 4] x) => ({results}) {{ {' '.join(self.nodes)} }}",
            initializers=self.initializers,
        )


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32), st.integers(3, 25))
def test_outputs_never_change(seed, count):
    graph = RandomGraph(seed, count)
    if len(graph.shapes) > 1:
        model = graph.model()
        nodes = len(model.graph)
        check(optimize, model, {"x": floats(2, 3, 4) * 9})
        assert sum(node.op_type != "Constant" for node in model.graph) <= nodes
