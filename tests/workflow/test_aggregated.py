"""What the aggregator of a walked trajectory read."""

import math

import pytest

from analysis.trajectories import Gate, Said, Step, steps_of
from harness.agents.trajectory import Call, Decision, Trajectory
from harness.benchmarks.items import Item
from workflow.route import aggregated

ITEM = Item(id="1", benchmark="gsm_hard", question="?", gold="1")
CHOSEN = [Decision(step, name, 0, "x", 2, math.log(0.5)) for step in (1, 2) for name in ("role", "backbone")]


def steps(*decisions: Decision) -> tuple[Step, ...]:
    calls = (call(1), call(2), call(3, is_step=False))
    walked = Trajectory(ITEM, "", calls, (*CHOSEN, *decisions))
    return tuple(steps_of(walked, lambda one: Said(one, None, None), has_gates=True))


def call(step: int, *, is_step: bool = True) -> Call:
    return Call(step, "act", 0, "small", "Math/R0", str(step), 1000, 20, 0.25, is_step, "stop", None)


def test_without_a_write_gate_it_is_everything() -> None:
    first, second = steps()
    assert (first.written, first.halted, first.retrieved) == (Gate(True, None), Gate(False, None), {})
    assert (second.halted, second.retrieved) == (Gate(True, None), {1: Gate(True, None)})
    assert aggregated((first, second), "note") == (1, 2)


def test_it_is_what_was_stored() -> None:
    written = steps(Decision(1, "write", 0, "no", 2, -1.0), Decision(2, "write", 0, "yes", 2, -1.0))
    assert aggregated(written, "last_response") == (2,)


@pytest.mark.parametrize(("empty_memory", "expected"), [("note", ()), ("last_response", (2,))])
def test_of_an_empty_memory_it_is_what_the_setting_says(empty_memory: str, expected: tuple[int, ...]) -> None:
    refused = [Decision(step, "write", 0, "no", 2, math.log(0.5)) for step in (1, 2)]
    assert aggregated(steps(*refused), empty_memory) == expected
