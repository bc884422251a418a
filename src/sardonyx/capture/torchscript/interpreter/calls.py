"""Operators that TorchScript alone has: of lists, dicts, tuples, strings, optionals and objects."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import Enum
from functools import partial
from typing import TYPE_CHECKING, Any

import sympy
import torch

from sardonyx.aten.graph import Argument, Value
from sardonyx.capture.torchscript.containers.computed_keys import (
    ComputedKeys,
    is_computed,
    keys_of,
    values_of,
)
from sardonyx.capture.torchscript.containers.list_contents import is_list_of_numbers
from sardonyx.capture.torchscript.containers.number_lists import NumberLists
from sardonyx.capture.torchscript.containers.rows import holds_objects
from sardonyx.capture.torchscript.containers.strings import formatted_parts, joined_parts
from sardonyx.capture.torchscript.control_flow.blocks import ModelRaises
from sardonyx.capture.torchscript.types.values import (
    ABSENT,
    Absent,
    ChosenConstant,
    ComputedNumber,
    DynamicItems,
    DynamicRows,
    ListItems,
    MaybeEntry,
    MaybeNone,
    Mutable,
    ScriptDict,
    ScriptList,
    UnknownText,
    is_computed_text,
    is_constant,
    is_number,
    number_dtype,
)
from sardonyx.errors import CaptureError

if TYPE_CHECKING:
    from sardonyx.capture.torchscript.interpreter.reader import GraphReader


class NotHere(Exception):
    """The call is one of tensors, or of known values: not of this table."""


class ScriptCalls:
    """Each method is one operator, of its arguments as they are; the tables below name them."""

    def __init__(self, reader: GraphReader) -> None:
        self._reader = reader
        self._heap = reader.heap
        self._lists = reader.lists
        self._numbers = reader.numbers
        self._texts = reader.texts
        self._number_lists = NumberLists(reader)
        self._computed_keys = ComputedKeys(reader, self._number_lists)

    def call(self, kind: str, arguments: list[Argument]) -> Argument:
        operator = _CALLS.get(kind)
        if operator is None:
            raise NotHere
        return operator(self, *arguments)

    # -- lists -----------------------------------------------------------------------------------

    def append(self, target: Argument, item: Argument) -> Argument:
        self._lists.insert(_list(target), None, item)
        return target

    def _read_again(self, target: Argument) -> ListItems:
        """The items of a list that another list is made of: objects among them are in both."""
        items: ListItems = _list(target).state
        self._heap.is_in_several |= holds_objects(items)
        return items

    def extend(self, target: Argument, other: Argument, *rest: Argument) -> Argument:
        self._lists.extend(_list(target), self._read_again(other))
        return target

    def insert(self, target: Argument, position: Argument, item: Argument) -> None:
        self._lists.insert(_list(target), position, item)

    def pop(self, target: Argument, position: Argument = -1, *default: Argument) -> Argument:
        if not isinstance(target, ScriptDict):
            found = self._lists.at(_list(target).state, position)
        elif isinstance(target.state, DynamicRows) and default:
            popped = partial(self.pop, target, position)
            return self._reader.either(self.contains(target, position), popped, lambda: default[0])
        elif isinstance(target.state, DynamicRows):
            found = self._entry(target, position)
        elif default and _key(position) not in _all_certain(target):
            return default[0]
        else:
            found = self._entry(target, _key(position))
        self.delete(target, position)
        return found

    def delete(self, target: Argument, position: Argument) -> None:
        if not isinstance(target, ScriptDict):
            self._lists.erase(_list(target), position)
        elif isinstance(target.state, DynamicRows):
            self._computed_keys.erase(target, position)
        elif _key(position) not in target.state:
            raise ModelRaises(f"del of the key {position!r}, which the dict does not have")
        else:
            self._heap.set(target, {k: v for k, v in target.state.items() if k != position})

    def clear(self, target: Argument) -> None:
        self._heap.set(target, {} if isinstance(target, ScriptDict) else ())

    def reverse(self, target: Argument) -> None:
        self._heap.set(target, self._lists.reversed(_list(target).state))

    def dict_of(self, source: Argument = None, *rest: Argument) -> Argument:
        if isinstance(source, ScriptList):
            if not isinstance(source.state, tuple):
                raise CaptureError("dict() of a list whose length is known at run time")
            return self.new_dict(source.state)
        if source is not None and isinstance(source.state, DynamicRows):
            self._heap.is_in_several |= holds_objects(source.state)
            return self._heap.new(ScriptDict(source.state))
        return self._heap.new(ScriptDict({} if source is None else dict(source.state)))

    def new_dict(self, entries: Iterable[Argument]) -> Argument:
        made = self._heap.new(ScriptDict({}))
        for key, item in entries:
            self.set_item(made, key, item)
        return made

    def copy(self, target: Argument, *rest: Argument) -> Argument:
        if isinstance(target, ScriptDict):
            return self.dict_of(target)
        return self._lists.new(self._read_again(target))

    def add(self, left: Argument, right: Argument, *rest: Argument) -> Argument:
        if isinstance(left, UnknownText) or isinstance(right, UnknownText):
            return UnknownText(_made_of((left, right)), joined_parts((left, right)))
        if isinstance(left, ScriptList) and isinstance(right, ScriptList):
            both = self._read_again(left), self._read_again(right)
            return self._lists.new(self._lists.joined(*both))
        raise NotHere

    def multiply(self, left: Argument, right: Argument, *rest: Argument) -> Argument:
        if isinstance(right, ScriptList):
            left, right = right, left
        return self._lists.new(self._lists.repeated(self._read_again(left), right))

    def multiply_itself(self, target: Argument, times: Argument, *rest: Argument) -> Argument:
        self._heap.set(target, self._lists.repeated(self._read_again(target), times))
        return target

    def sort(self, target: Argument, reverse: Argument = False, *rest: Argument) -> None:
        items = _numbers(target)
        if is_constant(target) and isinstance(items, tuple):
            self._heap.set(target, tuple(sorted(items, reverse=reverse)))
        else:
            self._heap.set(target, self._number_lists.ordered(items, reverse))

    def sorted(self, target: Argument, *rest: Argument) -> Argument:
        items = _numbers(target)
        if is_constant(target):
            raise NotHere
        return self._lists.new(self._number_lists.ordered(items))

    def index(self, target: Argument, item: Argument, *rest: Argument) -> Argument:
        return self._number_lists.index(*self._searched(target, item))

    def count(self, target: Argument, item: Argument, *rest: Argument) -> Argument:
        return self._number_lists.count(*self._searched(target, item))

    def remove(self, target: Argument, item: Argument) -> None:
        if is_constant(target) and is_constant(item):
            held = list(_list(target).state)
            held.remove(item)
            self._heap.set(target, tuple(held))
        else:
            self._lists.erase(target, self.index(target, item))

    def _searched(self, target: Argument, item: Argument) -> tuple[ListItems, Argument]:
        items = self._as_numbers(target, item)
        if is_constant(target) and is_constant(item):
            raise NotHere
        return items

    def slice(self, target: Argument, *bounds: Argument) -> Argument:
        return self._lists.new(self._lists.sliced(self._read_again(target), *bounds))

    def get_item(self, target: Argument, key: Argument) -> Argument:
        if isinstance(target, ScriptDict):
            return self._entry(target, key)
        if isinstance(target, ScriptList):
            return self._lists.item(target, key)
        raise NotHere

    def set_item(self, target: Argument, key: Argument, item: Argument) -> Argument:
        if isinstance(target, ScriptDict) and (
            is_computed(key) or isinstance(target.state, DynamicRows)
        ):
            if isinstance(target.state, dict):
                _all_certain(target)
            self._computed_keys.set(target, key, item)
        elif isinstance(target, ScriptDict):
            if isinstance(target.state.get(self._key(key)), MaybeEntry):
                item = MaybeEntry(True, item)  # its place among the others stays unknown
            self._heap.set(target, {**target.state, key: item})
        else:
            self._lists.set(_list(target), key, item)
        return target

    def length(self, target: Argument) -> Argument:
        if isinstance(target, ScriptList):
            return self._lists.length(target.state)
        if isinstance(target, ScriptDict):
            if isinstance(target.state, DynamicRows):
                return self._lists.length(target.state)
            return len(_all_certain(target))
        raise NotHere

    def contains(self, target: Argument, item: Argument) -> Argument:
        if isinstance(target, ScriptDict):
            if isinstance(target.state, DynamicRows):
                return self._computed_keys.contains(target.state, item)
            if _is_computed_among(item, target):
                return self._number_lists.contains(*self._among_keys(target, item))
            if not target.state and is_computed(item):
                return False
            found = target.state.get(self._key(item), ABSENT)
            return found.present if isinstance(found, MaybeEntry) else found is not ABSENT
        if isinstance(target, ScriptList):
            return self._number_lists.contains(*self._as_numbers(target, item))
        raise NotHere

    def _as_numbers(self, target: Argument, item: Argument) -> tuple[ListItems, Argument]:
        """A list of numbers, or of strings by their codes, and what is looked for there."""
        state = _list(target).state
        is_text = isinstance(item, (str, ChosenConstant)) or is_computed_text(item)
        if isinstance(state, DynamicRows) and state.form.kind == "text":
            return state.columns[0], self._texts.code(item)
        if is_text and isinstance(state, tuple):
            if is_constant(target) and is_constant(item):
                raise NotHere
            codes = tuple(map(self._texts.code, state))
            return codes, self._texts.code(item)
        if is_text:
            raise NotHere
        return _numbers(target), item

    def _among_keys(self, target: ScriptDict, key: Argument) -> tuple[ListItems, Argument]:
        """The keys of a dict as numbers, and one that is computed."""
        keys = tuple(_all_certain(target))
        if not is_computed_text(key):
            return keys, key
        self._ask_to_unroll(key)
        return tuple(map(self._texts.code, keys)), self._texts.code(key)

    def _ask_to_unroll(self, key: Argument) -> None:
        if isinstance(key, UnknownText):
            for number in key.made_of:
                self._reader.blocks.ask_to_unroll(number)

    # -- dicts -----------------------------------------------------------------------------------

    def _key(self, key: Argument) -> Argument:
        self._ask_to_unroll(key)
        return _key(key)

    def _entry(self, target: ScriptDict, key: Argument) -> Argument:
        if isinstance(target.state, DynamicRows):
            return self._computed_keys.at(target, key)
        if not target.state and is_computed(key):
            raise ModelRaises("the dict has no keys")
        if _is_computed_among(key, target):
            place = self._number_lists.index(*self._among_keys(target, key))
            return self._lists.at(tuple(target.state.values()), place)
        if self._key(key) not in target.state:
            raise ModelRaises(f"the dict has no key {key!r}: it has {list(target.state)}")
        found = target.state[key]
        return found.content if isinstance(found, MaybeEntry) else found

    def get(self, target: Argument, key: Argument, default: Argument = None) -> Argument:
        if isinstance(target.state, DynamicRows) or _is_computed_among(key, target):
            entry = partial(self._entry, target, key)
            return self._reader.either(self.contains(target, key), entry, lambda: default)
        if not target.state and is_computed(key):
            return default
        found = target.state.get(self._key(key), default)
        if isinstance(found, MaybeEntry):
            content = found.content
            return self._reader.either(found.present, lambda: content, lambda: default)
        return found

    def keys(self, target: Argument) -> Argument:
        return self._parts_of(target, keys_of, dict.keys)

    def values(self, target: Argument) -> Argument:
        if isinstance(target, Value):  # of a sparse tensor
            raise NotHere
        return self._parts_of(target, values_of, dict.values)

    def items(self, target: Argument) -> Argument:
        return self._parts_of(target, lambda pairs: pairs, dict.items)

    def _parts_of(
        self,
        target: ScriptDict,
        of_pairs: Callable[[DynamicRows], ListItems],
        of_entries: Callable[[dict[Any, Argument]], Iterable[Argument]],
    ) -> Argument:
        if not isinstance(target.state, DynamicRows):
            return self._lists.new(tuple(of_entries(_all_certain(target))))
        parts = of_pairs(target.state)
        self._heap.is_in_several |= holds_objects(parts)
        return self._lists.new(parts)

    def update(self, target: Argument, other: Argument) -> None:
        if isinstance(other.state, DynamicRows):
            raise CaptureError("update() by a dict whose keys are known at run time")
        if isinstance(target.state, DynamicRows):
            for key, item in _all_certain(other).items():
                self.set_item(target, key, item)
            return
        self._heap.set(target, {**_all_certain(target), **_all_certain(other)})

    def pop_item(self, target: Argument) -> Argument:
        """TorchScript takes the first."""
        if isinstance(target.state, DynamicRows):
            return self._computed_keys.pop_first(target)
        if not _all_certain(target):
            raise CaptureError("popitem() of a dict that is empty")
        key = next(iter(target.state))
        return key, self.pop(target, key)

    def set_default(self, target: Argument, key: Argument, default: Argument) -> Argument:
        if isinstance(target.state, DynamicRows) or is_computed(key):
            self.set_item(target, key, self.get(target, key, default))
            return self._entry(target, key)
        if not isinstance(target.state.get(self._key(key), ABSENT), (Absent, MaybeEntry)):
            return target.state[key]
        self.set_item(target, key, self.get(target, key, default))
        return self._entry(target, key)

    # -- optionals -------------------------------------------------------------------------------

    def is_same(self, left: Argument, right: Argument) -> Argument:
        for one, other in ((left, right), (right, left)):
            if isinstance(one, MaybeNone) and other is None:
                return self._numbers.compute("aten::__not__", [one.present], torch.bool)
        if left is None or right is None:
            return left is right
        if isinstance(left, ChosenConstant) or isinstance(right, ChosenConstant):
            return self._is_same_choice(left, right)
        if isinstance(left, Value) and isinstance(right, Value):
            return _tensor_itself(left) is _tensor_itself(right)
        if isinstance(left, (Enum, bool)) and isinstance(right, (Enum, bool)):
            return left is right
        raise NotHere

    # -- strings ---------------------------------------------------------------------------------

    def text(self, argument: Argument) -> Argument:
        if isinstance(argument, (torch.device, int, str)):
            return str(argument)
        if is_constant(argument):
            raise NotHere
        if is_computed_text(argument):
            return argument
        return UnknownText((argument,), joined_parts((argument,)))

    def percent_format(self, template: str, *arguments: Argument) -> Argument:
        if any(isinstance(a, Mutable) or not is_constant(a) for a in arguments):
            given = arguments[0] if isinstance(arguments[0], tuple) else arguments
            return UnknownText(_made_of(arguments), formatted_parts(template, given))
        return template % (arguments[0] if isinstance(arguments[0], tuple) else arguments)

    def format(self, template: str, *arguments: Argument) -> Argument:
        if any(isinstance(a, Mutable) or not is_constant(a) for a in arguments):
            return UnknownText(_made_of(arguments), formatted_parts(template, arguments))
        return template.format(*arguments)

    def cast(self, argument: Argument, *rest: Argument) -> Argument:
        return argument.content if isinstance(argument, MaybeNone) else argument

    # -- numbers ---------------------------------------------------------------------------------

    def equal(self, left: Argument, right: Argument, *out: Argument) -> Argument:
        """Of two strings or members of an enum, or lists of numbers."""
        if is_computed_text(left) or is_computed_text(right):
            codes = [self._texts.code(text) for text in (left, right)]
            return self._numbers.compute("aten::eq", codes, torch.bool)
        if isinstance(left, ChosenConstant) or isinstance(right, ChosenConstant):
            return self._is_same_choice(left, right)
        if isinstance(left, Enum) and isinstance(right, Enum):
            return left is right
        if out or not (isinstance(left, ScriptList) and isinstance(right, ScriptList)):
            raise NotHere
        one, other = left.state, right.state
        if not (is_list_of_numbers(one) and is_list_of_numbers(other)):
            raise NotHere
        if isinstance(one, tuple) and isinstance(other, tuple):
            return self._numbers.all_equal(one, other)
        held = [self._lists.as_dynamic(items) for items in (one, other)]
        tensors = [items.content for items in held if isinstance(items, DynamicItems)]
        lengths = [tensor.shape[0] for tensor in tensors]
        same = self._numbers.compute("aten::eq", lengths, torch.bool)

        return self._reader.either(
            same, partial(self._numbers.same_elements, *tensors), lambda: False
        )

    def _is_same_choice(self, left: Argument, right: Argument) -> Argument:
        """Whether two strings, or members of an enum, of which one is chosen at run time, are."""
        compute = self._numbers.compute
        if not isinstance(left, ChosenConstant):
            left, right = right, left
        found: Argument = False
        for place, option in enumerate(left.options):
            same = compute("aten::eq", [left.code, place], torch.bool)
            if isinstance(right, ChosenConstant):
                other = self._is_same_choice(right, option)
                same = compute("aten::__and__", [same, other], torch.bool)
            elif option != right:
                continue
            found = compute("aten::__or__", [found, same], torch.bool)
        return found

    def negated(self, truth: Argument) -> Argument:
        if isinstance(truth, bool):
            return not truth
        return self._numbers.compute("aten::__not__", [truth], torch.bool)

    def reduced(
        self, given: Argument, rest: tuple[Argument, ...], name: str, op: Any, *start: Argument
    ) -> Argument:
        """A list of numbers to one, by an operator on two, or by one on the tensor of them."""
        if rest or not isinstance(given, ScriptList) or is_constant(given):
            raise NotHere
        items = given.state
        assert not isinstance(items, DynamicRows)  # whose items are tuples
        if isinstance(items, DynamicItems):
            return ComputedNumber(self._numbers.call(op, items.content))
        numbers, is_logical = self._numbers, isinstance(start[0] if start else 0, bool)
        found, *others = start + tuple(items)
        for item in others:
            kinds = (number_dtype(found), number_dtype(item))
            wanted = torch.float64 if torch.float64 in kinds else torch.int64
            if is_logical:
                wanted = torch.bool
                item = item if number_dtype(item) == wanted else self._is_true(item)
            found = numbers.compute(name, [found, item], wanted)
        return found

    def _is_true(self, number: Argument) -> Argument:
        return self._numbers.compute("aten::ne", [number, 0], torch.bool)

    def divided(self, left: Argument, right: Argument) -> Argument:
        """`divmod`."""
        compute = self._numbers.compute
        if is_constant(left) and is_constant(right):
            raise NotHere
        if torch.float64 not in (number_dtype(left), number_dtype(right)):
            return tuple(
                compute(name, [left, right], torch.int64)
                for name in ("aten::floordiv", "aten::remainder")
            )
        rest = compute("aten::fmod", [left, right], torch.float64)
        signs = [compute("aten::lt", [n, 0], torch.bool) for n in (left, right)]
        is_moved = compute("aten::__xor__", signs, torch.bool)
        is_moved = compute("aten::__and__", [is_moved, self._is_true(rest)], torch.bool)
        moved = compute("aten::add", [rest, right], torch.float64)
        tensors = [self._numbers.as_tensor(n) for n in (is_moved, moved, rest)]
        rest = ComputedNumber(self._numbers.call(torch.ops.aten.where.self, *tensors))
        multiple = compute("aten::sub", [left, rest], torch.float64)
        return compute("aten::div", [multiple, right], torch.float64), rest

    def fraction(self, number: Argument) -> Argument:
        """`math.modf`."""
        if is_constant(number):
            raise NotHere
        tensor = self._numbers.as_tensor(number, torch.float64)
        whole = self._numbers.call(torch.ops.aten.trunc.default, tensor)
        rest = self._numbers.call(torch.ops.aten.sub.Tensor, tensor, whole)
        return ComputedNumber(rest), ComputedNumber(whole)

    # -- ranges ----------------------------------------------------------------------------------

    def range_length(self, start: Argument, end: Argument, step: Argument) -> Argument:
        if all(isinstance(a, int) for a in (start, end, step)):
            return len(range(start, end, step))
        numbers = self._numbers
        if not isinstance(step, int):
            # Rounded up, whatever the sign of the step.
            span = numbers.compute("aten::sub", [start, end], torch.int64)
            span = numbers.compute("aten::floordiv", [span, step], torch.int64)
            count = numbers.compute("aten::neg", [span], torch.int64)
            return numbers.compute("prim::max", [count, 0], torch.int64)
        first, last = (start, end) if step > 0 else (end, start)
        span = numbers.compute("aten::sub", [last, first], torch.int64)
        if abs(step) > 1:
            span = numbers.divided_up(span, abs(step))
        if start == 0 and isinstance(span, sympy.Expr) and span.is_nonnegative:
            return span
        return numbers.compute("prim::max", [span, 0], torch.int64)

    def derive_index(self, index: Argument, start: Argument, step: Argument) -> Argument:
        moved = self._numbers.compute("aten::mul", [index, step], torch.int64)
        return self._numbers.compute("aten::add", [start, moved], torch.int64)

    # -- tuples ----------------------------------------------------------------------------------

    def tuple_index(self, items: Argument, index: Argument) -> Argument:
        if isinstance(index, int):
            return items[index]
        return self._lists.at(tuple(items), index)


def _tensor_itself(value: Value) -> Value:
    """The tensor that operators which write in place and return it were called on."""
    node = value.producer
    while node is not None and node.op._schema.is_mutable:
        value = node.arguments["self"]
        node = value.producer
    if node is not None and node.blocks:
        raise CaptureError("`is` asks whether two tensors are one, which depends on a branch")
    return value


def _made_of(texts: tuple[Argument, ...]) -> tuple[Argument, ...]:
    return tuple(
        part
        for text in texts
        for part in (text.made_of if isinstance(text, UnknownText) else (text,))
    )


def _key(key: Argument) -> Argument:
    if isinstance(key, (Value, ComputedNumber, sympy.Basic, UnknownText, ChosenConstant)):
        raise CaptureError("the key of a dict is computed: keys have to be known")
    return key


def _is_computed_among(key: Argument, target: ScriptDict) -> bool:
    """Whether a key is a number that is looked up, when the file runs, among those of the dict."""
    entries = target.state
    if is_computed_text(key):
        return bool(entries) and all(isinstance(known, str) for known in entries)
    return is_computed(key) and bool(entries) and all(map(is_number, entries))


def _all_certain(target: ScriptDict) -> dict[Any, Argument]:
    """The entries of a dict, where it is known which there are, and in which order."""
    for key, item in target.state.items():
        if isinstance(item, MaybeEntry):
            raise CaptureError(
                f"which keys a dict has depends on a loop, as of {key!r}, and all of them are asked"
                " for: set them before the loop"
            )
    entries: dict[Any, Argument] = target.state
    return entries


def _list(argument: Argument) -> ScriptList:
    if not isinstance(argument, ScriptList):
        raise NotHere
    return argument


def _numbers(argument: Argument) -> ListItems:
    items: ListItems = _list(argument).state
    if not is_list_of_numbers(items) and not is_constant(argument):
        raise NotHere
    return items


def _reduction(name: str, op: Any, *start: Argument) -> Callable[..., Argument]:
    return lambda calls, items, *rest: calls.reduced(items, rest, name, op, *start)


_CALLS: dict[str, Callable[..., Any]] = {
    "aten::append": ScriptCalls.append,
    "aten::extend": ScriptCalls.extend,
    "aten::insert": ScriptCalls.insert,
    "aten::pop": ScriptCalls.pop,
    "aten::Delete": ScriptCalls.delete,
    "aten::clear": ScriptCalls.clear,
    "aten::reverse": ScriptCalls.reverse,
    "aten::copy": ScriptCalls.copy,
    "aten::list": ScriptCalls.copy,
    "aten::Size": ScriptCalls.copy,
    "aten::dict": ScriptCalls.dict_of,
    "aten::add": ScriptCalls.add,
    "aten::add_": ScriptCalls.extend,
    "aten::mul": ScriptCalls.multiply,
    "aten::mul_": ScriptCalls.multiply_itself,
    "aten::sort": ScriptCalls.sort,
    "aten::sorted": ScriptCalls.sorted,
    "aten::index": ScriptCalls.index,
    "aten::count": ScriptCalls.count,
    "aten::remove": ScriptCalls.remove,
    "aten::slice": ScriptCalls.slice,
    "aten::__getitem__": ScriptCalls.get_item,
    "aten::_set_item": ScriptCalls.set_item,
    "aten::len": ScriptCalls.length,
    "aten::__contains__": ScriptCalls.contains,
    "aten::get": ScriptCalls.get,
    "aten::keys": ScriptCalls.keys,
    "aten::values": ScriptCalls.values,
    "aten::items": ScriptCalls.items,
    "aten::update": ScriptCalls.update,
    "aten::setdefault": ScriptCalls.set_default,
    "aten::popitem": ScriptCalls.pop_item,
    "aten::eq": ScriptCalls.equal,
    "aten::ne": lambda calls, *operands: calls.negated(calls.equal(*operands)),
    "prim::min": _reduction("prim::min", torch.ops.aten.amin.default),
    "prim::max": _reduction("prim::max", torch.ops.aten.amax.default),
    "aten::sum": _reduction("aten::add", torch.ops.aten.sum.default, 0),
    "aten::any": _reduction("aten::__or__", torch.ops.aten.any.default, False),
    "aten::all": _reduction("aten::__and__", torch.ops.aten.all.default, True),
    "prim::EnumName": lambda calls, member: member.name,
    "prim::EnumValue": lambda calls, member: member.value,
    "aten::divmod": ScriptCalls.divided,
    "aten::modf": ScriptCalls.fraction,
    "aten::__is__": ScriptCalls.is_same,
    "aten::__isnot__": lambda calls, *operands: calls.negated(calls.is_same(*operands)),
    "aten::format": ScriptCalls.format,
    "aten::str": ScriptCalls.text,
    "aten::percentFormat": ScriptCalls.percent_format,
    "prim::unchecked_cast": ScriptCalls.cast,
    "prim::unchecked_unwrap_optional": ScriptCalls.cast,
    "aten::_unwrap_optional": ScriptCalls.cast,
    "aten::__range_length": ScriptCalls.range_length,
    "aten::__derive_index": ScriptCalls.derive_index,
    "prim::TupleIndex": ScriptCalls.tuple_index,
}
