"""What the documents show is run: Python, command lines, make targets, links, quoted code."""

from __future__ import annotations

import re
import shlex
import textwrap
from pathlib import Path

import pytest
import torch
from typer.testing import CliRunner

from sardonyx.cli import app

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text()
DOCS = ROOT / "docs"
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(DOCS.rglob("*.md"))]


def python_blocks(text: str) -> list[str]:
    fenced = re.findall(r"^ *```python\n(.*?)^ *```", text, re.DOTALL | re.MULTILINE)
    return [textwrap.dedent(block) for block in fenced]


def test_python_of_the_readme_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    [example] = python_blocks(README)
    exec(example, names)
    assert (tmp_path / "model.onnx").is_file()
    assert "input: float32[batch, 4]" in capsys.readouterr().out


def test_first_example_is_short():
    code = [line for line in python_blocks(README)[0].splitlines() if line.strip()]
    assert len(code) <= 5


def test_command_lines_of_the_readme_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    commands = re.findall(r"^    sardonyx (.+)$", README, re.MULTILINE)
    assert len(commands) == 2
    for command in commands:
        result = CliRunner().invoke(app, shlex.split(command))
        assert result.exit_code == 0, result.output
    assert "onnx::Conv" in result.stdout


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.stem)
def test_make_targets_exist(document):
    targets = set(re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert set(re.findall(r"^ {4}make (\w+)|`make (\w+)`", document.read_text())) <= {
        pair for target in targets for pair in ((target, ""), ("", target))
    }


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.stem)
def test_links_lead_somewhere(document):
    for target in re.findall(r"\]\(([^)\s]+)\)", prose(document.read_text())):
        if target.startswith("http"):
            continue
        path, _, anchor = target.partition("#")
        page = document.parent / path if path else document
        assert page.exists(), target
        assert not anchor or anchor in anchors(page.read_text()), target


def prose(text: str) -> str:
    return re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)


def anchors(text: str) -> set[str]:
    """The headings of a page, as links name them."""
    titles = re.findall(r"^#+ (.+)$", prose(text), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}


def test_contributing_quotes_code_that_exists():
    folders = [ROOT / "src/sardonyx/lower/ops", ROOT / "tests/lower/ops"]
    sources = [path.read_text() for folder in folders for path in folder.glob("*.py")]
    blocks = python_blocks(CONTRIBUTING)
    assert len(blocks) == 2
    for block in blocks:
        assert any(block in source for source in sources), block


def test_contributing_shows_the_schema():
    expression = re.search(r'python -c "import torch; print\((.+)\)"', CONTRIBUTING)
    assert str(eval(expression[1], {"torch": torch})) in CONTRIBUTING


def test_architecture_names_files_and_folders_that_exist():
    text = (ROOT / "docs/architecture.md").read_text()
    source = ROOT / "src/sardonyx"
    known = {path.name for path in source.rglob("*.py")}
    named = {name.rpartition("/")[2] for name in re.findall(r"`([\w/]+\.py)`", text)}
    assert named and named <= known, named - known
    folders = {path.name for path in source.iterdir() if (path / "__init__.py").is_file()}
    assert {folder for folder in folders if f"{folder}/" not in text} == set()
