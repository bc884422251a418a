"""Writes made pure: an in-place operator becomes its functional form, and the result is replayed
onto the base and onto every view of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import sympy
import torch

from sardonyx import _torch_private
from sardonyx.aten.control_flow import BRANCH, LOOP, all_nodes, map_blocks, values_read
from sardonyx.aten.decomposition import expansion
from sardonyx.aten.graph import (
    READS_A_NUMBER,
    SCRIPT,
    Argument,
    AtenGraph,
    Block,
    Dim,
    Mutation,
    Node,
    SourceLocation,
    SymbolSource,
    TensorType,
    Value,
    map_values,
    values_in,
)
from sardonyx.aten.pytree import tensors_in
from sardonyx.aten.schema import METADATA_WRITES, bind, parameters_of
from sardonyx.aten.shape_rules.broadcast import with_common_sizes
from sardonyx.aten.shape_rules.rules import SHAPE_RULES
from sardonyx.aten.type_inference import TypeInference
from sardonyx.errors import CaptureError, UnsupportedOperatorError, format_message
from sardonyx.functionalization.alias_analysis import (
    depends_on_layout,
    followed_values,
    is_its_input,
    made_inside,
    may_alias,
    maybe_written,
    unchanged_positions,
    written_from_outside,
)
from sardonyx.functionalization.alias_tracking import (
    AS_STRIDED,
    AliasTracker,
    Origin,
    UncertainMemoryError,
    is_dense,
    lies_as,
    origins,
)
from sardonyx.functionalization.block_results import Handed
from sardonyx.functionalization.conditional_aliases import (
    BlockEnd,
    Choice,
    LoopChoices,
    choices_of_branch,
)
from sardonyx.functionalization.conditional_copies import may_be_no_copy
from sardonyx.functionalization.functional_variants import (
    RESIZES,
    WITHOUT_EFFECT,
    PureForm,
    pure_form,
    writes_in_secret,
)
from sardonyx.functionalization.list_aliases import ListMemory
from sardonyx.functionalization.overlapping_parameters import overlapping_parameters
from sardonyx.functionalization.storage_model import Base, View


def functionalize(graph: AtenGraph) -> None:
    """Removes every write from the graph; what inputs and buffers hold at the end is noted."""
    if not _must_walk(graph.nodes):
        graph.nodes = map_blocks(graph.nodes, _without_markers)
        return
    symbols = dict(graph.symbols)
    try:
        _walk(graph)
    except UncertainMemoryError:
        graph.symbols = symbols
        try:
            _walk(graph, maybe_written(graph.nodes))
        except UncertainMemoryError as error:
            raise CaptureError(str(error)) from error


def _walk(graph: AtenGraph, choices: frozenset[Value] = frozenset()) -> None:
    knows_layouts = graph.captured_by != SCRIPT
    walk = _Walk(graph, TypeInference.for_graph(graph), knows_layouts, choices)
    walk.run(graph.nodes)
    walk.aliases.location = _RESULT
    outputs = [map_values(o, walk.aliases.current) for o in graph.outputs]
    written = [replace(m, final=walk.aliases.current(m.final)) for m in graph.mutated]
    # A buffer that the model sets anew holds that at the end, whatever was written before.
    anew = {mutation.name for mutation in written}
    graph.mutated = [*written, *(m for m in walk.mutations() if m.name not in anew)]
    graph.outputs = outputs
    graph.nodes = walk.nodes


_RESULT = SourceLocation(text="what it returns")
"""No node has the line of a return."""


def functionalize_nodes(
    graph: AtenGraph, nodes: list[Node], outputs: list[Argument], inference: TypeInference
) -> tuple[list[Node], list[Argument]]:
    """The same for a stretch of nodes that writes nothing from outside it."""
    if not _must_walk(nodes):
        return nodes, outputs
    walk = _Walk(graph, inference, knows_layouts=True)
    walk.run(nodes)
    outputs = [map_values(o, walk.aliases.current) for o in outputs]
    return walk.nodes, outputs


def _must_walk(nodes: list[Node]) -> bool:
    """Whether a node writes, or sees the memory of another (`as_strided`)."""
    return any(
        node.op._schema.is_mutable or node.op._schema.name == AS_STRIDED or writes_in_secret(node)
        for node in all_nodes(nodes)
    )


def _without_markers(nodes: list[Node]) -> list[Node]:
    return [node for node in nodes if node.op is not READS_A_NUMBER]


class _Walk:
    def __init__(
        self,
        graph: AtenGraph,
        inference: TypeInference,
        knows_layouts: bool,
        choices: frozenset[Value] = frozenset(),
    ) -> None:
        self.nodes: list[Node] = []
        self._graph = graph
        self._inference = inference
        self._knows_layouts = knows_layouts
        """Whether the fakes of the graph lie in memory as the tensors of the model do."""
        self._choices = choices
        """Of branches and loops: where such a value is one of several pieces of memory, the graph
        computes which. Of others it is refused to read what depends on that."""
        self._location = SourceLocation()
        self._fakes: dict[Value, torch.Tensor] = {}
        self._memory: dict[Value, torch.Tensor] = {}
        """The fakes of values whose shape was changed in place, as they were at first."""
        self._pending: dict[Value, Node | Value] = {}
        """Values whose fake nobody asked for yet: what gives it, or has the same."""
        self._first_write: dict[Value, SourceLocation] = {}
        """By the root of what is written."""
        self._loose: set[Value] = set()
        """Values that may lie in memory otherwise than their fake does."""
        self._symbols: dict[Value, list[sympy.Symbol]] = {}
        for symbol, source in graph.symbols.items():
            self._symbols.setdefault(source.value, []).append(symbol)
        shared, self._entangled = overlapping_parameters(list(graph.parameters.values()))
        self._contents = 0
        self.aliases = AliasTracker(
            self._emit, self._emit_branch, self._fake, self._memory_of, self._new_line, shared
        )
        self._lists = ListMemory(self.aliases, self._may_be_chosen, self._is_dense)
        self._followed: set[Value] | None = set()

    def run(self, nodes: list[Node]) -> None:
        outer = self._followed
        shared = [*self.aliases.shared, *(whole for whole, _ in self.aliases.shared.values())]
        followed = followed_values(nodes, [*shared, *self._entangled])
        self._followed = None if outer is None or followed is None else outer | followed
        for node in nodes:
            self._location = self.aliases.location = node.location
            try:
                self._node(node)
            except CaptureError as error:
                if "\n" in str(error):
                    raise
                raise CaptureError(
                    format_message(str(error), [("at", node.location.describe())])
                ) from error

    def mutations(self) -> list[Mutation]:
        """Inputs and buffers that were written or reshaped in place, in the graph's own order."""
        found = []
        for kind, value in [
            *(("input", v) for v in self._graph.inputs),
            *(("buffer", v) for v in self._graph.parameters.values()),
        ]:
            view = self.aliases.views.get(value)
            bases = () if view is None else view.bases
            if kind == "input" and any(b.uncertain_since is not None for b in bases):
                continue
            final = self.aliases.current(value)
            if final is not value:
                (base,) = self.aliases.view_of(value).bases
                location = self._first_write.get(base.root, SourceLocation())
                found.append(Mutation(value.name, kind, final, location))
        return found

    # -- one node --------------------------------------------------------------------------------

    def _node(self, node: Node) -> None:
        if node.op is READS_A_NUMBER:
            self._read_number(node)
        elif node.blocks:
            self._control(node)
        elif node.op._schema.name in WITHOUT_EFFECT:
            self._alias_result(node.outputs[0], node.arguments["self"])
        elif node.op._schema.name in METADATA_WRITES:
            self._change_metadata(node)
        elif node.op._schema.is_mutable or writes_in_secret(node):
            self._write(node)
        else:
            self._keep(node)

    def _read_number(self, node: Node) -> None:
        read = node.arguments["self"]
        for symbol in self._symbols.get(read, ()):
            if self._graph.symbols[symbol].axis is None:
                self._graph.symbols[symbol] = SymbolSource(self.aliases.current(read), None)

    # -- branches and loops ----------------------------------------------------------------------

    def _control(self, node: Node) -> None:
        """Its blocks read what the values around them hold now; memory from outside that they
        write is one more of their results."""
        arguments = {k: map_values(a, self.aliases.current) for k, a in node.arguments.items()}
        inside = made_inside(node)
        for value in values_read(node):
            if value not in inside:
                self.aliases.view_of(value)
        may_be = [self.aliases.view_of(v).bases for v in written_from_outside(node)]
        bases = dict.fromkeys(base for each in may_be for base in each)
        written = [base for base in bases if base.root not in node.outputs]
        self._check_writable(written)
        if node.op is LOOP:
            self._loop(node, arguments, written)
        else:
            self._branch(node, arguments, written)

    def _branch(self, node: Node, arguments: dict[str, Argument], written: list[Base]) -> None:
        reads = [self._block(block, written) for block in node.blocks]
        aliased: dict[int, View] = {}
        for index in range(len(node.outputs)):
            first, *others = (read.views[index] for read in reads)
            if first is not None and all(
                v is not None and v.places == first.places for v in others
            ):
                aliased[index] = first
        kept = [index for index in range(len(node.outputs)) if index not in aliased]
        self._loose |= {o for i, o in enumerate(node.outputs) if any(i in r.loose for r in reads)}
        candidates = [index for index in kept if self._may_be_chosen(node.outputs[index])]
        ends = [read.end for read in reads]
        choices, handed = choices_of_branch(self.aliases, node.outputs, ends, candidates)
        blocks = [read.block for read in reads]
        for block, side in zip(blocks, handed, strict=True):
            extra = block.outputs[len(node.outputs) :]
            told = self._told(block, choices, side, block.outputs)
            block.outputs = [*(block.outputs[i] for i in kept), *extra, *told]
        for index, view in aliased.items():
            output = node.outputs[index]
            self.aliases.views[output] = View(view.places, output, (-1,))
        contents = self._new_contents(written)
        if kept or contents:
            results = [node.outputs[index] for index in kept]
            made = [*results, *contents, *(v for c in choices.values() for v in c.told)]
            self.nodes.append(Node(node.op, arguments, made, node.location, blocks=blocks))
        for read in reads:
            self._keep_marks(read)
        self._note_written(written, contents)
        for choice in choices.values():
            choice.settle(self.aliases)
        made_here = self._new_memory(node.outputs, choices)
        known = choices.keys() | aliased.keys()
        for read in reads:
            self.aliases.relate_results(made_here, kept, read.bases, known, read.end.made)

    def _may_be_chosen(self, value: Value) -> bool:
        return value in self._choices and value.has_shape and not value.is_sequence

    def _told(
        self,
        block: Block,
        choices: dict[int, Choice],
        handed: Sequence[Handed | None],
        contents: Sequence[Value],
    ) -> list[Value]:
        """Which place each of the choices is, computed at the end of a block."""
        found = []
        with self._inside(block):
            for index, choice in choices.items():
                side = handed[index]
                assert side is not None
                found += choice.tell(side, contents[index], self.aliases)
        return found

    def _loop(self, node: Node, arguments: dict[str, Argument], written: list[Base]) -> None:
        (block,) = node.blocks
        count = len(block.inputs) - 1
        unchanged = unchanged_positions(node)
        kept = [position for position in range(count) if position not in unchanged]
        firsts = node.arguments["carried"]
        for position in unchanged:
            self._alias_result(block.inputs[1 + position], firsts[position])
        inputs = [block.inputs[0], *(block.inputs[1 + p] for p in kept)]
        choices = self._choices_of_loop(inputs[1:], [firsts[p] for p in kept])
        begun = [self.aliases.bases_of(firsts[p]) for p in kept]
        returned = [
            block.outputs[0],
            *(block.outputs[1 + p] for p in kept),
            *block.outputs[1 + count :],
        ]
        fresh = self._new_contents(written)
        body = Block(inputs, block.nodes, returned)
        # What is stacked lies in a list: later iterations may write it.
        stacks = self._new_memory([Value(o.name, o.type) for o in node.outputs[count:]], {})
        inside = made_inside(node)
        self._loose |= {block.inputs[1 + p] for p in kept if self._is_loose(firsts[p])}
        starts: list[Base] = []
        goes_on = True
        while goes_on:
            chosen = choices.choices.keys()
            known, starts = starts, self._new_memory(inputs[1:], choices.choices)
            new = [index for index, start in enumerate(starts) if start not in known]
            self.aliases.relate_results(starts, new, begun, chosen, set())
            read = self._block(body, written, fresh, choices.begin)
            inside |= read.end.made
            starts_next = [*starts, *stacks]
            before = self.aliases.relations
            self.aliases.relate_results(
                starts_next, range(len(starts_next)), read.bases[1:], chosen, inside, is_next=True
            )
            goes_on = self.aliases.relations > before
            goes_on = choices.hand_on(read.end.without_first()) or goes_on
            loose = {value for at, value in enumerate(inputs) if at in read.loose} - self._loose
            self._loose |= loose
            goes_on = goes_on or bool(loose)
        self._check_read_again(read)
        extra = read.block.outputs[len(returned) :]
        outputs = read.block.outputs[: len(returned)]
        told = self._told(read.block, choices.choices, choices.handed, outputs[1:])
        with self._inside(read.block):
            located = self._lists.located_stacks(
                node.outputs[count:], read.end, outputs, 1 + len(kept)
            )
        carried_told = [v for c in choices.choices.values() for v in c.told]
        read.block.inputs = [*inputs, *fresh, *carried_told]
        read.block.outputs = [
            *outputs[: 1 + len(kept)],
            *extra,
            *told,
            *outputs[1 + len(kept) :],
            *(stack.item_numbers for stack in located.values()),
        ]
        carried = [arguments["carried"][p] for p in kept]
        carried += [*(b.current for b in written), *choices.first_told(carried)]
        contents = self._new_contents(written)
        after = choices.after([node.outputs[p] for p in kept])
        results = [
            *(node.outputs[p] for p in kept),
            *contents,
            *(value for choice in after.values() for value in choice.told),
            *node.outputs[count:],
            *(stack.numbers for stack in located.values()),
        ]
        if results:
            given = {**arguments, "carried": carried}
            self.nodes.append(Node(node.op, given, results, node.location, blocks=[read.block]))
        made_here = [*(node.outputs[p] for p in kept), *node.outputs[count:]]
        self._loose |= {
            output
            for at, output in enumerate(made_here, 1)
            if at in read.loose or (at < len(inputs) and inputs[at] in self._loose)
        }
        self._keep_marks(read)
        self._note_written(written, contents)
        for position in unchanged:
            self._alias_result(node.outputs[position], firsts[position])
        for choice in after.values():
            choice.settle(self.aliases)
        for stack in located.values():
            stack.settle(self.aliases)
        chosen_or_located = {*after, *(len(kept) + index for index in located)}
        ends = self._new_memory(made_here, after)
        carried_ends = ends[: len(kept)]
        self.aliases.relate_results(carried_ends, range(len(kept)), begun, after.keys(), set())
        self.aliases.relate_results(
            ends, range(len(ends)), read.bases[1:], chosen_or_located, inside
        )
        for position, end in enumerate(ends[len(kept) :], len(kept)):
            if position not in chosen_or_located:
                end.uncertain_since = stacks[position - len(kept)].uncertain_since
                end.may_repeat |= read.end.may_repeat(1 + position, inputs[0], starts, self.aliases)

    def _choices_of_loop(self, inputs: Sequence[Value], firsts: Sequence[Value]) -> LoopChoices:
        candidates = [p for p, value in enumerate(inputs) if self._may_be_chosen(value)]
        begun = [self.aliases.view_of(first) for first in firsts]
        dense = [p in candidates and self._is_dense(first) for p, first in enumerate(firsts)]
        return LoopChoices(self.aliases, inputs, begun, dense, candidates)

    def _new_memory(self, values: Sequence[Value], choices: Mapping[int, Choice]) -> list[Base]:
        """The memory of each value, where it is that of the value itself."""
        found = []
        for index, value in enumerate(values):
            choice = choices.get(index)
            (base,) = self.aliases.view_of(value).bases if choice is None else (choice.cell,)
            found.append(base)
        return found

    def _check_read_again(self, read: _ReadBlock) -> None:
        for base, written in read.marked.items():
            if base in read.read:
                raise self.aliases.uncertain(written, read.read[base])

    def _keep_marks(self, read: _ReadBlock) -> None:
        for base, written in read.marked.items():
            base.uncertain_since = base.uncertain_since or written

    def _new_contents(self, written: list[Base]) -> list[Value]:
        """A value each for what the memory holds inside, or after, a block."""
        made = []
        for base in written:
            self._contents += 1
            made.append(Value(f"{base.root.name}_written_{self._contents}", base.current.type))
        return made

    def _note_written(self, written: list[Base], contents: list[Value]) -> None:
        for base, content in zip(written, contents, strict=True):
            self.aliases.mark(self.aliases.related.get(base, ()))
            base.current = content
            base.version += 1
            self._first_write.setdefault(base.root, self._location)

    def _block(
        self,
        block: Block,
        written: list[Base],
        contents: Sequence[Value] = (),
        begin: Callable[[], Sequence[Value]] | None = None,
    ) -> _ReadBlock:
        """A block without writes; `written` is what it may write, and returns at its end."""
        outer, self.nodes = self.nodes, []
        location = self._location
        state = self.aliases.state()
        read_outside, self.aliases.read = self.aliases.read, {}
        for base, content in zip(written, contents, strict=False):
            base.current = content
            base.version += 1
        carried = () if begin is None else begin()
        self.run(block.nodes)
        self._location = self.aliases.location = location
        outputs = [map_values(o, self.aliases.current) for o in block.outputs]
        outputs += [base.current for base in written]
        made = {*block.inputs, *carried}
        made.update(v for node in (*block.nodes, *self.nodes) for v in made_inside(node))
        seen = [self.aliases.view_of(o) if isinstance(o, Value) else None for o in block.outputs]
        views = [None if v is None or v.is_chosen or v.bases[0].root in made else v for v in seen]
        bases = [self.aliases.bases_of(o) if isinstance(o, Value) else () for o in block.outputs]
        dense = [bool(self._choices) and self._is_dense(o) for o in block.outputs]
        loose = {at for at, o in enumerate(block.outputs) if self._is_loose(o)}
        end = BlockEnd(seen, dense, made, self._graph.symbols)
        changed = self.aliases.restore(state)
        roots = {base.root for base in written}
        for base in changed.written:
            if base.root not in roots and base.root not in made:
                raise CaptureError(
                    f"{base.root.name} is written inside a branch or a loop: return it from there"
                )
        inner, self.nodes = self.nodes, outer
        read, self.aliases.read = self.aliases.read, self.aliases.read | read_outside
        marked = {b: where for b, where in changed.marked.items() if b.root not in made}
        inner_block = Block(block.inputs, inner, outputs)
        return _ReadBlock(inner_block, views, bases, marked, read, end, loose)

    def _is_loose(self, argument: Argument) -> bool:
        """Whether the fake of a value that is this one may lie otherwise."""
        if not isinstance(argument, Value):
            return False
        if not argument.has_shape:
            return argument in self._loose
        if self._lies_otherwise(argument):
            return True
        alone = self._inference.fake_of(Value(argument.name, argument.type))
        return not lies_as(self._fake(argument), alone)

    def _lies_otherwise(self, value: Value) -> bool:
        """Whether it may lie in memory otherwise than its own fake does."""
        view = self.aliases.view_of(value)
        return value in self._loose or (view.is_chosen and not view.is_dense)

    def _is_dense(self, argument: Argument) -> bool:
        if (
            not isinstance(argument, Value)
            or not self._may_be_chosen(argument)
            or argument in self._loose
        ):
            return False
        view = self.aliases.view_of(argument)
        return view.is_dense if view.is_chosen else is_dense(self._fake(argument))

    @contextmanager
    def _inside(self, block: Block) -> Iterator[None]:
        """Nodes written meanwhile go to the end of a block."""
        outer, self.nodes = self.nodes, block.nodes
        try:
            yield
        finally:
            self.nodes = outer

    def _keep(self, node: Node) -> None:
        """A pure operator: reads what its arguments hold now; its results may be views."""
        origin_of: dict[Value, Origin | None] = {}
        if node.op.namespace == "sardonyx":
            arguments = {k: map_values(a, self.aliases.current) for k, a in node.arguments.items()}
            self.nodes.append(Node(node.op, arguments, node.outputs, node.location))
            self._lists.note(node)
            if any(map(self._is_loose, node.inputs())):
                self._loose.update(node.outputs)
            return
        if self._loose and not self._loose.isdisjoint(node.inputs()):
            self._loose.update(node.outputs)
        if is_its_input(node):
            source = next(node.inputs())
            (output,) = node.outputs
            self._pending[output], origin_of[output] = source, Origin(source, ())
        elif self._is_followed(node):
            origin_of = self._run_on_fakes(node)
        else:
            self._pending |= dict.fromkeys(node.outputs, node)
        if node.op._schema.name != AS_STRIDED:
            arguments = {k: map_values(a, self.aliases.current) for k, a in node.arguments.items()}
            self.nodes.append(Node(node.op, arguments, node.outputs, node.location))
        if node.op is torch.ops.aten.select.int and self._lists.is_item_of_stack(node):
            return
        for output, origin in origin_of.items():
            if origin is None:
                self._relate_if_no_copy(node, output)
                continue
            if node.op._schema.name == AS_STRIDED and origin.source in self._loose:
                raise CaptureError(
                    "as_strided() sees how a tensor lies in memory, which depends on a branch or a"
                    " loop: clone(memory_format=torch.contiguous_format) it before"
                )
            if depends_on_layout(node) and self._lies_otherwise(origin.source):
                self.aliases.may_share(output, origin.source)
            else:
                self.aliases.add_view(output, origin)

    def _relate_if_no_copy(self, node: Node, output: Value) -> None:
        if depends_on_layout(node) and self._graph.captured_by == SCRIPT:
            source = node.arguments["self"]
            inputs = set(self._graph.inputs)
            told = {s for s, of in self._graph.symbols.items() if of.value in inputs}
            if may_be_no_copy(self._fake(source), told):
                self.aliases.may_share(output, source)

    def _is_followed(self, node: Node) -> bool:
        if self._followed is None:
            return True
        return any(v in self._followed for v in (*node.inputs(), *node.outputs))

    def _run_on_fakes(self, node: Node) -> dict[Value, Origin | None]:
        """Makes the fakes of the results, and says what each is a view of."""
        found: list[Origin | None] = [None] * len(node.outputs)
        if torch.Tag.dynamic_output_shape in node.op.tags or (
            self._knows_layouts and not may_alias(node)
        ):
            tensors = [self._inference.fake_of(o) for o in node.outputs]
        else:
            # How a result lies in memory decides what is a view of it and what a copy.
            mode = self._inference.mode
            fakes = {k: self._inference.argument(a, self._fake) for k, a in node.arguments.items()}
            given = with_common_sizes(node.op, fakes, mode)
            result = _torch_private.run_on_fakes(node.op, given, mode, SHAPE_RULES.get(node.op))
            tensors = tensors_in(result)
            found = origins(node.op, node.arguments, fakes, result, mode)
        self._fakes |= dict(zip(node.outputs, tensors, strict=True))
        return dict(zip(node.outputs, found, strict=True))

    def _change_metadata(self, node: Node) -> None:
        """`x.unsqueeze_(0)`: from here on `x` is a view of what it was."""
        target = node.arguments["self"]
        op = METADATA_WRITES[node.op._schema.name](node.op)
        before = Value(f"{target.name}_before", target.type, fake=self._fake(target))
        of = self.aliases.view_of(target)
        if of.is_chosen:
            raise CaptureError(
                f"{node.name} changes the shape of a tensor, and which one it is depends on a"
                " branch, a loop or a list: use the operator that gives a new one"
            )
        self.aliases.views[before] = of
        (output,) = node.outputs
        self._keep(Node(op, {**node.arguments, "self": before}, [output], node.location))
        self.aliases.views[target] = self.aliases.view_of(output)
        self._memory.setdefault(target, self._fake(target))
        self._fakes[target] = self._fake(output)
        self._first_write.setdefault(of.bases[0].root, self._location)

    def _write(self, node: Node) -> None:
        form = pure_form(node)
        if form is None:
            self._write_by_parts(node)
            return
        arguments = {k: map_values(a, self.aliases.current) for k, a in form.arguments.items()}
        made = self._inference.call(self._graph, form.op, (), node.location, arguments)
        self.nodes.append(made)
        self._replace_written(node, form, made.outputs)

    def _write_by_parts(self, node: Node) -> None:
        """An operator made of others, of which some write."""
        resizes = node.op._schema.name in RESIZES
        parts = None if resizes else expansion(self._graph, node, self._inference, self._fake)
        if parts is None:
            reason = (
                "changes the memory of a tensor, which the tensors of ONNX do not have"
                if resizes
                else "writes in place and has no functional form"
            )
            raise UnsupportedOperatorError(
                format_message(
                    f"{node.name} {reason}",
                    [("first", node.location.describe()), ("inputs", node.describe_inputs())],
                )
            )
        nodes, results = parts
        self.run(nodes)
        for output, result in zip(node.outputs, results, strict=True):
            self._alias_result(output, result)

    def _replace_written(self, node: Node, form: PureForm, results: list[Value]) -> None:
        """Stores the results where the operator would have written them."""
        out = [p.name for p in parameters_of(node.op) if p.is_out]
        for name, position in form.written.items():
            for index, target in enumerate(values_in(node.arguments[name])):
                self._store(target, results[position + index], resizes=name in out)
        for index, output in enumerate(node.outputs):
            written = form.returned.get(index)
            self._alias_result(
                output, results[index] if written is None else node.arguments[written]
            )

    def _store(self, target: Value, content: Value, *, resizes: bool) -> None:
        held = self.aliases.current(target)
        if content.dtype != held.dtype:
            content = self._emit(torch.ops.aten._to_copy.default, content, dtype=held.dtype)
        view = self.aliases.view_of(target)
        self._check_writable(view.bases)
        for base in view.bases:
            self._first_write.setdefault(base.root, self._location)
        if _same_shape(content.shape, held.shape):
            self.aliases.write(target, content)
        elif resizes:
            self.aliases.replace(target, content)
            self._fakes[target] = self._inference.fake_of(content)
        else:
            wide = self._emit(torch.ops.aten.expand.default, content, list(held.shape))
            self.aliases.write(target, wide)

    def _check_writable(self, bases: Sequence[Base]) -> None:
        for base in bases:
            if base.root in self._entangled:
                raise CaptureError(
                    f"{base.root.name} is written, and parts of its memory belong to other"
                    " parameters or buffers as well: make one of them the whole, or copy"
                )

    def _alias_result(self, output: Value, target: Value) -> None:
        """`output`, which no node computes any more, is `target` as it is now."""
        self.aliases.views[output] = self.aliases.view_of(target)
        self._pending[output] = target
        if target in self._loose:
            self._loose.add(output)
        for symbol in self._symbols.get(output, ()):
            axis = self._graph.symbols[symbol].axis
            self._graph.symbols[symbol] = SymbolSource(self.aliases.current(target), axis)

    # -- fakes and emitted calls -----------------------------------------------------------------

    def _fake(self, value: Value) -> torch.Tensor:
        wanted = [value]
        while wanted:
            last = wanted[-1]
            pending = None if last in self._fakes else self._pending.get(last)
            reads = [pending] if isinstance(pending, Value) else pending.inputs() if pending else ()
            missing = [v for v in reads if v not in self._fakes]
            wanted += missing
            if missing:
                continue
            if isinstance(pending, Value):
                self._fakes[last] = self._fakes[pending]
            elif pending is not None:
                self._run_on_fakes(pending)
            elif last not in self._fakes:
                self._fakes[last] = self._inference.fake_of(last)
            wanted.pop()
        return self._fakes[value]

    def _memory_of(self, root: Value) -> torch.Tensor:
        return self._memory[root] if root in self._memory else self._fake(root)

    def _new_line(self, name: str, dtype: torch.dtype) -> Value:
        size = _torch_private.dim_of(_torch_private.new_data_dependent_length(self._inference.mode))
        line = Value(name, TensorType(dtype, (size,)))
        self._graph.symbols[size] = SymbolSource(line, 0)
        return line

    def _emit(
        self,
        op: Any,
        *args: Argument,
        result_index: int = 0,
        result_type: TensorType | None = None,
        **kwargs: Argument,
    ) -> Value:
        if result_type is not None:
            self._contents += 1
            made = Value(f"item_written_{self._contents}", result_type)
            self.nodes.append(Node(op, bind(op, list(args), kwargs), [made], self._location))
            return made
        node = self._inference.call(self._graph, op, args, self._location, kwargs)
        self.nodes.append(node)
        return node.outputs[result_index]

    def _emit_branch(
        self, condition: Value, sides: Sequence[Callable[[], Value]], type_: TensorType
    ) -> Value:
        blocks = []
        for side in sides:
            block = Block()
            with self._inside(block):
                block.outputs = [side()]
            blocks.append(block)
        self._contents += 1
        made = Value(f"chosen_{self._contents}", type_)
        arguments: dict[str, Argument] = {"condition": condition}
        self.nodes.append(Node(BRANCH, arguments, [made], self._location, blocks=blocks))
        return made


@dataclass(slots=True)
class _ReadBlock:
    block: Block
    views: list[View | None]
    """Of its outputs: what they see of memory from outside."""
    bases: list[Sequence[Base]]
    """The memory that each of its outputs is, or may be."""
    marked: dict[Base, SourceLocation]
    """Memory from outside that it may have written under another name, and where."""
    read: dict[Base, SourceLocation]
    """Memory that it reads, and where first."""
    end: BlockEnd
    loose: set[int]
    """Outputs that may lie in memory otherwise than a fake of their type."""


def _same_shape(left: tuple[Dim, ...], right: tuple[Dim, ...]) -> bool:
    return len(left) == len(right) and all(
        a == b or sympy.expand(a - b) == 0 for a, b in zip(left, right, strict=True)
    )
