from __future__ import annotations

import math
from statistics import NormalDist, fmean

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from harness.benchmarks import benchmark
from harness.errors import UserError
from harness.llm.backbones import Backbone
from harness.simulator import tokens
from harness.simulator.lengths import log_location, mean_tokens, quantiles
from harness.simulator.parameters import Settings

# Other work on the machine must not decide whether a property holds.
relaxed = hypothesis_settings(deadline=None)
NORMAL = np.array([NormalDist().inv_cdf((place + 0.5) / 2000) for place in range(2000)])


@relaxed
@given(st.floats(20, 2000), st.floats(0.1, 0.6), st.lists(st.integers(0, 15), min_size=1, max_size=5))
def test_location_gives_the_wanted_mean(mean: float, sd: float, floors: list[int]):
    location = log_location(mean, sd, tuple(floors))
    # Independent of the closed form: midpoints of 2,000 equal shares of the normal distribution.
    lengths = np.exp(location + sd * NORMAL)
    assert fmean(float(np.mean(np.maximum(lengths, floor))) for floor in floors) == pytest.approx(mean, rel=0.01)


def test_an_unreachable_mean_gives_the_shortest_reply():
    assert math.exp(log_location(5.0, 0.35, (80,))) < 2


def test_lengths_reproduce_the_published_cost(settings: Settings, backbones: dict[str, Backbone]):
    for style in ("direct", "step_by_step", "complex"):
        lengths = mean_tokens(settings, "gsm_hard", style, backbones, 60.0)
        overhead = settings.parameters.style_prompt_tokens[style] + settings.parameters.message_tokens
        prompt = 60 + tokens.count(benchmark("gsm_hard").output_rules) + overhead + settings.parameters.prompt_tokens
        for key, cost in settings.cost["gsm_hard"][style].items():
            per_question = (prompt * backbones[key].price_in + lengths[key] * backbones[key].price_out) / 1e6
            assert per_question * 1056 == pytest.approx(cost)


def test_backbones_without_a_styled_cost_get_the_average_addition(settings: Settings, backbones: dict[str, Backbone]):
    direct = mean_tokens(settings, "gsm_hard", "direct", backbones, 60.0)
    styled = mean_tokens(settings, "gsm_hard", "complex", backbones, 60.0)
    added = fmean(styled[key] - direct[key] for key in ("qwen-2.5-14B", "qwen-2.5-32B"))
    assert styled["llama-3.2-3B"] - direct["llama-3.2-3B"] == pytest.approx(added)


def test_borrowed_and_assumed_lengths(settings: Settings, backbones: dict[str, Backbone]):
    loan = settings.borrowed_length["mbpp"]
    lender = mean_tokens(settings, "humaneval", "direct", backbones, loan["question_tokens"])
    borrowed = mean_tokens(settings, "mbpp", "direct", backbones, 1.0)
    assert borrowed == {key: pytest.approx(loan["factor"] * mean) for key, mean in lender.items()}
    assert set(mean_tokens(settings, "mmlu_pro", "direct", backbones, 1.0).values()) == {220.0}


def test_a_benchmark_without_lengths_is_refused(settings: Settings, backbones: dict[str, Backbone]):
    with pytest.raises(UserError, match=r"no reply length.*'trivia'"):
        mean_tokens(settings, "trivia", "direct", backbones, 60.0)


def test_quantiles_stand_for_the_distribution():
    assert quantiles([7] * 3) == [7] * 21
    values = list(range(210))
    assert fmean(quantiles(values)) == pytest.approx(fmean(values), abs=1)
