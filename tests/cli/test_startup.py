"""What needs no PyTorch does not wait for it."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = ("torch", "onnx", "onnx_ir", "numpy", "sardonyx.api")
COMMANDS = [["--version"], ["--help"], *([name, "--help"] for name in ("export", "ops", "run"))]


def modules_after(code: str) -> tuple[str, set[str]]:
    """What a program prints, and the modules that it imported."""
    ending = "\nimport sys; print('\\n'.join(sys.modules), file=sys.stderr)"
    done = subprocess.run(
        [sys.executable, "-c", code + ending], capture_output=True, text=True, check=True
    )
    return done.stdout, set(done.stderr.split())


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_help_and_version_do_not_import_torch(command: list[str]) -> None:
    run = "from sardonyx.cli import app\napp({}, standalone_mode=False)"
    printed, modules = modules_after(run.format(command))
    assert printed.startswith("sardonyx ") or "Usage: sardonyx" in printed or "Usage:" in printed
    assert modules.isdisjoint(HEAVY)


def test_the_package_is_there_without_torch() -> None:
    code = "import sardonyx, sardonyx.symbolic_opset9\nprint(sardonyx.__version__)"
    printed, modules = modules_after(code)
    assert printed.strip()
    assert modules.isdisjoint(HEAVY)


def test_its_names_are_there_when_they_are_asked_for() -> None:
    code = "from sardonyx import export, TrainingMode\nprint(export.__name__)"
    printed, modules = modules_after(code)
    assert printed.strip() == "export"
    assert "torch" in modules


@pytest.mark.parametrize(
    "module",
    ["api", "cli.commands", "ops", "operators", "symbolic_helper", "symbolic_registry", "utils"],
)
def test_any_module_can_be_the_first(module: str) -> None:
    modules_after(f"import sardonyx.{module}")
