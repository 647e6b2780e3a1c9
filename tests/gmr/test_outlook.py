"""Trajectories read back from the records of a desk."""

import math

import pytest

from gmr.outlook import Gate, aggregated, walk
from harness.items import Item
from harness.trajectory import Call, Decision, Trajectory

ITEM = Item(id="1", benchmark="gsm_hard", question="?", gold="1")


def call(step: int, *, is_step: bool = True) -> Call:
    return Call(step, "act", 0, "small", "Math/R0", str(step), 1000, 20, 0.25, is_step, "stop", None)


def test_switched_off_modules_are_read_as_such() -> None:
    decisions = [Decision(step, name, 0, "x", 2, math.log(0.5)) for step in (1, 2) for name in ("role", "backbone")]
    calls = (call(1), call(2), call(3, is_step=False))
    first, second = walk(Trajectory(ITEM, "", calls, tuple(decisions)))
    assert (first.written, first.halted, first.retrieved) == (Gate(True, None), Gate(False, None), {})
    assert (second.halted, second.retrieved) == (Gate(True, None), {1: Gate(True, None)})
    assert aggregated((first, second), "note") == (1, 2)


@pytest.mark.parametrize(("empty_memory", "expected"), [("note", ()), ("last_response", (2,))])
def test_what_an_aggregator_reads_of_an_empty_memory(empty_memory: str, expected: tuple[int, ...]) -> None:
    refused = [Decision(step, "write", 0, "no", 2, math.log(0.5)) for step in (1, 2)]
    chosen = [Decision(step, name, 0, "x", 2, -1.0) for step in (1, 2) for name in ("role", "backbone")]
    steps = walk(Trajectory(ITEM, "", (call(1), call(2)), (*refused, *chosen)))
    assert aggregated(steps, empty_memory) == expected
