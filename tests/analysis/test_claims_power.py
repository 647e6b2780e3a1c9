"""Chances of verdicts against runs that are made and judged one by one, and the corrections of the plan of analysis."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from scipy.stats import multivariate_normal, norm
from statsmodels.stats.contingency_tables import mcnemar
from statsmodels.stats.multitest import multipletests

from analysis.claims import power
from analysis.claims.declaration import Claim, claim
from analysis.claims.judge import FAILS, HOLDS, UNDECIDED, judge
from analysis.claims.measured import Run, asked_by
from analysis.claims.numbers import GMR, MASROUTER, Printed
from analysis.claims.power import CORRELATION, Design, chances, design_of, why_unknown
from analysis.claims.statements import CLAIMS
from analysis.source import Source
from analysis.statistics import TAIL, paired
from analysis.tables import claims_power
from harness.runner import config
from tests.analysis.cells import Cell, run_of

EMBEDDED = config.preset("embedded")
BY_KEY = {one.key: one for one in CLAIMS}


@cache
def deviation_of_trainings(benchmark: str, right: float) -> float:
    """Return the deviation of the accuracy between trainings that questions do not explain."""
    n, covariance = power.published_questions()[benchmark], [[1, CORRELATION], [CORRELATION, 1]]
    both = multivariate_normal.cdf([norm.ppf(right)] * 2, cov=covariance)
    return math.sqrt(max(0.0, power.training_variances()[benchmark] / 1e4 - (right - both) / n))


def made_run(claims: Sequence[Claim], design: Design, random: np.random.Generator) -> Run:
    """Return a run in which the paper is true: a latent normal variable for each question, row and training."""
    correct, costs = {}, {}
    asked = asked_by(claims)
    common = {key: random.normal(size=(2, n)) for key, n in design.questions.items()}
    shares = np.array([CORRELATION, power.COST_CORRELATION])[:, np.newaxis, np.newaxis]
    deviation, of_trainings = power.COST_DEVIATION, power.COST_OF_TRAININGS
    for method, backbone, benchmark in dict.fromkeys(entry[:3] for entry in asked):
        row, key = (method, backbone), (method, backbone, benchmark)
        seeds, n = design.seeds.usual[row], design.questions[benchmark]
        right, price = Printed().of("accuracy", row, benchmark) / 100, 1.0
        if (*key, "cost") in asked:
            price = Printed().of("cost", row, benchmark) / power.published_questions()[benchmark]
        alone = random.normal(size=(2, len(seeds), n))
        latent, logs = np.sqrt(shares) * common[benchmark][:, np.newaxis] + np.sqrt(1 - shares) * alone
        varies = row in design.trained
        better = varies * deviation_of_trainings(benchmark, right) * random.normal(size=len(seeds))
        dearer = varies * of_trainings * random.normal(size=(len(seeds), 1))
        spread = deviation * logs + dearer - (deviation**2 + varies * of_trainings**2) / 2
        for index, seed in enumerate(seeds):
            correct[*key, seed] = latent[index] < norm.ppf(right + better[index])
            costs[*key, seed] = price * np.exp(spread[index])
    return run_of(correct, design.seeds, cost=costs)


# What takes longest: joint statements.
NIGHTLY = [pytest.param(key, 1, marks=pytest.mark.nightly) for key in ("most_accurate_of_three", "both_memory_gates")]


@pytest.mark.parametrize(
    ("key", "seeds"), [("without_role_allocator", 3), ("humaneval_cheaper_than_puppeteer", 1), *NIGHTLY]
)
def test_chances_are_those_of_runs_judged_one_by_one(key: str, seeds: int) -> None:
    """Joint and single statements about accuracy, and one about cost; 200 of ours against as many by hand."""
    random, chosen = np.random.default_rng(seeds), [replace(BY_KEY[key], primary=False)]
    design = design_of(EMBEDDED, range(seeds))
    chance = chances(chosen, design, primary_tail=TAIL).loc[key]
    runs = [judge(chosen, made_run(chosen, design, random))[0][0]["claim_outcome"] for _ in range(200)]
    for ours, outcome in ((chance.reproduced, HOLDS), (chance.contradicted, FAILS)):
        theirs = runs.count(outcome) / len(runs)
        middle = (ours + theirs) / 2
        assert abs(ours - theirs) <= 4 * math.sqrt(max(middle * (1 - middle), 0.005) * 2 / 200)
    assert 0.02 < chance.reproduced + chance.contradicted < 0.98


def test_samples_have_the_paper_s_means_and_variances() -> None:
    design = design_of(EMBEDDED, range(3))._replace(questions={"gsm_hard": 4000, "humaneval": 4000})
    for asked in asked_by([BY_KEY["gsm_cheaper_than_full_history"], BY_KEY["on_the_frontier"]]):
        measurement = power.draw(asked, design, 20, block=0)
        *row, benchmark, measure = asked
        truth = Printed().of(measure, tuple(row), benchmark)
        truth /= power.published_questions()[benchmark] if measure == "cost" else 1
        # Twenty samples of questions and of up to three trainings.
        assert measurement.whole.mean() == pytest.approx(truth, rel=0.06)
        assert measurement.without.mean() == pytest.approx(measurement.whole.mean())
    # At the paper's number of questions, what trainings and questions do together is what it prints.
    for row in (GMR, MASROUTER):
        drawn = power.draw((*row, "humaneval", "accuracy"), design_of(EMBEDDED, range(5)), 100, block=0)
        variance = drawn.whole.var(axis=1, ddof=1).mean()
        assert variance == pytest.approx(power.training_variances()["humaneval"], rel=0.25)


def test_of_what_nothing_is_known() -> None:
    reasons = {
        "row_averages": "no result of a run",
        "role_count": "nothing is sampled",
        "depth_cost": "not printed: cost of gmr_depth_10 pool on math",
        "lowest_flops": "no spread printed: flops",
        "gains_most_on_two": "not sampled: 2400 comparisons",
    }
    assert {key: why_unknown(BY_KEY[key]) for key in reasons} == reasons
    assert [why_unknown(one) for one in CLAIMS if one.primary] == [""] * 5


def leads(wins: Mapping[str, tuple[int, int]], primary: Sequence[str] = ()) -> tuple[list[Claim], Run]:
    """Return claims that a row is ahead of MASRouter on MBPP, with so many questions won and lost of 200."""
    correct: dict[Cell, Any] = {(*MASROUTER, "mbpp", 0): [True] * 100 + [False] * 100}
    chosen = []
    for name, (won, lost) in wins.items():
        correct[name, "pool", "mbpp", 0] = [False] * lost + [True] * (100 - lost + won) + [False] * (100 - won)
        declared = claim("a", "b", "points", primary=name in primary)(
            lambda n, name=name: n.lead(name, MASROUTER, "mbpp")
        )
        chosen.append(replace(declared, key=name))
    return chosen, run_of(correct)


def test_secondary_statements_stand_where_benjamini_and_hochberg_say() -> None:
    counts = [(6, 0), (9, 1), (20, 2), (0, 8), (12, 8), (7, 1), (3, 0)]
    judged = [parts[0] for parts in judge(*leads({f"row_{number}": count for number, count in enumerate(counts)}))]
    p = np.array([mcnemar([[0, won], [lost, 0]], exact=True).pvalue for won, lost in counts])
    decided = [HOLDS if won > lost else FAILS for won, lost in counts]
    rejected = multipletests(p, 0.05, method="fdr_bh")[0]
    assert [part["claim_outcome"] for part in judged] == np.where(p < 0.05, decided, UNDECIDED).tolist()
    assert [part.get("stands", False) for part in judged] == rejected.tolist()
    # Some are decided by themselves and do not stand.
    assert 0 < rejected.sum() < (p < 0.05).sum()


def test_primary_endpoints_share_a_risk_of_five_percent() -> None:
    # p = 0.031 is enough of one endpoint and not of two; 0.004 of both.
    alone = judge(*leads({"gmr": (6, 0)}, primary=["gmr"]))
    assert alone[0][0]["claim_outcome"] == HOLDS
    both = judge(*leads({"gmr": (6, 0), "full_history": (9, 0), "cot": (6, 0)}, primary=["gmr", "full_history"]))
    judged = [parts[0] for parts in both]
    assert [part["outcome"] for part in judged] == [UNDECIDED, HOLDS, HOLDS]
    # What is printed is the interval that decides.
    assert [part["confidence"] for part in judged] == [97.5, 97.5, 95]
    for part, wins, tail in zip(judged, (6, 9, 6), (TAIL / 2, TAIL / 2, TAIL), strict=True):
        assert (part["low"], part["high"]) == pytest.approx([100 * end for end in paired(wins, 0, 200, tail)])


def test_the_table_of_chances() -> None:
    kept = ("gsm_cheaper_than_full_history", "mbpp_close_to_masrouter", "lowest_time", "prices")
    made = claims_power.build(Source(preset=EMBEDDED), [BY_KEY[key] for key in kept], samples=30)
    frame = made.frame.set_index("claim")
    assert made.shown.index.get_level_values("Claim").tolist() == list(kept[:2])
    assert frame["seeds_for_power"].isna().tolist() == [False, True, True, True]
    assert frame.at["gsm_cheaper_than_full_history", "reproduced_1"] > 0.8
    assert frame.loc[["lowest_time", "prices"], "unknown"].ne("").all()
    assert not made.simulated
