"""A hook of MkDocs: links that leave docs/ on their way through the repository.

PAGES, documents of the repository's root, are pages beside those of docs/. Any other file is named,
not linked to: a site has no tests and no benchmarks. `tests/readme` looks whether it exists.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File

ROOT = Path(__file__).parents[1]
PAGES = ("CONTRIBUTING.md", "CHANGELOG.md")
_LINK = re.compile(r"\[([^\]]*)\]\(([^)#\s]+)(#[^)\s]*)?\)")


def on_files(files: Any, config: Any) -> Any:
    for name in PAGES:
        files.append(File.generated(config, name, abs_src_path=str(ROOT / name)))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    uri = page.file.src_uri
    folder = "" if uri in PAGES else posixpath.join("docs", posixpath.dirname(uri))

    def within_the_site(link: re.Match[str]) -> str:
        text, target, anchor = link[1], link[2], link[3] or ""
        if "://" in target:
            return link[0]
        path = posixpath.normpath(posixpath.join(folder, target))
        if path.startswith("docs/"):
            place = path.removeprefix("docs/")
        elif path in PAGES:
            place = path
        else:
            return text
        return f"[{text}]({posixpath.relpath(place, posixpath.dirname(uri) or '.')}{anchor})"

    return _LINK.sub(within_the_site, markdown)
