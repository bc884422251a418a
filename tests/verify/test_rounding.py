"""Results apart by rounding alone are told from wrong ones by the model in float64."""

import pytest
import torch

import sardonyx


class Amplified(torch.nn.Module):
    """The sine of large sums: their last digits are rounding, and decide the result."""

    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(512, 64)
        torch.nn.init.normal_(self.linear.weight, std=300)

    def forward(self, x):
        return self.linear(x).sin()


class OffByDigits(Amplified):
    """The file's inputs are off in the fifth digit, far more than rounding moves them."""

    def forward(self, x):
        return super().forward(x if sardonyx.is_in_onnx_export() else x * 1.00001)


X = torch.randn(16, 512, generator=torch.Generator().manual_seed(0))


def exported(kind):
    torch.manual_seed(0)
    return sardonyx.export(kind(), (X,))


def test_what_float64_shows_to_be_rounding_is_accepted():
    report = exported(Amplified).verify()
    (reason, *_) = report.skipped
    assert "output is apart by rounding alone: from the model in float64, PyTorch is" in reason
    assert 1e-4 < report.largest_absolute < 1e-2


def test_a_tolerance_that_is_given_is_kept_to():
    with pytest.raises(sardonyx.VerificationError, match="disagree on output"):
        exported(Amplified).verify(rtol=1e-4)


def test_a_wrong_result_is_told_with_its_distance_from_float64():
    program = exported(OffByDigits)
    with pytest.raises(sardonyx.VerificationError, match="from the model in float64, PyTorch is 0"):
        program.verify()


class OtherInFloat64(Amplified):
    """PyTorch and the file are as far from float64, and yet the file is wrong."""

    def forward(self, x):
        if x.dtype == torch.float64:
            return super().forward(x).flip(0)
        return super().forward(x if sardonyx.is_in_onnx_export() else x + 1)


def test_a_model_that_computes_something_else_in_float64_excuses_nothing():
    with pytest.raises(sardonyx.VerificationError, match="disagree on output"):
        exported(OtherInFloat64).verify()
