"""Finished trajectories as people read them: what a method did on one question of one cell, and what was said."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from analysis.finished_cells import read as results_of
from harness.agents.trajectory import Answered, Call, Decision, Trajectory
from harness.benchmarks.items import Item, Verdict
from harness.benchmarks.prepare import read
from harness.errors import UserError
from harness.llm.call_log import CallLogReader
from harness.llm.request import Message
from harness.runner import layout, results
from harness.runner.config import Cell
from harness.runner.results import item_row, read_rows

# Recorded with log-probability 0 though no policy drew them: counted, computed, found by a rule, or said by a model.
_UNDRAWN = frozenset({"agents", "short_cut", "ensemble", "redundancy"})
_TOTALS = ("calls", "prompt_tokens", "completion_tokens", "cost_total", "cost_steps", "depth")
_GATED = "gmr"
_OF_THE_ROUTER = frozenset({"role", "backbone", "retrieve", "write", "halt"})


class CallRecord(NamedTuple):
    """One use of a model, as it was charged, with its texts: None where the cell's log is gone."""

    call: Call
    messages: tuple[Message, ...] | None
    reply: str | None  # empty where the call failed


class Choice(NamedTuple):
    """One decision by the method's own name for it, what was taken, and among how many options."""

    name: str
    slot: int  # tells decisions of one step and name apart
    choice: str
    options: int
    probability: float | None  # None where nothing was drawn


class Gate(NamedTuple):
    """The outcome of one gate of Gated-Memory Routing."""

    is_open: bool
    probability: float | None  # of being open; None where nothing was drawn, so that the outcome is the only one


class StepRecord(NamedTuple):
    """One step of a trajectory; what belongs to the router is None or empty for a method without gates."""

    number: int  # counted from 1; 0 for what is decided before the first
    role: Choice | None  # who acts
    backbone: Choice | None  # the model behind the role
    choices: tuple[Choice, ...]  # all other decisions but those of the gates
    retrieved: Mapping[int, Gate]  # by the step that stored a contribution, whether the agent saw it
    written: Gate | None  # whether the contribution was stored
    halted: Gate | None  # whether the trajectory ended here
    calls: tuple[CallRecord, ...]


class TrajectoryRecord(NamedTuple):
    """One trajectory."""

    item: Item
    answer: str  # the text that was graded
    verdict: Verdict
    totals: Mapping[str, Any]  # of its row in ``items.parquet``, costs in the paper's unit, and its utility or None
    steps: tuple[StepRecord, ...]
    final: tuple[CallRecord, ...]  # the calls of the final aggregation, which is no step


def questions(preset: str, benchmark: str) -> dict[str, Item]:
    """Load the questions of a benchmark as a preset uses them, by id."""
    return {item.id: item for item in read(layout.manifest(preset, benchmark), layout.items(preset, benchmark)).pool}


def records(preset: str, cell: Cell, items: Mapping[str, Item]) -> Iterator[TrajectoryRecord]:
    """Iterate over the trajectories of a finished cell in test order; raises UserError for other questions."""
    folder = layout.cell(preset, cell)
    utilities = {row["item_id"]: row["utility"] for row in read_rows(folder / "items.parquet", ["item_id", "utility"])}
    if strangers := [id_ for id_ in utilities if id_ not in items]:
        raise UserError(f"{folder}: its question {strangers[0]!r} is none of the prepared ones; run the cell again")
    has_gates = results_of(folder).run.module == _GATED
    with _call_texts(folder / layout.CALL_LOG) as find_texts:
        for answered in results.read(folder, [items[id_] for id_ in utilities]):
            yield _record_of(answered, utilities[answered.trajectory.item.id], find_texts, has_gates=has_gates)


@contextmanager
def _call_texts(path: Path) -> Iterator[Callable[[Call], CallRecord]]:
    """Return a function that finds the texts of calls in a log, which may be missing or still written to."""
    if not path.exists():
        yield lambda call: CallRecord(call, None, None)
        return
    with CallLogReader(path) as log:
        yield lambda call: CallRecord(call, *(log.texts(call.key) or (None, None)))


def _record_of(
    answered: Answered, utility: float | None, find_texts: Callable[[Call], CallRecord], *, has_gates: bool
) -> TrajectoryRecord:
    """Return an answered question as a record; GMR and its variants have gates, even where none of them draws."""
    trajectory, row = answered.trajectory, item_row(answered)
    totals = {**{name: row[name] for name in _TOTALS}, "utility": utility}
    return TrajectoryRecord(
        trajectory.item,
        trajectory.answer,
        answered.verdict,
        totals,
        tuple(_steps(trajectory, find_texts, has_gates=has_gates)),
        tuple(find_texts(call) for call in trajectory.calls if not call.is_step),
    )


def _steps(
    trajectory: Trajectory, find_texts: Callable[[Call], CallRecord], *, has_gates: bool
) -> Iterator[StepRecord]:
    """Iterate over the steps: their decisions, the records they could see, and their calls."""
    calls = [call for call in trajectory.calls if call.is_step]
    routers = _OF_THE_ROUTER if has_gates else frozenset()
    stored: list[int] = []
    for number in sorted({call.step for call in calls} | {decision.step for decision in trajectory.decisions}):
        decisions = [decision for decision in trajectory.decisions if decision.step == number]
        draws = {(decision.name, decision.slot): decision for decision in decisions if decision.name in routers}
        role, backbone = draws.get(("role", 0)), draws.get(("backbone", 0))
        written = _gate(draws.get(("write", 0)), True)
        yield StepRecord(
            number,
            _choice(role) if role else None,
            _choice(backbone) if backbone else None,
            tuple(_choice(decision) for decision in decisions if decision.name not in routers),
            {record: _gate(draws.get(("retrieve", slot)), True) for slot, record in enumerate(stored)},
            written if has_gates else None,
            # Without a draw, only the deepest step ends a trajectory.
            _gate(draws.get(("halt", 0)), number == trajectory.depth) if has_gates else None,
            tuple(find_texts(call) for call in calls if call.step == number),
        )
        if has_gates and written.is_open:
            stored.append(number)


def _choice(decision: Decision) -> Choice:
    probability = None if decision.name in _UNDRAWN else math.exp(decision.log_prob)
    return Choice(decision.name, decision.slot, decision.choice, decision.options, probability)


def _gate(decision: Decision | None, otherwise: bool) -> Gate:
    """Return whether a gate opened and its probability of opening; ``otherwise`` and None if it drew nothing."""
    if decision is None:
        return Gate(otherwise, None)
    is_open = decision.choice == "yes"
    return Gate(is_open, math.exp(decision.log_prob) if is_open else -math.expm1(decision.log_prob))
