"""torch.fft, torch.stft and torch.istft."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from tests.lower.ops.harness import check
from tests.lower.ops.test_complex import x, z

NORMS = ("backward", "ortho", "forward")


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("name", ["fft", "ifft", "hfft", "irfft"])
def test_of_complex_signals(name: str, norm: str) -> None:
    function = getattr(torch.fft, name)
    check(
        lambda a: (function(a, norm=norm), function(a, n=5, dim=0, norm=norm), function(a, n=12)),
        z(6, 8),
    )


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("name", ["rfft", "fft", "ihfft", "ifft"])
def test_of_real_signals(name: str, norm: str) -> None:
    function = getattr(torch.fft, name)
    check(
        lambda a: (function(a, norm=norm), function(a, n=7, dim=-2, norm=norm), function(a, n=9)),
        x(6, 8),
    )


@pytest.mark.parametrize(
    "name", ["fft2", "ifft2", "irfft2", "hfft2", "fftn", "ifftn", "irfftn", "hfftn"]
)
def test_of_several_dims(name: str) -> None:
    function = getattr(torch.fft, name)
    check(lambda a: (function(a), function(a, s=(4, 6), dim=(0, 2), norm="ortho")), z(3, 4, 5))


@pytest.mark.parametrize("name", ["rfft2", "rfftn", "ihfft2", "ihfftn"])
def test_of_several_dims_of_real_signals(name: str) -> None:
    function = getattr(torch.fft, name)
    check(lambda a: (function(a), function(a, s=(4, 6), dim=(0, 2), norm="ortho")), x(3, 4, 5))


def test_of_integers_and_halves_of_a_spectrum() -> None:
    check(lambda a: (torch.fft.fft(a), torch.fft.rfft(a), torch.fft.fftshift(a)), torch.arange(6))
    check(lambda a: torch.fft.irfft(torch.fft.rfft(a), n=a.shape[-1]), x(2, 9))


def test_dynamic_sizes() -> None:
    def model(a: torch.Tensor) -> tuple[torch.Tensor, ...]:
        spectrum = torch.fft.rfft(a, norm="ortho")
        return spectrum, torch.fft.ifft(torch.fft.fft(a, dim=0), dim=0), torch.fft.irfft(spectrum)

    check(model, x(3, 8), dynamic={0: [0, 1]}, others=[(x(5, 8),), (x(4, 13),)])


@pytest.mark.parametrize("length", [400, 1000])
def test_lengths_that_are_no_powers_of_two_are_exact(length: int) -> None:
    """ONNX Runtime's float32 transform is off by up to 1e-4 there."""
    check(torch.fft.fft, z(2, length), captures=["trace"], opsets=(20,), rtol=1e-5, atol=2e-5)


def test_filtering_in_double_precision() -> None:
    weights = z(5, dtype=torch.complex128)
    check(lambda a: torch.fft.irfft(torch.fft.rfft(a) * weights, n=8), x(2, 8).double())


STFT: dict[str, dict[str, Any]] = {
    "default": {"n_fft": 16},
    "hop": {"n_fft": 16, "hop_length": 5},
    "window": {"n_fft": 16, "win_length": 10, "window": torch.hann_window(10)},
    "not centered": {"n_fft": 12, "center": False, "normalized": True},
    "both sides": {"n_fft": 16, "onesided": False, "pad_mode": "constant"},
    "complex window": {"n_fft": 16, "window": z(16), "onesided": False},
}


@pytest.mark.filterwarnings("ignore:A window was not provided")
@pytest.mark.parametrize("name", STFT)
def test_stft(name: str) -> None:
    options = STFT[name]
    check(lambda a: torch.stft(a, return_complex=True, **options), x(2, 64))
    check(lambda a: torch.stft(a, return_complex=True, **options), x(64), captures=["trace"])


def test_stft_of_complex_signals() -> None:
    check(lambda a: torch.stft(a, 16, return_complex=True), z(2, 64))


@pytest.mark.filterwarnings("ignore:stft with return_complex=False is deprecated")
def test_stft_as_reals() -> None:
    check(lambda a: torch.stft(a, 16, return_complex=False), x(2, 64))


def test_stft_of_other_lengths() -> None:
    window = torch.hann_window(16)
    check(
        lambda a: torch.stft(a, 16, 4, window=window, return_complex=True).abs(),
        x(2, 64),
        dynamic={0: [0, 1]},
        others=[(x(3, 50),), (x(1, 128),)],
    )


ISTFT: dict[str, dict[str, Any]] = {
    "default": {},
    "length": {"length": 50},
    "longer": {"length": 80},
    "window": {"win_length": 12, "window": torch.hann_window(12)},
    "not centered": {"center": False, "window": torch.hamming_window(16)},
    "normalized": {"normalized": True},
}


@pytest.mark.filterwarnings("ignore:The length of signal is shorter")
@pytest.mark.filterwarnings("ignore:A window was not provided")
@pytest.mark.parametrize("name", ISTFT)
def test_istft(name: str) -> None:
    options = {"n_fft": 16, "hop_length": 4, **ISTFT[name]}
    check(lambda a: torch.istft(a, **options), z(2, 9, 17))


def test_istft_to_complex_signals() -> None:
    def model(a: torch.Tensor) -> torch.Tensor:
        return torch.istft(a, 16, 4, onesided=False, return_complex=True)

    check(model, z(16, 9))


def test_there_and_back_at_other_lengths() -> None:
    window = torch.hann_window(16)

    def model(a: torch.Tensor) -> torch.Tensor:
        spectrum = torch.stft(a, 16, 4, window=window, return_complex=True)
        return torch.istft(spectrum * 2, 16, 4, window=window)

    check(model, x(2, 64), dynamic={0: [1]}, others=[(x(2, 96),)], captures=["trace"])
