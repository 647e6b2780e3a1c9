"""What a trajectory is made into from the tables of a cell; ``gmr show`` and the logs of Inspect show the rest."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from analysis.trajectories import Choice, Gate, Record, records
from harness.agents.trajectory import Decision
from harness.benchmarks.items import Item, Status, Verdict
from harness.errors import UserError
from harness.llm.request import Reply
from harness.runner import layout
from harness.runner.config import Cell
from tests.analysis.trajectories.made import PRESET, Ask, Story, finish, prepare

RANDOM = Cell("random_2", "gsm_hard", "pool", 0)
ITEM = Item("q/0", "gsm_hard", "What is it?", "7")


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def step(number: int) -> Ask:
    return Ask("so", how={"step": number, "role": "A/B"})


def drawn(step: int, name: str, choice: str, probability: float, slot: int = 0, options: int = 2) -> Decision:
    return Decision(step, name, slot, choice, options, math.log(probability))


def made(cell: Cell, story: Story) -> Record:
    prepare([ITEM])
    finish(cell, [ITEM], [story])
    (record,) = records(PRESET, cell, {ITEM.id: ITEM})
    return record


def test_gates_that_draw_nothing_are_told_from_methods_without_gates() -> None:
    decisions = [drawn(number, name, "x", 0.5) for number in (1, 2) for name in ("role", "backbone")]
    story = Story([step(1), step(2)], decisions)
    first, second = made(RANDOM, story).steps
    assert (first.written, first.halted) == (Gate(True, None), Gate(False, None))
    # The last step of a trajectory that may go no further ends it without a draw.
    assert (second.retrieved, second.halted) == ({1: Gate(True, None)}, Gate(True, None))
    first, second = made(Cell("puppeteer", "gsm_hard", "small", 0), story).steps
    assert (first.role, first.written, first.halted, second.retrieved) == (None, None, None, {})
    assert [choice.name for choice in first.choices] == ["backbone", "role"]


def test_decisions_of_other_methods_by_their_names() -> None:
    decisions = [
        Decision(0, "agents", 0, "2", 6, 0.0),
        drawn(0, "mode", "Debate", 0.5, options=6),
        drawn(0, "role", "Math/Teacher", 0.25, slot=1, options=12),
        Decision(1, "short_cut", 2, "Agent A", 1, 0.0),
        drawn(2, "action", "terminate", 0.5),
    ]
    planned, first, second = made(Cell("masrouter", "gsm_hard", "pool", 0), Story([step(1)], decisions)).steps
    # A choice without a call is a step of its own.
    assert (second.number, second.calls) == (2, ())
    assert (planned.number, planned.calls) == (0, ())
    assert planned.choices == (
        Choice("agents", 0, "2", 6, None),
        Choice("mode", 0, "Debate", 6, pytest.approx(0.5)),
        Choice("role", 1, "Math/Teacher", 12, pytest.approx(0.25)),
    )
    assert first.choices == (Choice("short_cut", 2, "Agent A", 1, None),)


def test_a_call_that_failed_keeps_its_error() -> None:
    verdict = Verdict(False, None, Status.CALL_FAILED)
    story = Story([Ask(Reply.failed("org/model", "too long"))], answer="", verdict=verdict)
    (said,) = made(Cell("single", "gsm_hard", "small", 0), story).steps[0].calls
    assert (said.call.error, said.reply, said.call.finish_reason) == ("too long", "", "error")


def test_questions_of_others_and_a_damaged_log_are_refused() -> None:
    made(RANDOM, Story([step(1)]))
    with pytest.raises(UserError, match="its question 'q/0' is none of the prepared ones"):
        list(records(PRESET, RANDOM, {}))
    layout.call_log(PRESET, RANDOM).write_bytes(b"no database" * 1000)
    with pytest.raises(UserError, match=r"calls\.sqlite is damaged"):
        list(records(PRESET, RANDOM, {ITEM.id: ITEM}))
