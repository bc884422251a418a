"""What a model's code is told of the tensors that torch.export runs it on."""

from __future__ import annotations

import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from sardonyx.capture.identity_checks import _kind_under_export


def test_fakes_are_tensors_and_parameters() -> None:
    with FakeTensorMode() as mode:
        assert _kind_under_export(torch.empty(2)) is torch.Tensor
    parameter = mode.from_tensor(torch.nn.Parameter(torch.empty(2)))
    assert _kind_under_export(parameter) is torch.nn.Parameter


def test_other_classes_are_what_they_are() -> None:
    class Named(torch.Tensor):
        __module__ = "torch._subclasses.of_someone"

    assert _kind_under_export(torch.empty(2)) is None
    assert _kind_under_export(torch.empty(2).as_subclass(Named)) is None
