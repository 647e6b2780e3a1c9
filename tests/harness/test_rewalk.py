"""A recorded trajectory walked again: what is forced, what is compared, what is refused."""

import dataclasses
from typing import Any

import numpy as np
import pytest

from harness.agents.trajectory import Context, Decision, Trajectory
from harness.benchmarks.items import Item
from harness.errors import UserError
from harness.rewalk import TOLERANCE, RecordedContext, Walk

ITEM = Item("q7", "gsm_hard", "How many?", "12")
OPTIONS = ("a", "b", "c")
PROBABILITIES = np.array([0.98, 0.01, 0.01])
DECIDED = (Decision(1, "role", 0, "c", 3, -4.6), Decision(1, "halt", 2, "yes", 2, -0.1))


def parts(**more: Any) -> dict[str, Any]:
    return {"code_tools": None, "embeddings": None, "extract": None, **more}


def context() -> tuple[RecordedContext, Walk]:
    walk = Walk("gmr gsm_hard pool seed 0", {ITEM.id: Trajectory(ITEM, "", (), DECIDED)})
    return RecordedContext(ITEM, None, {}, "", **parts(walk=walk)), walk


def test_choices_are_the_recorded_ones_however_improbable() -> None:
    one, _ = context()
    free = Context(ITEM, None, {}, "", **parts())  # type: ignore[arg-type]
    assert free.draw(1, "role", OPTIONS, PROBABILITIES, greedy=True) == 0
    assert [one.draw(1, "role", OPTIONS, PROBABILITIES, greedy=greedy) for greedy in (True, False)] == [2, 2]
    assert not free.bernoulli(1, "halt", 1e-9, 2, greedy=True)
    assert one.bernoulli(1, "halt", 1e-9, 2)


def test_a_decision_within_the_tolerance_is_kept_as_recorded_and_the_deviation_told() -> None:
    one, walk = context()
    for decision, off in zip(DECIDED, (0.9 * TOLERANCE, -0.5 * TOLERANCE), strict=True):
        one.decide(dataclasses.replace(decision, log_prob=decision.log_prob + off))
    assert set(one.close("").decisions) == set(DECIDED)
    assert walk.deviation == pytest.approx(0.9 * TOLERANCE, rel=1e-3)


@pytest.mark.parametrize("log_prob", [-4.6 + 1.1 * TOLERANCE, -4.6 - 1.1 * TOLERANCE, float("nan"), float("-inf")])
def test_a_log_probability_that_deviates_is_refused_by_item_and_step(log_prob: float) -> None:
    one, _ = context()
    with pytest.raises(UserError, match=r"gmr gsm_hard pool seed 0, item q7, step 1: role 'c' has log-probability"):
        one.decide(dataclasses.replace(DECIDED[0], log_prob=log_prob))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"choice": "b"}, "role is 'b' of 3, recorded as 'c' of 3"),
        ({"options": 4}, "role is 'c' of 4"),
        ({"step": 2}, r"step 2: decision role \(slot 0\) was not recorded"),
        ({"slot": 1}, r"decision role \(slot 1\) was not recorded"),
        ({"name": "backbone"}, "decision backbone"),
    ],
)
def test_another_decision_is_refused(change: dict[str, Any], said: str) -> None:
    one, _ = context()
    with pytest.raises(UserError, match=said):
        one.decide(dataclasses.replace(DECIDED[0], **change))


def test_a_recorded_choice_that_cannot_be_made_is_refused() -> None:
    one, _ = context()
    with pytest.raises(UserError, match="item q7, step 1: role was 'c', which cannot be chosen here"):
        one.draw(1, "role", OPTIONS[:2], PROBABILITIES[:2])
