"""The side of the print: each function against the tables, what rounding allows, and the verdicts found by hand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.claims.declared import claim
from analysis.claims.judge import Consistency, Judged, Outcome, Verdict, judge
from analysis.claims.numbers import AbsentError, Numbers, Value, alike, least, mean, most
from analysis.claims.printed import compute
from analysis.claims.readings import Run
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


PUBLISHED = load()


@pytest.fixture(scope="module")
def judged() -> dict[str, Judged]:
    return {claim.key: judge(claim, PUBLISHED, Run()) for claim in CLAIMS}


def test_verdicts_by_hand(judged: dict[str, Judged]) -> None:
    found = {key: one.consistency.value for key, one in judged.items() if one.consistency is not Consistency.CONSISTENT}
    assert (len(judged), len(CLAIMS), found) == (75, 75, NOT_CONSISTENT)


@pytest.mark.parametrize(("place", "expected"), BY_HAND.items())
def test_values_by_hand(judged: dict[str, Judged], place: tuple[str, int], expected: Any) -> None:
    computed = judged[place[0]].parts[place[1]].computed
    assert computed is not None
    assert computed.value == pytest.approx(expected[0], abs=5e-5)
    assert computed.low <= computed.value <= computed.high
    if expected[1]:
        assert (computed.low, computed.high) == pytest.approx(expected[1], abs=5e-5)


def test_without_cells_nothing_is_said_of_a_run(judged: dict[str, Judged]) -> None:
    assert {one.verdict for one in judged.values()} == {Verdict.NOT_RUN, Verdict.NO_RESULT}
    assert all(one.verdict is Verdict.NO_RESULT for one in judged.values() if one.claim.holds is None)
    assert any("gmr pool on math" in one for one in judged["best_average"].parts[0].finding.missing)
    assert judged["row_averages"].outcome is Outcome.NO_RESULT


@pytest.mark.parametrize(
    ("quantity", "value"),
    [
        (lambda n: n.accuracy("gmr", "mbpp"), 79.60),
        (lambda n: n.accuracy("puppeteer", "average", "qwen-2.5-32B"), 75.29),
        (lambda n: n.accuracy("gmr_no_llm_router", "humaneval"), 71.88),
        (lambda n: n.accuracy("gmr_roles_13", "gsm_hard"), 70.74),
        (lambda n: n.accuracy("masrouter", "gsm_hard", "pool", "costs"), 66.00),
        (lambda n: n.cost("aflow", "gsm_hard", "qwen-2.5-32B"), 2.165),
        (lambda n: n.cost("full_history", "humaneval"), 0.068),
        (lambda n: n.rival("gmr", "humaneval"), 86.82),
        (lambda n: n.rival("masrouter", "average", "pool", "puppeteer", "qwen-2.5-32B"), 75.14),
        (lambda n: n.runner_up("mbpp", "macnet_chain", "macnet_tree", "macnet_complete"), 81.20),
        (lambda n: n.strongest_cost("humaneval"), 0.019),
        (lambda n: n.strongest_cost("gsm_hard"), 0.445),
        (lambda n: n.rival("puppeteer", "average", "qwen-2.5-32B"), 75.14),
        (lambda n: n.ranked("math", 2), 79.09),
        (lambda n: n.ranked("math", 3), 78.85),
        (lambda n: n.depth("gmr", "mbpp"), 3.79),
        (lambda n: n.write_rate("gsm_hard"), 39.6),
        (lambda n: n.retrieved("humaneval", 1), 91),
        (lambda n: n.training_steps("gmr", "humaneval"), 6300),
        (lambda n: n.training_depth("gmr_no_halting", "gsm_hard"), 6.0),
        (lambda n: n.flops("masrouter", "mbpp"), 0.289),
        (lambda n: n.seconds("puppeteer", "mbpp", "qwen-2.5-32B"), 3.2),
        (lambda n: n.seed_mean("masrouter", "mmlu_pro"), 64.09),
        (lambda n: n.seed_mean("gmr", "overall"), 77.35),
        (lambda n: n.seed_lowest("gmr"), 76.62),
        (lambda n: n.seed_highest("puppeteer"), 75.79),
        (lambda n: n.size("qwen-2.5-32B") * 0.01 - n.price_out("qwen-2.5-32B"), 0),
        (lambda n: n.price_in("llama-3.1-8B"), 0.024),
        (lambda _: least(3, 1, 2) + most(3, 1, 2) + mean(1, 2, 6), 7),
        (lambda _: alike(-2, -3), 2),
        (lambda _: alike(3, -2), -2),
        (lambda _: alike(0, 5), 0),
    ],
)
def test_functions(quantity: Callable[[Numbers], Value], value: float) -> None:
    assert compute(PUBLISHED, quantity).value == pytest.approx(value, abs=1e-12)


@pytest.mark.parametrize(
    "quantity",
    [
        lambda n: n.accuracy("gmr_depth_10", "math"),
        lambda n: n.cost("gmr", "mbpp"),
        lambda n: n.accuracy("single", "mbpp", "pool"),
        lambda n: n.flops("gmr", "math"),
        lambda n: n.seed_lowest("puppeteer"),
        lambda n: n.seed_lead("gmr", "pool", "masrouter", "pool"),
        lambda n: n.roles("Math"),
        lambda n: n.lowest_entropy("mbpp", "write"),
        lambda n: n.retrieved("mbpp", 6),
        lambda n: n.steps_share("gmr", "gsm_hard", 6),
        lambda n: n.depth_by_difficulty("gsm_hard"),
    ],
)
def test_what_is_not_printed(quantity: Callable[[Numbers], Value]) -> None:
    with pytest.raises(AbsentError):
        compute(PUBLISHED, quantity)


def test_a_cost_with_four_decimals_is_rounded_there() -> None:
    computed = compute(PUBLISHED, lambda n: n.cost("single", "humaneval", "llama-3.1-8B"))
    assert (computed.low, computed.high) == pytest.approx((0.00245, 0.00255))


@given(st.integers(-50, 50), st.integers(-50, 50))
def test_rounding_allows_whatever_rounds_to_the_print(first: int, second: int) -> None:
    """Any costs that print as 0.032 and 0.047 give a saving within the allowed range."""
    [one] = [one for one in CLAIMS if one.key == "humaneval_cheaper_than_puppeteer"]
    computed = compute(PUBLISHED, one.quantity)
    saving = 100 * (1 - (0.032 + first * 1e-5) / (0.047 + second * 1e-5))
    assert computed.low - 1e-9 <= saving <= computed.high + 1e-9


def test_parts_are_all_combinations_and_mappings_set_what_they_name() -> None:
    over = {"benchmark": ["math", "mbpp"], "row": [{"method": "gmr", "lead": 5}, {"method": "masrouter", "lead": 3}]}

    @claim(section="a", place="b", unit="points", stated=lambda lead: lead, tolerance=9, over=over)
    def lead(n: Numbers, method: str, benchmark: str) -> Value:
        return n.accuracy(method, benchmark) - 70

    assert list(lead.parts()) == [
        {"benchmark": "math", "method": "gmr", "lead": 5},
        {"benchmark": "math", "method": "masrouter", "lead": 3},
        {"benchmark": "mbpp", "method": "gmr", "lead": 5},
        {"benchmark": "mbpp", "method": "masrouter", "lead": 3},
    ]
    assert lead.key == "lead"
    assert [part.stated for part in judge(lead, PUBLISHED, Run()).parts] == [5, 3, 5, 3]


def test_a_claim_says_what_must_be_true() -> None:
    with pytest.raises(ValueError, match="needs `stated` or `holds`"):
        claim(section="a", place="b", unit="points")


@pytest.mark.parametrize(
    ("quantity", "message"),
    [
        (lambda n: n.accuracy("gmrr", "math"), "unknown method 'gmrr'; did you mean 'gmr'"),
        (lambda n: n.accuracy("gmr", "maths"), "unknown benchmark 'maths'; did you mean 'math'"),
        (lambda n: n.accuracy("gmr", "math", "qwen"), "unknown row 'qwen'"),
        (lambda n: n.price_in("pool"), "unknown backbone 'pool'"),
        (lambda n: n.depth("gmr", "maths"), "unknown benchmark 'maths'"),
        (lambda n: n.roles("Maths"), "unknown domain 'Maths'"),
    ],
)
def test_a_slip_in_a_name_is_no_missing_number(quantity: Callable[[Numbers], Value], message: str) -> None:
    with pytest.raises(UserError, match=message):
        compute(PUBLISHED, quantity)
