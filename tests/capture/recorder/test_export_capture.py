"""What torch.export would merge, write or blame on the wrong line."""

from __future__ import annotations

import pytest
import torch

import sardonyx
from sardonyx.errors import CaptureError, UnsupportedOperatorError

BOTH = pytest.mark.parametrize("capture", ["trace", "export"])


class Scaled(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(3))

    def forward(self, x, y):
        return x * self.weight - y


@BOTH
@pytest.mark.parametrize("given", ["one tensor", "views", "a parameter"])
def test_inputs_that_share_memory_are_inputs_each(given, capture):
    model, x = Scaled(), torch.randn(2, 3)
    example = {
        "one tensor": (x, x),
        "views": (x[0], x[0]),
        "a parameter": (model.weight, model.weight),
    }[given]
    program = sardonyx.export(model, example, capture=capture)
    others = tuple(torch.randn(t.shape) for t in example)
    with torch.no_grad():
        torch.testing.assert_close(program(*others), model(*others))


GLOBAL = torch.zeros(3)


class WritesWhatIsNoBuffer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.plain = torch.zeros(3)
        self.listed = [torch.zeros(3)]

    def forward(self, x):
        self.plain.add_(1)
        torch.ops.aten.add_.Tensor(self.plain, 1)
        self.listed[0] += 3
        GLOBAL.sub_(4)
        return x + self.plain, x + self.listed[0], x + GLOBAL


@BOTH
def test_writes_of_tensors_that_are_no_buffers_happen_once_and_not_here(capture):
    model, x = WritesWhatIsNoBuffer(), torch.zeros(3)
    program = sardonyx.export(model, (x,), capture=capture)
    for tensor in (model.plain, *model.listed, GLOBAL):
        assert torch.equal(tensor, torch.zeros(3))
    assert [result[0].item() for result in program(x)] == [2, 3, -4]


def is_dense_enough(x):
    return x.shape[0] > 3


def test_a_condition_counts_whatever_the_users_function_is_called():
    def model(x):
        return x * 2 if is_dense_enough(x) else x

    program = sardonyx.export(
        model, (torch.randn(5, 2),), capture="export", dynamic_shapes={"x": {0: "rows"}}
    )
    (note,) = program.notes
    assert "rows > 3" in note and "test_export_capture.py" in note


def test_an_operators_condition_is_not_blamed_on_our_own_files():
    program = sardonyx.export(
        lambda x: x[7], (torch.randn(9, 2),), capture="export", dynamic_shapes={"x": {0: "rows"}}
    )
    assert not any("sardonyx/" in note for note in program.notes)


@BOTH
def test_plain_numbers_come_out_of_either_capture(capture):
    x = torch.randn(2)
    program = sardonyx.export(lambda x: (x + 1, True, False, 3, 2.5), (x,), capture=capture)
    tensor, *numbers = program(x)
    torch.testing.assert_close(tensor, x + 1)
    assert [n.item() for n in numbers] == [True, False, 3, 2.5]
    assert [n.dtype for n in numbers] == [torch.bool, torch.bool, torch.int64, torch.float32]


class TakesOneRow(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(3))

    def forward(self, x):
        x.add_(1)
        with torch.no_grad():
            self.weight.add_(1)
        return x.view(1, 3) + self.weight


@BOTH
def test_a_failed_export_writes_nothing(capture):
    model, x = TakesOneRow(), torch.zeros(1, 3)
    with pytest.raises(CaptureError, match="recorded with another size"):
        sardonyx.export(model, (x,), capture=capture, dynamic_shapes={"x": {0: "rows"}})
    assert not x.any() and not model.weight.any()


@torch.library.custom_op("sardonyx_tests::unheard_of", mutates_args=())
def _unheard_of(x: torch.Tensor) -> torch.Tensor:
    return x.clone()


@_unheard_of.register_fake
def _(x: torch.Tensor) -> torch.Tensor:
    return torch.empty_like(x)


@BOTH
def test_an_operator_without_onnx_form_is_named_with_dynamic_sizes_too(capture):
    with pytest.raises(UnsupportedOperatorError, match=r"sardonyx_tests::unheard_of"):
        sardonyx.export(
            lambda x: _unheard_of(x) + 1,
            (torch.randn(4, 3),),
            capture=capture,
            dynamic_shapes={"x": {0: "rows"}},
        )


def test_what_torch_export_refuses_is_named_with_its_line():
    def decided_by_data(x):
        if (x > 0).any():
            return x
        return -x

    with pytest.raises(sardonyx.SardonyxError, match=r"if \(x > 0\)\.any\(\):"):
        sardonyx.export(decided_by_data, (torch.randn(3),), capture="export")
