"""Markdown as a part of a page: the deviations, and the reports that are text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from markupsafe import Markup

if TYPE_CHECKING:
    from markdown_it.token import Token

_OPENS_TABLE = "table_open"


def html(text: str, *, below: int, tables: str = "sortable") -> Markup:
    """Markdown as HTML that no markup of the text reaches.

    Headings get the ids that links into the document have. A link to another document stays as its words: that is not
    part of the site.

    Args:
        text: The document.
        below: Level of the heading that it stands under; its own first level is the one after.
        tables: Class of its tables.
    """
    from markdown_it import MarkdownIt

    reader = MarkdownIt("commonmark", {"html": False}).enable("table")
    tokens = reader.parse(text)
    for token, following in zip(tokens, [*tokens[1:], None], strict=True):
        if token.type in {"heading_open", "heading_close"}:
            token.tag = f"h{min(6, below + int(token.tag[1:]))}"
        if token.type == "heading_open" and following is not None:
            token.attrSet("id", slug(following.content))
        if token.type == _OPENS_TABLE:
            token.attrSet("class", tables)
        if token.children:
            token.children = list(_inside(token.children))
    made = reader.renderer.render(tokens, reader.options, {})
    scrolling = made.replace("<table", '<div class="scroll"><table').replace("</table>", "</table></div>")
    return Markup(scrolling)  # noqa: S704


def slug(heading: str) -> str:
    """The id of a heading, as hosts of repositories make it from its words."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def parts(text: str, level: int = 2) -> dict[str, str]:
    """The sections of a document by heading; what precedes the first stands under an empty one."""
    found = {"": ""}
    heading = ""
    for line in text.splitlines(keepends=True):
        if line.startswith("#" * level + " "):
            heading = line.strip("# \n")
            found[heading] = ""
        found[heading] += line
    return found


def _inside(tokens: Iterable[Token]) -> Iterator[Token]:
    """Without the links that lead out of the document and not into the net; links cannot be nested."""
    is_dropped = False
    for token in tokens:
        if token.type == "link_open":
            address = str(token.attrGet("href") or "")
            is_dropped = not address.startswith(("#", "https://", "http://"))
        if token.type in {"link_open", "link_close"} and is_dropped:
            continue
        yield token
