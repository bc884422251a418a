"""The site in docs/: every page's Python runs, prints what the page says, and the site builds."""

from __future__ import annotations

import ast
import inspect
import pkgutil
import re
import runpy
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from typer.testing import CliRunner

import sardonyx
from sardonyx.cli import app
from sardonyx.extend.symbolic_functions import registration
from sardonyx.lower import ops
from sardonyx.lower.plugins import GROUP
from sardonyx.lower.registry import LIBRARY
from sardonyx.verify.compare import DEFAULT_TOLERANCES, Tolerance
from tests.readme.test_documents import DOCS, ROOT, python_blocks
from tools import api_page

PAGES = [DOCS / "index.md", DOCS / "migration.md", *sorted((DOCS / "guide").glob("*.md"))]


def test_every_page_of_the_guide_is_here():
    assert {page.stem for page in PAGES} == {
        "index",
        "migration",
        "first_export",
        "dynamic_shapes",
        "which_capture",
        "control_flow",
        "detection",
        "language_models",
        "quantization",
        "custom_operators",
        "large_models",
        "verification",
        "troubleshooting",
    }


def printed_blocks(text: str) -> list[str]:
    """What a page says that its Python prints, or an error says."""
    return re.findall(r"^```text\n(.*?)^```", text, re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_python_of_a_page_runs(page: Path, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    ops.load()
    monkeypatch.setattr(registration, "_registered", {})
    monkeypatch.setattr(LIBRARY, "_lowerings", dict(LIBRARY._lowerings))
    text = page.read_text()
    blocks = python_blocks(text)
    assert blocks
    # In a file: torch.jit.script and errors read the source of what they speak of.
    program = tmp_path / f"{page.stem}.py"
    program.write_text("\n\n".join(blocks))
    runpy.run_path(str(program), run_name=page.stem)
    printed = capsys.readouterr().out
    for block in printed_blocks(text):
        pattern = ".*?".join(re.escape(part) for part in block.strip().split("..."))
        assert re.search(pattern, printed, re.DOTALL), f"{block}\nis not in\n{printed}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_names_of_a_page_exist(page: Path):
    for name in re.findall(r"\bsardonyx(?:\.\w+)+", page.read_text()):
        if name != GROUP:
            pkgutil.resolve_name(name)


def test_messages_to_look_for_are_said_somewhere():
    sources = (ROOT / "src").rglob("*.py")
    texts = {
        part.value
        for source in sources
        for part in ast.walk(ast.parse(source.read_text()))
        if isinstance(part, ast.Constant) and isinstance(part.value, str)
    }
    said = "\n".join(texts)
    page = (DOCS / "guide" / "troubleshooting.md").read_text()
    rows = re.findall(r"^\| `([^`]+)`", page, re.M)
    assert len(rows) > 15
    for part in (part for row in rows for part in re.split(r"…|'", row)):
        assert part.strip(" ()") in said, part


COMMANDS = [
    (page, c) for page in PAGES for c in re.findall(r"^    sardonyx (.+)$", page.read_text(), re.M)
]


def test_pages_have_command_lines():
    assert {shlex.split(command)[0] for _, command in COMMANDS} == {"export", "show", "run"}


@pytest.mark.parametrize(("page", "command"), COMMANDS, ids=lambda given: str(given)[-20:])
def test_a_command_line_runs(page: Path, command: str, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my_models.py").write_text(python_blocks(page.read_text())[0])
    (tmp_path / "export_my_model.py").write_text(SCRIPT)
    if command.startswith("show"):
        sardonyx.export(torch.nn.ReLU(), (torch.ones(2),), shlex.split(command)[1])
    result = CliRunner().invoke(app, shlex.split(command))
    assert result.exit_code == 0, result.output


SCRIPT = """
import sys, torch
assert sys.argv[1:] == ["--its", "--own", "arguments"]
program = torch.onnx.export(torch.nn.ReLU(), (torch.ones(2),))
assert type(program).__module__ == "sardonyx.program"
"""


def test_options_of_the_migration_page_are_options():
    rows = re.findall(r"^\| (.+) \| (.+) \|.*\|$", (DOCS / "migration.md").read_text(), re.M)
    known = {*inspect.signature(sardonyx.export).parameters, "model_state"}
    named = {name for _, now in rows for name in re.findall(r"\b(\w+)=", now)}
    same = {n for then, now in rows if "the same" in now for n in re.findall(r"`(\w+)=", then)}
    assert len(rows) > 20 and named | same <= known, (named | same) - known


def test_the_api_page_is_up_to_date():
    assert api_page.PATH.read_text() == api_page.page(), "run python -m tools.api_page"


def test_the_site_builds_without_a_broken_link(tmp_path):
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "-d", tmp_path]
    build = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert build.returncode == 0, build.stdout + build.stderr
    pages = {path.relative_to(tmp_path).with_suffix("") for path in tmp_path.rglob("*.html")}
    sources = {path.relative_to(DOCS).with_suffix("") for path in DOCS.rglob("*.md")}
    assert sources <= pages


def test_tolerances_are_those_of_the_guide():
    rows = re.findall(
        r"^\| ([\w, ]+) \| (\S+) \| (\S+) \|$", (DOCS / "guide/verification.md").read_text(), re.M
    )
    assert len(rows) == 5
    for names, rtol, atol in rows[1:]:
        for name in names.split(", "):
            tolerance = Tolerance(float(rtol), float(atol))
            assert DEFAULT_TOLERANCES[getattr(torch, name)] == tolerance, name
