"""One HTML page that needs nothing else: no script, no font, no style sheet, no picture."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

from analysis.tables import Mark, Row, Table

_TEMPLATE = Path(__file__).with_name("table.html.j2")


class _Line(NamedTuple):
    """A row and how many rows its first label spans: 0 where the label stands in a row above."""

    row: Row
    span: int
    opens: bool


def render(table: Table) -> str:
    """The text of the page."""
    return page(_TEMPLATE, table=table, lines=_lines(table), mark=Mark)


def page(template: Path, **values: Any) -> str:
    """A page from a template: what is put in is escaped, and a name that is not given is an error."""
    import jinja2

    environment = jinja2.Environment(
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        undefined=jinja2.StrictUndefined,
    )
    return environment.from_string(template.read_text(encoding="utf-8")).render(**values)


def _lines(table: Table) -> list[_Line]:
    lines: list[_Line] = []
    section = None
    for _, same in groupby(table.rows, key=lambda row: (row.section, row.labels[0])):
        rows = list(same)
        for place, row in enumerate(rows):
            lines.append(_Line(row, 0 if place else len(rows), row.section != section))
            section = row.section
    return lines
