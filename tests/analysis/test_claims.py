"""Statements of the paper: values and verdicts on its tables by hand, verdicts on runs, and the report."""

import csv
from pathlib import Path
from typing import Any

import pytest
from statsmodels.stats.contingency_tables import mcnemar

from analysis.exhibit import md_escape, write
from analysis.frames import Results
from analysis.paper.claims.measured import Run, seeds_of
from analysis.paper.claims.report import FAILS, HOLDS, UNDECIDED, VERDICTS, Judged, build, decide, judge
from analysis.paper.claims.statements import CLAIMS, ROWS
from analysis.registry import artefact
from harness.runner.preset import resolve
from harness.runner.results import SIMULATED_WARNING
from tests.analysis.cells import claim, declared, run_of, verdicts

# Verdicts found by hand; docs/report.md explains each. All other claims are consistent.
NOT_CONSISTENT = {
    "inconsistent": "gsm_caption_cost humaneval_caption_cost gates_save_cost one_method_two_names one_method_two_costs "
    "two_strongest_baselines",
    "partly": "gsm_same_pattern retrieval_more_selective gates_add_up",
    "not checkable": "easy_end_early_hard_run_deep depth_gain_after_six depth_gain_until_six depth_cost gate_entropy "
    "same_ranking_every_seed deviation_left_out not_by_the_largest_alone small_budget_hurts_the_hard "
    "shorter_prompts_than_full_history stored_is_less_redundant most_questions_end_early",
    "numbers only": "gains_most_on_two gains_most_on_two_over_strongest",
}
# Computed by hand from the tables, by number of the comparison: the value, and the range that rounding allows.
BY_HAND = {
    ("gsm_caption_cost", 0): (100 * (0.587 / 0.445 - 1), (100 * (0.5865 / 0.4455 - 1), 100 * (0.5875 / 0.4445 - 1))),
    ("gates_save_cost", 1): (-100 / 33, (100 * (0.0315 / 0.0335 - 1), 0)),
    ("one_method_two_names", 0): (70.27 - 67.99, (2.27, 2.29)),
    ("average_lead_over_puppeteer", 0): (77.73 - 75.29, (2.43, 2.45)),
    ("worst_seed_beats_best", 1): (76.62 - 74.27, (2.34, 2.36)),
    ("halting_saves_training", 0): (100 * (47.9 / 26.5 - 1), (100 * (47.85 / 26.55 - 1), 100 * (47.95 / 26.45 - 1))),
    ("retrieval_more_selective", 1): (9 - 30, (-22, -20)),
    ("without_halting_costs_more", 1): (168.75, (100 * (0.0855 / 0.0325 - 1), 100 * (0.0865 / 0.0315 - 1))),
}
# Some whose measures are columns of the items.
SOME = [one for one in CLAIMS if one.key in ("best_on_four", "gsm_same_pattern", "without_llm_router", "gate_entropy")]
AHEAD = {"row": "gmr", "than": "masrouter", "at_least": 0}


@pytest.fixture(scope="module")
def judged() -> dict[str, Judged]:
    return {told.claim.key: told for told in judge(CLAIMS, Run())}


def test_verdicts_by_hand(judged: dict[str, Judged]) -> None:
    by_hand = {key: verdict for verdict, keys in NOT_CONSISTENT.items() for key in keys.split()}
    assert len(judged) == len(CLAIMS) == 66
    found = {key: told.paper_verdict for key, told in judged.items() if told.paper_verdict != "consistent"}
    assert found == by_hand


def test_values_by_hand(judged: dict[str, Judged]) -> None:
    for (key, place), (value, ends) in BY_HAND.items():
        record = judged[key].records[place]
        assert record["published"] == pytest.approx(value, abs=5e-5), key
        assert (record["published_low"], record["published_high"]) == pytest.approx(ends, abs=5e-5), key


def test_each_row_is_compared_with_each_other_row(judged: dict[str, Judged]) -> None:
    """MASRouter and Puppeteer with all baselines but these two; GMR with all on each of four benchmarks."""
    assert len(judged["two_strongest_baselines"].records) == 2 * (len(ROWS) - 3)
    assert [len(part) for part in judged["best_on_four"].parts] == [len(ROWS) - 1] * 4


@pytest.mark.parametrize(
    ("stated", "verdict"),
    [(2.44, "consistent"), (2.4, "consistent"), (2.47, "inconsistent"), (2, "consistent"), (3, "inconsistent")],
)
def test_a_stated_value_agrees_within_its_last_digit(stated: float, verdict: str) -> None:
    [told] = judge([claim({**AHEAD, "than": "puppeteer", "benchmark": "average", "stated": stated})], Run())
    assert told.paper_verdict == verdict


@pytest.mark.parametrize(
    ("region", "holding", "failing", "undecided"),
    [
        ({"at_least": 0}, [(0.1, 9)], [(-9, -0.1)], [(0, 9), (-9, 0)]),
        ({"at_most": 1}, [(-9, 0.9)], [(1.1, 9)], [(0, 1), (1, 9)]),
        ({"at_least": -2, "at_most": 2}, [(-1.9, 1.9)], [(2.1, 9), (-9, -2.1)], [(-9, 9), (2, 9), (-2, 1), (-9, -2)]),
    ],
)
def test_an_interval_that_touches_a_threshold_is_on_neither_side(
    region: Any, holding: Any, failing: Any, undecided: Any
) -> None:
    [part] = claim({"row": "gmr", **region}).parts
    for outcome, intervals in ((HOLDS, holding), (FAILS, failing), (UNDECIDED, undecided)):
        assert [decide(part, low, high) for low, high in intervals] == [outcome] * len(intervals)


def leads(wins: dict[str, int], **declared: Any) -> Judged:
    """Judge that GMR is ahead of MASRouter, with so many of 100 questions won on each benchmark; negative: lost."""
    right: dict[Any, Any] = {}
    for name, count in wins.items():
        right["gmr", "pool", name, 0] = verdicts(50 + count, 100)
        right["masrouter", "pool", name, 0] = verdicts(50, 100)
    [told] = judge([claim({**AHEAD, "benchmark": list(wins)}, **declared)], run_of(right))
    return told


@pytest.mark.parametrize(
    ("wins", "outcome"),
    [
        ({"math": 6, "mbpp": 6, "humaneval": 6}, HOLDS),  # p = 0.031 each; all must hold
        ({"math": 50, "mbpp": 5}, UNDECIDED),
        ({"math": 50, "mbpp": -6}, UNDECIDED),  # p = 0.031, and one of two
        ({"math": 50, "mbpp": -7}, FAILS),  # p = 0.016
        ({"mbpp": -6}, FAILS),
    ],
)
def test_all_comparisons_must_hold_and_one_contradicts_after_correction(wins: dict[str, int], outcome: str) -> None:
    assert leads(wins).verdict == VERDICTS[outcome]
    p = [mcnemar([[0, max(0, count)], [max(0, -count), 0]], exact=True).pvalue for count in wins.values()]
    assert (outcome == HOLDS) == all(each < 0.05 and count > 0 for each, count in zip(p, wins.values(), strict=True))
    lost = [each for each, count in zip(p, wins.values(), strict=True) if count < 0]
    assert (outcome == FAILS) == (min(lost, default=1) < 0.05 / len(wins))


def test_a_rank_has_numbers_and_no_verdict() -> None:
    told = leads({"math": 50, "mbpp": 50}, is_rank=True)
    assert (told.verdict, [record["measured"] for record in told.records]) == ("numbers only", [50, 50])
    assert {record["outcome"] for record in told.records} == {UNDECIDED}


def test_primary_endpoints_share_a_risk_of_five_percent() -> None:
    # p = 0.031 is enough of one endpoint and not of two; 0.004 of both.
    assert leads({"mbpp": 6}, primary=True).verdict == "reproduced"
    right = {("masrouter", "pool", "mbpp", 0): verdicts(50, 100)}
    right |= {(name, "pool", "mbpp", 0): verdicts(won, 100) for name, won in (("gmr", 56), ("full_history", 59))}
    claims = [claim({**AHEAD, "row": name}, primary=True) for name in ("gmr", "full_history")]
    both = judge([*claims, claim(AHEAD)], run_of(right))
    assert [told.verdict for told in both] == ["undecided", "reproduced", "reproduced"]
    assert [told.records[0]["confidence"] for told in both] == [97.5, 97.5, 95]


@pytest.mark.parametrize(("lost", "is_inside", "agrees"), [(24, False, True), (36, True, True), (-30, False, False)])
def test_a_published_value_is_one_of_another_sample(lost: int, is_inside: bool, agrees: bool) -> None:
    """6.25 points are printed, of 128 questions; here 24 of 600 are lost, an interval that leaves 6.25 out."""
    rows = {"gmr": 400 + max(0, lost), "gmr_no_memory_gates": 400 + max(0, -lost)}
    run = run_of({(name, "pool", "humaneval", 0): verdicts(right, 600) for name, right in rows.items()})
    part = {"row": "gmr", "than": "gmr_no_memory_gates", "benchmark": "humaneval", "at_least": 0, "stated": 6.25}
    [found] = judge([claim(part)], run)[0].records
    assert ((found["low"] <= 6.25 <= found["high"]), found["agrees_with_published"]) == (is_inside, agrees)


# The report.


def results(cells: list[Path]) -> Results:
    return Results(resolve("embedded"), artefact("claims"), tuple(cells))


def test_the_paper_alone() -> None:
    report = build(Results(resolve("smoke"), artefact("claims")))
    text = report.contents()["md"]
    assert all(f"; {md_escape(one.key)})" in text for one in CLAIMS)
    assert SIMULATED_WARNING not in text
    assert {*report.frame["verdict"]} == {"not run"}


def test_a_simulated_run_is_not_judged(write_cell: Any) -> None:
    report = build(results([write_cell(*row, "gsm_hard", simulated=True) for row in ROWS]))
    assert SIMULATED_WARNING in report.contents()["md"].partition("\n")[0]
    assert {*report.frame["verdict"]} == {"not judged: simulated"}
    assert report.frame[["measured", "low", "agrees_with_published", "cells"]].isna().all(axis=None)


@pytest.mark.parametrize("change", [{"model": "elsewhere/a-model-awq", "weights": "awq"}, {"quantisation": "Q4_K_M"}])
def test_other_models_than_the_paper_s_are_named_and_decide_nothing(write_cell: Any, change: dict[str, str]) -> None:
    """GMR is far ahead, and yet it shows nothing about the paper."""
    pool = {key: {"model": one.model, "parameters_b": one.parameters_b, **change} for key, one in declared().items()}
    cells = [write_cell("gmr", "pool", correct=[True] * 40, backbones=pool)]
    for method, backbone in ROWS[:-1]:
        asked = pool if backbone == "pool" else {backbone: pool[backbone]}
        cells.append(write_cell(method, backbone, correct=[False] * 40, backbones=asked))
    report = build(results(cells), SOME)
    assert {*report.frame["verdict"]} == {"not judged: other models"}
    assert set(report.frame["outcome"]) <= {"undecided", "absent"}
    assert report.frame["measured"].notna().any()
    assert report.frame["agrees_with_published"].isna().all()
    assert f"qwen-2.5-32B is {pool['qwen-2.5-32B']['model']} with weights" in report.summary[1]


def test_records_carry_numbers_and_provenance(write_cell: Any, tmp_path: Path) -> None:
    cells = [
        write_cell(*row, correct=verdicts(15 + number, 40), cost=[1e-4 * (number + item) for item in range(1, 41)])
        for number, row in enumerate(ROWS)
    ]
    written = write(build(results(cells), SOME), tmp_path, "claims")
    assert [path.name for path in written] == ["claims.csv", "claims.md", "claims.html"]
    rows = list(csv.DictReader(written[0].read_text(encoding="utf-8").splitlines()))
    measured = [row for row in rows if row["low"]]
    assert {row["benchmark"] for row in measured} == {"gsm_hard"}
    for row in measured:
        assert all(row[name] for name in ("run_id", "seeds", "config_hash", "code", "data_checksum", "backbones"))
        assert bool(row["measured_all_calls"]) == (row["measure"] == "cost")
        assert float(row["low"]) <= float(row["measured"]) <= float(row["high"])
    pattern = next(row for row in rows if row["claim"] == "gsm_same_pattern")
    assert pattern["cells"] == "gmr/gsm_hard/pool/0 puppeteer/gsm_hard/qwen-2.5-32B/0"
    assert (pattern["paper_outcome"], pattern["paper_verdict"]) == ("does not hold", "partly")
    missing = next(row for row in rows if row["claim"] == "without_llm_router")
    assert missing["missing"] == "gmr_no_llm_router pool on gsm_hard, seed 0"


def test_costs_are_the_paper_s_and_those_of_all_calls_are_said(write_cell: Any) -> None:
    """Half of every cost is the final call, which the paper counts of MASRouter alone."""
    cheaper = claim({"row": "gmr", "than": "masrouter", "benchmark": "gsm_hard", "measure": "cost", "at_most": 0})
    report = build(results([write_cell("gmr", "pool"), write_cell("masrouter", "pool")]), [cheaper])
    assert report.frame[["measured", "measured_all_calls"]].to_numpy().tolist() == [[-50.0, 0.0]]
    assert "all calls: 0.00 %" in report.contents()["md"]


def test_the_seeds_of_a_row_are_those_of_the_preset() -> None:
    seeds = seeds_of(resolve("embedded", {"seeds": [0, 1]}))
    assert (seeds["gmr", "pool"], seeds["cot", "qwen-2.5-32B"]) == ((0, 1), (0,))
    small = seeds_of(resolve("embedded", {"backbones": ["qwen-2.5-14B"]}))
    run = run_of({("gmr", "pool", "mbpp", 0): [True] * 9}, small)
    [told] = judge([claim({"row": "cot qwen-2.5-32B", "at_least": 0})], run)
    assert told.records[0]["missing"] == ["cot qwen-2.5-32B on mbpp, which the preset does not have"]
