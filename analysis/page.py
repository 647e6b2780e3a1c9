"""The report of a run as one page, ``reports/<preset>/index.html``, of the HTML and SVG files of its artefacts."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pandas as pd
from markdown_it import MarkdownIt

from analysis import registry, results
from analysis.provenance import identity, provenance, served, warning
from analysis.published import load
from analysis.registry import Artefact
from analysis.results import FinishedCell, short
from analysis.table import amount, csv, environment
from harness.errors import UserError
from harness.files import ROOT, read_yaml, write_atomically
from harness.runner import config, layout
from harness.runner.config import Preset
from harness.runner.ledger import ledger

DEVIATIONS = ROOT / "docs" / "deviations.md"
_CELLS = "cells.csv"
_FIRST = ("main_table", "pareto_gsm", "pareto_he")
# Reports that are text, by name: what a reader calls them.
_TEXTS = {
    "flip_rate": "How many replies differ when asked again",
}
_REAL = "REAL MODELS: the replies of the servers that are named under Provenance"
_USE = {
    True: "Use it to see that every method, table and plot works and how many calls each method makes; it is not "
    "evidence about language models.",
    False: "Use it as evidence about the models under Provenance on these questions; read a gap to a published number "
    "together with the deviations.",
}


def write(preset: Preset, names: Sequence[str]) -> list[str]:
    """Write the page and ``cells.csv`` of a run from what is finished; return the keys of artefacts not made yet."""
    of_artefacts = (cell for name in names for cell in registry.artefact(name).cells_of(preset))
    wanted = dict.fromkeys([*of_artefacts, *config.cells(preset)])
    folders = [layout.cell(preset.name, cell) for cell in wanted]
    cells = [results.read(folder) for folder in folders if (folder / "run.json").is_file()]
    if not cells:
        raise UserError(
            f"no cell of preset {preset.name} is finished, so there is nothing to show; "
            f"run `snakemake --cores all reports/{preset.name}/main_table.md` first"
        )
    folder = layout.REPORTS / preset.name
    artefacts = [registry.artefact(name) for name in names]
    made = {one.key: _shown(one, folder) for one in artefacts if len(_there(folder, one.files)) == len(one.files)}
    lacking = {one.key: one.title for one in artefacts if one.key not in made}
    sections: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
    for one in artefacts:
        if one.key in made and one.key not in _FIRST:
            sections[one.section].append(made[one.key])
    simulated = any(cell.run.simulated for cell in cells)
    text = (
        environment()
        .get_template("page.html.j2")
        .render(
            preset=preset.name,
            banner=("simulated", warning(True)) if simulated else ("real", _REAL),
            use=_USE[simulated],
            facts=_facts(preset, cells, made),
            first=[made[key] for key in _FIRST if key in made],
            sections=sections,
            claims=_claims(folder),
            texts=_texts(folder),
            deviations=_deviations(cells),
            tables={"Calls, tokens, cost": _spent(cells), **_licensed(cells)},
            not_made=lacking,
            missing=len(folders) - len(cells),
        )
    )
    write_atomically(folder / _CELLS, csv(_identities(cells), warning(simulated)))
    write_atomically(folder / "index.html", text)
    return list(lacking)


def _shown(artefact: Artefact, folder: Path) -> dict[str, Any]:
    key = artefact.key
    shown = {"key": key, "title": artefact.title, "files": _there(folder, [*artefact.files, f"{key}.pdf"])}
    if artefact.kind == "figure":
        return shown | {"shown": "", "caption": _caption(folder / f"{key}.svg")}
    return shown | {"shown": _body(folder / f"{key}.html")}


def _there(folder: Path, names: Iterable[str]) -> list[str]:
    return [name for name in dict.fromkeys(names) if (folder / name).is_file()]


def _body(path: Path) -> str:
    found = re.search(r"<body[^>]*>\n(.*)</body>", path.read_text(encoding="utf-8"), re.DOTALL)
    if found is None:
        raise UserError(f"{path} is not a report as this version of the suite writes it; make it again")
    return found[1]


def _caption(svg: Path) -> str:
    try:
        found = ElementTree.parse(svg).find(".//{http://purl.org/dc/elements/1.1/}description")  # noqa: S314 (ours)
    except ElementTree.ParseError:
        found = None
    if found is None:
        raise UserError(f"{svg} is not a figure as this version of the suite writes it; make it again")
    return found.text or ""


def _claims(folder: Path) -> dict[str, Any] | None:
    files = _there(folder, ["claims.html", "claims.md", "claims.csv"])
    if "claims.html" not in files:
        return None
    summary, begin, judged = _body(folder / "claims.html").partition("<h2>")
    below = (begin + judged).replace("<h2>", "<h3>").replace("</h2>", "</h3>")
    return {"files": files, "summary": re.sub(r"<h1>.*?</h1>", "", summary), "judged": below}


def _texts(folder: Path) -> list[dict[str, Any]]:
    found = []
    for name, words in _TEXTS.items():
        if (path := folder / f"{name}.md").is_file():
            files = _there(folder, [path.name, f"{name}.csv"])
            found.append({"title": words, "files": files, "text": _html(path.read_text(encoding="utf-8"))})
    return found


def _html(markdown: str, below: int = 2) -> str:
    reader = MarkdownIt("commonmark", {"html": False}).enable("table")
    tokens = reader.parse(markdown)
    for token, following in zip(tokens, [*tokens[1:], None], strict=True):
        if token.type in {"heading_open", "heading_close"}:
            token.tag = f"h{min(6, below + int(token.tag[1:]))}"
        if token.type == "heading_open" and following is not None:
            token.attrSet("id", re.sub(r"[^\w\- ]", "", following.content.lower()).replace(" ", "-"))
    made: str = reader.renderer.render(tokens, reader.options, {})
    made = re.sub(r'<a href="(?!#|https?:)[^"]*">(.*?)</a>', r"\1", made, flags=re.DOTALL)
    return made.replace("<table", '<div class="scroll" tabindex="0"><table').replace("</table>", "</table></div>")


def _deviations(cells: Sequence[FinishedCell]) -> dict[str, Any]:
    text = DEVIATIONS.read_text(encoding="utf-8")
    titles = [cell.run.method_title for cell in cells]
    titles += [load().benchmarks.get(cell.run.benchmark, "") for cell in cells]

    def applies(names: str) -> bool:
        words = [part.partition(" and ")[0] for part in names.split(", ")]
        return any(one.startswith(word) for word in words for one in titles) or names.startswith(("all", "FLOPs"))

    lines = re.findall(r"^\| ([^|]+) \| (\[D-.*) \|$", text, re.MULTILINE)
    concerned = [(names, links) for names, links in lines if applies(names)]
    ids = {id_ for _, links in concerned for id_ in re.findall(r"\[(D-[A-Z]+-\d+)\]", links)}
    entries = re.findall(r"^### (?:D-[A-Z]+-\d+) .*?(?=^##|\Z)", text, re.MULTILINE | re.DOTALL)
    table = "".join(f"| {names} | {links} |\n" for names, links in concerned)
    return {
        "number": len(ids),
        "table": _html(f"| Of | Entries |\n|---|---|\n{table}"),
        "entries": _html("".join(one for one in entries if one.split()[1] in ids), below=0),
    }


def _facts(preset: Preset, cells: Sequence[FinishedCell], made: Iterable[str]) -> list[tuple[str, str]]:
    runs, known = [cell.run for cell in cells], provenance(cells)
    questions = {run.benchmark: f"{run.benchmark_title} ({run.data.n_test})" for run in runs}
    return [
        ("preset", f"{preset.name}: {preset.description}"),
        ("test questions", ", ".join(questions.values())),
        ("backbones", ", ".join(sorted({key for run in runs for key in run.backbones}))),
        ("methods", ", ".join(dict.fromkeys(run.method_title for run in runs))),
        ("data", known["source"]),
        ("training seeds", known["seeds"]),
        ("settings", "; ".join(dict.fromkeys(note for run in runs for note in run.notes)) or "none"),
        ("complete", ", ".join(made)),
        ("run", known["run"]),
    ]


def _spent(cells: Sequence[FinishedCell]) -> str:
    frame = ledger([cell.folder for cell in cells])
    titles = {cell.run.method: cell.run.method_title for cell in cells}
    names = [" ".join([titles.get(key, key), *phase]) for key, *phase in (str(key).split() for key in frame.index)]
    told = {str(name).replace("_", " "): frame[name].map("{:,}".format) for name in frame.columns.drop("cost")}
    return _as_html(
        pd.DataFrame({**told, "cost": frame["cost"].map(lambda cost: amount(cost, 4))}).assign(method=names), "method"
    )


def _licensed(cells: Sequence[FinishedCell]) -> dict[str, str]:
    known = read_yaml(ROOT / "config" / "licences.yaml")
    answered = sorted({(key, served(one)) for cell in cells for key, one in cell.run.backbones.items()})
    asked = {cell.run.benchmark: cell.run for cell in cells}
    rows = {
        "Backbones": [
            {"backbone": key, "model, revision, server": who, **known["backbones"].get(key, {})}
            for key, who in answered
        ],
        "Questions": [
            {"benchmark": run.benchmark_title, "test questions": run.data.n_test, "SHA-256": short(run.data.checksum)}
            | (known["suite"] if run.data.source == "embedded" else known["questions"].get(key, {}))
            for key, run in asked.items()
        ],
    }
    return {name: _as_html(pd.DataFrame(of).fillna(""), next(iter(of[0]))) for name, of in rows.items()}


def _as_html(frame: pd.DataFrame, first: str) -> str:
    with pd.option_context("display.max_colwidth", None):
        return str(frame.set_index(first).reset_index().to_html(index=False, border=0, justify="unset"))


def _identities(cells: Sequence[FinishedCell]) -> pd.DataFrame:
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
