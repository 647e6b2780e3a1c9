"""History of a search for a workflow: every round, the chosen one, and its accuracy on the test questions.

A method that searches keeps its rounds in the facts of its checkpoint, under ``search``, the chosen one under ``best``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from analysis.frames import Results
from analysis.markdown import document, grid
from analysis.notes import settings
from analysis.provenance import table_run_id, warning
from analysis.results import Cell, read_all, short
from analysis.table import NOT_RUN
from analysis.table import md_escape as escape
from harness.errors import UserError
from harness.files import write_atomically
from harness.training.checkpoint import load as load_checkpoint
from harness.training.loop import CHECKPOINT

_OF_CELL = ("benchmark", "method", "backbone", "seed", "run", "chosen")
_OF_ROUND = (
    *("round", "parent", "status", "edit", "modification", "score", "success"),
    *("calls", "cost", "proposals", "proposal_cost", "reason"),
)
_SCORES = (
    "Scores are accuracies on the training questions in percent, which is what the search goes by; better: strictly "
    "better than the score of the parent. The chosen round is the best, the earliest of equals, and its workflow alone "
    "answered the test questions. A score that was chosen for being the best of many flatters; the test accuracy "
    "next to it is the measurement."
)
_COSTS = (
    "Costs are in the paper's unit and cover all questions. Search: all calls of all rounds and the optimizer's. Test: "
    "one pass over the test questions, which is what tables show. Calls are those of the workflow."
)


@dataclass(frozen=True, slots=True)
class Search:
    """One cell whose method searched, and what its checkpoint says of every round.

    Attributes:
        best: The round that was chosen, ``None`` where none was scored.
        optimizer: Key of the backbone that proposed edits.
        questions: How many training questions scored a round.
        converged: Whether the search ended because its best rounds no longer changed.
    """

    cell: Cell
    rounds: Sequence[Mapping[str, Any]]
    best: int | None
    optimizer: str
    questions: int
    converged: bool

    @property
    def chosen(self) -> Mapping[str, Any] | None:
        """The chosen round."""
        return next((one for one in self.rounds if one["round"] == self.best), None)

    @property
    def cost(self) -> float:
        """The cost of the search."""
        return float(sum(one["cost"] + one["proposal_cost"] for one in self.rounds))


class History(NamedTuple):
    """Every search of a run, in order of benchmark, method, backbone and seed, and how many cells are missing."""

    searches: tuple[Search, ...]
    unfinished: int

    @property
    def cells(self) -> list[Cell]:
        """The cells behind it."""
        return [search.cell for search in self.searches]


def build(folders: Iterable[Path]) -> History:
    """Read the searches of a run; cells that are not finished are counted and left out.

    Raises:
        UserError: There is none, one cannot be read, one holds no search, or they do not belong together.
    """
    whole = list(folders)
    finished = [folder for folder in whole if (folder / "run.json").is_file()]
    if not finished:
        raise UserError(
            "no finished cell of a method that searches for a workflow; name aflow under `methods` of the preset and "
            "give `snakemake --cores all reports/PRESET/search_history.md`"
        )
    return History(tuple(map(_read, read_all(finished))), len(whole) - len(finished))


def _read(cell: Cell) -> Search:
    path = cell.folder / CHECKPOINT
    facts = load_checkpoint(path).facts
    try:
        return Search(cell, facts["search"], facts["best"], facts["optimizer"], facts["questions"], facts["converged"])
    except KeyError as error:
        raise UserError(f"{path} holds no search ({error} is missing); run the cell again, or leave it out") from error


def write(history: History, folder: Path) -> list[Path]:
    """Write ``search_history.md`` and ``search_history.csv``, and return them."""
    texts = {folder / "search_history.md": to_markdown(history), folder / "search_history.csv": to_csv(history)}
    for path, text in texts.items():
        write_atomically(path, text)
    return list(texts)


def to_csv(history: History) -> str:
    """One row a round, after comment lines that say what the numbers are and which run they come from."""
    rows = []
    for search in history.searches:
        run = search.cell.run
        of_cell = (run.benchmark, run.method, run.backbone, run.seed, run.run_id)
        rows += [(*of_cell, one["round"] == search.best, *(one[name] for name in _OF_ROUND)) for one in search.rounds]
    frame = pd.DataFrame(rows, columns=[*_OF_CELL, *_OF_ROUND])
    said = filter(None, (warning(history.cells[0].run.simulated), f"run {table_run_id(history.cells)}"))
    table: str = frame.to_csv(index=False, float_format="%.10g", lineterminator="\n")
    return "".join([*(f"# {line}\n" for line in said), table])


def to_markdown(history: History) -> str:
    """The text of the file: warning, caption, how to read it, all searches in a table, then one part a search."""
    parts = [line for search in history.searches for line in _part(search)]
    body = [*_overview(history), *parts]
    return document(history.cells, "Searches for a workflow", _caption(history), (_SCORES, _COSTS), body)


def _caption(history: History) -> str:
    run = history.cells[0].run
    kind = " (SIMULATED backbones)" if run.simulated else ""
    missing = f" INCOMPLETE: {history.unfinished} cells are not finished." if history.unfinished else ""
    return f"Preset {run.preset}{kind}.{settings(Results(tuple(history.cells)))}{missing}"


def _overview(history: History) -> list[str]:
    heads = ["Benchmark", "Method", "LLM", "Seed", "Rounds", "Chosen", "Validation (%)", "Test (%)"]
    rows = []
    for search in history.searches:
        run, items = search.cell.run, search.cell.items
        name = [escape(one) for one in (run.benchmark_title, run.method_title, run.backbone)]
        chosen = NOT_RUN if search.best is None else str(search.best)
        test = [f"{100 * items['correct'].mean():.2f}", f"{search.cost:.4f}", f"{items['cost_total'].sum():.4f}"]
        scored = [str(run.seed), str(len(search.rounds)), chosen, _score(search.chosen)]
        rows.append([*name, *scored, *test, short(run.run_id)])
    return grid([*heads, "Search cost", "Test cost", "Run"], rows, left=3)


def _part(search: Search) -> Iterator[str]:
    run = search.cell.run
    marked = ", SIMULATED" if run.simulated else ""
    title = f"{run.method_title}, {run.benchmark_title}, {run.backbone}, seed {run.seed}{marked}"
    yield from (f"## {escape(title)}", "")
    end = "its best rounds no longer changed" if search.converged else "its rounds were used up"
    told = (
        f"Run {short(run.run_id)}. Optimizer: {search.optimizer}. {search.questions} training questions a round, "
        f"{len(search.cell.items)} test questions. The search ended because {end}."
    )
    yield from (escape(told), "")
    heads = ["Round", "Parent", "Edit", "Score (%)", "Better", "Calls", "Cost", "Optimizer's cost"]
    yield from grid(heads, [_round_row(one, search.best) for one in search.rounds], left=3)
    yield from _chosen(search)


def _round_row(one: Mapping[str, Any], best: int | None) -> list[str]:
    number = f"**{one['round']}**" if one["round"] == best else str(one["round"])
    better = {None: "", True: "yes", False: "no"}[one["success"]]
    parent = "" if one["parent"] is None else str(one["parent"])
    costs = (f"{one['cost']:.4f}", f"{one['proposal_cost']:.4f}")
    return [number, parent, _edit(one), _score(one), better, str(one["calls"]), *costs]


def _edit(one: Mapping[str, Any]) -> str:
    """What a round tried, or why there was nothing to score."""
    if one["status"] == "no_proposal":
        return f"*no edit to try*: {escape(_line(one['reason']))}"
    return escape(f"{one['edit']}: {_line(one['modification'])}") if one["edit"] else "start workflow"


def _score(one: Mapping[str, Any] | None) -> str:
    return NOT_RUN if one is None or one["score"] is None else f"{one['score']:.2f}"


def _chosen(search: Search) -> Iterator[str]:
    chosen = search.chosen
    if chosen is None:
        yield from ("No round was scored; the start workflow answered the test questions.", "")
        return
    yield from (f"**The workflow of round {search.best}**", "")
    for number, node in enumerate(chosen["workflow"], 1):
        yield f"{number}. {escape(_in_words(node))}"
    yield from ("", "The answer is the output of the last step.", "")


def _in_words(node: Mapping[str, Any]) -> str:
    """One step as a sentence or three."""
    times = "once" if node["repeat"] == 1 else f"{node['repeat']} times, the first greedily and the others sampled,"
    seen = [name for name in node["inputs"] if name != "question"]
    what = " and ".join(["the question", *(f"what {name} gave" for name in seen)])
    told = _line(node["instruction"])
    words = f"{node['id']}: {node['operator']} runs {times} on {what}" + (f", told: “{told}”." if told else ".")
    if node["when"] is None:
        return words
    instead = seen[0] if seen else node["when"]["node"]
    return f"{words} Only if {node['when']['node']} {node['when']['is']}; if not, what {instead} gave is used instead."


def _line(text: str) -> str:
    return " ".join(text.split())
