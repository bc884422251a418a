"""The "Functions" and "Classes" of both references, and the options in their signatures: each is
there under its name. What each does is tested beside this file."""

from __future__ import annotations

import importlib
import inspect
import subprocess
import sys

import pytest
import torch

import sardonyx
from sardonyx.legalize import SUPPORTED_OPSETS

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


SUBMODULES = {
    "errors": "OnnxExporterError",
    "operators": "shape_as_tensor",
    "ops": "symbolic",
    "symbolic": "elu",
    "symbolic_helper": "parse_args",
    "symbolic_opset9": "elu",
    "symbolic_opset17": "layer_norm",
    "symbolic_opset28": "relu",
    "symbolic_registry": "register_op",
    "utils": "unconvertible_ops",
    "verification": "find_mismatch",
    "_type_utils": "JitScalarType",
}


def test_every_name_is_there_after_one_import():
    """`torch.onnx.symbolic_opset9.elu`, `torch.onnx.utils.unconvertible_ops`: with no import but
    that of the package."""
    names = [f"{module}.{name}" for module, name in SUBMODULES.items()]
    names += [*FUNCTIONS, *CLASSES, "verification.GraphInfo", "SymbolicContext"]
    asked = "\n".join(f"sardonyx.{name}" for name in names)
    code = f"import sardonyx\n{asked}\nprint(*dir(sardonyx))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    listed = set(done.stdout.split())
    assert listed >= {*SUBMODULES, *sardonyx.__all__} - {"_type_utils"}


def test_who_makes_the_files():
    """`producer_name` and `producer_version`, as every file has them."""
    proto = sardonyx.export(torch.nn.ReLU(), torch.ones(2)).model_proto
    made_by = (sardonyx.producer_name, sardonyx.producer_version)
    assert (proto.producer_name, proto.producer_version) == made_by
    assert sardonyx.__version__ == sardonyx.producer_version


def test_opsets_up_to_the_newest():
    for version in SUPPORTED_OPSETS:
        module = getattr(sardonyx, f"symbolic_opset{version}")
        assert module is importlib.import_module(f"sardonyx.symbolic_opset{version}")
        assert {"relu", "elu", "size"} <= set(dir(module))


def test_the_pretty_string_is_what_verbose_prints(capsys):
    """`export_to_pretty_string`: 'a human-readable representation of the model'."""
    text = sardonyx.export_to_pretty_string(torch.nn.ReLU(), torch.ones(2))
    sardonyx.export(torch.nn.ReLU(), torch.ones(2), verbose=True)
    assert text.strip() == capsys.readouterr().out.strip()
    assert "onnx::Relu" in text
