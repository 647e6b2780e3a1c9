from __future__ import annotations

import dataclasses
import math
from statistics import correlation, fmean, pstdev

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from harness.agents.roles import role
from harness.simulator.model import Context, affinity, difficulty, evidence, fit, overload, sigmoid
from harness.simulator.parameters import Parameters, load_settings

# Other work on the machine must not decide whether a property holds.
relaxed = hypothesis_settings(deadline=None)

PARAMETERS = load_settings().parameters
WEIGHTS = st.floats(0.01, 10)


def pull(right: float, wrong: list[float], accuracy: float = 0.5, **kwargs: bool) -> float:
    context = Context(right, wrong, feedback=kwargs.get("feedback", False))
    return evidence(context, accuracy, kwargs.get("aggregating", False), PARAMETERS)


def test_difficulty_is_about_standard_normal_with_and_without_knowledge():
    for known in ([None] * 3000, [(n + 0.5) / 3000 for n in range(3000)]):
        values = [difficulty(f"question {n}", share, PARAMETERS) for n, share in enumerate(known)]
        assert abs(fmean(values)) < 0.06
        assert abs(pstdev(values) - 1) < 0.06


def test_known_difficulty_carries_its_weight():
    known = [(n + 0.5) / 3000 for n in range(3000)]
    values = [difficulty(f"question {n}", share, PARAMETERS) for n, share in enumerate(known)]
    assert abs(correlation(known, values) - PARAMETERS.difficulty_weight) < 0.08


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_extreme_difficulty_is_finite(share: float):
    assert math.isfinite(difficulty("q", share, PARAMETERS))


def test_affinity_differs_between_backbones_and_has_the_stated_spread():
    a = [affinity(f"q{n}", "one", PARAMETERS) for n in range(3000)]
    b = [affinity(f"q{n}", "other", PARAMETERS) for n in range(3000)]
    assert abs(pstdev(a) - PARAMETERS.disagreement_sd) < 0.15
    assert abs(correlation(a, b)) < 0.07


def test_identical_questions_share_their_latents():
    assert affinity("same", "m", PARAMETERS) == affinity("same", "m", PARAMETERS)
    assert difficulty("same", None, PARAMETERS) == difficulty("same", None, PARAMETERS)


def test_no_context_no_pull():
    assert pull(0, []) == 0


@relaxed
@given(WEIGHTS)
def test_evidence_pulls_towards_what_it_says(weight: float):
    assert pull(weight, []) > 0 > pull(0, [weight])


@relaxed
@given(WEIGHTS, st.lists(WEIGHTS, max_size=3), WEIGHTS)
def test_one_more_right_voice_never_hurts(right: float, wrong: list[float], more: float):
    assert pull(right + more, wrong) > pull(right, wrong) - 1e-12


@relaxed
@given(WEIGHTS)
def test_right_counts_more_than_wrong_and_more_so_for_the_able(weight: float):
    assert 0 < pull(weight, [weight], accuracy=0.2) < pull(weight, [weight], accuracy=0.9)


@relaxed
@given(WEIGHTS, WEIGHTS)
def test_wrong_answers_that_agree_mislead_more(a: float, b: float):
    assert pull(0, [a + b]) < pull(0, [a, b])


def test_feedback_and_aggregation_strengthen():
    assert pull(1, [1], feedback=True) > pull(1, [1])
    assert pull(2, [], aggregating=True) == pytest.approx(PARAMETERS.aggregation_factor * pull(2, []))


def test_fit_follows_the_table_and_needs_a_role():
    still = dataclasses.replace(PARAMETERS, role_jitter_sd=0.0)
    assert fit(None, "mbpp", "q", PARAMETERS) == 0
    assert fit(role("Code/BugFixer"), "mbpp", "q", still) == PARAMETERS.role_fit["Code"]["mbpp"]
    assert fit(role("Commonsense/Historian"), "math", "q", still) < 0
    assert fit(role("Code/BugFixer"), "a benchmark the table does not know", "q", still) == 0


def test_role_jitter_has_the_stated_spread():
    flat = dataclasses.replace(PARAMETERS, role_fit={})
    values = [fit(role("Math/Engineer"), "math", f"q{n}", flat) for n in range(2000)]
    assert abs(pstdev(values) - PARAMETERS.role_jitter_sd) < 0.05


def test_overload_grows_with_the_context():
    assert overload(Context(tokens=2000), PARAMETERS) == pytest.approx(2 * PARAMETERS.overload_per_1000_tokens)


@relaxed
@given(st.floats(-1e4, 1e4))
def test_sigmoid_is_safe_and_symmetric(logit: float):
    assert sigmoid(logit) + sigmoid(-logit) == pytest.approx(1)


def test_parameters_are_those_of_the_file():
    assert isinstance(PARAMETERS, Parameters)
    assert PARAMETERS.evidence_strength == 1.2
