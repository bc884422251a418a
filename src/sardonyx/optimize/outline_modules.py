"""Modules as functions of the file: one for each class and structure, called where it was called.

Innermost calls come first, so that a function of a module calls those of the modules inside it.
What a call reads becomes an input of its function, weights too: they stay where they are, in the
main graph. Constants that are the same in every call are constants of the function, attributes that
differ between calls are attributes of it.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import onnx_ir as ir

from sardonyx.aten.module_calls import ModuleClass
from sardonyx.errors import InternalError
from sardonyx.legalize.emitter import UniqueNames
from sardonyx.lower.onnx_types.subgraphs import subgraphs_of, with_bodies
from sardonyx.lower.provenance import MODULE_KEY, SCOPE_KEY
from sardonyx.optimize.call_stacks import Stack, module_path, read_call_stacks, share_sizes
from sardonyx.optimize.call_structure import Structure, structure_of, values_of
from sardonyx.optimize.common_subexpressions import attribute_key
from sardonyx.optimize.facts import constant_tensor, same_dim
from sardonyx.optimize.rewrite import release_inputs, remove_node
from sardonyx.optimize.tensor_identity import content_key

_FUNCTION_VERSION = 1


@dataclass(slots=True)
class _Call:
    """The nodes of one call, taken out of their graph; `node` stands in their place."""

    name: str
    members: list[ir.Node]
    structure: Structure
    node: ir.Node
    given: list[tuple[int, int]]
    """Which results of which members `node` gives."""


def outline_modules(
    model: ir.Model,
    classes: Mapping[str, ModuleClass],
    wanted: Collection[ModuleClass] | None,
    parameters: Collection[str],
) -> list[str]:
    """Puts calls of functions in place of the nodes of modules; notes on those that stay inline.

    `classes` are those of the modules by path; of these all become functions where `wanted` is
    None. Initializers named in `parameters` stay inputs of functions whatever they hold.
    """
    return _Outlining(model, classes, wanted, frozenset(parameters)).run()


@dataclass
class _Outlining:
    model: ir.Model
    classes: Mapping[str, ModuleClass]
    wanted: Collection[ModuleClass] | None
    parameters: Collection[str]
    stacks: dict[ir.Node, Stack] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def run(self) -> list[str]:
        self.stacks = read_call_stacks(self.model.graph, self._is_wanted)
        share_sizes(self.model.graph, self.stacks)
        # Calls of one structure have the same number of calls inside one another.
        heights = _heights(set(self.stacks.values()))
        for height in range(1, 1 + max(heights.values(), default=0)):
            by_structure: dict[Hashable, list[_Call]] = {}
            ripe = {stack for stack, own in heights.items() if own == height}
            for call in self._taken_out(self.model.graph, ripe, ()):
                key = self.classes[module_path(call.name)], call.structure.key
                by_structure.setdefault(key, []).append(call)
            for calls in by_structure.values():
                self._make_function(calls)
        for node in reversed(self.model.graph):
            if node.op_type == "Constant" and not any(o.uses() for o in node.outputs):
                remove_node(node)
        return [*self.notes, *self._unseen()]

    def _is_wanted(self, path: str) -> bool:
        kind = self.classes.get(path)
        return kind is not None and (self.wanted is None or kind in self.wanted)

    def _unseen(self) -> list[str]:
        seen = set(self.classes.values())
        names = sorted(kind.name for kind in self.wanted or () if kind not in seen)
        return [f"there is no {name} in the model to make a function of" for name in names]

    # -- calls -----------------------------------------------------------------------------------

    def _taken_out(self, graph: ir.Graph, ripe: Collection[Stack], owner: Stack) -> Iterator[_Call]:
        """The `ripe` calls, in the order in which they run; what cannot be one call stays."""
        groups: dict[Stack, list[ir.Node]] = {}
        order = {node: position for position, node in enumerate(graph)}
        for node in tuple(order):
            stack = self.stacks[node]
            for body in subgraphs_of(node):
                yield from self._taken_out(body, ripe, stack)
            if stack in ripe and stack != owner:
                if node.op_type == "Constant" and node.domain == "":
                    self.stacks[node] = stack[:-1]
                else:
                    groups.setdefault(stack, []).append(node)
        for stack, members in groups.items():
            place = [order[node] for node in members]
            if place[-1] - place[0] >= len(members):  # other nodes in between
                if not _gather(graph, members):
                    self._leave_inline(stack, members)
                    continue
                order = {node: position for position, node in enumerate(graph)}
            yield self._take_out(graph, stack, members)

    def _leave_inline(self, stack: Stack, members: Iterable[ir.Node]) -> None:
        for member in members:
            self.stacks[member] = stack[:-1]
        path = module_path(stack[-1])
        self.notes.append(
            f"{path or 'the model'} ({self.classes[path].name}) is no function of the file: other"
            " nodes depend on a part of it and lead to another"
        )

    def _take_out(self, graph: ir.Graph, stack: Stack, members: list[ir.Node]) -> _Call:
        structure = structure_of(members)
        inside = set(with_bodies(members))
        given = [
            (index, number)
            for index, member in enumerate(members)
            for number, output in enumerate(member.outputs)
            if output.is_graph_output() or any(use.node not in inside for use in output.uses())
        ]
        path = module_path(stack[-1])
        node = ir.Node(
            "",
            self.classes[path].name,
            structure.inputs,
            num_outputs=len(given),
            metadata_props=_provenance(path, members),
        )
        graph.insert_after(members[-1], node)
        for (index, number), result in zip(given, node.outputs, strict=True):
            _hand_over(members[index].outputs[number], result, inside)
        graph.remove(members)
        for each in inside:
            self.stacks.pop(each, None)
        self.stacks[node] = stack[:-1]
        return _Call(stack[-1], members, structure, node, given)

    # -- functions -------------------------------------------------------------------------------

    def _make_function(self, calls: Sequence[_Call]) -> None:
        first = calls[0]
        path = module_path(first.name)
        kind = self.classes[path]
        for values in zip(*(values_of(call.members) for call in calls), strict=True):
            _widen(values[0], values)
        constants, places = self._constants_and_inputs(calls)
        names = UniqueNames()
        inputs = {place: _like([call.node.inputs[place] for call in calls]) for place in places}
        for place, value in inputs.items():
            value.name = names.derived_from(_input_name(first.node.inputs[place], path))
        within = {first.node.inputs[place]: value for place, value in inputs.items()}
        within |= {
            first.node.inputs[place]: constant.outputs[0] for place, constant in constants.items()
        }
        given = sorted({result for call in calls for result in call.given})
        outputs = [first.members[index].outputs[number] for index, number in given]
        for output in outputs:
            output.name = names.derived_from("output")
        attributes, given_attributes = _attributes(calls)
        _read_instead(first.members, within)
        _make_relative(first.members, path)
        for call in calls[1:]:
            release_inputs(call.members)
        function = self._function(
            kind, list(inputs.values()), outputs, [*constants.values(), *first.members], attributes
        )
        for call, own_attributes in zip(calls, given_attributes, strict=True):
            node = ir.Node(
                function.domain,
                function.name,
                [call.node.inputs[place] for place in places],
                own_attributes,
                num_outputs=len(given),
                metadata_props=dict(call.node.metadata_props),
            )
            self._replace(call, node, given)

    def _function(
        self,
        kind: ModuleClass,
        inputs: Sequence[ir.Value],
        outputs: Sequence[ir.Value],
        nodes: Sequence[ir.Node],
        attributes: Sequence[ir.Attr],
    ) -> ir.Function:
        imports = self.model.opset_imports
        used = {node.domain for node in with_bodies(nodes)} | {""}
        graph = ir.Graph(
            inputs,
            outputs,
            nodes=nodes,
            opset_imports={domain: imports[domain] for domain in sorted(used)},
        )
        taken = {(domain, name) for domain, name, _ in self.model.functions}
        name, number = kind.name, 0
        while (kind.package, name) in taken:
            number += 1
            name = f"{kind.name}.{number}"
        function = ir.Function(kind.package, name, graph=graph, attributes=attributes)
        self.model.functions[function.identifier()] = function
        imports[function.domain] = _FUNCTION_VERSION
        return function

    def _replace(self, call: _Call, node: ir.Node, given: Sequence[tuple[int, int]]) -> None:
        graph = call.node.graph
        if graph is None:
            raise InternalError(f"the call of {call.name} is in no graph")
        graph.insert_after(call.node, node)
        for result, old in zip(call.given, call.node.outputs, strict=True):
            _hand_over(old, node.outputs[given.index(result)], {call.node})
        self.stacks[node] = self.stacks.pop(call.node)
        remove_node(call.node)

    def _constants_and_inputs(self, calls: Sequence[_Call]) -> tuple[dict[int, ir.Node], list[int]]:
        """By place among what the calls read: constants that are the same in all of them, and the
        others, weights last."""
        constants: dict[int, ir.Node] = {}
        places: list[int] = []
        for place, value in enumerate(calls[0].node.inputs):
            tensor = constant_tensor(value)
            contents = {self._contents(call.node.inputs[place]) for call in calls}
            if value is None or tensor is None or len(contents) > 1 or None in contents:
                places.append(place)
                continue
            constant = ir.Node("", "Constant", [], [ir.AttrTensor("value", tensor)])
            constant.outputs[0].type, constant.outputs[0].shape = value.type, value.shape
            constants[place] = constant
        weights = [place for place in places if _is_weight(calls[0].node.inputs[place])]
        return constants, [*(place for place in places if place not in weights), *weights]

    def _contents(self, value: ir.Value | None) -> Hashable | None:
        """None for what is no constant, too large to repeat, or a weight of the model."""
        if value is None or value.is_graph_input() or value.name in self.parameters:
            return None
        tensor = constant_tensor(value)
        return None if tensor is None else content_key(tensor)


def _heights(stacks: Iterable[Stack]) -> dict[Stack, int]:
    """How many calls each call has inside, one inside the other, counting itself."""
    heights: dict[Stack, int] = {}
    for stack in stacks:
        for depth in range(len(stack), 0, -1):
            height = 1 + len(stack) - depth
            heights[stack[:depth]] = max(height, heights.get(stack[:depth], 0))
    return heights


def _is_weight(value: ir.Value | None) -> bool:
    return value is not None and value.is_initializer()


def _gather(graph: ir.Graph, members: Sequence[ir.Node]) -> bool:
    """Moves the nodes between `members` that depend on one of them behind the last; False where
    one of them leads to another member, and nothing moves."""
    inside, last = set(members), members[-1]
    dependent: dict[ir.Node, None] = {}
    has_begun = False
    for node in graph:
        if node is members[0]:
            has_begun = True
        if not has_begun:
            continue
        read = (value for each in with_bodies([node]) for value in each.inputs)
        producers = {value.producer() for value in read if value is not None}
        if node in inside:
            if any(producer in dependent for producer in producers):
                return False
            if node is last:
                break
        elif any(producer in inside or producer in dependent for producer in producers):
            dependent[node] = None
    graph.remove(dependent)
    graph.insert_after(last, tuple(dependent))
    return True


def _hand_over(old: ir.Value, new: ir.Value, inside: Collection[ir.Node]) -> None:
    """Lets `new` be read wherever `old` is outside of `inside`, under its name and type."""
    new.name, new.type, new.shape = old.name, old.type, old.shape
    for node, index in old.uses():
        if node not in inside:
            node.replace_input_with(index, new)
    graph = old.graph if old.is_graph_output() else None
    if graph is not None:
        for index, output in enumerate(graph.outputs):
            if output is old:
                graph.outputs[index] = new


def _read_instead(
    nodes: Iterable[ir.Node], replacements: Mapping[ir.Value | None, ir.Value]
) -> None:
    for each in with_bodies(nodes):
        for index, value in enumerate(each.inputs):
            if value in replacements:
                each.replace_input_with(index, replacements[value])


def _widen(value: ir.Value, others: Iterable[ir.Value | None]) -> None:
    """Leaves of the type and shape what holds for all of them."""
    for other in others:
        if other is None or other.type != value.type:
            value.type = value.shape = None
            return
        if value.shape is None or other.shape is None or len(value.shape) != len(other.shape):
            value.shape = None
        elif other is not value:
            pairs = zip(value.shape, other.shape, strict=True)
            value.shape = ir.Shape([mine if same_dim(mine, its) else None for mine, its in pairs])


def _like(values: Sequence[ir.Value | None]) -> ir.Value:
    first = values[0]
    assert first is not None
    made = ir.Value(type=first.type, shape=first.shape)
    _widen(made, values)
    return made


def _attributes(calls: Sequence[_Call]) -> tuple[list[ir.Attr], list[list[ir.Attr]]]:
    """Attributes that differ between calls: as those of the function, and their values by call.

    The nodes of the first call, which become the function's, refer to them.
    """
    names = UniqueNames()
    by_values: dict[Hashable, str] = {}
    declared: list[ir.Attr] = []
    given: list[list[ir.Attr]] = [[] for _ in calls]
    references: dict[int, str] = {}
    for attributes in zip(*(call.structure.attributes for call in calls), strict=True):
        first = attributes[0]
        values = tuple(attribute_key(attribute) for attribute in attributes)
        if all(value == values[0] for value in values):
            continue
        if values not in by_values:
            name = by_values[values] = names.derived_from(first.name)
            declared.append(ir.Attr(name, first.type, None))
            for own, attribute in zip(given, attributes, strict=True):
                own.append(ir.Attr(name, attribute.type, attribute.value))
        references[id(first)] = by_values[values]
    for member in calls[0].members:
        for name, attribute in member.attributes.items():
            if id(attribute) in references:
                reference = references[id(attribute)]
                member.attributes[name] = ir.RefAttr(name, reference, attribute.type)
    return declared, given


def _input_name(value: ir.Value | None, path: str) -> str:
    if value is None or not value.is_initializer() or value.name is None:
        return "input"
    return value.name.removeprefix(f"{path}.") if path else value.name


# -- provenance ----------------------------------------------------------------------------------


def _provenance(path: str, members: Iterable[ir.Node]) -> dict[str, str]:
    """Where a call is: the module, and the part of a member's scope that leads to it."""
    depth = len(path.split(".")) if path else 0
    for member in members:
        module = member.metadata_props.get(MODULE_KEY, "")
        scope = member.metadata_props.get(SCOPE_KEY, "")
        if scope and (not path or f"{module}.".startswith(f"{path}.")):
            own = "/".join(scope.split("/")[: depth + 1])
            return {MODULE_KEY: path, SCOPE_KEY: own} if path else {SCOPE_KEY: own}
    return {MODULE_KEY: path} if path else {}


def _make_relative(members: Iterable[ir.Node], path: str) -> None:
    """In a function that serves many calls, modules are named from the one it stands for."""
    if not path:
        return
    depth = len(path.split("."))
    for node in with_bodies(members):
        properties = node.metadata_props
        module = properties.get(MODULE_KEY, "")
        if not f"{module}.".startswith(f"{path}."):
            continue
        relative = module[len(path) + 1 :]
        if relative:
            properties[MODULE_KEY] = relative
        else:
            del properties[MODULE_KEY]
        scopes = properties.get(SCOPE_KEY, "").split("/")[depth:]
        if scopes:
            own = scopes[0].partition("[")[0]
            properties[SCOPE_KEY] = "/".join([own, *scopes[1:]])
