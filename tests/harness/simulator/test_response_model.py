"""The equations of the response model, and the accuracy that a router can gain."""

from statistics import NormalDist, correlation, fmean, pstdev

import numpy as np
import pytest

from harness.agents.roles import catalogue
from harness.benchmarks.catalogue import benchmark, keys
from harness.benchmarks.items import Item
from harness.llm.request import Turn
from harness.simulator import response_model
from harness.simulator.response_model import difficulty, evidence, score
from tests.harness.simulator.samples import mini, word_problems

VALUES = response_model.load()
PHI = NormalDist().cdf


def chance(item: Item, backbone: str, turn: Turn) -> float:
    return PHI(score(item, benchmark(item.benchmark).role_domain, backbone, turn, VALUES))


def test_difficulty_is_about_standard_normal_and_known_difficulty_carries_its_weight() -> None:
    known = [(n + 0.5) / 3000 for n in range(3000)]
    for shares in ([None] * 3000, known):
        items = [Item(str(n), "math", f"question {n}", "1", difficulty=share) for n, share in enumerate(shares)]
        drawn = [difficulty(item, VALUES.stated_difficulty_weight) for item in items]
        assert abs(fmean(drawn)) < 0.06
        assert abs(pstdev(drawn) - 1) < 0.06
    assert abs(correlation(known, drawn) - VALUES.stated_difficulty_weight) < 0.08


def test_backbones_fail_on_different_questions_and_roles_of_the_domain_fit() -> None:
    items, turn = word_problems(600), Turn(style="complex")
    a, b = ([score(item, "Math", each, Turn(), VALUES) for item in items] for each in ("llama-3.1-8B", "qwen-2.5-14B"))
    assert 0.3 < correlation(a, b) < 0.7, "equal spreads of what is common and what is not give one half"
    plain, styled, fitting, other = (
        fmean(score(item, "Math", "qwen-2.5-14B", each, VALUES) for item in items)
        for each in (Turn(), turn, Turn(role="Math/Engineer"), Turn(role="Code/BugFixer"))
    )
    assert styled - plain == pytest.approx(VALUES.style["complex"])
    assert fitting - plain == pytest.approx(VALUES.fitting_role, abs=0.1)
    assert other - plain == pytest.approx(VALUES.other_role, abs=0.1)


def test_evidence_is_the_stated_equation() -> None:
    """Three right turns against two that contradict each other, the first of which comes twice."""
    again = 1 + VALUES.repetition
    three = again + VALUES.repetition**2
    found = evidence(["r", "w", "r", "v", "w", "r"], "r", VALUES)
    expected = (three - (1 - VALUES.discernment) * again) / (1 + three + again + 1) ** 0.5
    assert found == pytest.approx(VALUES.evidence * expected)
    assert evidence([], "r", VALUES) == 0
    assert evidence(["r", "r"], "r", VALUES) > evidence(["r"], "r", VALUES) > 0 > evidence(["w"], "r", VALUES)


@pytest.mark.parametrize("key", keys())
def test_an_oracle_beats_the_best_constant_choice_by_ten_points(key: str) -> None:
    turns = [Turn(), *(Turn(role=role.key) for role in catalogue())]
    table = [[chance(item, each, turn) for each in VALUES.backbones for turn in turns] for item in mini(key, 160)]
    chances = np.array(table)
    constant, oracle = chances.mean(axis=0).max(), chances.max(axis=1).mean()
    assert oracle - constant > 0.1
