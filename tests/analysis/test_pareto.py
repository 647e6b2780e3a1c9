"""The Pareto plots: the frontier against brute force, the points against the cells, the labels against each other."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_rgb

from analysis.figure import Figure
from analysis.frontier import on_frontier
from analysis.published import load
from analysis.source import Source
from tests.analysis import traced
from tests.analysis.reading import pareto

WriteCell = Callable[..., Path]
POINTS = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), max_size=12)


@pytest.fixture
def make(write_cell: WriteCell) -> functools.partial[Path]:
    return functools.partial(traced.make, write_cell, updates=None)


def build(folders: Sequence[Path], benchmark: str = "gsm_hard") -> Figure:
    return pareto.build(Source.of(folders, benchmark=benchmark))


def record(figure: Figure, method: str, backbone: str = "pool") -> dict[str, str]:
    [found] = [one for one in figure.records if (one["method"], one["backbone"]) == (method, backbone)]
    return dict(found)


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
    figure = build([make("gmr", steps=0.002, total=0.003)])
    found = record(figure, "gmr")
    assert float(found["published_cost_per_query"]) == pytest.approx(0.587 / 1056)
    assert float(found["cost_per_query"]) == pytest.approx(0.002)
    assert float(found["cost_per_query_all_calls"]) == pytest.approx(0.003)
    assert found["published"] == "70.55"
    assert found["measured"] == "75.00"
    assert found["difference"] == "+4.45"
    assert all(found[key] for key in ("run_id", "config_hash", "code", "data_checksum", "backbones", "seeds"))


def test_every_row_has_its_published_point_and_those_run_a_measured_one(make: Any) -> None:
    figure = build([make("gmr"), make("masrouter")])
    panel, key = traced.picture(figure).axes
    markers = [line for line in panel.lines if line.get_linestyle() == "None"]
    hollow = [line for line in markers if to_rgb(line.get_markerfacecolor()) == (1, 1, 1)]
    assert len(hollow) == 21
    assert len(markers) - len(hollow) == 2
    assert len(key.lines) == 21
    assert record(figure, "aflow", "qwen-2.5-14B")["measured"] == ""
    joins = [line for line in panel.lines if line.get_linewidth() == 0.5]
    assert len(joins) == 2


def test_numbers_lie_inside_and_off_the_points_of_their_own(make: Any) -> None:
    rows = load().rows
    folders = [
        make(row.method, backbone=row.backbone, steps=1e-5 * place, total=1e-5 * place)
        for place, row in enumerate(rows, 1)
    ]
    picture = traced.picture(build(folders))
    FigureCanvasAgg(picture).draw()
    panel = picture.axes[0]
    texts = [text for text in panel.texts if text.get_text().isdigit()]
    assert len(texts) == 2 * 21
    for text in texts:
        box = text.get_window_extent()
        assert min(box.x0 - panel.bbox.x0, panel.bbox.x1 - box.x1) >= 0
        assert min(box.y0 - panel.bbox.y0, panel.bbox.y1 - box.y1) >= -1
        at = panel.transData.transform(text.xy)
        assert not box.contains(*at)
