"""Published numbers are consistent in themselves, and with what the paper says about its own tables."""

from collections.abc import Callable
from typing import Any

import pytest

from analysis.exhibit import BEST, SECOND, marks
from analysis.published import Count, load, row_of
from harness.agents.roles import by_domain

PLAUSIBLE = {"math": (416,), "gsm_hard": (1056,), "mbpp": (500, 496), "humaneval": (129, 128), "mmlu_pro": (880, 400)}


def counts_where(benchmark: str, fits: Callable[[int, int], bool]) -> set[Count]:
    return {Count(k, n) for n in PLAUSIBLE[benchmark] for k in range(n + 1) if fits(k, n)}


def test_counts_are_all_that_explain_a_value():
    cells = [(column, cell) for row in load().rows for column, cell in row.accuracies.items()]
    for column, cell in cells:
        printed = round(cell.percent * 100)
        rounded = counts_where(column, lambda k, n, printed=printed: abs(10_000 * k - printed * n) * 2 < n)
        truncated = counts_where(column, lambda k, n, printed=printed: 10_000 * k // n == printed)
        if cell.fit == "rounded":
            assert set(cell.counts) == rounded, cell
        elif cell.fit == "truncated":
            assert (rounded, set(cell.counts)) == (set(), truncated), cell
        else:
            assert not rounded | truncated, cell
            every = counts_where(column, lambda k, n: True)
            distance = {count: abs(10_000 * count.k / count.n - printed) for count in every}
            assert distance[cell.near] == min(distance.values()), cell
    fits = [cell.fit for _, cell in cells]
    assert (fits.count("none"), fits.count("truncated"), len(fits)) == (10, 2, 105)


def test_marks_reproduce_the_paper_s_bold_and_underlined_values():
    """Transcribed from the typeset table, independently of the data file."""
    best = {benchmark: [("gmr", "pool")] for benchmark in (*PLAUSIBLE, "average")}
    best["mbpp"] = [("macnet_chain", "qwen-2.5-14B")]
    second = {benchmark: [("puppeteer", "qwen-2.5-32B")] for benchmark in (*PLAUSIBLE, "average")}
    second["math"] = [("macnet_complete", "qwen-2.5-32B"), ("puppeteer", "qwen-2.5-32B")]
    second["mbpp"] = [("macnet_complete", "qwen-2.5-32B")]
    second["humaneval"] = [("macnet_chain", "qwen-2.5-14B")]
    rows = load().rows
    for column in best:
        values = [row.average if column == "average" else row.accuracies[column].percent for row in rows]
        found = [((row.method, row.backbone), mark) for row, mark in zip(rows, marks(values), strict=True)]
        assert [key for key, mark in found if mark == BEST] == best[column]
        assert [key for key, mark in found if mark == SECOND] == second[column]


def test_averages_are_means_and_tables_repeat_each_other():
    """All 21 averages, and each accuracy or cost that a second table prints."""
    published = load()
    for row in published.rows:
        mean = sum(cell.percent for cell in row.accuracies.values()) / len(row.accuracies)
        assert row.average == pytest.approx(mean, abs=0.01), row
    first: dict[Any, float] = {}
    repeated = 0
    for name in ("main", "costs", "ablation", "paradigm", "roles13"):
        for key, value in published.table(name)[[*{"accuracy", "cost"} & {*published.table(name)}]].stack().items():
            repeated += key in first
            assert first.setdefault(key, value) == value, (name, key)
    assert repeated == 56


def test_what_the_paper_says_about_its_own_tables():
    """Prices, the range of MacNet, the roles, and costs against FLOPs agree; two overall means and depths do not."""
    published = load()
    for price in published.prices.values():
        assert (price.input, price.output) == pytest.approx((0.003 * price.size, 0.010 * price.size))
    macnet = [row for row in published.rows if row.method.startswith("macnet_") and row.backbone == "qwen-2.5-32B"]
    accuracies = [row.accuracies["gsm_hard"].percent for row in macnet]
    assert (min(accuracies), max(accuracies)) == (61.93, 62.31)
    assert [len(by_domain(domain)) for domain in ("Code", "Commonsense", "Math")] == [7, 7, 12]
    # 2 FLOPs per parameter and token, on 128 questions: a price between that of prompt and of completion tokens.
    costs = published.table("costs")["cost"].xs("humaneval", level="benchmark")
    for method in ("gmr", "masrouter", "puppeteer"):
        assert (
            0.003
            < costs[row_of(method)] / 128 / (published.further["hw_cost"][method]["humaneval"]["pflops"] / 2)
            < 0.01
        )
    # An overall mean may differ from that of its five printed means by half a unit of the last digit of each.
    seeds = published.further["seed_variance"]
    means = {method: sum(seeds[method][key]["mean"] for key in PLAUSIBLE) / 5 for method in seeds}
    away = {method: abs(means[method] - seeds[method]["overall"]["mean"]) for method in seeds}
    assert {method for method, distance in away.items() if distance > 0.01 + 1e-9} == {"gmr"}
    # With equally many trajectories, trainings have the ratio of their depths. The gains over Puppeteer-32B are largest
    # on MBPP, not on GSM-Hard and HumanEval.
    tables = published.further["halting_training"]
    for key, fits in (("gsm_hard", False), ("humaneval", True)):
        with_halting, without = tables["gmr"][key], tables["gmr_no_halting"][key]
        assert without["depth"] == 6
        low, high = ((with_halting["depth"] + sign * 0.05) / 6 * without["steps"] for sign in (-1, 1))
        assert (low - 50 <= with_halting["steps"] <= high + 50) == fits
    gmr, puppeteer = published.rows[-1].accuracies, published.rows[-3].accuracies
    assert max(gmr, key=lambda key: gmr[key].percent - puppeteer[key].percent) == "mbpp"
