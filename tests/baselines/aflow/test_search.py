"""The numbers of the search, against computations of their own."""

from __future__ import annotations

import json
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from baselines.aflow.search import Failure, Round, best, candidates, converged, probabilities
from tests.baselines.aflow.fixtures import flow, node


def rounds(*scores: float | None) -> list[Round]:
    return [
        Round(number, 1 if number > 1 else None, "scored" if score is not None else "no_proposal", score=score)
        for number, score in enumerate(scores, 1)
    ]


@given(scores=st.lists(st.floats(0, 100), min_size=1, max_size=4), share=st.floats(0, 1), sharpness=st.floats(0, 1))
def test_probabilities_are_those_of_the_formula(scores: list[float], share: float, sharpness: float) -> None:
    top = max(scores)
    weights = [math.exp(sharpness * (score - top)) for score in scores]
    expected = [share / len(scores) + (1 - share) * weight / math.fsum(weights) for weight in weights]
    found = probabilities(scores, share, sharpness)
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    assert found.sum() == pytest.approx(1)
    # Ten points less are a factor of e^-2 with α = 0.2; λ = 0.3 gives each 0.15.
    better = 1 / (1 + math.exp(-2))
    assert probabilities([60.0, 50.0], 0.3, 0.2).tolist() == pytest.approx([0.15 + 0.7 * better, 0.85 - 0.7 * better])


def test_the_first_round_is_always_a_candidate_and_the_best_others_fill_up() -> None:
    tried = rounds(10, 50, None, 70, 60, 70, 40)
    assert [one.number for one in candidates(tried, 4)] == [1, 4, 6, 5]
    assert [one.number for one in candidates(tried, 1)] == [1]
    assert [one.number for one in candidates(rounds(10), 4)] == [1]
    assert [one.number for one in candidates(rounds(90, 50, 60), 4)] == [1, 3, 2]


def test_the_best_round_is_the_earliest_of_equals_and_may_be_the_first() -> None:
    assert [found.number for found in map(best, [rounds(50, 70, 70), rounds(70, None, 60), rounds(0)]) if found] == [
        2,
        1,
        1,
    ]
    assert best([]) is None


@pytest.mark.parametrize(
    ("scores", "stops_after"),
    [
        ([50.0] * 12, 8),
        # Every third-best score moves the mean of three.
        ([10, 20, 30, 40, 50, 60, 70, 80, 90, 95], None),
        ([50, 60, 70, 40, 40, 40, 40, 40, 40], 8),
        ([50, 60, 70, 40, 40, 40, 40, 65, 40, 40, 40, 40, 40, 40], 13),
        ([50, 60, 70, 40, 40, 50, 40, 40], 8),
        ([50, 50, 50, 50, 50, 50, 50], None),
    ],
)
def test_convergence_is_five_unchanged_means_of_the_best_three(scores: list[float], stops_after: int | None) -> None:
    stops = [end for end in range(len(scores) + 1) if converged(scores[:end], 5)]
    assert (stops[0] if stops else None) == stops_after


@given(st.lists(st.integers(0, 8), max_size=16), st.integers(1, 5))
def test_convergence_against_exact_arithmetic(right: list[int], patience: int) -> None:
    unchanged, before = 0, None
    for end in range(3, len(right) + 1):
        mean = Fraction(sum(sorted(right[:end], reverse=True)[:3]), 3)
        unchanged = unchanged + 1 if mean == before else 0
        before = mean
    assert converged([100 * one / 7 for one in right], patience) == (unchanged >= patience)


def test_a_round_survives_the_checkpoint() -> None:
    workflow = flow(node("a", "Custom", repeat=2), node("b", "ScEnsemble", "a"))
    failures = (Failure("q1", "text", None), Failure("q2", "text", "4"))
    one = Round(2, 1, "scored", "add", "Vote.", workflow, 50.0, True, 9, 0.5, 1, 0.25, "", failures)
    facts = one.to_facts()
    assert facts["round"] == 2
    assert Round.from_facts(json.loads(json.dumps(facts))) == one
    none = Round(3, 1, "no_proposal", reason="why")
    assert Round.from_facts(json.loads(json.dumps(none.to_facts()))) == none
    with pytest.raises(RuntimeError, match="round 3 has no workflow"):
        _ = none.tried
