"""The report of a run as one page, ``reports/<preset>/index.html``, of the tables, figures and claims of its cells."""

from __future__ import annotations

import base64
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
from markdown_it import MarkdownIt
from markdown_it.tree import SyntaxTreeNode

from analysis import finished_cells, registry
from analysis.exhibit import Exhibit, csv, format_cost, line_count, section_starts
from analysis.figure import Figure
from analysis.finished_cells import FinishedCell, short
from analysis.provenance import audited, identity, provenance, served
from analysis.published import load
from analysis.registry import Artefact
from analysis.table import Table
from harness.errors import UserError, making
from harness.files import ROOT, read_yaml, write_atomically
from harness.runner import config, layout
from harness.runner.config import Preset
from harness.runner.ledger import ledger
from harness.runner.results import SIMULATED_WARNING

if TYPE_CHECKING:
    import jinja2

DEVIATIONS = ROOT / "docs" / "deviations.md"
_CELLS, _CLAIMS = "cells.csv", "claims"
_FIRST = ("main_table", "pareto_gsm", "pareto_he")
_REAL = "REAL MODELS: the replies of the servers that are named under Provenance"
_USE = {
    True: "Use it to see that every method, table and plot works and how many calls each method makes; it is not "
    "evidence about language models.",
    False: "Use it as evidence about the models under Provenance on these questions; read a gap to a published number "
    "together with the deviations.",
}
# This label shares a column with the one before it, so that a narrow screen has room for numbers.
_SECOND_LINE = "LLM"


@dataclass(frozen=True)
class PageItem:
    """A table or figure on the page, with the names of its files in the same folder."""

    key: str
    title: str
    exhibit: Exhibit
    files: Sequence[str]
    parts: Sequence[Mapping[str, Any]]  # of a table, else empty
    picture: str  # the data URI of a figure, else empty


def _page_item(artefact: Artefact, preset: Preset, folder: Path) -> PageItem:
    """Return an artefact as the page shows it; its files lie in ``folder``."""
    exhibit, key = artefact.build(preset), artefact.key
    files = _existing(folder, [*artefact.files, f"{key}.pdf"])
    if isinstance(exhibit, Table):
        return PageItem(key, artefact.title, exhibit, files, _table_parts(exhibit), "")
    if not isinstance(exhibit, Figure):
        return PageItem(key, artefact.title, exhibit, files, (), "")
    picture = base64.b64encode((folder / f"{key}.svg").read_bytes()).decode()
    return PageItem(key, artefact.title, exhibit, files, (), f"data:image/svg+xml;base64,{picture}")


def _table_parts(table: Table) -> list[dict[str, Any]]:
    """Return the parts of a table as wide as a page: heads, groups of columns, columns, and rows with their entries."""
    return [_part(shown) for shown in table.parts()]


def _part(shown: pd.DataFrame) -> dict[str, Any]:
    names, columns = list(shown.index.names[1:]), list(shown.columns)
    joined = names.index(_SECOND_LINE) if _SECOND_LINE in names[1:] else 0
    rows, starts = zip(shown.index, shown.to_numpy(), strict=True), section_starts(shown)
    return {
        "heads": _join_label(names, joined),
        "groups": [(*head, len(list(group))) for head, group in groupby(columns, lambda column: column[:2])],
        "columns": [
            (column[2], place == 0 or column[:2] != columns[place - 1][:2]) for place, column in enumerate(columns)
        ],
        "rows": [
            (_join_label(labels, joined), entries, place in starts)
            for place, ((_, *labels), entries) in enumerate(rows)
        ],
    }


def _join_label(labels: Sequence[str], place: int) -> list[tuple[str, str]]:
    """Return labels with a smaller second line, which is the label in a place; 0 for none."""
    small = {place - 1: labels[place]} if place else {}
    return [(label, small.get(number, "")) for number, label in enumerate(labels) if not place or number != place]


def write(preset: Preset, names: Sequence[str]) -> list[str]:
    """Write the page and ``cells.csv`` of a run from what is finished; return the keys of artefacts not made yet."""
    artefacts = [registry.artefact(name) for name in names]
    planned = dict.fromkeys([*(cell for entry in artefacts for cell in entry.cells_of(preset)), *config.cells(preset)])
    folders = [layout.cell(preset.name, cell) for cell in planned]
    cells = [finished_cells.read(folder) for folder in folders if (folder / "run.json").is_file()]
    if not cells:
        raise UserError(
            f"no cell of preset {preset.name} is finished, so there is nothing to show; begin with the main table",
            making(layout.report(preset.name, "main_table.md")),
        )
    folder = layout.REPORTS / preset.name
    shown = {
        entry.key: _page_item(entry, preset, folder)
        for entry in artefacts
        if len(_existing(folder, entry.files)) == len(entry.files)
    }
    sections: defaultdict[str, list[PageItem]] = defaultdict(list)
    for entry in artefacts:
        if entry.key in shown and entry.key not in (*_FIRST, _CLAIMS):
            sections[entry.section].append(shown[entry.key])
    lacking = {entry.key: entry.title for entry in artefacts if entry.key not in shown}
    simulated = any(cell.run.simulated for cell in cells)
    template = _templates().get_template("page.html.j2")
    text = template.render(
        preset=preset.name,
        banner=("simulated", SIMULATED_WARNING) if simulated else ("real", _REAL),
        use=_USE[simulated],
        facts=_facts(preset, cells, shown),
        first=[shown[key] for key in _FIRST if key in shown],
        sections=sections,
        claims=shown.get(_CLAIMS),
        of_paper=registry.artefact(_CLAIMS).applies_to(preset),
        deviations=_deviations(cells),
        tables={"Calls, tokens, cost": _spent(cells), **_licensed(cells)},
        not_made=lacking,
        missing=len(folders) - len(cells),
    )
    write_atomically(folder / _CELLS, csv(_identities(cells), SIMULATED_WARNING if simulated else ""))
    write_atomically(folder / "index.html", text)
    return list(lacking)


def _templates() -> jinja2.Environment:
    """Return templates in which every value is escaped, and a name that is not given is an error."""
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.globals["line_count"] = line_count
    return environment


def _existing(folder: Path, names: Iterable[str]) -> list[str]:
    return [name for name in dict.fromkeys(names) if (folder / name).is_file()]


class _Markdown(MarkdownIt):
    """Renderer of Markdown: HTML in it stays text, so do links to other files, and a table has a box that scrolls."""

    def __init__(self) -> None:
        super().__init__("commonmark", {"html": False})
        self.enable("table")
        self.add_render_rule("table_open", lambda *_: '<div class="scroll" tabindex="0"><table>')
        self.add_render_rule("table_close", lambda *_: "</table></div>")

    def html(self, nodes: Iterable[SyntaxTreeNode]) -> str:
        """Return nodes of a document as HTML."""
        tokens = [token for node in nodes for token in node.to_tokens()]
        for token, following in zip(tokens, [*tokens[1:], None], strict=True):
            if token.type == "heading_open" and following is not None:
                token.attrSet("id", re.sub(r"[^\w\- ]", "", following.content.lower()).replace(" ", "-"))
            depth = 0  # of links whose text alone is kept
            kept = []
            for child in token.children or ():
                if child.type == "link_open" and not str(child.attrGet("href")).startswith(("#", "https:", "http:")):
                    depth += 1
                elif child.type == "link_close" and depth:
                    depth -= 1
                else:
                    kept.append(child)
            token.children = kept if token.children else token.children
        text: str = self.renderer.render(tokens, self.options, {})
        return text


def _deviations(cells: Sequence[FinishedCell]) -> dict[str, Any]:
    """Return the entries of ``docs/deviations.md`` on the methods and benchmarks of some cells."""
    reader = _Markdown()
    document = SyntaxTreeNode(reader.parse(DEVIATIONS.read_text(encoding="utf-8")))
    titles = [cell.run.method_title for cell in cells]
    titles += [load().benchmarks.get(cell.run.benchmark, "") for cell in cells]

    def applies(names: str) -> bool:
        words = [part.partition(" and ")[0] for part in names.split(", ")]
        return any(title.startswith(word) for word in words for title in titles) or names.startswith(("all", "FLOPs"))

    rows = [[cell.children[0] for cell in row.children] for row in document.walk() if row.type == "tr"]
    concerned = [row for row in rows if len(row) == 2 and row[1].content.startswith("[D-") and applies(row[0].content)]
    ids = {_text(link) for _, links in concerned for link in links.walk() if link.type == "link"}
    return {
        "number": len(ids),
        "rows": [(names.content, reader.html([links])) for names, links in concerned],
        "entries": reader.html(_entries(document, ids)),
    }


def _entries(document: SyntaxTreeNode, ids: set[str]) -> Iterator[SyntaxTreeNode]:
    """Iterate over the nodes of the sections below headings of the third level that begin with one of some ids."""
    is_wanted = False
    for node in document.children:
        if node.type == "heading" and node.tag <= "h3":
            is_wanted = node.tag == "h3" and _text(node).partition(" ")[0] in ids
        if is_wanted:
            yield node


def _text(node: SyntaxTreeNode) -> str:
    return "".join(leaf.content for leaf in node.walk() if leaf.type in ("text", "code_inline"))


def _facts(preset: Preset, cells: Sequence[FinishedCell], complete: Iterable[str]) -> list[tuple[str, str]]:
    """Return the facts at the head of the page, by title."""
    runs, origin = [cell.run for cell in cells], provenance(cells)
    questions = {run.benchmark: f"{run.benchmark_title} ({run.data.n_test})" for run in runs}
    return [
        ("preset", f"{preset.name}: {preset.description}"),
        ("test questions", ", ".join(questions.values())),
        ("backbones", ", ".join(sorted({key for run in runs for key in run.backbones}))),
        ("methods", ", ".join(dict.fromkeys(run.method_title for run in runs))),
        ("data", origin["source"]),
        ("training seeds", origin["seeds"]),
        ("settings", "; ".join(dict.fromkeys(note for run in runs for note in run.notes)) or "none"),
        ("complete", ", ".join(complete)),
        ("audit", audited(preset.name, [cell.folder for cell in cells])),
        ("run", origin["run"]),
    ]


def _spent(cells: Sequence[FinishedCell]) -> str:
    """Return what the cells spent as an HTML table: calls, tokens and cost by method."""
    frame = ledger([cell.folder for cell in cells])
    titles = {cell.run.method: cell.run.method_title for cell in cells}
    names = [" ".join([titles.get(key, key), *phase]) for key, *phase in (str(key).split() for key in frame.index)]
    counts = {str(name).replace("_", " "): frame[name].map("{:,}".format) for name in frame.columns.drop("cost")}
    costs = frame["cost"].map(lambda cost: format_cost(cost, 4))
    return _as_html(pd.DataFrame({**counts, "cost": costs}).assign(method=names), "method")


def _licensed(cells: Sequence[FinishedCell]) -> dict[str, str]:
    """Return HTML tables of backbones and questions with their licences, by title."""
    licences = read_yaml(ROOT / "config" / "licences.yaml")
    answered = sorted({(key, served(backbone)) for cell in cells for key, backbone in cell.run.backbones.items()})
    run_of = {cell.run.benchmark: cell.run for cell in cells}
    rows = {
        "Backbones": [
            {"backbone": key, "model, revision, server": who, **licences["backbones"].get(key, {})}
            for key, who in answered
        ],
        "Questions": [
            {"benchmark": run.benchmark_title, "test questions": run.data.n_test, "SHA-256": short(run.data.checksum)}
            | (licences["suite"] if run.data.source == "embedded" else licences["questions"].get(key, {}))
            for key, run in run_of.items()
        ],
    }
    return {name: _as_html(pd.DataFrame(records).fillna(""), next(iter(records[0]))) for name, records in rows.items()}


def _as_html(frame: pd.DataFrame, first: str) -> str:
    with pd.option_context("display.max_colwidth", None):
        return str(frame.set_index(first).reset_index().to_html(index=False, border=0, justify="unset"))


def _identities(cells: Sequence[FinishedCell]) -> pd.DataFrame:
    """Return the rows of ``cells.csv``, one a cell: what was run, and what identifies it."""
    names = ("cell", "method", "benchmark", "backbone", "seed", "simulated")
    rows = [
        {
            **{name: getattr(cell.run, name) for name in names},
            "n": cell.run.data.n_test,
            "rules": cell.run.rule_version,
            "sandbox": cell.run.sandbox,
            **identity([cell]),
        }
        for cell in cells
    ]
    return pd.DataFrame(rows).drop(columns="seeds")
