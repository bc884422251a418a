"""A hook of MkDocs: a link that leaves docs/ for the repository becomes its text.

The site has no tests and no benchmarks to lead to. `tests/readme` looks whether they exist.
"""

from __future__ import annotations

import posixpath
import re
from typing import Any

_LINK = re.compile(r"\[([^\]]*)\]\(([^)\s]+)\)")


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    folder = posixpath.dirname(page.file.src_uri)

    def within_the_site(link: re.Match[str]) -> str:
        leaves = posixpath.normpath(posixpath.join(folder, link[2])).startswith("../")
        return link[1] if leaves else link[0]

    return _LINK.sub(within_the_site, markdown)
