"""Bounds of a pool, headroom, the mix at equal cost and gains over splits, against hand calculations; their tables."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog
from scipy.stats import bootstrap

from analysis import bounds as bounded
from analysis import figure
from analysis.beyond.splits import lead_over_mix, over_splits
from analysis.bounds import Answers, Bounds, mixes
from harness.errors import UserError
from tests.analysis.by_hand import averaged
from tests.analysis.cells import WriteCell, marked, pool_of
from tests.analysis.reading import PRESET, costs, main_table, paired, pareto, router_bounds, splits

POOL = {"small": 1.0, "middle": 2.0, "large": 4.0}
#: Right answers of three backbones to four questions, which cost 1, 2 and 4 each time.
RIGHT = {"small": "1000", "middle": "1110", "large": "1101"}
BACKBONES = pool_of(POOL)


@pytest.fixture
def of_pool(write_cell: WriteCell) -> list[Path]:
    """Write a cell for each backbone, and that of GMR: right where none is, with 3 calls of small and 1 of large."""
    cells = [
        write_cell("single", key, correct=marked(RIGHT[key]), cost=cost, backbones={key: BACKBONES[key]}, calls=[])
        for key, cost in POOL.items()
    ]
    asked = [("small", 0.25, True)] * 3 + [("large", 0.75, True), ("middle", 9.0, False)]
    calls = [dict(zip(("backbone", "cost", "is_step"), call, strict=True)) for call in asked]
    given: dict[str, Any] = {"backbones": BACKBONES, "calls": calls}
    gmr = write_cell("gmr", "pool", correct=marked("1011"), cost_steps=[2, 2, 2, 6], cost_total=9, depth=2, **given)
    return [*cells, gmr]


def test_without_a_backbone_of_the_pool_there_is_no_bound(of_pool: list[Path]) -> None:
    with pytest.raises(UserError, match=r"no benchmark has a cell of Single LLM .*: `snakemake .*/router_bounds\.md`$"):
        router_bounds(*of_pool[1:])


def headroom(correct: np.ndarray, pool: np.ndarray) -> tuple[float, float, float]:
    """Return the headroom of verdicts, shape (n,), between those of a pool, shape (backbones, n)."""
    row = Answers(correct.astype(float), np.zeros(len(correct)), pd.DataFrame())
    [found] = bounded.headroom([row], Bounds(pool, "", {}, pool), bounded.resamples(len(correct), "here"))
    return found


def test_the_interval_is_that_of_scipys_paired_bootstrap() -> None:
    rng = np.random.default_rng(3)
    difficulty = rng.random(80)
    pool = (rng.random((3, 80)) < np.array([[0.5], [0.7], [0.75]]) * (0.4 + difficulty)).astype(float)
    method = (rng.random(80) < 0.9 * (0.4 + difficulty)).astype(float)

    def statistic(method: Any, *pool: Any, axis: int) -> Any:
        best = np.max([each.mean(axis=axis) for each in pool], axis=0)
        oracle = np.max(pool, axis=0).mean(axis=axis)
        return (method.mean(axis=axis) - best) / (oracle - best)

    expected = bootstrap((method, *pool), statistic, paired=True, method="percentile", rng=1).confidence_interval
    found = headroom(method, pool)
    assert found == pytest.approx((statistic(method, *pool, axis=-1), expected.low, expected.high), abs=0.03)
    assert found == headroom(method, pool)


@settings(max_examples=30)
@given(st.lists(st.lists(st.booleans(), min_size=3, max_size=3), min_size=2, max_size=9), st.data())
def test_a_choice_of_one_answer_a_question_gains_no_more_than_the_oracle(given_: Any, data: st.DataObject) -> None:
    pool = np.array(given_, float).T
    n = pool.shape[1]
    choice = data.draw(st.lists(st.integers(0, 2), min_size=n, max_size=n))
    value, low, high = headroom(pool[choice, range(n)], pool)
    if pool.max(axis=0).mean() == pool.mean(axis=1).max():
        assert np.isnan([value, low, high]).all()
        return
    assert value <= 1
    assert np.isnan(low) == np.isnan(high)
    assert np.isnan(low) or low <= high <= 1
    assert (headroom(pool.max(axis=0), pool)[0], headroom(pool[pool.mean(axis=1).argmax()], pool)[0]) == (1, 0)


def test_rows_are_held_against_the_bounds(of_pool: list[Path], write_cell: WriteCell) -> None:
    given: dict[str, Any] = {"backbones": BACKBONES, "calls": [{"backbone": "small", "cost": 1.0, "is_step": True}]}
    table = router_bounds(*of_pool, write_cell("cascade", "pool", correct=marked("1000"), cost=1.5, **given))
    sections = [one.labels[1] for one in table.rows]
    names = ["Oracle over the pool", "Best single backbone (middle)", "Random backbone", "Cascade", "GMR"]
    assert (sections, len({one.section for one in table.rows})) == (names, 3)
    # Of two backbones with three right answers middle is the cheaper one.
    for method, values in {"oracle": (100, 9 / 4), "best_single": (75, 2), "random_backbone": (175 / 3, 7 / 3)}.items():
        record = table.record(method=method)
        assert (float(record["accuracy"]), float(record["cost_per_query"])) == pytest.approx(values, abs=0.005)
    oracle = table.record(method="oracle")
    shares = [float(oracle[f"share_of_{kind}_{key}"]) for kind in ("calls", "cost") for key in POOL]
    assert shares == pytest.approx([25, 50, 25, 100 / 9, 400 / 9, 400 / 9], abs=0.005)
    gmr = table.record(method="gmr")
    expected = {"accuracy": 75, "cost_per_query": 3, "cost_factor": 1, "depth": 2, "headroom": 0, "regret_accuracy": 25}
    expected |= {"regret_cost": 0.75, "right_alone": 0, "share_of_calls_small": 75, "share_of_cost_small": 50}
    expected |= {"share_of_calls_middle": 0, "share_of_cost_large": 50}
    assert {name: float(gmr[name]) for name in expected} == pytest.approx(expected)
    assert float(table.record(method="cascade")["headroom"]) == -2
    # Some samples of four questions do not tell the oracle from a backbone.
    assert table.entry("Headroom", "gained", "GMR").below == "undecided"
    assert table.entry("Headroom", "gained", "Oracle over the pool").below == ""
    assert table.entry("Answers", "cost (1e-4)", "Cascade").beside == "×0.50"
    assert table.entry("Regret", "cost (1e-4)", "GMR").text == "+7500.00"
    assert table.entry("Calls (cost) in %", "small", "GMR")[:4:3] == ("75", "50")


FEW = st.floats(0.0, 1.0).map(lambda value: round(value, 2))


@given(st.lists(st.tuples(FEW, FEW), min_size=1, max_size=4), FEW)
def test_the_best_mix_is_the_most_accurate_choice_that_costs_no_more(models, cost):
    prices, points = np.array(models).T
    shares = {"A_eq": np.ones((1, len(models))), "b_eq": [1.0]}
    best = linprog(-points, A_ub=[prices], b_ub=[max(cost, prices.min())], **shares)
    assert mixes(np.array([cost]), prices[:, np.newaxis], points[:, np.newaxis]).max() == pytest.approx(-best.fun)


def test_a_router_is_compared_with_the_coin_that_costs_as_much(write_cell):
    """Of 100 questions a cheap model is right on 40 and a dear one on 80: at the mean of both costs, a mix on 60."""
    pool = {key: {"model": key, "parameters_b": size, "prices": [size, size]} for key, size in (("a", 1), ("b", 3))}
    places = np.arange(100)

    def cell(method, backbone, right, cost, **changes):
        given = {"backbones": pool, "calls": [{"backbone": "b", "key": "1"}], **changes}
        return write_cell(method, backbone, correct=(places < right).tolist(), cost=cost, **given)

    single = [cell("single", key, right, pool[key]["parameters_b"]) for key, right in (("a", 40), ("b", 80))]
    gmr = cell("gmr", "pool", 75, 2, calls=[{"backbone": key, "key": str(at)} for at, key in enumerate("abbb")])
    cells = [*single, gmr, cell("masrouter", "pool", 80, 9)]
    shown = {row.labels[0]: row.entries[-1] for row in main_table(*cells).rows}
    assert {name: entry[:3:2] for name, entry in shown.items()} == {
        "Single LLM": ("", ""),
        "GMR": ("+15.00", "↑"),
        "MASRouter": ("0.00", ""),
    }
    _, reach, _ = averaged([100.0 * (places < 75) - 50.0 * (places < 40) - 50.0 * (places < 80)])
    assert shown["GMR"].below == f"+{15 - reach:.1f}, +{15 + reach:.1f}"
    assert paired(*cells).entry("GSM-Hard", "vs. mix", "MASRouter").text == "0.00"
    record = costs(*cells).record(method="gmr")
    assert (float(record["cost_of_right"]), float(record["dearest"])) == (pytest.approx(2 * 100 / 75), 75)
    # A sweep is a line of its variants in order of cost, above the line of mixes.
    swept = [cell(f"x_k_{value}", "pool", 50 + value, value, swept=["x", value]) for value in (3, 2)]
    made = pareto(*cells, *swept)
    assert {record["swept"] for record in made.records} == {"", "2", "3"}
    [panel] = figure.picture(made.made).axes
    lines = {line.get_linestyle(): np.array(line.get_data()) for line in panel.lines if len(line.get_xdata()) > 1}
    assert np.interp(2 / 3, *lines[":"]) == pytest.approx(60, abs=0.1)
    assert lines["-"].tolist() == [[pytest.approx(2 / 3), 1], [52, 53]]


# Gains over splits.

GENERATOR = np.random.default_rng(0)
TESTS = GENERATOR.random((12, 40)).argsort(axis=1) >= 15


def test_what_depends_on_questions_alone_has_the_interval_over_questions():
    worth = GENERATOR.normal(size=40)
    found = over_splits(np.where(TESTS, worth, np.nan)).estimate()
    mean, reach, _ = averaged([worth])
    assert found[:3] == pytest.approx((mean, mean - reach, mean + reach))


def test_splits_that_share_training_questions_add_more_than_their_number_says():
    """If only splits differ, the mean varies by 1 / K + m / n of their variance."""
    shift = np.concatenate([np.arange(1.0, 7), -np.arange(1.0, 7)])
    found = over_splits(np.where(np.tile(TESTS[:6], (2, 1)), shift[:, np.newaxis], np.nan))
    assert found.value == pytest.approx(0)
    assert found.variance == pytest.approx(shift.var(ddof=1) * (1 / 12 + 15 / 40))
    assert found.df == pytest.approx(11)


def test_a_row_that_is_a_mix_leads_by_nothing_on_any_question():
    models = np.where(TESTS, GENERATOR.random((2, 2, 1, 40)), np.nan)
    models[1] += 1  # dearer and better
    row = 0.3 * models[0] + 0.7 * models[1]
    assert lead_over_mix(row, models)[TESTS] == pytest.approx(0)
    # What is dearer than the best model is compared with that model; below the cheapest, with the cheapest.
    for cost, model in ((9.0, 1), (-9.0, 0)):
        lead = lead_over_mix(np.stack([row[0], row[1] + cost]), models)
        assert lead[TESTS] == pytest.approx((row[0] - models[model][0])[TESTS])


def test_rows_that_do_not_learn_are_restricted_to_the_test_questions_of_each_split(write_cell):
    """Of four questions each split tests two. The fixed choice is right on all it is tested on, the single on one."""
    cells = [write_cell(correct=[True, False, False, False], splits="resampled")]
    for seed, places in enumerate(((0, 1), (2, 3), (0, 2))):
        about = {"item_id": [f"item-{place:04d}" for place in places], "seed": seed, "n_train": 2}
        cells.append(write_cell("fixed_step", "pool", correct=[True, True], splits="resampled", **about))
    row = splits(*cells, preset=SimpleNamespace(**{**vars(PRESET), "reference": "fixed_step"})).record(method="single")
    assert (row["splits"], row["n"], row["gaining"]) == (3, 4, 0)
    assert (row["accuracy"], row["gain"]) == (25, -75)
    assert float(row["sd"]) == pytest.approx(np.std([50, 100, 50], ddof=1))
