"""Finished trajectories as people read them: what a method did on one question of one cell, and what was said."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from harness.agents import results
from harness.agents.results import Answered, rows_of
from harness.agents.trajectory import Call, Decision, Trajectory
from harness.benchmarks.items import Item, Verdict
from harness.benchmarks.prepare import read
from harness.errors import UserError
from harness.llm.call_log import CallLogReader
from harness.llm.request import Message
from harness.runner import config, layout
from harness.runner.config import Cell

# Recorded with log-probability 0 though no policy drew them: counted, found by a rule, or said by a model.
UNDRAWN = frozenset({"agents", "short_cut", "ensemble"})
_GATED = "gmr"
_GATES = ("retrieve", "write", "halt")


@dataclass(frozen=True, slots=True)
class Said:
    """One use of a model, as it was charged.

    ``messages`` and ``reply`` are ``None`` where the cell's log is gone; the reply is empty where the call
    failed.
    """

    call: Call
    messages: tuple[Message, ...] | None
    reply: str | None


@dataclass(frozen=True, slots=True)
class Choice:
    """One decision by the method's own name for it, what was taken, and among how many options.

    ``slot`` tells decisions of one step and name apart; ``probability`` is ``None`` where nothing was drawn.
    """

    name: str
    slot: int
    choice: str
    options: int
    probability: float | None


@dataclass(frozen=True, slots=True)
class Gate:
    """The outcome of one gate of Gated-Memory Routing.

    ``probability`` is that of the gate being open; ``None`` where nothing was drawn: the outcome
    is then the only one.
    """

    is_open: bool
    probability: float | None


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a trajectory.

    Attributes:
        number: Counted from 1; 0 for what is decided before the first.
        role: Who acts, where the step is one agent's and a policy chose it.
        backbone: The model behind the role, likewise.
        choices: All other decisions of the step but those of the gates.
        retrieved: What memory held before the step, by the number of the step that stored it, and whether the agent saw
            it; empty for a method without gates.
        written: Whether the contribution was stored; ``None`` for a method without gates.
        halted: Whether the trajectory ended here; ``None`` likewise.
        calls: What was asked of models, in order.
    """

    number: int
    role: Choice | None
    backbone: Choice | None
    choices: tuple[Choice, ...]
    retrieved: Mapping[int, Gate]
    written: Gate | None
    halted: Gate | None
    calls: tuple[Said, ...]


@dataclass(frozen=True, slots=True)
class Totals:
    """What a trajectory took, costs in the paper's unit, and the utility that a learned method maximises, or ``None``.

    ``cost_steps`` is without the final aggregation.
    """

    calls: int
    prompt_tokens: int
    completion_tokens: int
    cost_total: float
    cost_steps: float
    depth: int
    utility: float | None


@dataclass(frozen=True, slots=True)
class Record:
    """One trajectory, the text that was graded, and the calls of the final aggregation, which is no step."""

    item: Item
    answer: str
    verdict: Verdict
    totals: Totals
    steps: tuple[Step, ...]
    final: tuple[Said, ...]


class CellRecords:
    """The trajectories of one cell, of which the texts are read one trajectory at a time.

    Attributes:
        ids: The ids of its questions, in the order of the test.
    """

    def __init__(self, folder: Path, cell: Cell, asked: Mapping[str, Item], said: Callable[[Call], Said]) -> None:
        self._utilities = {
            row["item_id"]: row["utility"] for row in rows_of(folder / "items.parquet", ["item_id", "utility"])
        }
        self.ids = tuple(self._utilities)
        if strangers := [id_ for id_ in self.ids if id_ not in asked]:
            raise UserError(f"{folder}: its question {strangers[0]!r} is none of the prepared ones; run the cell again")
        self._cell, self._said = cell, said
        self._answered = dict(zip(self.ids, results.read(folder, [asked[id_] for id_ in self.ids]), strict=True))
        entry = config.methods().get(cell.method)
        self._has_gates = entry is not None and entry.module == _GATED

    def record(self, item_id: str) -> Record:
        """One trajectory.

        Raises:
            UserError: The cell has no such question, or its log is damaged.
        """
        if item_id not in self._answered:
            raise UserError(
                f"{self._cell} has no item {item_id!r}; it has {len(self.ids)}, among them {', '.join(self.ids[:3])}"
            )
        answered = self._answered[item_id]
        return record_of(answered, self._utilities[item_id], self._said, has_gates=self._has_gates)


def questions(preset: str, benchmark: str) -> dict[str, Item]:
    """The questions of a benchmark as a preset uses them, by id.

    Raises:
        UserError: They are not prepared, or damaged.
    """
    return {item.id: item for item in read(layout.manifest(preset, benchmark), layout.items(preset, benchmark)).pool}


@contextmanager
def open_cell(preset: str, cell: Cell, asked: Mapping[str, Item] | None = None) -> Iterator[CellRecords]:
    """The trajectories of a finished cell.

    Args:
        preset: Its name.
        cell: The cell.
        asked: The questions by id, for who opens several cells of one benchmark; read where none are given.

    Raises:
        UserError: The cell is not finished, is damaged, or is of other questions than the prepared ones.
    """
    folder = layout.cell(preset, cell)
    if not (folder / "run.json").exists():
        raise UserError(f"{cell} is not finished; run it with `snakemake --cores all {folder / 'run.json'}`")
    with call_texts(folder / layout.CALL_LOG) as said:
        yield CellRecords(folder, cell, questions(preset, cell.benchmark) if asked is None else asked, said)


@contextmanager
def call_texts(path: Path) -> Iterator[Callable[[Call], Said]]:
    """Finds the texts of calls in a log, which need not be there, and which another process may be writing.

    Raises:
        UserError: It is damaged.
    """
    if not path.exists():
        yield lambda call: Said(call, None, None)
        return
    with CallLogReader(path) as log:

        def said(call: Call) -> Said:
            found = log.texts(call.key)
            return Said(call, None, None) if found is None else Said(call, found.messages, found.reply)

        yield said


def record_of(answered: Answered, utility: float | None, said: Callable[[Call], Said], *, has_gates: bool) -> Record:
    """Return an answered question as people read it, given its utility and what finds the texts of a call.

    A method that is Gated-Memory Routing or a variant of it has gates, even where none of them draws.
    """
    trajectory = answered.trajectory
    totals = Totals(
        calls=len(trajectory.calls),
        prompt_tokens=sum(call.prompt_tokens for call in trajectory.calls),
        completion_tokens=sum(call.completion_tokens for call in trajectory.calls),
        cost_total=trajectory.cost_total,
        cost_steps=trajectory.cost_steps,
        depth=trajectory.depth,
        utility=utility,
    )
    return Record(
        trajectory.item,
        trajectory.answer,
        answered.verdict,
        totals,
        tuple(_steps(trajectory, said, has_gates=has_gates)),
        tuple(said(call) for call in trajectory.calls if not call.is_step),
    )


def _steps(trajectory: Trajectory, say: Callable[[Call], Said], *, has_gates: bool) -> Iterator[Step]:
    calls = [call for call in trajectory.calls if call.is_step]
    stored: list[int] = []
    for number in sorted({call.step for call in calls} | {decision.step for decision in trajectory.decisions}):
        made = {(one.name, one.slot): one for one in trajectory.decisions if one.step == number}
        said = tuple(say(call) for call in calls if call.step == number)
        if has_gates:
            step = _gated(number, made, stored, said, is_last=number == trajectory.depth)
        else:
            step = Step(number, None, None, tuple(map(_choice, made.values())), {}, None, None, said)
        if step.written is not None and step.written.is_open:
            stored.append(number)
        yield step


def _choice(decision: Decision) -> Choice:
    """A decision with the probability of what was chosen."""
    probability = None if decision.name in UNDRAWN else math.exp(decision.log_prob)
    return Choice(decision.name, decision.slot, decision.choice, decision.options, probability)


def _gate(decision: Decision | None, otherwise: bool) -> Gate:
    """A gate as it was drawn, or the outcome that there is without a draw."""
    if decision is None:
        return Gate(otherwise, None)
    is_open = decision.choice == "yes"
    return Gate(is_open, math.exp(decision.log_prob) if is_open else -math.expm1(decision.log_prob))


def _gated(
    number: int,
    made: Mapping[tuple[str, int], Decision],
    stored: Iterable[int],
    said: tuple[Said, ...],
    *,
    is_last: bool,
) -> Step:
    role, backbone = made.get(("role", 0)), made.get(("backbone", 0))
    others = (one for one in made.values() if one.name not in (*_GATES, "role", "backbone"))
    return Step(
        number,
        None if role is None else _choice(role),
        None if backbone is None else _choice(backbone),
        tuple(map(_choice, others)),
        {record: _gate(made.get(("retrieve", slot)), True) for slot, record in enumerate(stored)},
        _gate(made.get(("write", 0)), True),
        # Without a draw, only the deepest step ends a trajectory.
        _gate(made.get(("halt", 0)), is_last),
        said,
    )
