"""Searches for a workflow: every round, the chosen one, and its accuracy on the test questions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pandas as pd

from analysis.exhibit import BEST, NOT_RUN, Entry, format_cost
from analysis.finished_cells import FinishedCell
from analysis.notes import describe_run
from analysis.source import Source
from analysis.table import Table
from harness.errors import UserError
from harness.training.checkpoint import load as load_checkpoint
from harness.training.loop import CHECKPOINT

_HEADS = ("section", "Benchmark", "LLM", "Seed", "Round")
_FACTS = ("search", "best", "optimizer", "questions", "converged")
_ROUND = (
    *("round", "parent", "status", "edit", "modification", "score", "success"),
    *("calls", "cost", "proposals", "proposal_cost", "reason"),
)
# The row of a cell without rounds, whose start workflow answered as it is.
_START = dict.fromkeys(_ROUND) | {"round": 0, "calls": 0, "cost": 0.0, "proposals": 0, "proposal_cost": 0.0}
_SCORES = (
    "Scores are accuracies on the training questions in percent, which is what the search goes by; better: strictly "
    "better than the score of the parent. The chosen round, in bold, is the best, the earliest of equals, and its "
    "workflow alone answered the test questions. A score that was chosen for being the best of many flatters; the test "
    "accuracy next to it is the measurement."
)
_COSTS = (
    "Costs are in the paper's unit and cover all questions. Search: all calls of the round and the optimizer's. Test: "
    "one pass over the test questions, which is what tables show. Calls are those of the workflow."
)


def build(source: Source) -> Table:
    """Return a row a round; raises UserError for a cell whose checkpoint holds no search."""
    results = source.results()
    rows, fields, records, summaries = [], [], [], []
    for cell in (cell for cells in results.cells_by_row.values() for cell in cells):
        run, facts = cell.run, _facts(cell)
        place = {name: getattr(run, name) for name in ("benchmark", "method", "backbone", "seed")}
        for step in facts["search"] or [_START]:
            is_chosen = step["round"] == (facts["best"] or 0)
            records.append({**place, "run": run.run_id, "chosen": is_chosen, **{name: step[name] for name in _ROUND}})
            rows.append((run.cell, run.benchmark_title, run.backbone, str(run.seed), str(step["round"])))
            texts = _fields(step, cell if is_chosen else None)
            fields.append({key: Entry(text, mark=BEST if is_chosen and text else "") for key, text in texts.items()})
        summaries.append(" ".join(_sentences(cell, facts)))
    index = pd.MultiIndex.from_tuples(rows, names=_HEADS)
    return Table(
        label="search-history",
        **describe_run(results, "Searches for a workflow."),
        shown=pd.DataFrame(fields, index, pd.MultiIndex.from_tuples(fields[0])),
        notes=(_SCORES, _COSTS, *summaries),
        frame=pd.DataFrame(records),
    )


def _facts(cell: FinishedCell) -> Mapping[str, Any]:
    path = cell.folder / CHECKPOINT
    facts = load_checkpoint(path).facts
    if missing := [name for name in _FACTS if name not in facts]:
        raise UserError(f"{path} holds no search ({missing[0]!r} is missing); run the cell again, or leave it out")
    return facts


def _fields(step: Mapping[str, Any], cell: FinishedCell | None) -> dict[tuple[str, str, str], str]:
    """Return the text of each column for one round; ``cell`` is given for the round that answered the test."""
    edit = f"{step['edit']}: {_line(step['modification'])}" if step["edit"] else "start workflow"
    if step["status"] == "no_proposal":
        edit = f"no edit to try: {_line(step['reason'])}"
    texts = {
        ("Search", "parent"): "" if step["parent"] is None else str(step["parent"]),
        ("Search", "edit"): edit,
        ("Search", "score (%)"): NOT_RUN if step["score"] is None else f"{step['score']:.2f}",
        ("Search", "better"): {None: "", True: "yes", False: "no"}[step["success"]],
        ("Search", "calls"): str(step["calls"]),
        ("Search", "cost"): format_cost(step["cost"], 4),
        ("Search", "optimizer's cost"): format_cost(step["proposal_cost"], 4),
        ("Test", "accuracy (%)"): f"{100 * cell.items['correct'].mean():.2f}" if cell else "",
        ("Test", "cost"): format_cost(cell.items["cost_total"].sum(), 4) if cell else "",
    }
    return {(group, "", title): text for (group, title), text in texts.items()}


def _sentences(cell: FinishedCell, facts: Mapping[str, Any]) -> Iterator[str]:
    rounds, run = facts["search"], cell.run
    cost = sum(step["cost"] + step["proposal_cost"] for step in rounds)
    end = "It ended because its " + ("best rounds no longer changed" if facts["converged"] else "rounds were used up")
    if len(rounds) < 2:
        end = "Nothing was searched: its limit of rounds leaves none after that of the start workflow"
    yield (
        f"{run.benchmark_title}, {run.backbone}, seed {run.seed}. Optimizer: {facts['optimizer']}. "
        f"{facts['questions']} training questions a round, {len(cell.items)} test questions. "
        f"Cost of the search: {format_cost(cost, 4)}. {end}."
    )
    best = next((step for step in rounds if step["round"] == facts["best"]), None)
    if best is None:
        yield "No round was scored; the start workflow answered the test questions."
        return
    yield f"The workflow of round {facts['best']}:"
    yield from (f"{number}. {_in_words(node)}" for number, node in enumerate(best["workflow"], 1))
    yield "The answer is the output of the last step."


def _in_words(node: Mapping[str, Any]) -> str:
    times = "once" if node["repeat"] == 1 else f"{node['repeat']} times, the first greedily and the others sampled,"
    steps = [name for name in node["inputs"] if name != "question"]
    inputs = " and ".join(["the question", *(f"what {name} gave" for name in steps)])
    instruction = f", told: “{_line(node['instruction'])}”." if node["instruction"].strip() else "."
    sentence = f"{node['id']}: {node['operator']} runs {times} on {inputs}{instruction}"
    if (when := node["when"]) is None:
        return sentence
    other = steps[0] if steps else when["node"]
    return f"{sentence} Only if {when['node']} {when['is']}; if not, what {other} gave is used instead."


def _line(text: str) -> str:
    return " ".join(text.split())
