"""The side of the print: each function against the tables, what rounding allows, and the verdicts found by hand."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.claims.declared import load as load_claims
from analysis.claims.judge import Judged, Run, judge
from analysis.claims.printed import compute
from analysis.claims.verdicts import Consistency, Outcome, Verdict
from analysis.claims.vocabulary import AbsentError
from analysis.published import load

# Verdicts found by hand, numbered by statement: the claims that are about it, and what was found of them.
SECTION_11: dict[int, dict[str, str]] = {
    1: {"row_averages": "consistent"},
    2: {"average_lead_over_puppeteer": "consistent", "strongest_baseline": "consistent"},
    3: {"average_lead_over_masrouter": "consistent"},
    4: {"humaneval_cheaper_than_puppeteer": "consistent"},
    5: {"humaneval_cheaper_than_masrouter": "consistent"},
    6: {"gsm_caption_cost": "inconsistent", "gsm_same_pattern": "partly"},
    7: {"humaneval_caption_cost": "inconsistent"},
    8: {"on_the_frontier": "consistent"},
    9: {
        "best_on_four": "consistent",
        "mbpp_exception": "consistent",
        "most_accurate_of_three": "consistent",
        "mbpp_winner_trails_elsewhere": "consistent",
    },
    10: {"marks": "consistent"},
    11: {"without_llm_router": "consistent"},
    12: {"both_memory_gates": "consistent"},
    13: {"without_halting_costs_more": "consistent"},
    14: {"equal_depth_accuracy": "consistent", "equal_depth_cost": "consistent", "macnet_range": "consistent"},
    15: {"gsm_cheaper_than_full_history": "consistent", "humaneval_cheaper_than_full_history": "consistent"},
    16: {"either_memory_gate": "consistent"},
    17: {"gates_save_cost": "inconsistent"},
    18: {"one_method_two_names": "inconsistent", "one_method_two_costs": "inconsistent"},
    19: {"seed_lead_over_masrouter": "consistent", "seed_lead_over_puppeteer": "consistent"},
    20: {"worst_seed_beats_best": "consistent"},
    21: {"seed_best_everywhere": "consistent"},
    22: {"halting_saves_training": "consistent"},
    23: {"prices": "consistent"},
    24: {"retrieval_more_selective": "partly"},
    25: {"write_gate_is_no_constant": "consistent"},
    26: {
        "same_order_as_the_proxy": "consistent",
        "flops_and_time_agree": "consistent",
        "lowest_flops": "consistent",
        "lowest_time": "consistent",
    },
    27: {"cost_fits_flops": "consistent"},
    28: {"half_the_roles": "consistent"},
    29: {"average_lead_over_puppeteer": "consistent", "humaneval_cheaper_than_puppeteer": "consistent"},
    30: {
        "cost_tables_repeat_accuracy": "consistent",
        "tables_repeat_accuracy": "consistent",
        "roles_table_repeats_accuracy": "consistent",
        "tables_repeat_cost": "consistent",
    },
}
# What is found beyond those thirty; docs/claims.md explains each.
FURTHER = {
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
    return {claim.key: judge(claim, PUBLISHED, Run()) for claim in load_claims()}


@pytest.mark.parametrize("number", SECTION_11)
def test_the_thirty_verdicts(judged: dict[str, Judged], number: int) -> None:
    assert {key: judged[key].consistency.value for key in SECTION_11[number]} == SECTION_11[number]


def test_every_other_claim_is_consistent_or_accounted_for(judged: dict[str, Judged]) -> None:
    known = {key: verdict for found in SECTION_11.values() for key, verdict in found.items()} | FURTHER
    found = {key: one.consistency.value for key, one in judged.items() if one.consistency is not Consistency.CONSISTENT}
    assert found == {key: verdict for key, verdict in known.items() if verdict != "consistent"}


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
    ("text", "value"),
    [
        ("accuracy('gmr', 'mbpp')", 79.60),
        ("accuracy('puppeteer', 'average', 'qwen-2.5-32B')", 75.29),
        ("accuracy('gmr_no_llm_router', 'humaneval')", 71.88),
        ("accuracy('gmr_roles_13', 'gsm_hard')", 70.74),
        ("accuracy('masrouter', 'gsm_hard', 'pool', 'costs')", 66.00),
        ("cost('aflow', 'gsm_hard', 'qwen-2.5-32B')", 2.165),
        ("cost('full_history', 'humaneval')", 0.068),
        ("rival('gmr', 'humaneval')", 86.82),
        ("rival('masrouter', 'average', 'pool', 'puppeteer', 'qwen-2.5-32B')", 75.14),
        ("runner_up('mbpp', 'macnet_chain', 'macnet_tree', 'macnet_complete')", 81.20),
        ("strongest_cost('humaneval')", 0.019),
        ("strongest_cost('gsm_hard')", 0.445),
        ("rival('puppeteer', 'average', 'qwen-2.5-32B')", 75.14),
        ("ranked('math', 2)", 79.09),
        ("ranked('math', 3)", 78.85),
        ("depth('gmr', 'mbpp')", 3.79),
        ("write_rate('gsm_hard')", 39.6),
        ("retrieved('humaneval', 1)", 91),
        ("training_steps('gmr', 'humaneval')", 6300),
        ("training_depth('gmr_no_halting', 'gsm_hard')", 6.0),
        ("flops('masrouter', 'mbpp')", 0.289),
        ("seconds('puppeteer', 'mbpp', 'qwen-2.5-32B')", 3.2),
        ("seed_mean('masrouter', 'mmlu_pro')", 64.09),
        ("seed_mean('gmr', 'overall')", 77.35),
        ("seed_lowest('gmr')", 76.62),
        ("seed_highest('puppeteer')", 75.79),
        ("size('qwen-2.5-32B') * 0.01 - price_out('qwen-2.5-32B')", 0),
        ("price_in('llama-3.1-8B')", 0.024),
        ("least(3, 1, 2) + most(3, 1, 2) + mean(1, 2, 6) + abs(-1)", 8),
        ("alike(-2, -3)", 2),
        ("alike(3, -2)", -2),
        ("alike(0, 5)", 0),
    ],
)
def test_functions(text: str, value: float) -> None:
    assert compute(PUBLISHED, text, {}).value == pytest.approx(value, abs=1e-12)


@pytest.mark.parametrize(
    "text",
    [
        "accuracy('gmr_depth_10', 'math')",
        "cost('gmr', 'mbpp')",
        "accuracy('single', 'mbpp', 'pool')",
        "flops('gmr', 'math')",
        "seed_lowest('puppeteer')",
        "seed_lead('gmr', 'pool', 'masrouter', 'pool')",
        "roles('Math')",
        "lowest_entropy('mbpp', 'write')",
        "retrieved('mbpp', 6)",
        "steps_share('gmr', 'gsm_hard', 6)",
        "depth_by_difficulty('gsm_hard')",
    ],
)
def test_what_is_not_printed(text: str) -> None:
    with pytest.raises(AbsentError):
        compute(PUBLISHED, text, {})


def test_a_cost_with_four_decimals_is_rounded_there() -> None:
    computed = compute(PUBLISHED, "cost('single', 'humaneval', 'llama-3.1-8B')", {})
    assert (computed.low, computed.high) == pytest.approx((0.00245, 0.00255))


@given(st.integers(-50, 50), st.integers(-50, 50))
def test_rounding_allows_whatever_rounds_to_the_print(first: int, second: int) -> None:
    """Any costs that print as 0.032 and 0.047 give a saving within the allowed range."""
    quantity = "100 * (1 - cost('gmr', 'humaneval') / cost('puppeteer', 'humaneval', 'qwen-2.5-32B'))"
    computed = compute(PUBLISHED, quantity, {})
    saving = 100 * (1 - (0.032 + first * 1e-5) / (0.047 + second * 1e-5))
    assert computed.low - 1e-9 <= saving <= computed.high + 1e-9
