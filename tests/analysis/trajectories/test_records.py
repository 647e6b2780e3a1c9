from __future__ import annotations

import math
from pathlib import Path

import pytest

from analysis.trajectories import Choice, Gate, open_cell
from harness.agents.trajectory import Decision
from harness.benchmarks.items import Item, Status, Verdict
from harness.errors import UserError
from harness.llm.request import Message, Reply
from harness.runner import layout
from harness.runner.config import Cell
from tests.analysis.trajectories.made import PRESET, RIGHT, Ask, Story, finish, prepare

GMR = Cell("gmr", "gsm_hard", "pool", 0)


def question(number: int) -> Item:
    return Item(f"q/{number}", "gsm_hard", f"What is {number}?", str(number))


def step(number: int, reply: str, purpose: str = "act") -> Ask:
    return Ask(
        reply,
        (("system", f"Role {number}"), ("user", purpose)),
        how={"step": number, "purpose": purpose, "role": "A/B"},
    )


def last(number: int, reply: str) -> Ask:
    return Ask(reply, how={"step": number, "purpose": "aggregate", "is_step": False})


def drawn(step: int, name: str, choice: str, probability: float, slot: int = 0, options: int = 2) -> Decision:
    return Decision(step, name, slot, choice, options, math.log(probability))


def two_steps() -> Story:
    decisions = [
        drawn(1, "role", "A/B", 0.25, options=26),
        drawn(1, "backbone", "small", 0.5),
        drawn(1, "write", "yes", 0.125),
        drawn(1, "halt", "no", 0.75),
        drawn(2, "role", "A/B", 0.5, options=26),
        drawn(2, "backbone", "small", 1.0),
        drawn(2, "retrieve", "no", 0.875),
        drawn(2, "write", "no", 0.75),
    ]
    return Story([step(1, "one"), step(2, "two"), step(2, "two again", "second_call"), last(3, "seven")], decisions)


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def made(cell: Cell, *stories: Story) -> list[Item]:
    items = [question(number) for number in range(len(stories))]
    prepare(items)
    finish(cell, items, stories)
    return items


def test_a_trajectory_of_the_router() -> None:
    (item,) = made(GMR, two_steps())
    with open_cell(PRESET, GMR) as records:
        assert records.ids == ("q/0",)
        record = records.record("q/0")
    assert (record.item, record.answer, record.verdict) == (item, "The answer is 7", RIGHT)
    totals = record.totals
    assert (totals.calls, totals.depth, totals.prompt_tokens, totals.completion_tokens) == (4, 2, 400, 40)
    assert totals.cost_total == pytest.approx(4 / 3 * totals.cost_steps)
    assert totals.utility == len("The answer is 7")
    first, second = record.steps
    assert first.role == Choice("role", 0, "A/B", 26, pytest.approx(0.25))
    assert first.backbone == Choice("backbone", 0, "small", 2, pytest.approx(0.5))
    assert (first.retrieved, second.retrieved) == ({}, {1: Gate(False, pytest.approx(0.125))})
    assert (first.written, second.written) == (Gate(True, pytest.approx(0.125)), Gate(False, pytest.approx(0.25)))
    # The last step of a trajectory that may go no further ends it without a draw.
    assert (first.halted, second.halted) == (Gate(False, pytest.approx(0.25)), Gate(True, None))
    assert (first.choices, second.choices) == ((), ())
    assert [said.reply for said in first.calls] == ["one"]
    assert [(said.call.purpose, said.reply) for said in second.calls] == [("act", "two"), ("second_call", "two again")]
    assert second.calls[0].messages == (Message("system", "Role 2"), Message("user", "act"))
    assert [(said.call.purpose, said.reply) for said in record.final] == [("aggregate", "seven")]


def test_gates_that_draw_nothing_are_told_from_methods_without_gates() -> None:
    decisions = [drawn(1, name, "x", 0.5) for name in ("role", "backbone")]
    story = Story([step(1, "one"), step(2, "two")], [*decisions, *(drawn(2, one.name, "x", 0.5) for one in decisions)])
    items = made(Cell("random_2", "gsm_hard", "pool", 0), story)
    finish(Cell("puppeteer", "gsm_hard", "small", 0), items, [story])
    with open_cell(PRESET, Cell("random_2", "gsm_hard", "pool", 0)) as records:
        first, second = records.record("q/0").steps
    assert (first.written, first.halted) == (Gate(True, None), Gate(False, None))
    assert (second.retrieved, second.halted) == ({1: Gate(True, None)}, Gate(True, None))
    with open_cell(PRESET, Cell("puppeteer", "gsm_hard", "small", 0)) as records:
        first, second = records.record("q/0").steps
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
    made(Cell("masrouter", "gsm_hard", "pool", 0), Story([step(1, "one"), last(2, "end")], decisions))
    with open_cell(PRESET, Cell("masrouter", "gsm_hard", "pool", 0)) as records:
        planned, first, second = records.record("q/0").steps
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
    cell = Cell("single", "gsm_hard", "small", 0)
    verdict = Verdict(False, None, Status.CALL_FAILED)
    made(cell, Story([Ask(Reply.failed("org/model", "too long"))], answer="", verdict=verdict))
    with open_cell(PRESET, cell) as records:
        (said,) = records.record("q/0").steps[0].calls
    assert (said.call.error, said.reply, said.call.finish_reason) == ("too long", "", "error")


def test_what_is_not_there_is_one_line() -> None:
    with pytest.raises(UserError, match="gmr gsm_hard pool seed 0 is not finished; run it"), open_cell(PRESET, GMR):
        pass
    made(GMR, two_steps())
    with (
        open_cell(PRESET, GMR) as records,
        pytest.raises(UserError, match="has no item 'q/9'; it has 1, among"),
    ):
        records.record("q/9")
    prepare([question(5)])
    with pytest.raises(UserError, match="its question 'q/0' is none of the prepared ones"), open_cell(PRESET, GMR):
        pass


def test_a_damaged_log_is_named() -> None:
    made(GMR, two_steps())
    log = layout.call_log(PRESET, GMR)
    log.write_bytes(b"no database" * 1000)
    with pytest.raises(UserError, match=r"calls\.sqlite is damaged"), open_cell(PRESET, GMR) as records:
        records.record("q/0")
