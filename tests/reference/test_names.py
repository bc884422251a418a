"""The "Functions" and "Classes" of both references, and the options in their signatures: each is
there under its name. What each does is tested beside this file."""

from __future__ import annotations

import importlib
import inspect

import pytest

import sardonyx

FUNCTIONS = [
    # torch-onnx-1.x.rst
    "export",
    "set_training",
    "is_in_onnx_export",
    # torch-onnx-2.1.rst
    "export_to_pretty_string",
    "register_custom_op_symbolic",
    "unregister_custom_op_symbolic",
    "select_model_mode_for_export",
    "enable_log",
    "disable_log",
    "dynamo_export",
    "enable_fake_mode",
]
CLASSES = [
    "JitScalarType",
    "ExportOptions",
    "ExportOutput",
    "ExportOutputSerializer",
    "OnnxExporterError",
    "OnnxRegistry",
]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(name):
    assert inspect.isfunction(getattr(sardonyx, name))
    assert name in sardonyx.__all__


@pytest.mark.parametrize("name", CLASSES)
def test_classes(name):
    assert inspect.isclass(getattr(sardonyx, name))
    assert name in sardonyx.__all__


@pytest.mark.parametrize("name", ["find_mismatch", "GraphInfo", "VerificationOptions"])
def test_verification(name):
    assert hasattr(importlib.import_module("sardonyx.verification"), name)


@pytest.mark.parametrize("name", ["symbolic_helper", "utils", "errors", "verification"])
def test_modules(name):
    """`from torch.onnx import symbolic_helper`, `import torch.onnx.symbolic_helper`."""
    assert inspect.ismodule(importlib.import_module(f"sardonyx.{name}"))
    assert getattr(sardonyx, name) is importlib.import_module(f"sardonyx.{name}")


def test_the_pretty_string_is_what_verbose_prints(capsys):
    """`export_to_pretty_string`: 'a human-readable representation of the model'."""
    import torch

    text = sardonyx.export_to_pretty_string(torch.nn.ReLU(), torch.ones(2))
    sardonyx.export(torch.nn.ReLU(), torch.ones(2), verbose=True)
    assert text.strip() == capsys.readouterr().out.strip()
    assert "onnx::Relu" in text
