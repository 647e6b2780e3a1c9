"""Finished trajectories as people read them: what a method did on one question of one cell, and what was said."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

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


@dataclass(frozen=True, slots=True)
class Said:
    """One use of a model.

    Attributes:
        call: As it was charged.
        messages: The prompt, ``None`` where the cell's log lies here no longer.
        reply: The text of the reply, empty where the call failed; ``None`` as ``messages``.
    """

    call: Call
    messages: tuple[Message, ...] | None
    reply: str | None


@dataclass(frozen=True, slots=True)
class Choice:
    """One decision, by the method's own name for it.

    Attributes:
        name: What was decided, as in ``role`` or ``action``.
        slot: Tells decisions of one step and name apart.
        choice: What was taken.
        options: Among how many.
        probability: With which it was taken; ``None`` where nothing was drawn.
    """

    name: str
    slot: int
    choice: str
    options: int
    probability: float | None


@dataclass(frozen=True, slots=True)
class Gate:
    """One gate of Gated-Memory Routing.

    Attributes:
        is_open: The outcome.
        probability: That of the gate being open, whatever the outcome; ``None`` where nothing was drawn: the outcome is
            then the only one.
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
    """What a trajectory took; costs in the paper's unit.

    Attributes:
        calls: Number of calls.
        prompt_tokens: Of all calls.
        completion_tokens: Of all calls.
        cost_total: Price of all calls.
        cost_steps: Price without the final aggregation.
        depth: Number of steps executed.
        utility: What a learned method maximises; ``None`` for the others.
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
    """One trajectory of one cell.

    Attributes:
        item: The question, and its gold answer.
        answer: The text that was graded.
        verdict: The grade, and what was extracted from the answer.
        totals: What it took.
        steps: The steps, in order.
        final: The calls of the final aggregation, which is no step; empty where there is none.
    """

    item: Item
    answer: str
    verdict: Verdict
    totals: Totals
    steps: tuple[Step, ...]
    final: tuple[Said, ...]


# Recorded with log-probability 0 though no policy drew them: counted, found by a rule, or said by a model.
UNDRAWN = frozenset({"agents", "short_cut", "ensemble"})
_GATED = "gmr"
_GATES = ("retrieve", "write", "halt")

_Made = Mapping[tuple[str, int], Decision]


def steps_of(trajectory: Trajectory, say: Callable[[Call], Said], *, has_gates: bool) -> Iterator[Step]:
    """The steps of a trajectory, in order.

    Args:
        trajectory: What was recorded.
        say: Adds its texts to a call.
        has_gates: Whether the method is Gated-Memory Routing or a variant of it, which has gates even where none of
            them draws.
    """
    calls = [call for call in trajectory.calls if call.is_step]
    stored: list[int] = []
    for number in sorted({call.step for call in calls} | {decision.step for decision in trajectory.decisions}):
        made = {(one.name, one.slot): one for one in trajectory.decisions if one.step == number}
        said = tuple(say(call) for call in calls if call.step == number)
        if has_gates:
            step = _gated(number, made, stored, said, is_last=number == trajectory.depth)
        else:
            step = Step(number, None, None, tuple(map(choice_of, made.values())), {}, None, None, said)
        if step.written is not None and step.written.is_open:
            stored.append(number)
        yield step


def choice_of(decision: Decision) -> Choice:
    """A decision with the probability of what was chosen."""
    probability = None if decision.name in UNDRAWN else math.exp(decision.log_prob)
    return Choice(decision.name, decision.slot, decision.choice, decision.options, probability)


def gate_of(decision: Decision | None, otherwise: bool) -> Gate:
    """A gate as it was drawn.

    Args:
        decision: The draw, ``None`` where there was none.
        otherwise: The outcome without one.
    """
    if decision is None:
        return Gate(otherwise, None)
    is_open = decision.choice == "yes"
    return Gate(is_open, math.exp(decision.log_prob) if is_open else -math.expm1(decision.log_prob))


def _gated(number: int, made: _Made, stored: Iterable[int], said: tuple[Said, ...], *, is_last: bool) -> Step:
    role, backbone = made.get(("role", 0)), made.get(("backbone", 0))
    others = (one for one in made.values() if one.name not in (*_GATES, "role", "backbone"))
    return Step(
        number,
        None if role is None else choice_of(role),
        None if backbone is None else choice_of(backbone),
        tuple(map(choice_of, others)),
        {record: gate_of(made.get(("retrieve", slot)), True) for slot, record in enumerate(stored)},
        gate_of(made.get(("write", 0)), True),
        # Without a draw, only the deepest step ends a trajectory.
        gate_of(made.get(("halt", 0)), is_last),
        said,
    )


class CallTexts:
    """The texts of a call log, open for reading; another process may be writing it.

    Args:
        path: The log; it need not be there.

    Raises:
        UserError: It is damaged.
    """

    def __init__(self, path: Path) -> None:
        self._log = CallLogReader(path) if path.exists() else None

    def said(self, call: Call) -> Said:
        """A call with its texts, which are ``None`` where no log has it.

        Raises:
            UserError: The log is damaged.
        """
        found = self._log.texts(call.key) if self._log else None
        return Said(call, None, None) if found is None else Said(call, found.messages, found.reply)

    def close(self) -> None:
        """Give the file up; closing twice is harmless."""
        if self._log is not None:
            self._log.close()


def questions(preset: str, benchmark: str) -> dict[str, Item]:
    """The questions of a benchmark as a preset uses them, by id.

    Raises:
        UserError: They are not prepared, or damaged.
    """
    return {item.id: item for item in read(layout.manifest(preset, benchmark), layout.items(preset, benchmark)).pool}


def open_cell(preset: str, cell: Cell, asked: Mapping[str, Item] | None = None) -> CellRecords:
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
    return CellRecords(folder, cell, questions(preset, cell.benchmark) if asked is None else asked)


class CellRecords:
    """The trajectories of one cell, of which the texts are read one trajectory at a time.

    Args:
        folder: Of the cell.
        cell: Which it is.
        asked: The questions by id.

    Attributes:
        ids: The ids of its questions, in the order of the test.

    Raises:
        UserError: As :func:`open_cell`.
    """

    def __init__(self, folder: Path, cell: Cell, asked: Mapping[str, Item]) -> None:
        rows = {row["item_id"]: row["utility"] for row in rows_of(folder / "items.parquet", ["item_id", "utility"])}
        if strangers := [id_ for id_ in rows if id_ not in asked]:
            raise UserError(f"{folder}: its question {strangers[0]!r} is none of the prepared ones; run the cell again")
        self.ids: tuple[str, ...] = tuple(rows)
        self._cell = cell
        self._utilities = rows
        self._answered = dict(zip(rows, results.read(folder, [asked[id_] for id_ in rows]), strict=True))
        entry = config.methods().get(cell.method)
        self._has_gates = entry is not None and entry.module == _GATED
        self._texts = CallTexts(folder / layout.CALL_LOG)

    def __enter__(self) -> CellRecords:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

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
        return record_of(answered, self._utilities[item_id], self._texts.said, has_gates=self._has_gates)

    def close(self) -> None:
        """Give the log up; closing twice is harmless."""
        self._texts.close()


def record_of(answered: Answered, utility: float | None, said: Callable[[Call], Said], *, has_gates: bool) -> Record:
    """Return an answered question as people read it.

    Args:
        answered: The trajectory and its verdict.
        utility: What a learned method maximises, if any.
        said: Finds the texts of a call.
        has_gates: Whether the method has gates.
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
        tuple(steps_of(trajectory, said, has_gates=has_gates)),
        tuple(said(call) for call in trajectory.calls if not call.is_step),
    )
