"""Who may import whom: the stages point one way, and no packages import each other."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import sardonyx

ROOT = Path(sardonyx.__file__).parent
MODULES = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
    for path in sorted(ROOT.rglob("*.py"))
}

# What each part of the package may import, besides itself. A part is a package or a top-level
# module; `capture.capture_errors` is one module of a package.
EVERYWHERE = {"_torch_private", "errors", "options", "option_names", "notes", "version"}
STAGES_BEFORE = {
    "aten": set(),
    "functionalization": {"aten"},
    "capture": {"aten", "functionalization"},
    "lower": {"aten", "functionalization"},
    "legalize": {"lower"},
    "optimize": {"aten", "lower", "legalize"},
    "serialize": {"aten", "lower"},
    "verify": {
        "aten",
        "capture.baked_values",
        "capture.capture_errors",
        "capture.side_effects",
        "capture.symbolic_shapes",
        "lower",
        "optimize",
        "serialize",
    },
}
CAPTURE = {
    "capture.function_overrides": set(),
    "capture.inputs": set(),
    "capture.baked_values": set(),
    "capture.side_effects": {"capture.function_overrides"},
    "capture.autograd_functions": {"capture.side_effects"},
    "capture.quantized": set(),
}
LIBRARY = {
    "plugins": {"lower"},
    "extend": {
        "aten",
        "capture.autograd_functions",
        "capture.quantized",
        "lower",
    },
    "debug": {
        "aten",
        "capture.autograd_functions",
        "capture.capture",
        "capture.inputs",
        "extend",
        "legalize",
        "lower",
        "optimize",
        "serialize",
        "stages",
        "verify",
    },
}


def imported(path: Path) -> Iterator[str]:
    """The modules of ours that a file imports, those that only type checkers read left out."""
    tree = ast.parse(path.read_text())
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            node.body = []
    for node in ast.walk(tree):
        names: list[str] = []
        if isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                module = f"{node.module}.{alias.name}".removeprefix("sardonyx.")
                names.append(f"sardonyx.{module}" if module in MODULES else node.module)
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        for name in names:
            if name.startswith("sardonyx."):
                yield name.removeprefix("sardonyx.")


def is_of(module: str, part: str) -> bool:
    return module == part or module.startswith(f"{part}.")


ALLOWED = (
    STAGES_BEFORE
    | LIBRARY
    | {part: {"aten", "functionalization"} | allowed for part, allowed in CAPTURE.items()}
)
CHECKED = [
    pytest.param(module, path, ALLOWED[part], part, id=module)
    for module, path in MODULES.items()
    for part in ALLOWED
    if is_of(module, part)
    and not any(is_of(module, p) and is_of(p, part) and p != part for p in ALLOWED)
]


@pytest.mark.parametrize(("module", "path", "allowed", "part"), CHECKED)
def test_a_module_imports_only_what_its_part_may(
    module: str, path: Path, allowed: set[str], part: str
) -> None:
    others = [
        name
        for name in imported(path)
        if not any(is_of(name, p) for p in allowed | EVERYWHERE | {part})
    ]
    assert not others


def test_no_packages_import_each_other() -> None:
    """The packages, and in `capture` its packages and modules, have an order."""

    def part_of(module: str) -> str:
        parts = module.split(".")
        return ".".join(parts[:2]) if parts[0] == "capture" else parts[0]

    needs: dict[str, set[str]] = {}
    for module, path in MODULES.items():
        own = part_of(module)
        needs.setdefault(own, set()).update(
            part_of(name) for name in imported(path) if part_of(name) != own
        )
    while free := {part for part in needs if not needs[part] & needs.keys()}:
        needs = {part: others for part, others in needs.items() if part not in free}
    assert not needs, "these import each other"


def test_nothing_calls_the_rival() -> None:
    """Only the flag behind `torch.onnx.is_in_onnx_export()` is set, in one place, and `install()`
    puts its own functions under the names of the module."""
    forbidden = re.compile(r"torch\.onnx|_jit_pass_onnx|torch_?lib\b")
    found = []
    for path in ROOT.rglob("*.py"):
        tree = ast.parse(path.read_text())
        docs = {
            id(node.body[0].value)
            for node in ast.walk(tree)
            if isinstance(node, ast.Module | ast.FunctionDef | ast.ClassDef)
            and node.body
            and isinstance(node.body[0], ast.Expr)
        }
        for node in ast.walk(tree):
            text = ""
            if isinstance(node, ast.ImportFrom):
                text = node.module or ""
            elif isinstance(node, ast.Import):
                text = " ".join(alias.name for alias in node.names)
            elif isinstance(node, ast.Attribute):
                text = ast.unparse(node)
            elif isinstance(node, ast.Constant) and id(node) not in docs:
                text = node.value if isinstance(node.value, str) else ""
            if forbidden.search(text):
                found.append((path.relative_to(ROOT).as_posix(), text))
    assert [f for f in found if not f[0].startswith("_torch_private/")] == []
    assert {text for _, text in found} <= {
        "torch.onnx._internal.torchscript_exporter._globals",
        "torch.onnx",
    }


def test_private_torch_is_touched_in_one_place() -> None:
    private = re.compile(r"\btorch\._[a-zA-Z]|from torch\.[\w.]*\._|import torch\.[\w.]*\._")
    found = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in ROOT.rglob("*.py")
        if "_torch_private" not in path.parts
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if private.search(line.split("#")[0]) and '"' not in line
    ]
    assert not found
