"""The side of the paper: each function against the tables, what rounding allows, and the verdicts found by hand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.claims.declared import claim
from analysis.claims.judge import Consistency, Judged, Outcome, judge
from analysis.claims.measured import Run
from analysis.claims.numbers import (
    GMR,
    LARGE,
    MASROUTER,
    MEASURES,
    PUPPETEER,
    AbsentError,
    Numbers,
    Value,
    alike,
    least,
    mean,
    most,
)
from analysis.claims.printed import compute
from analysis.claims.statements import CLAIMS
from analysis.published import load
from harness.errors import UserError

# Verdicts found by hand; docs/claims.md explains each. All other claims are consistent.
NOT_CONSISTENT = {
    "gsm_caption_cost": "inconsistent",
    "gsm_same_pattern": "partly",
    "humaneval_caption_cost": "inconsistent",
    "gates_save_cost": "inconsistent",
    "one_method_two_names": "inconsistent",
    "one_method_two_costs": "inconsistent",
    "retrieval_more_selective": "partly",
    "two_strongest_baselines": "inconsistent",
    "gains_most_on_two_over_strongest": "inconsistent",
    "gates_add_up": "partly",
    "seed_overall": "partly",
    "steps_follow_from_depth": "partly",
    "easy_end_early_hard_run_deep": "not checkable",
    "depth_gain_after_six": "not checkable",
    "depth_gain_until_six": "not checkable",
    "depth_cost": "not checkable",
    "same_ranking_every_seed": "not checkable",
    "gate_entropy": "not checkable",
}
# Computed by hand from the tables: the value, and the values that rounding allows where it matters.
BY_HAND = {
    ("row_averages", 0): (43.622, None),
    ("average_lead_over_puppeteer", 0): (2.44, None),
    ("humaneval_cheaper_than_puppeteer", 0): (31.9149, (30.1075, 33.6842)),
    ("humaneval_cheaper_than_masrouter", 0): (43.8596, (42.4779, 45.2174)),
    ("gsm_caption_cost", 0): (-31.9101, None),
    ("gsm_same_pattern", 1): (41.9960, None),
    ("humaneval_caption_cost", 0): (-68.4211, None),
    ("on_the_frontier", 0): (89.84 - 86.82, None),
    ("best_on_four", 0): (79.33 - 79.09, None),
    ("gains_most_on_two", 0): (1.80 - 0.68, None),
    ("gains_most_on_two_over_strongest", 0): (1.80 - 4.80, None),
    ("two_strongest_baselines", 0): (74.27 - 75.14, None),
    ("most_questions_end_early", 0): (38.4, None),
    ("most_questions_end_early", 1): (46.0, None),
    ("without_llm_router", 0): (14.02, None),
    ("gates_save_cost", 0): (100 * (1 - 0.587 / 0.447), None),
    ("without_halting_costs_more", 1): (168.75, None),
    ("gsm_cheaper_than_full_history", 0): (40.4061, None),
    ("one_method_two_names", 0): (2.28, None),
    ("seed_overall", 2): (77.338 - 77.35, (-0.022, -0.002)),
    ("mbpp_macnet_ahead", 0): (81.20 - 79.60, None),
    ("same_order_as_the_proxy", 0): (0.072 / 0.0535 - 1, None),
    ("same_order_as_the_proxy", 1): (0.057 / 0.047 - 1, None),
    ("same_order_as_the_proxy", 2): (0.057 / 0.032 - 1, None),
    ("macnet_range", 0): (61.93, None),
    ("macnet_range", 1): (62.31, None),
    ("role_count", 0): (26, None),
    ("halting_saves_training", 0): (1.80755, None),
    ("steps_follow_from_depth", 0): (47.9 / 26.5 - 6 / 3.4, None),
    ("retrieval_more_selective", 1): (-21, None),
    ("cost_fits_flops", 0): (0.032 / 128 / 0.0535, None),
    ("lowest_time", 1): (100 * (1 - 2.6 / 3.2), None),
}


@pytest.fixture(scope="module")
def judged() -> dict[str, Judged]:
    return {claim.key: judge(claim, load(), Run()) for claim in CLAIMS}


def test_verdicts_by_hand(judged: dict[str, Judged]) -> None:
    found = {key: one.consistency.value for key, one in judged.items() if one.consistency is not Consistency.CONSISTENT}
    assert (len(judged), len(CLAIMS), found) == (75, 75, NOT_CONSISTENT)


def test_values_by_hand(judged: dict[str, Judged]) -> None:
    for (key, place), (value, allowed) in BY_HAND.items():
        computed = judged[key].parts[place].computed
        assert computed is not None
        assert computed.value == pytest.approx(value, abs=5e-5), key
        assert computed.low <= computed.value <= computed.high
        assert allowed is None or (computed.low, computed.high) == pytest.approx(allowed, abs=5e-5), key


def test_without_cells_nothing_is_said_of_a_run(judged: dict[str, Judged]) -> None:
    assert {one.verdict for one in judged.values()} == {"not run", "about the paper only"}
    for one in judged.values():
        assert (one.outcome is Outcome.NO_RESULT) == (one.claim.holds is None)
        assert one.claim.holds is not None or one.claim.stated is not None, "a claim says what must be true of it"
    assert any("gmr pool on math" in one for one in judged["best_average"].parts[0].missing)


VALUES: list[tuple[Callable[[Numbers], Value], float]] = [
    (lambda n: n.accuracy("gmr", "mbpp"), 79.60),
    (lambda n: n.accuracy(PUPPETEER, "average"), 75.29),
    (lambda n: n.accuracy("gmr_no_llm_router", "humaneval"), 71.88),
    (lambda n: n.accuracy("gmr_roles_13", "gsm_hard"), 70.74),
    (lambda n: n.accuracy("masrouter", "gsm_hard", "costs"), 66.00),
    (lambda n: n.cost(("aflow", LARGE), "gsm_hard"), 2.165),
    (lambda n: n.cost("full_history", "humaneval"), 0.068),
    (lambda n: n.rival(GMR, "humaneval"), 86.82),
    (lambda n: n.rival(MASROUTER, "average", PUPPETEER), 75.14),
    (lambda n: n.runner_up("mbpp", "macnet_chain", "macnet_tree", "macnet_complete"), 81.20),
    (lambda n: n.strongest_cost("humaneval"), 0.019),
    (lambda n: n.strongest_cost("gsm_hard"), 0.445),
    (lambda n: n.rival(PUPPETEER, "average"), 75.14),
    (lambda n: n.ranked("math", 2), 79.09),
    (lambda n: n.ranked("math", 3), 78.85),
    (lambda n: n.of("depth", "gmr", "mbpp"), 3.79),
    (lambda n: n.of("write_rate", "gmr", "gsm_hard"), 39.6),
    (lambda n: n.of("retrieved_1", "gmr", "humaneval"), 91),
    (lambda n: n.of("training_steps", "gmr", "humaneval"), 6300),
    (lambda n: n.of("training_depth", "gmr_no_halting", "gsm_hard"), 6.0),
    (lambda n: n.of("flops", "masrouter", "mbpp"), 0.289),
    (lambda n: n.of("seconds", PUPPETEER, "mbpp"), 3.2),
    (lambda n: n.of("seed_mean", "masrouter", "mmlu_pro"), 64.09),
    (lambda n: n.of("seed_mean", "gmr", "overall"), 77.35),
    (lambda n: n.of("seed_lowest", "gmr", "overall"), 76.62),
    (lambda n: n.of("seed_highest", "puppeteer", "overall"), 75.79),
    (lambda n: n.paper.prices["llama-3.1-8B"].input, 0.024),
    (lambda _: least(3, 1, 2) + most(3, 1, 2) + mean(1, 2, 6), 7),
    (lambda _: alike(-2, -3), 2),
    (lambda _: alike(3, -2), -2),
]
ABSENT: list[Callable[[Numbers], Value]] = [
    lambda n: n.accuracy("gmr_depth_10", "math"),
    lambda n: n.cost("gmr", "mbpp"),
    lambda n: n.accuracy("single", "mbpp"),
    lambda n: n.of("flops", "gmr", "math"),
    lambda n: n.of("seed_lowest", "puppeteer", "math"),
    lambda n: n.seed_lead(GMR, MASROUTER),
    *(
        lambda n, measure=measure: n.of(measure, "gmr", "gsm_hard")
        for measure in MEASURES
        if measure.startswith("entropy") or measure in ("six_steps", "depth_by_difficulty")
    ),
]
SLIPS: list[tuple[Callable[[Numbers], Value], str]] = [
    (lambda n: n.accuracy("gmrr", "math"), "unknown method 'gmrr'; did you mean 'gmr'"),
    (lambda n: n.accuracy("gmr", "maths"), "unknown benchmark 'maths'; did you mean 'math'"),
    (lambda n: n.accuracy(("gmr", "qwen"), "math"), "unknown row 'qwen'"),
    (lambda n: n.of("dept", "gmr", "math"), "unknown measure 'dept'"),
]


def test_each_function_reads_its_table() -> None:
    published = load()
    for place, (quantity, value) in enumerate(VALUES):
        assert compute(published, quantity).value == pytest.approx(value, abs=1e-12), place
    for quantity in ABSENT:
        with pytest.raises(AbsentError):
            compute(published, quantity)
    # A slip in a name is no missing number.
    for quantity, message in SLIPS:
        with pytest.raises(UserError, match=message):
            compute(published, quantity)
    fine = compute(published, lambda n: n.cost(("single", "llama-3.1-8B"), "humaneval"))
    assert (fine.low, fine.high) == pytest.approx((0.00245, 0.00255))


@given(st.integers(-50, 50), st.integers(-50, 50))
def test_rounding_allows_whatever_rounds_to_the_print(first: int, second: int) -> None:
    """Any costs that print as 0.032 and 0.047 give a saving within the allowed range."""
    computed = compute(load(), lambda n: n.saving(GMR, PUPPETEER, "humaneval"))
    saving = 100 * (1 - (0.032 + first * 1e-5) / (0.047 + second * 1e-5))
    assert computed.low - 1e-9 <= saving <= computed.high + 1e-9


def test_parts_are_all_combinations_and_mappings_set_what_they_name() -> None:
    over = {"benchmark": ["math", "mbpp"], "row": [{"method": "gmr", "lead": 5}, {"method": "masrouter", "lead": 3}]}

    @claim("a", "b", "points", stated=lambda lead: lead, tolerance=9, over=over)
    def lead(n: Numbers, method: str, benchmark: str) -> Value:
        return n.accuracy(method, benchmark) - 70

    found: Any = [
        (part.variables["benchmark"], part.variables["method"], part.stated)
        for part in judge(lead, load(), Run()).parts
    ]
    assert found == [("math", "gmr", 5), ("math", "masrouter", 3), ("mbpp", "gmr", 5), ("mbpp", "masrouter", 3)]
