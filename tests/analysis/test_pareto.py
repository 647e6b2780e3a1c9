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
from matplotlib.legend import Legend
from matplotlib.text import Text

from analysis.figure import Figure, on_frontier
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
    figure = build([make("gmr"), make("masrouter"), make("single", backbone="qwen-2.5-14B", calibrated=True)])
    panels = traced.picture(figure).axes[:2]
    markers = [[line for line in panel.lines if line.get_linestyle() == "None"] for panel in panels]
    assert list(map(len, markers)) == [21, 3]
    hollow = [[to_rgb(line.get_markerfacecolor()) == (1, 1, 1) for line in of] for of in markers]
    assert list(map(sum, hollow)) == [0, 1]
    assert panels[0].get_xlim() == panels[1].get_xlim()
    assert panels[0].get_ylim() == panels[1].get_ylim()
    assert record(figure, "aflow", "qwen-2.5-14B")["measured"] == ""


def test_a_method_has_a_color_of_its_own(make: Any) -> None:
    key = traced.picture(build([make("gmr"), make("full_history", backbone="my-7B"), make("full_history")])).axes[2]
    methods = next(one for one in key.get_children() if isinstance(one, Legend)).legend_handles
    assert len(methods) == 11
    assert len({line.get_color() for line in methods}) == 11


def test_names_of_the_frontier_lie_inside_and_off_their_points(make: Any) -> None:
    rows = load().rows
    folders = [
        make(row.method, backbone=row.backbone, steps=1e-5 * place, total=1e-5 * place)
        for place, row in enumerate(rows, 1)
    ]
    figure = build(folders)
    picture = traced.picture(figure)
    FigureCanvasAgg(picture).draw()
    for side, panel in zip(("published", "measured"), picture.axes[:2], strict=True):
        on_it = sum(one[f"{side}_on_frontier"] == "true" or one["method"] == "gmr" for one in figure.records)
        assert len(panel.texts) == on_it
        assert "GMR" in [text.get_text() for text in panel.texts]
        for text in panel.texts:
            box = Text.get_window_extent(text)
            assert min(box.x0 - panel.bbox.x0, panel.bbox.x1 - box.x1) >= 0
            assert min(box.y0 - panel.bbox.y0, panel.bbox.y1 - box.y1) >= -1
            assert not box.contains(*panel.transData.transform(text.xy))
