"""The report of a run as one page, ``reports/<preset>/index.html``, made from its tables, figures and claims."""

import base64
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from analysis import notes, registry
from analysis.beyond import outcomes
from analysis.exhibit import anchor, format_cost, render
from analysis.finished_cells import (
    RunInfo,
    answers_of,
    in_order,
    models_in_words,
    outcome,
    provenance,
    read_run,
    timing,
)
from analysis.frames import Results
from analysis.published import load
from analysis.registry import Artefact
from harness.benchmarks.items import Item
from harness.benchmarks.prepare import read
from harness.errors import UserError, printable
from harness.files import ROOT, write_atomically
from harness.runner import layout
from harness.runner.config import withheld_benchmarks
from harness.runner.layout import POOL, SINGLE
from harness.runner.preset import command, departures, making_with
from harness.runner.results import SIMULATED_WARNING
from harness.runner.run import Run

DEVIATIONS = ROOT / "docs" / "deviations.md"
_CLAIMS = "claims"
_FIRST = ("main_table", "pareto_gsm", "pareto_he", "pareto")
_PROVEN = (
    "results follow from the replies, each call has one, and a sample of the vectors is the encoder's, unless the "
    "settings say that it was not checked; not that a model wrote the replies (docs/report.md)"
)
_SIMULATED_USE = (
    "Use it to see that every method, table and plot works and how many calls each method makes; it is not evidence "
    "about language models."
)
# If one row is right and the other wrong on this many questions, and never the reverse, McNemar's exact p is below 5 %.
_LEAST = 6
# CSS pixels per inch of a figure.
_PIXELS = 130
_MOST_BYTES = 3_000_000
_FORMS = {"cost": lambda cost: format_cost(cost, 4), "hours": "{:.2f}".format}
_SUMS = ["prompt_tokens", "completion_tokens", "cost"]

# Letters of a text and of an answer that are shown.
_LONG, _SHORT = 3000, 160
_ANSWER = ["status", "detail", "answer", "text", "correct"]


class PageItem(NamedTuple):
    """A table, a figure or the claims on the page, with the names of its other files in the same folder."""

    artefact: Artefact
    files: Sequence[str]
    html: str = ""  # empty for a figure
    picture: str = ""  # the data URI of a figure
    caption: Sequence[str] = ()  # of a figure, and its notes
    width: int = 0  # of a figure, in CSS pixels


def _page_item(artefact: Artefact, folder: Path) -> PageItem:
    """Return an artefact as the page shows it, from its files in ``folder``."""
    files = [name for name in artefact.files if not name.endswith(".html")]  # The page itself shows the HTML.
    if artefact.kind != "figure":
        return PageItem(artefact, files, (folder / f"{artefact.key}.html").read_text(encoding="utf-8"))
    picture = (folder / f"{artefact.key}.svg").read_bytes()
    texts = (folder / f"{artefact.key}.txt").read_text(encoding="utf-8").split("\n\n")
    points = re.search(rb'<svg[^>]* width="([\d.]+)pt"', picture)
    width = round(_PIXELS * float(points[1]) / 72) if points else 0
    return PageItem(
        artefact, files, "", f"data:image/svg+xml;base64,{base64.b64encode(picture).decode()}", texts, width
    )


def write(preset: Run, outdated: Collection[str] = ()) -> list[str]:
    """Write the page of a run from finished artefacts, some of them outdated; return the keys of the missing ones."""
    artefacts = registry.of_run(preset)
    planned = dict.fromkeys([*registry.all_cells(preset), *preset.cells()])
    folders = [layout.cell(preset.name, cell) for cell in planned]
    runs = {folder: read_run(folder) for folder in folders if (folder / "run.json").is_file()}
    if not runs:
        raise UserError(
            f"no cell of preset {preset.name} is finished, so there is nothing to show; begin with the main table",
            making_with(preset, layout.report(preset.name, "main_table.md")),
        )
    folder = layout.REPORTS / preset.name
    made = [entry for entry in artefacts if all((folder / name).is_file() for name in entry.files)]
    shown = {entry.key: _page_item(entry, folder) for entry in made}
    sections: defaultdict[str, list[PageItem]] = defaultdict(list)
    for entry in made:
        # In the order of all artefacts, including those shown elsewhere.
        sections[entry.section] += [shown[entry.key]] * (entry.key not in (*_FIRST, _CLAIMS))
    lacking = {entry.key: entry.title for entry in artefacts if entry.key not in shown}
    simulated = any(run.simulated for run in runs.values())
    results = registry.artefact("main_table").results(preset)
    used = sum(len(item.html) + len(item.picture) for item in shown.values())
    text = render(
        "page.html.j2",
        preset=preset.name,
        command=lambda name: command(preset, folder / name),
        banner=("simulated", SIMULATED_WARNING) if simulated else ("real", f"REAL MODELS: {_replies(preset, runs)}"),
        about=_about(preset),
        use=_SIMULATED_USE if simulated else _use(runs.values()),
        facts=_facts(preset, runs),
        run_notes=list(notes.of_run(results)) if results.folders else [],
        grids=list(grids(results, _MOST_BYTES - 100_000 - used)) if results.folders else [],
        first=[shown[key] for key in _FIRST if key in shown],
        sections={name: items for name, items in sections.items() if items},
        outdated=outdated,
        claims=shown.get(_CLAIMS),
        is_judged=not registry.artefact(_CLAIMS).lacking(preset),
        deviations=_deviations(runs.values()),
        spent=_spent(runs).to_html(
            index=False, border=0, justify="unset", formatters=_FORMS, float_format="{:,.0f}".format
        ),
        not_made=lacking,
        missing=len(folders) - len(runs),
    )
    outcomes.write(folder / "outcomes.parquet", list(runs))
    write_atomically(folder / "index.html", printable(text, keep="\n"))
    return list(lacking)


def _replies(preset: Run, runs: Mapping[Path, RunInfo]) -> str:
    """Describe whose replies a run has, and when they were given."""
    started = [recording.crate.get("./", {}).get("datePublished") for recording in preset.recorded] or [
        datetime.fromtimestamp(time, UTC).isoformat() for cell in runs.items() if (time := timing(*cell).started)
    ]
    dates = sorted({date[0] for text in started if (date := re.match(r"\d{4}-(0[1-9]|1[0-2])", str(text)))})
    months = [f"{datetime.strptime(date, '%Y-%m').replace(tzinfo=UTC):%B %Y}" for date in dates]
    when = f", {'recorded' if preset.recorded else 'given'} in {' and '.join(months)}" if months else ""
    return f"replies of {models_in_words(runs.values())}{when}"


def _about(preset: Run) -> str:
    """Return what the run answers, from the first paragraph of its README if it is a recorded one, and what it is."""
    path = ROOT / "evidence" / preset.name / "README.md"
    # Above the title the file says which table `load_dataset` loads.
    text = path.read_text(encoding="utf-8").partition("\n# ")[2] if path.is_file() else "\n\n"
    paragraph = text.split("\n\n")[1]
    found = re.match(r".+?\? .+?\.(?=\s)", " ".join(paragraph.replace("**", "").split()) + " ")
    return (f"{found[0]} {preset.description}" if found else preset.description).replace("`", "")


def _use(runs: Iterable[RunInfo]) -> str:
    """Describe the differences that the test questions of a real run can show."""
    sizes = {run.benchmark_title: run.data.n_test for run in runs}
    points = ", ".join(f"{100 * _LEAST / n:.1f} on {title}" for title, n in sizes.items() if n >= _LEAST)
    few = ", ".join(f"{title} ({n})" for title, n in sizes.items() if n < _LEAST)
    least = f"With one seed, differences below these points cannot be significant: {points}."
    too_few = f"Too few questions to show any difference: {few}."
    return " ".join([least] * bool(points) + [too_few] * bool(few))


def _deviations(runs: Iterable[RunInfo]) -> dict[str, list[str]]:
    """Return the entries of ``docs/deviations.md`` (id and title) that concern some runs, by their subject."""
    text = DEVIATIONS.read_text(encoding="utf-8")
    heading_of = {id_: f"{id_} {title}" for id_, title in re.findall(r"^### (\S+) (.+)$", text, re.MULTILINE)}
    titles = [title for run in runs for title in (run.method_title, load().benchmarks.get(run.benchmark, ""))]

    def applies(names: str) -> bool:
        words = [part.partition(" and ")[0] for part in names.split(", ")]
        is_of_report = names.startswith(("all", "Bounds", "FLOPs"))
        return is_of_report or any(title.startswith(word) for word in words for title in titles)

    rows = re.findall(r"^\| ([^|]+) \| (\[D-.+) \|$", text, re.MULTILINE)
    return {
        names: [heading_of[id_] for id_ in re.findall(r"\[(D-[A-Z]+-\d+)\]", links)]
        for names, links in rows
        if applies(names)
    }


def _facts(preset: Run, runs_by_folder: Mapping[Path, RunInfo]) -> dict[str, str]:
    """Return what was run, by title."""
    runs = list(runs_by_folder.values())
    questions = {run.benchmark: f"{run.benchmark_title} ({run.data.n_test})" for run in runs}
    recordings = {f"{name} (SHA-256 {sha})" for run in runs for name, sha in run.recordings.items()}
    machines = {timing(*of).platform for of in runs_by_folder.items()} - {""}
    facts = {
        "left out": departures(preset),
        "test questions": ", ".join(questions.values()),
        "methods": ", ".join(dict.fromkeys(run.method_title for run in runs)),
        "recordings": ", ".join(sorted(recordings)),
        "machine": ", ".join(sorted(machines)),
        "answers": answers_of(runs),
        **({"recordings prove": _PROVEN} if any(run.recordings for run in runs) else {}),
        **provenance(runs),
    }
    return {name: value for name, value in facts.items() if value}


def _spent(runs: Mapping[Path, RunInfo]) -> pd.DataFrame:
    """Return calls, tokens, cost and hours by row, and for all."""
    records = []
    for folder, run in runs.items():
        row = run.method_title if run.backbone == POOL else f"{run.method_title} ({run.backbone})"
        files = [folder / name for name in ("calls.parquet", "training_calls.parquet")]
        tables = [pd.read_parquet(file, columns=["key", "error", *_SUMS]) for file in files if file.exists()]
        calls = pd.concat(tables)
        counts = {"calls": len(calls), "in training": len(calls) - len(tables[0]), "distinct": calls["key"].nunique()}
        hours = (timing(folder, run).wall_s or 0) / 3600
        records.append({"row": row, **counts, "failed": calls["error"].count(), **calls[_SUMS].sum(), "hours": hours})
    frame = pd.DataFrame(records).groupby("row", sort=False).sum()
    frame.loc["all"] = frame.sum()
    return frame.rename(columns=lambda name: name.replace("_", " ")).reset_index()


@dataclass(frozen=True)
class Grid:
    """The questions of one benchmark."""

    benchmark: str
    title: str
    heads: Mapping[str, str]  # anchor and name of each row of the main table
    groups: Mapping[int, Sequence[str]]  # questions, as HTML, by the number of rows that are right
    alone: Mapping[str, Mapping[str, str]]  # anchor and id of questions that one of two rows alone got right
    n: int
    left_out: int  # questions for which the page has no room
    is_withheld: bool  # whether its texts must not be shown


def grids(results: Results, letters: int) -> Iterator[Grid]:
    """Yield the grid of each benchmark, with at most so many letters of HTML for all. Rows have their first seed."""
    for benchmark, title in results.benchmarks.items():
        yield _grid(results, benchmark, title, letters // len(results.benchmarks))


def _grid(results: Results, benchmark: str, title: str, letters: int) -> Grid:
    cells = {row: of[0] for row in results.ran.index if (of := results.cells_by_row.get((*row, benchmark)))}
    titles = {row: tuple(results.rows.loc[row, ["method_title", "backbone_title"]]) for row in cells}
    names = {row: of[0] if row[1] == POOL else f"{of[0]} ({of[1]})" for row, of in titles.items()}
    answers = {row: cell.items.set_index("item_id")[_ANSWER].fillna("").to_dict("index") for row, cell in cells.items()}
    shares = {row: cell.items["correct"].mean() for row, cell in cells.items()}
    best = max((row for row in cells if row[0] == SINGLE), key=lambda row: shares[row], default=None)
    pair = [row for row in dict.fromkeys([results.reference, best]) if row in cells]
    preset = next(iter(cells.values())).run.preset
    prepared = read(layout.manifest(preset, benchmark), layout.items(preset, benchmark))
    is_withheld = prepared.data == "real" and benchmark in withheld_benchmarks()
    items = {item.id: item for item in prepared.test}
    ids, shown = sorted(next(iter(answers.values())), key=in_order), []
    groups: defaultdict[int, list[str]] = defaultdict(list)
    for id_ in ids:
        of_rows = {names[row]: answers[row][id_] for row in cells}
        replies = {names[row]: answers[row][id_]["text"][:_LONG] for row in pair}
        html = _question(anchor(title, id_), items[id_], of_rows, {} if is_withheld else replies)
        letters -= len(html)
        if letters < 0:
            break
        groups[sum(answer["correct"] for answer in of_rows.values())].append(html)
        shown.append(id_)
    alone = {
        names[row]: {
            anchor(title, id_): id_ for id_ in shown if answers[row][id_]["correct"] > answers[other][id_]["correct"]
        }
        for row, other in (pair, pair[::-1])[: len(pair) * 2 - 2]
    }
    return Grid(
        benchmark=benchmark,
        title=title,
        heads={anchor(title, *titles[row]): name for row, name in names.items()},
        groups=dict(sorted(groups.items())),
        alone=alone,
        n=len(ids),
        left_out=len(ids) - len(shown),
        is_withheld=is_withheld,
    )


def _question(key: str, item: Item, answers: Mapping[str, Mapping[str, Any]], replies: Mapping[str, str]) -> str:
    """Return a question as HTML; without ``replies``, its texts are withheld."""
    rows_of: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    for name, answer in answers.items():
        # Programs are shown by how they ended.
        said = (answer["detail"] if item.code else answer["answer"]) if replies else None
        result = outcome(answer["status"], answer["correct"])
        rows_of[result, (said or answer["status"])[:_SHORT]].append(name)
    marks = [outcome(answer["status"], answer["correct"]) for answer in answers.values()]
    return render("question.html.j2", key=key, item=item, marks=marks, rows_of=rows_of, replies=replies, long=_LONG)
