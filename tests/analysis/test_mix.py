"""The mix of single models at equal cost: its hull against linear programming, and the columns of tables."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog
from scipy.stats import t

from analysis import figure
from analysis.bounds import mixes
from tests.analysis.reading import costs, main_table, paired, pareto

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
    worth = 100.0 * (places < 75) - 50.0 * (places < 40) - 50.0 * (places < 80) - 15
    df = (worth**2).sum() ** 2 / (worth**4).sum() - 1
    reach = t.ppf(0.975, df) * worth.std(ddof=1) / 10
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
