"""Searches for a workflow: every round, the chosen one, and its accuracy on the test questions."""

from __future__ import annotations

from collections.abc import Mapping
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


def build(source: Source) -> Table:
    """Return a row a round; raises UserError for a cell whose checkpoint holds no search."""
    results = source.results()
    rows, fields, records, summaries = [], [], [], []
    for cell in (cell for cells in results.cells_by_row.values() for cell in cells):
        run, facts = cell.run, _facts(cell)
        of_cell = {name: getattr(run, name) for name in ("benchmark", "method", "backbone", "seed")}
        for step in facts["search"] or [_START]:
            is_chosen = step["round"] == (facts["best"] or 0)
            records.append({**of_cell, "run": run.run_id, "chosen": is_chosen, **{name: step[name] for name in _ROUND}})
            rows.append((run.cell, run.benchmark_title, run.backbone, str(run.seed), str(step["round"])))
            texts = _fields(step, cell if is_chosen else None)
            fields.append({key: Entry(text, mark=BEST if is_chosen and text else "") for key, text in texts.items()})
        summaries.append(_summary(cell, facts))
    index = pd.MultiIndex.from_tuples(rows, names=_HEADS)
    return Table(
        label="search-history",
        **describe_run(results, source.caption),
        shown=pd.DataFrame(fields, index, pd.MultiIndex.from_tuples(fields[0])),
        notes=(*source.legend, *summaries),
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


def _summary(cell: FinishedCell, facts: Mapping[str, Any]) -> str:
    """Return how the search of a cell went, and the workflow that it ended with."""
    rounds, run = facts["search"], cell.run
    cost = sum(step["cost"] + step["proposal_cost"] for step in rounds)
    end = "It ended because its " + ("best rounds no longer changed" if facts["converged"] else "rounds were used up")
    if len(rounds) < 2:
        end = "Nothing was searched: its limit of rounds leaves none after that of the start workflow"
    best = next((step["workflow"] for step in rounds if step["round"] == facts["best"]), None)
    nodes = "; ".join(map(_node, best)) if best else "that of the start, as no round was scored"
    return (
        f"{run.benchmark_title}, {run.backbone}, seed {run.seed}. Optimizer: {facts['optimizer']}. "
        f"{facts['questions']} training questions a round, {len(cell.items)} test questions. "
        f"Cost of the search: {format_cost(cost, 4)}. {end}. Workflow, of which the last output is the answer: {nodes}."
    )


def _node(node: Mapping[str, Any]) -> str:
    """Return one step of a workflow in the notation of a call."""
    text = f"{node['id']} = {node['operator']}({', '.join(node['inputs'])})"
    text += f" × {node['repeat']}" if node["repeat"] > 1 else ""
    text += f" told “{_line(node['instruction'])}”" if node["instruction"].strip() else ""
    when = node["when"]
    if when is None:
        return text
    other = next((name for name in node["inputs"] if name != "question"), when["node"])
    return f"{text} if {when['node']} {when['is']}, else {other}"


def _line(text: str) -> str:
    return " ".join(text.split())
