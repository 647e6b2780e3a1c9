"""What reports written as Markdown share: what stands around their body, and pipe tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from analysis.provenance import provenance, warning
from analysis.results import Cell
from analysis.table import md_escape as escape


def document(cells: Sequence[Cell], title: str, caption: str, notes: Iterable[str], body: Iterable[str]) -> str:
    """The text of a file: the warning of a simulated run, title, caption, how to read it, body, provenance."""
    said = warning(cells[0].run.simulated)
    first = [f"> **{escape(said)}**", ""] if said else []
    opening = [*first, f"# {title}", "", escape(caption), "", *(f"- {escape(note)}" for note in notes), ""]
    origin = "; ".join(f"{name}: {value}" for name, value in provenance(cells).items())
    return "\n".join([*opening, *body, f"Provenance: {escape(origin)}", ""])


def grid(heads: Sequence[str], rows: Iterable[Sequence[str]], left: int = 1) -> list[str]:
    """The lines of a table and an empty one, its fields as they are given; the first columns are set flush left."""
    rule = ["---"] * left + ["--:"] * (len(heads) - left)
    return [*(f"| {' | '.join(line)} |" for line in ([escape(head) for head in heads], rule, *rows)), ""]
