"""What a report's HTML file is made of, taken out as it stands, so that the site shows what the files show."""

from __future__ import annotations

import re
from dataclasses import dataclass
from html import unescape
from pathlib import Path
from urllib.parse import quote

from markupsafe import Markup

from harness.errors import UserError

_TABLE = re.compile(r"<table>\n(?:<caption>(?P<caption>.*?)</caption>\n)?(?P<inside>.*?)</table>", re.DOTALL)
_NOTES = re.compile(r"<ul>\n(?P<notes>.*?)</ul>", re.DOTALL)
_NOTE = re.compile(r"<li>(.*?)</li>", re.DOTALL)
_FACT = re.compile(r"<dt>(.*?)</dt><dd>(.*?)</dd>", re.DOTALL)
_HEADING = re.compile(r"<h2>(.*?)</h2>", re.DOTALL)
_PARAGRAPH = re.compile(r"^<p>(.*?)</p>$", re.DOTALL | re.MULTILINE)
_OF_CELL = re.compile(
    r'(?P<open><td[^>]* data-cell="(?P<cell>[^"]*)">)(?P<number><span class="\w+">[^<]*</span>|[^<†‡]*)', re.DOTALL
)
_ROW = re.compile(r'(<tr id="[^"]*">)')


@dataclass(frozen=True)
class Piece:
    """A report without the page around it. Markup is escaped by the renderer that wrote it, and stays so.

    Attributes:
        caption: What the table shows.
        inside: Head and body of the table.
        notes: Legend and footnotes.
        facts: Name and value of whatever identifies the run.
    """

    caption: Markup
    inside: Markup
    notes: tuple[Markup, ...]
    facts: tuple[tuple[Markup, Markup], ...]

    def linked(self, base: str) -> Markup:
        """Head and body, every number that knows its cell a link to the cell in the explorer.

        Args:
            base: From the page to the folder of the preset.
        """

        def link(found: re.Match[str]) -> str:
            address = f"{base}site/explorer.html#cell={quote(unescape(found['cell']))}"
            return f'{found["open"]}<a href="{address}">{found["number"]}</a>'

        return Markup(_OF_CELL.sub(link, self.inside))  # noqa: S704


@dataclass(frozen=True)
class Claims:
    """The report on all claims.

    Attributes:
        summary: How many came out which way.
        table: All of them in one table, whose first column is the section.
    """

    summary: tuple[Markup, ...]
    table: Piece


def read(path: Path) -> Piece:
    """The table of an artefact.

    Raises:
        UserError: It is no page that this version of the suite wrote.
    """
    page = path.read_text(encoding="utf-8")
    table = _TABLE.search(page)
    if table is None or table["caption"] is None:
        raise _strange(path)
    return Piece(_safe(table["caption"]), _safe(table["inside"]), *_around(page))


def read_claims(path: Path) -> Claims:
    """The claims, which stand in one table a section.

    Raises:
        UserError: It is no page that this version of the suite wrote.
    """
    page = path.read_text(encoding="utf-8")
    titles, tables = _HEADING.findall(page), list(_TABLE.finditer(page))
    if not tables or len(titles) != len(tables):
        raise _strange(path)
    head, _, _ = tables[0]["inside"].partition("<tbody>")
    rows = "".join(
        _ROW.sub(rf"\1\n<td>{_literal(title)}</td>", table["inside"].partition("<tbody>")[2].partition("</tbody>")[0])
        for title, table in zip(titles, tables, strict=True)
    )
    heads = head.replace("<tr>", '<tr><th scope="col">Section</th>', 1)
    notes, facts = _around(page)
    piece = Piece(Markup("The statements of the paper"), _safe(f"{heads}<tbody>{rows}</tbody>"), notes, facts)
    return Claims(tuple(map(_safe, _PARAGRAPH.findall(page))), piece)


def _around(page: str) -> tuple[tuple[Markup, ...], tuple[tuple[Markup, Markup], ...]]:
    """Notes and facts, which follow the table."""
    rest = page.rpartition("</table>")[2]
    listed = _NOTES.search(rest)
    notes = _NOTE.findall(listed["notes"]) if listed else []
    return tuple(map(_safe, notes)), tuple((_safe(name), _safe(value)) for name, value in _FACT.findall(rest))


def _literal(text: str) -> str:
    return text.replace("\\", r"\\")


def _safe(text: str) -> Markup:
    return Markup(text)  # noqa: S704


def _strange(path: Path) -> UserError:
    return UserError(f"{path} is not a report as this version of the suite writes it; make it again")
