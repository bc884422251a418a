"""The site in docs/: every page's Python runs, prints what the page says, and the site builds."""

from __future__ import annotations

import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from sardonyx.extend import custom_symbolics
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
        "control_flow",
        "custom_operators",
        "large_models",
        "verification",
    }


def printed_blocks(text: str) -> list[str]:
    """What a page says that its Python prints, or an error says."""
    return re.findall(r"^```text\n(.*?)^```", text, re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_python_of_a_page_runs(page: Path, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(custom_symbolics, "_registered", {})
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
