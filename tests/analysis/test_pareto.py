"""The Pareto plots: the frontier against brute force, the points against the cells, the labels against each other."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.colors import to_rgb

from analysis import figure as drawing
from analysis.figure import on_frontier
from tests.analysis.reading import pareto

POINTS = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), max_size=12)


@given(POINTS)
def test_the_frontier_is_what_nothing_beats(points: list[tuple[int, int]]) -> None:
    frame = pd.DataFrame([*points, (1, None)], columns=["cost", "accuracy"])
    expected = [
        not any(one[0] <= cost and one[1] >= accuracy and one != (cost, accuracy) for one in points)
        for cost, accuracy in points
    ]
    found = list(on_frontier(frame["cost"], frame["accuracy"]))
    assert found[:-1] == expected
    assert pd.isna(found[-1])


def test_costs_are_those_of_one_question(make: Any) -> None:
    figure = pareto(make("gmr", cost_steps=0.002, cost_total=0.003), benchmark="gsm_hard")
    row = figure.record(method="gmr", backbone="pool")
    costs = {"published_cost_per_query": 0.587 / 1056, "cost_per_query": 0.002, "cost_per_query_all_calls": 0.003}
    expected = {**costs, "published": 70.55, "measured": 75, "difference": 4.45}
    assert {name: float(row[name]) for name in expected} == pytest.approx(expected)
    assert all(row[name] for name in ("run_id", "config_hash", "code", "data_checksum", "backbones", "seeds"))


def test_every_row_has_its_published_point_and_those_run_a_measured_one(make: Any) -> None:
    fitted = make("single", backbone="qwen-2.5-14B", calibrated=True)
    figure = pareto(make("gmr"), make("masrouter"), fitted, benchmark="gsm_hard")
    panels = drawing.picture(figure.made).axes[:2]
    markers = [[line for line in panel.lines if line.get_linestyle() == "None"] for panel in panels]
    assert list(map(len, markers)) == [21, 3]
    hollow = [[to_rgb(line.get_markerfacecolor()) == (1, 1, 1) for line in of] for of in markers]
    assert list(map(sum, hollow)) == [0, 1]
    assert panels[0].get_xlim() == panels[1].get_xlim()
    assert panels[0].get_ylim() == panels[1].get_ylim()
    assert figure.record(method="aflow", backbone="qwen-2.5-14B")["measured"] == ""
