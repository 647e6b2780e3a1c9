"""Claims on the paper: values and verdicts derived by hand from its tables, and ranges due to rounding."""

import pytest

from analysis.paper.claims.declaration import CLAIMS
from analysis.paper.claims.judge import CONSISTENT, Part, judge
from analysis.paper.claims.measured import Run
from analysis.paper.claims.numbers import GMR, PUPPETEER, compute
from tests.analysis.cells import claim

# Verdicts found by hand; docs/report.md explains each. All other claims are consistent.
NOT_CONSISTENT = {
    "inconsistent": "gsm_caption_cost humaneval_caption_cost gates_save_cost one_method_two_names one_method_two_costs "
    "two_strongest_baselines gains_most_on_two_over_strongest",
    "partly": "gsm_same_pattern retrieval_more_selective gates_add_up seed_overall steps_follow_from_depth",
    "not checkable": "easy_end_early_hard_run_deep depth_gain_after_six depth_gain_until_six depth_cost "
    "same_ranking_every_seed gate_entropy deviation_left_out not_by_the_largest_alone small_budget_hurts_the_hard "
    "shorter_prompts_than_full_history stored_is_less_redundant",
}
# Computed by hand from the tables: the value, and the values that rounding allows where it matters.
BY_HAND = {
    ("row_averages", 0): (43.622, None),
    ("humaneval_cheaper_than_puppeteer", 0): (31.9149, (30.1075, 33.6842)),
    ("gsm_caption_cost", 0): (-31.9101, None),
    ("humaneval_caption_cost", 0): (-68.4211, None),
    ("on_the_frontier", 0): (89.84 - 86.82, None),
    ("two_strongest_baselines", 0): (74.27 - 75.14, None),
    ("most_questions_end_early", 0): (38.4, None),
    ("gates_save_cost", 0): (100 * (1 - 0.587 / 0.447), None),
    ("one_method_two_names", 0): (2.28, None),
    ("half_the_roles", 0): (70.74 - 70.55, None),
    ("seed_best_everywhere", 4): (69.62 - 68.98, None),
    ("seed_overall", 2): (77.338 - 77.35, (-0.022, -0.002)),
    ("worst_seed_beats_best", 1): (76.62 - 74.27, None),
    ("mbpp_macnet_ahead", 0): (81.20 - 79.60, None),
    ("macnet_range", 0): (61.93, None),
    ("steps_follow_from_depth", 0): (47.9 / 26.5 - 6 / 3.4, None),
    ("write_gate_is_no_constant", 0): (39.6, (39.55, 39.65)),
    ("retrieval_more_selective", 1): (-21, None),
    ("cost_fits_flops", 0): (0.032 / 128 / 0.0535, None),
    ("lowest_time", 1): (100 * (1 - 2.6 / 3.2), None),
}


@pytest.fixture(scope="module")
def judged() -> dict[str, list[Part]]:
    return dict(zip((claim.key for claim in CLAIMS), judge(CLAIMS, Run()), strict=True))


def test_verdicts_by_hand(judged: dict[str, list[Part]]) -> None:
    by_hand = {key: verdict for verdict, keys in NOT_CONSISTENT.items() for key in keys.split()}
    verdicts = {key: parts[0]["claim_paper_verdict"] for key, parts in judged.items()}
    assert len(verdicts) == len(CLAIMS) == 80
    assert {key: verdict for key, verdict in verdicts.items() if verdict != CONSISTENT} == by_hand


def test_values_by_hand(judged: dict[str, list[Part]]) -> None:
    for (key, number), (value, allowed) in BY_HAND.items():
        part = judged[key][number]
        ends = part["published_low"], part["published_high"]
        assert part["published"] == pytest.approx(value, abs=5e-5), key
        assert ends[0] <= part["published"] <= ends[1]
        assert allowed is None or ends == pytest.approx(allowed, abs=5e-5), key


def test_a_cost_with_a_fourth_decimal_is_rounded_there() -> None:
    _, low, high = compute(lambda n: n.cost(("single", "llama-3.1-8B"), "humaneval"))
    assert (low, high) == pytest.approx((0.00245, 0.00255))


def test_parts_are_all_combinations() -> None:
    over = {"benchmark": ("math", "mbpp"), "row": (GMR, PUPPETEER)}
    lead = claim(lambda n, benchmark, row: n.accuracy(row, benchmark) - 75, over=over)
    parts = judge([lead], Run())[0]
    assert [(part["part"], round(part["published"], 2), part["paper_verdict"]) for part in parts] == [
        ("MATH, GMR, LLM Pool", 4.33, "consistent"),
        ("MATH, Puppeteer, qwen-2.5-32B", 4.09, "consistent"),
        ("MBPP, GMR, LLM Pool", 4.60, "consistent"),
        ("MBPP, Puppeteer, qwen-2.5-32B", -0.20, "inconsistent"),
    ]
