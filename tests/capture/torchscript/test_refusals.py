"""What TorchScript has and ONNX does not: each is refused with the line, and what to write instead.

The line that is refused has a comment.
"""

from __future__ import annotations

import inspect
from enum import Enum

import pytest
import torch
from torch import Tensor

import sardonyx
from tests.capture.torchscript.running import exported, name_of

COUNTED = [(torch.randn(size, 3), count) for size in (2, 0, 1, 7) for count in (2, 0, 3)]


@torch.jit.script
class Hypothesis:
    def __init__(self, tokens: Tensor):
        self.tokens = tokens


class Mode(Enum):
    SUM = 0
    MEAN = 1


# -- tensors whose rank is computed at run time ----------------------------------------------------


def rank_that_grows(x, n: int):
    for _ in range(n):  # here
        x = x.unsqueeze(0)
    return x * 2


def scalar_at_first(x, n: int):
    total = torch.zeros(())
    for _ in range(n):  # here
        total = total + x
    return total


def empty_at_first(x, n: int):
    out = torch.empty(0)
    for i in range(n):  # here
        out = x if i == 0 else torch.cat([out, x])
    return out


def sizes_of_computed_number(x, n: int):
    sizes: list[int] = []
    for i in range(n):
        sizes.append(i + 1)
    return torch.zeros(sizes).sum() + x  # here


def list_of_computed_length_padded(x, n: int):
    rows: list[Tensor] = []
    for i in range(n):
        rows.append(x[: i % 3 + 1, 0])
    return torch._C._nn.pad_sequence(rows, True)  # here


def rank_by_an_argument(x, n: int):
    return (x.sum(1, keepdim=n > 1) * 2).sum()  # here


# -- strings and constants chosen at run time ------------------------------------------------------


def string_compared(x, n: int):
    if f"layer{n}" == "layer2":  # here
        return x
    return x + 1


def string_as_key(x, n: int):
    entries = {"layer0": x, "layer1": x * 2}
    return entries["layer" + str(n % 2)]  # here


def string_returned(x, n: int):
    return x, str(n)  # here


def string_carried(x, n: int):
    state = "add"
    for _ in range(n):  # here
        if state == "add":
            x = x + 1
            state = "multiply"
        else:
            x = x * 2
            state = "add"
    return x


def member_of_an_enum_carried(x, n: int):
    mode = Mode.SUM
    for _ in range(n):  # here
        x = x + 1 if mode == Mode.SUM else x * 2
        mode = Mode.MEAN if mode == Mode.SUM else Mode.SUM
    return x


def string_of_a_list(x, n: int):
    names = ["sum", "mean", "max"]
    return x.sum() if names[n % 3] == "sum" else x.mean()  # here


# -- dicts with computed keys ----------------------------------------------------------------------


def computed_key_read(x, n: int):
    entries = {0: x, 1: x * 2, 2: x * 3, 3: x * 4}
    return entries[n]  # here


def computed_key_set(x, n: int):
    entries: dict[int, Tensor] = {}
    entries[n] = x  # here
    return entries[2]


def keys_of_some_iterations(x, n: int):
    entries = {"all": x}
    for i in range(n):  # here
        if float(x.sum()) > i:
            entries["above"] = x * i
        else:
            entries["below"] = x * i
    return entries["all"], len(entries)


def key_of_the_first_iteration(x, n: int):
    entries: dict[str, Tensor] = {}
    for i in range(n):  # here
        entries["all"] = x * i
    return len(entries)


# -- lists of dynamic length that hold more than tensors -------------------------------------------


def list_of_dicts(x, n: int):
    kept: list[dict[str, Tensor]] = []
    for i in range(n):  # here
        kept.append({"a": x + i})
    return kept[0]["a"]


def list_of_lists(x, n: int):
    kept: list[list[int]] = []
    for i in range(n):  # here
        kept.append([i, i * i])
    return x * kept[0][1]


def list_of_objects(x, n: int):
    kept: list[Hypothesis] = []
    for i in range(n):  # here
        kept.append(Hypothesis(x + i))
    return kept[0].tokens


def list_of_optionals(x, n: int):
    kept: list[Tensor | None] = []
    for i in range(n):  # here
        kept.append(x if i > 1 else None)
    return len(kept)


def list_of_strings(x, n: int):
    kept: list[str] = []
    for i in range(n):  # here
        kept.append(str(i))
    return len(kept)


def tuples_returned(x, n: int):
    kept: list[tuple[Tensor, int]] = []
    for i in range(n):
        kept.append((x * i, i))  # here
    return kept


def unequal_items_reversed(x, n: int):
    parts: list[Tensor] = []
    for i in range(n):
        parts.append(x[:i])
    parts.reverse()  # here
    return len(parts)


def list_of_bytes_split(x, n: int):
    return x.to(torch.uint8).split(n + 1)[0]  # here


# -- objects and tensors that several variables may hold -------------------------------------------


def chosen_list_changed(x, n: int):
    one, other = [x], [x + 1]
    chosen = one if n > 1 else other
    chosen.append(x + 2)
    return torch.stack(one)  # here


def list_changed_under_its_own_name(x, n: int):
    one, other = [x], [x + 1]
    chosen = one if n > 1 else other
    one.append(x + 2)  # here
    return torch.stack(chosen)


def lists_swapped_and_changed(x, n: int):
    one, other = [x], [x + 1]
    kept = other
    for _ in range(n):
        one, other = other, one
    one.append(x + 2)
    return torch.stack(kept)  # here


def chosen_object_changed(x, n: int):
    one, other = Hypothesis(x), Hypothesis(x + 1)
    chosen = one if n > 1 else other
    chosen.tokens = x + 2
    return one.tokens * 2  # here


def returned_from_an_endless_loop(x, n: int):
    while True:  # here
        x = x + n
        if bool(x.sum() > 10):
            return x


def shape_of_a_chosen_tensor_changed(x, n: int):
    y = x.clone()
    chosen = y if n > 1 else x + 1
    y.unsqueeze_(0)  # here
    return chosen * 2


def shape_changed_in_one_branch(x, n: int):
    y = x.clone()
    if n > 1:
        y.unsqueeze_(0)  # here
    return y * 2


def shape_of_a_written_tensor_changed(x, n: int):
    y = x.clone()
    written = y.add_(n)
    written.t_()  # here
    return y, written


def shape_of_a_tensor_in_a_list_changed(x, n: int):
    y = x.clone()
    kept = [y]
    y.t_()  # here
    return kept[0] * n


def shape_of_what_may_be_the_input_changed(x, n: int):
    y = x.clone()
    same = y.contiguous()
    same.unsqueeze_(0)  # here
    return y * n


def shape_of_a_carried_tensor_changed(x, n: int):
    y = x.clone()
    for _ in range(n):
        y.transpose_(0, 1)  # here
    return y


def shape_of_an_item_changed(x, n: int):
    parts: list[Tensor] = []
    for i in range(n):
        parts.append(x[:i])
    parts[0].unsqueeze_(0)  # here
    return len(parts)


REFUSED = [
    (rank_that_grows, "a tensor has 2 dims here and 3 there", "reshape()"),
    (scalar_at_first, "a tensor has 0 dims here and 2 there", "reshape()"),
    (empty_at_first, "a tensor has", "reshape()"),
    (sizes_of_computed_number, "a list whose length is computed", "a fixed number of items"),
    (list_of_computed_length_padded, "a list whose length is computed", "a fixed number of items"),
    (rank_by_an_argument, "depends on an argument that is computed", "an if around two calls"),
    (string_compared, "a string that is made at run time", "the numbers"),
    (string_as_key, "a string that is made at run time", "the numbers"),
    (string_returned, "a string that is made at run time", "the numbers"),
    (string_carried, "'add' here and 'multiply' there", "a number instead"),
    (member_of_an_enum_carried, "Mode.SUM: 0", "a number instead"),
    (string_of_a_list, "'sum' here and 'mean' there", "a number instead"),
    (computed_key_read, "the key of a dict is computed", "use a list or a tensor"),
    (computed_key_set, "the key of a dict is computed", "use a list or a tensor"),
    (keys_of_some_iterations, "a dict with the keys", "set all keys before"),
    (key_of_the_first_iteration, "a dict with the keys", "set all keys before"),
    (list_of_dicts, "a list of dicts is computed", "a list of tensors for each key"),
    (list_of_lists, "a list of lists is computed", "a list of tuples"),
    (list_of_objects, "a list of objects is computed", "for each attribute of the objects"),
    (list_of_optionals, "a list of optionals is computed", "that are not None"),
    (list_of_strings, "a list of strings or constants is computed", "a list of numbers"),
    (unequal_items_reversed, "of different shapes, is reversed", "a loop over the indices"),
    (tuples_returned, "returns a list of tuples", "a list for each element"),
    (list_of_bytes_split, "does not split a tensor of uint8", "torch.int32"),
    (chosen_list_changed, "another variable", "copy it"),
    (list_changed_under_its_own_name, "another variable", "copy it"),
    (lists_swapped_and_changed, "another variable", "copy it"),
    (chosen_object_changed, "another variable", "copy it"),
    (returned_from_an_endless_loop, "returns None for some inputs", "in both cases"),
    (shape_of_a_chosen_tensor_changed, "another variable may hold too", "without `_`"),
    (shape_changed_in_one_branch, "another variable may hold too", "without `_`"),
    (shape_of_a_written_tensor_changed, "another variable may hold too", "without `_`"),
    (shape_of_a_tensor_in_a_list_changed, "another variable may hold too", "without `_`"),
    (shape_of_what_may_be_the_input_changed, "another variable may hold too", "without `_`"),
    (shape_of_a_carried_tensor_changed, "another variable may hold too", "without `_`"),
    (shape_of_an_item_changed, "another variable may hold too", "without `_`"),
]


@pytest.mark.parametrize(("program", "reason", "instead"), REFUSED, ids=name_of)
def test_refused_with_the_line_and_what_to_write_instead(program, reason, instead) -> None:
    lines, first = inspect.getsourcelines(program)
    (marked,) = (number for number, line in enumerate(lines, first) if "# here" in line)
    with pytest.raises(sardonyx.CaptureError) as refusal:
        exported(program, COUNTED)
    text = str(refusal.value)
    assert reason in text
    assert f"test_refusals.py:{marked}" in text
    assert any("try" in line and instead in line for line in text.splitlines()), text
