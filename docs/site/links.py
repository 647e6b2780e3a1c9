"""Links of the pages to files of the repository, made to work on the site too.

In a checkout a page of ``docs/`` links to ``../config/methods.yaml``, and the README to ``docs/gmr.md``. On the site
the README is the start page, and each file that some page links to has a page of its own that shows it. What a link
names and is nowhere stays as it is, so that the strict build refuses it.
"""

import os
import re
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
SHOWN = "files"

_FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\[(?P<text>[^\]]*)\]\((?!\w+:)(?P<path>[^)#\s]+)(?P<anchor>#[^)\s]*)?\)")
_HEADING = re.compile(r"^# (.+)$", re.MULTILINE)
_LANGUAGES = {".py": "python", ".yaml": "yaml", ".toml": "toml", ".md": "markdown", ".smk": "python"}


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the start page, and a page for every file of the repository that a page links to."""
    pages = {"index.md": _text(ROOT / "README.md")}
    written = {file.src_uri: _text(DOCS / file.src_uri) for file in files.documentation_pages()}
    for uri, text in [*pages.items(), *written.items()]:
        for path in _linked(uri, text):
            if not path.is_relative_to(DOCS) and path != ROOT / "README.md":
                pages[_uri(path)] = _shown(path)
    for uri, text in pages.items():
        files.append(File.generated(config, uri, content=text))
    return files


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    """Turn links to files of the repository into links to their pages."""
    uri = page.file.src_uri
    if uri.startswith(f"{SHOWN}/"):
        return markdown
    blocks = [block[0] for block in _FENCE.finditer(markdown)]
    prose = (_LINK.sub(lambda link: _moved(link, uri), part) for part in _FENCE.split(markdown))
    return "".join(part for pair in zip_longest(prose, blocks, fillvalue="") for part in pair)


def _moved(link: re.Match[str], uri: str) -> str:
    path = _target(uri, link["path"])
    if not path.is_file():
        return link[0]
    text = _title(path) if path.suffix == ".md" and link["text"].endswith(path.name) else link["text"]
    return f"[{text}]({os.path.relpath(_uri(path), Path(uri).parent)}{link['anchor'] or ''})"


def _title(page: Path) -> str:
    """Return the heading of a page, by which a reader of the site knows it."""
    heading = _HEADING.search(_text(page))
    return heading[1] if heading else page.name


def _linked(uri: str, text: str) -> Iterator[Path]:
    for link in _LINK.finditer(_FENCE.sub("", text)):
        path = _target(uri, link["path"])
        if path.is_file():
            yield path


def _target(uri: str, link: str) -> Path:
    """Return the file of the checkout that a link on a page means."""
    folder = ROOT if uri == "index.md" else (DOCS / uri).parent
    return Path(os.path.normpath(folder / link))


def _uri(path: Path) -> str:
    """Return the address on the site of a file of the checkout."""
    if path == ROOT / "README.md":
        return "index.md"
    return str(path.relative_to(DOCS)) if path.is_relative_to(DOCS) else f"{SHOWN}/{path.relative_to(ROOT)}.md"


def _shown(path: Path) -> str:
    # Longer than any run of backticks inside.
    fence = "`" * 6
    return f"# {path.relative_to(ROOT)}\n\n{fence}{_LANGUAGES.get(path.suffix, 'text')}\n{_text(path)}{fence}\n"


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8")
