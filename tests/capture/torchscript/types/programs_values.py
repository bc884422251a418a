# ruff: noqa: UP006, UP007, UP035, UP045, B905, C406, SIM114, SIM118, UP032
# torch.jit compiles this text: it knows the names of typing, not all of the newer forms.
"""Scripted programs about what holds numbers and tensors: strings, tuples, dicts, optionals,
enums and objects."""

from enum import Enum
from typing import (
    Any,
    Dict,
    List,
    NamedTuple,
    Optional,
    Tuple,
    Union,
)

import torch
from torch import Tensor, nn

from tests.capture.torchscript.types.programs_numbers import COUNTED, SIZES, matrix

SIGNS = [(matrix(3, 2),), (matrix(3, 2) + 9,), (matrix(3, 2) * 0,), (-matrix(3, 2),)]


# -- strings --------------------------------------------------------------------------------------


class Mode(nn.Module):
    def __init__(self, mode: str) -> None:
        super().__init__()
        self.mode = mode

    def forward(self, x: Tensor) -> Tensor:
        if self.mode == "double":
            return x * 2
        elif self.mode in ["half", "quarter"]:
            return x / (2 if self.mode != "quarter" else 4)
        return x


def string_methods(x: Tensor):
    name = "layer." + str(3)
    if name.startswith("layer") and name.endswith("3") and "." in name:
        x = x + len(name)
    parts = name.split(".")
    if parts[0].upper() == "LAYER" and name.find("y") == 2 and name[0] == "l":
        x = x * int(parts[1])
    text = "{}-{}".format(parts[0], 7)
    return x + len(text), len(f"{name}_{5}"), ",".join(parts) == "layer,3"


def string_in_a_branch(x: Tensor):
    name = "plus"
    if x.sum() > 0:
        name = "minus"
    if name == "plus":
        return x + 1
    return x - 1


def message_of_a_size(x: Tensor):
    assert x.size(1) == 4, f"4 columns are needed, not {x.size(1)} of {x.shape}"
    if x.dim() != 2:
        raise ValueError(f"a matrix is needed, not {x.dim()} dims")
    return x * 2


# -- tuples ---------------------------------------------------------------------------------------


def nested_tuples(x: Tensor):
    pair = (x + 1, (x.size(0), (x * 2, 3.5)))
    inner = pair[1]
    return pair[0], inner, inner[1][0] * inner[1][1], pair


def tuple_slices(x: Tensor):
    items = (x, x + 1, x + 2, x.size(0))
    first = items[:2]
    return first, items[1:], items[-1], items[1:3][0]


def tuple_in_a_loop(x: Tensor, n: int):
    state = (x, 0)
    for i in range(n):
        state = (state[0] * 2 + i, state[1] + 1)
    return state


def tuple_in_a_branch(x: Tensor):
    if x.sum() > 0:
        state = (x, 1, True)
    else:
        state = (x * 2, 2, False)
    value, count, flag = state
    if flag:
        value = value + count
    return value


def swapped(x: Tensor, n: int):
    a, b = x, x * 2
    for _ in range(n):
        a, b = b, a + b
    return a, b


def tuple_equality(x: Tensor):
    shape = (x.size(0), x.size(1))
    total = 0
    for size in (1, 2, 3):
        if shape[0] == size:
            total += size
    return total


class Pair(NamedTuple):
    left: Tensor
    count: int


def named_tuple(x: Tensor, n: int):
    pair = Pair(x * 2, n)
    pair = Pair(left=pair.left + pair.count, count=pair.count + 1)
    return pair


def named_tuple_given(pair: Pair):
    return pair.left * pair.count, pair.count + 1


def tuple_given(pair: Tuple[Tensor, Tuple[Tensor, Tensor]]):
    first, rest = pair
    return first + rest[0] * rest[1]


# -- dicts ----------------------------------------------------------------------------------------


def dict_made(x: Tensor):
    found = {"a": x, "b": x * 2}
    found["c"] = found["a"] + found["b"]
    found["a"] = found["a"] - 1
    return found


def dict_asked(x: Tensor):
    found: Dict[str, Tensor] = {"a": x, "b": x * 2}
    other = found.get("z")
    if other is None:
        other = found.get("a", x * 9)
    has = "b" in found and "z" not in found
    if has:
        other = other + found["b"]
    return other, has, len(found), found.get("q", x * 9)


def dict_iterated(x: Tensor):
    found = {"a": x, "b": x * 2, "cc": x + 1}
    total = torch.zeros_like(x)
    for key in found:
        total = total * 2 + found[key]
    for key, value in found.items():
        total = total + value * len(key)
    for value in found.values():
        total = total - value / 2
    for key in found.keys():
        if key == "b":
            total = total + 1
    return total, list(found.keys())[1] == "b"


def dict_changed(x: Tensor):
    found: Dict[str, Tensor] = {"a": x, "b": x * 2}
    found.update({"b": x * 3, "c": x + 1})
    taken = found.pop("a")
    del found["c"]
    default = found.setdefault("d", x - 1)
    again = found.setdefault("b", x - 2)
    copied = found.copy()
    copied["b"] = x
    return found, taken, default, again, found.pop("none", x * 7)


def dict_of_numbers(x: Tensor, n: int):
    weights = {1: 0.5, 2: n * 1.5, 4: float(n)}
    total = 0.0
    for key, value in weights.items():
        total += key * value
    return x * weights[2], total, 4 in weights


def dict_comprehension(x: Tensor):
    names = ["a", "bb", "ccc"]
    found = {name: x * len(name) for name in names}
    doubled = {key: value * 2 for key, value in found.items()}
    return doubled, found["bb"]


def dict_in_a_branch(x: Tensor):
    found = {"a": x, "b": x + 1}
    if x.sum() > 0:
        found["a"] = x * 2
    else:
        found["b"] = found["b"] * 3
    return found["a"] + found["b"]


def dict_in_a_loop(x: Tensor, n: int):
    state: Dict[str, Tensor] = {"sum": torch.zeros_like(x), "last": x}
    for i in range(n):
        state["last"] = state["last"] * 0.5 + i
        state["sum"] = state["sum"] + state["last"]
    return state


def dict_of_lists(x: Tensor):
    groups: Dict[str, List[Tensor]] = {"even": [], "odd": []}
    for i in range(4):
        groups["even" if i % 2 == 0 else "odd"].append(x * i)
    return torch.stack(groups["even"]), torch.stack(groups["odd"]), len(groups["odd"])


def nested_dicts(x: Tensor):
    tree: Dict[str, Dict[str, Tensor]] = {"a": {"x": x}}
    tree["b"] = {"y": x * 2}
    tree["a"]["z"] = x + 1
    return tree["a"]["x"] + tree["a"]["z"] * tree["b"]["y"]


def dict_shared(x: Tensor):
    first = {"a": x}
    second = first
    second["a"] = x * 2
    first["b"] = x + 1
    return first, second


def dict_given(found: Dict[str, Tensor]):
    out = found["a"] * 2
    if "b" in found:
        out = out + found["b"]
    return {"out": out, "count": found["a"].sum()}


def dict_of_pairs(x: Tensor):
    found = dict([("a", x), ("b", x * 2)])
    counts: Dict[str, int] = {}
    for key in ["p", "q", "p"]:
        counts[key] = counts.get(key, 0) + 1
    return found["b"] * counts["p"], counts["q"]


def dict_built_by_loop_of_names(x: Tensor):
    out: Dict[str, Tensor] = {}
    for i, name in enumerate(["x", "y", "z"]):
        out[name] = x * i
    out.pop("y")
    return out


def dict_cleared(x: Tensor):
    found = {"a": x}
    found.clear()
    found["n"] = x * 3
    return found, len(found)


# -- optionals ------------------------------------------------------------------------------------


def optional_given(x: Tensor, bias: Optional[Tensor]):
    if bias is not None:
        x = x + bias
    return x * 2


def optional_number(x: Tensor, scale: Optional[float] = None, count: Optional[int] = None):
    if scale is None:
        scale = 2.0
    n = count if count is not None else 3
    return x * scale + n


def optional_chain(x: Tensor, a: Optional[Tensor] = None, b: Optional[Tensor] = None):
    if a is not None and b is not None:
        return x + a + b
    elif a is not None or b is not None:
        return x * 3
    return x


def optional_in_a_branch(x: Tensor):
    extra: Optional[Tensor] = None
    if x.sum() > 0:
        extra = x.sum()
    if extra is not None:
        return x / extra
    return x


def optional_in_a_loop(x: Tensor):
    best: Optional[Tensor] = None
    for i in range(x.size(0)):
        row = x[i]
        if best is None:
            best = row
        elif row.sum() > best.sum():
            best = row
    if best is None:
        best = torch.zeros(4)
    return best


def optional_number_in_a_loop(x: Tensor):
    place: Optional[int] = None
    for i in range(x.size(0)):
        if place is None and float(x[i, 0]) >= 0:
            place = i
    return -1 if place is None else place


def optional_unwrapped(x: Tensor, y: Optional[Tensor]):
    return x + torch.jit._unwrap_optional(y)


def optional_asserted(x: Tensor, y: Optional[Tensor]):
    assert y is not None
    return x + y


def optional_to_an_operator(x: Tensor, flag: int):
    weight: Optional[Tensor] = None
    if flag > 0:
        weight = x[0] * 0.5
    return torch.nn.functional.layer_norm(x, [4], weight)


def helper_with_defaults(x: Tensor, scale: Optional[float] = None, shift: float = 1.0):
    if scale is not None:
        x = x * scale
    return x + shift


def calls_with_defaults(x: Tensor):
    return helper_with_defaults(x), helper_with_defaults(x, 2.0), helper_with_defaults(x, shift=0.5)


# -- types ----------------------------------------------------------------------------------------


def refined_any(x: Tensor, n: int):
    items: List[Union[int, float]] = [n, 2.5]
    total = 0.0
    for item in items:
        if isinstance(item, int):
            total += item * 10
        else:
            total += item
    return x * total


def union_given(x: Tensor, scale: Union[int, float, List[int]]):
    if isinstance(scale, list):
        return x * scale[0]
    elif isinstance(scale, int):
        return x + scale
    else:
        return x - scale


def refined_optional(x: Tensor, y: Optional[Tensor]):
    if isinstance(y, Tensor):
        return x + y
    return x - 1


def scripting(x: Tensor):
    if torch.jit.is_scripting():
        return x
    return x * 1


def annotated(x: Tensor, n: int):
    outs = torch.jit.annotate(List[Tensor], [])
    for _ in range(n + 1):
        outs.append(x)
    return torch.cat(outs)


def dtype_questions(x: Tensor):
    if x.dtype == torch.float32:
        y = x.to(torch.float64)
    else:
        y = x.double()
    z = torch.zeros(2, dtype=y.dtype, device=x.device) + 1
    if x.is_floating_point() and not x.is_cuda and not x.requires_grad:
        z = z * 2
    if x.device.type == "cpu" and not x.is_complex() and not x.is_quantized:
        z = z + 1
    return (
        z,
        y.to(x.dtype),
        x.long().to(y),
        x.type_as(y),
        x.to(device=x.device),
        x.layout == torch.strided,
    )


class Color(Enum):
    RED = 1
    GREEN = 2


def enum_compared(x: Tensor):
    color = Color.GREEN
    if color == Color.RED:
        return x
    return x * color.value + len(color.name)


class EnumHolder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.color = Color.RED

    def forward(self, x: Tensor) -> Tensor:
        if self.color is Color.RED:
            return x * self.color.value
        return x - 1


# -- objects --------------------------------------------------------------------------------------


@torch.jit.script
class Accumulator:
    def __init__(self, start: Tensor, rate: float) -> None:
        self.total = start
        self.rate = rate
        self.count = 0

    def add(self, x: Tensor) -> None:
        self.total = self.total + x * self.rate
        self.count += 1

    def mean(self) -> Tensor:
        return self.total / max(self.count, 1)


def object_used(x: Tensor):
    held = Accumulator(x, 0.5)
    held.add(x)
    held.add(x * 2)
    return held.mean(), held.count, held.rate


def object_in_a_loop(x: Tensor, n: int):
    held = Accumulator(torch.zeros_like(x), 1.0)
    for i in range(n):
        held.add(x + i)
    return held.mean(), held.count


def object_in_a_branch(x: Tensor):
    held = Accumulator(x, 2.0)
    if x.sum() > 0:
        held.add(x)
    other = held
    other.rate = 3.0
    return held.mean() * held.rate, held.count


@torch.jit.script
class Stack:
    def __init__(self) -> None:
        self.items: List[Tensor] = []

    def push(self, x: Tensor) -> None:
        self.items.append(x)

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, i: int) -> Tensor:
        return self.items[i]


def object_with_a_list(x: Tensor, n: int):
    stack = Stack()
    for i in range(n + 1):
        stack.push(x * i)
    return torch.stack(stack.items).sum(0), len(stack), stack[-1]


class Attributes(nn.Module):
    limit: torch.jit.Final[int]
    names: Dict[str, int]
    bias: Optional[Tensor]

    def __init__(self) -> None:
        super().__init__()
        self.limit = 3
        self.scales = [0.5, 2.0]
        self.names = {"a": 1, "b": 2}
        self.pair = (1, 2.5)
        self.extra = torch.jit.Attribute(4, int)
        self.register_buffer("weight", torch.arange(4.0))
        self.bias = None
        self.on = True

    def forward(self, x: Tensor) -> Tensor:
        for scale in self.scales:
            x = x * scale
        bias = self.bias
        if bias is not None:
            x = x + bias
        if self.on and len(self.scales) < self.limit:
            x = x + self.weight * self.names["b"]
        return x + self.pair[0] * self.pair[1] + self.extra


class Counter(nn.Module):
    """Sets numbers and tensors of its own while it runs."""

    def __init__(self) -> None:
        super().__init__()
        self.steps = 0
        self.register_buffer("seen", torch.zeros(()))

    def forward(self, x: Tensor) -> Tensor:
        self.steps += 1
        for i in range(x.size(0)):
            self.seen = self.seen + x[i].sum()
        self.steps = self.steps * 2
        return x * self.steps + self.seen


class Layers(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(4, 4) for _ in range(3)])
        self.named = nn.ModuleDict({"first": nn.ReLU(), "second": nn.Tanh()})
        self.scale = nn.ParameterList([nn.Parameter(torch.ones(4) * i) for i in range(2)])

    def forward(self, x: Tensor) -> Tensor:
        for i, layer in enumerate(self.layers):
            x = layer(x) * i
        for name, module in self.named.items():
            x = module(x) + len(name)
        return x + self.scale[0] + self.scale[1] + len(self.layers)


def without_gradients(x: Tensor):
    with torch.no_grad():
        y = x * 2
    with torch.no_grad():
        y = y + 1
    return y


def doubled(x: Tensor):
    return x * 2


def forked(x: Tensor):
    future = torch.jit.fork(doubled, x)
    other = x + 1
    return torch.jit.wait(future) + other


def twice(value: int) -> int:
    return value * 2


def function_of_numbers(x: Tensor, n: int):
    return x * twice(n) + len(doubled(x))


def checked(x: Tensor, n: int):
    assert n >= 0, "n is negative"
    if n > 100:
        raise ValueError("too large")
    return x * n


def printed(x: Tensor):
    print("size", x.size(0))
    torch._assert(x.size(1) == 4, "columns")
    return x + 1


def checked_data(x: Tensor):
    if bool(torch.isnan(x).any()):
        raise RuntimeError("not a number")
    return x * 2


def zipped(x: Tensor):
    total = torch.zeros_like(x)
    for a, b in zip([x, x * 2], [1, x.size(0)]):
        total = total + a * b
    for i, (a, b) in enumerate(zip([x, x], [2.0, 3.0])):
        total = total + a * b * i
    return total


def numbers_of_tensor(x: Tensor):
    sizes: List[int] = x.long().sum(1).tolist()
    return torch.tensor(sizes, dtype=torch.int64) + 1


def numbers_of_known_tensor(x: Tensor):
    values: List[float] = torch.tensor([1.0, 2.5]).tolist()
    return x * values[0] + values[1]


OPTIONALS = [(matrix(3, 4), matrix(4)), (matrix(1, 4), matrix(4)), (matrix(2, 4), matrix(4))]
ABSENT = [(matrix(3, 4), None), (matrix(1, 4), None), (matrix(2, 4), None)]


def enum_changed_in_a_loop(x: Tensor):
    color = Color.RED
    for i in range(2):
        if color == Color.RED:
            x = x + 1
        if i == 0:
            color = Color.GREEN
        if color != Color.RED:
            x = x * 2
    return x


CASES: list[tuple[Any, list[tuple[Any, ...]]]] = [
    *((Mode(mode), SIZES) for mode in ("double", "half", "quarter", "none")),
    (string_methods, SIZES),
    (string_in_a_branch, SIGNS),
    (message_of_a_size, SIZES),
    (nested_tuples, SIZES),
    (tuple_slices, SIZES),
    (tuple_in_a_loop, COUNTED),
    (tuple_in_a_branch, SIGNS),
    (swapped, COUNTED),
    (tuple_equality, SIZES),
    (named_tuple, COUNTED),
    (
        named_tuple_given,
        [(Pair(matrix(2, 2), 2),), (Pair(matrix(1, 2), 0),), (Pair(matrix(3, 2), 1),)],
    ),
    (tuple_given, [((matrix(n, 2), (matrix(n, 2), matrix(2))),) for n in (3, 1, 5)]),
    (dict_made, SIZES),
    (dict_asked, SIZES),
    (dict_iterated, SIZES),
    (dict_changed, SIZES),
    (dict_of_numbers, COUNTED),
    (dict_comprehension, SIZES),
    (dict_in_a_branch, SIGNS),
    (dict_in_a_loop, COUNTED),
    (dict_of_lists, SIZES),
    (nested_dicts, SIZES),
    (dict_shared, SIZES),
    (dict_given, [({"a": matrix(3), "b": matrix(3)},), ({"a": -matrix(3), "b": matrix(3)},)] * 2),
    (dict_of_pairs, SIZES),
    (dict_built_by_loop_of_names, SIZES),
    (dict_cleared, SIZES),
    (optional_given, OPTIONALS),
    (optional_given, ABSENT),
    (optional_number, [(matrix(2), 1.5, 2), (matrix(2), -1.0, 0), (matrix(2), 0.5, 1)]),
    (optional_number, [(matrix(2), None, 2), (matrix(3), None, 0), (matrix(1), None, 1)]),
    (optional_number, [(matrix(2),), (matrix(3),), (matrix(1),)]),
    (optional_chain, ABSENT),
    (
        optional_chain,
        [
            (matrix(2), matrix(2), matrix(2)),
            (matrix(1), matrix(1), matrix(1)),
            (matrix(4), matrix(4), matrix(4)),
        ],
    ),
    (optional_in_a_branch, SIGNS),
    (optional_in_a_loop, SIZES),
    (optional_number_in_a_loop, SIZES),
    (optional_unwrapped, OPTIONALS),
    (optional_asserted, OPTIONALS),
    (optional_to_an_operator, COUNTED),
    (calls_with_defaults, SIZES),
    (refined_any, COUNTED),
    (union_given, [(matrix(2), 2), (matrix(3), 0), (matrix(1), -1)]),
    (union_given, [(matrix(2), 1.5), (matrix(3), 0.0), (matrix(1), -1.5)]),
    (union_given, [(matrix(2), [2]), (matrix(3), [0]), (matrix(1), [5])]),
    (refined_optional, OPTIONALS),
    (refined_optional, ABSENT),
    (scripting, SIZES),
    (annotated, COUNTED),
    (dtype_questions, SIZES),
    (enum_compared, SIZES),
    (EnumHolder(), SIZES),
    (object_used, SIZES),
    (object_in_a_loop, COUNTED),
    (object_in_a_branch, SIGNS),
    (object_with_a_list, COUNTED),
    (Counter(), SIZES),
    (Layers(), SIZES),
    (without_gradients, SIZES),
    (forked, SIZES),
    (function_of_numbers, COUNTED),
    (checked, COUNTED),
    (printed, SIZES),
    (checked_data, SIZES),
    (zipped, SIZES),
    (numbers_of_tensor, SIZES),
    (numbers_of_known_tensor, SIZES),
    (enum_changed_in_a_loop, SIZES),
]

SCRIPT_CASES: list[tuple[Any, list[tuple[Any, ...]]]] = [
    (Attributes(), SIZES),
]
"""Where TorchScript gives what Python does not."""
