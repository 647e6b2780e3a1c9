"""The Pareto plots: the frontier against brute force, the points against the cells, the labels against each other."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_rgb

from analysis.figure import Figure
from analysis.figures import pareto as pareto_module
from analysis.frontier import Point, frontier, outline
from analysis.labels import Box, apart, beside
from analysis.published import load
from analysis.source import Source
from harness.errors import UserError
from tests.analysis import traced
from tests.analysis.reading import pareto
from tests.analysis.traced import words

WriteCell = Callable[..., Path]
POINTS = st.lists(st.builds(Point, st.integers(0, 6), st.integers(0, 6)), max_size=12)


@pytest.fixture
def make(write_cell: WriteCell) -> functools.partial[Path]:
    return functools.partial(traced.make, write_cell, updates=None)


def build(folders: Sequence[Path], benchmark: str = "gsm_hard") -> Figure:
    return pareto.build(Source.of(folders, benchmark=benchmark))


def record(figure: Figure, method: str, backbone: str = "pool") -> dict[str, str]:
    [found] = [one for one in figure.records if (one["method"], one["backbone"]) == (method, backbone)]
    return dict(found)


def beats(one: Point, other: Point) -> bool:
    return one.cost <= other.cost and one.accuracy >= other.accuracy and one != other


@given(POINTS)
def test_the_frontier_is_what_nothing_beats(points: list[Point]) -> None:
    found = frontier(points)
    assert sorted(found) == [
        place for place, point in enumerate(points) if not any(beats(other, point) for other in points)
    ]
    assert [points[place].cost for place in found] == sorted(points[place].cost for place in found)


@given(POINTS.filter(bool), st.integers(0, 8))
def test_the_outline_is_the_best_that_a_cost_buys(points: list[Point], until: int) -> None:
    corners = outline(points, until)
    cheapest = min(point.cost for point in points)
    assert corners[0].cost == cheapest
    assert corners[-1].cost == max(until, max(points[place].cost for place in frontier(points)))
    for cost in {corner.cost for corner in corners}:
        best = max(point.accuracy for point in points if point.cost <= cost)
        assert max(corner.accuracy for corner in corners if corner.cost == cost) == best
    for one, other in itertools.pairwise(corners):
        assert one.cost == other.cost or one.accuracy == other.accuracy


def test_no_points_have_no_outline() -> None:
    assert outline([], 1) == []


def test_the_published_frontier_is_that_of_the_printed_numbers(make: Any) -> None:
    """By hand from the cost table of GSM-Hard: rows that no cheaper row reaches in accuracy."""
    rows = sorted(load().costs["gsm_hard"], key=lambda row: row.cost)
    best = [
        (row.method, row.backbone)
        for row in rows
        if not any(other.accuracy >= row.accuracy and other.cost <= row.cost for other in rows if other is not row)
    ]
    figure = build([make("gmr")])
    found = [(one["method"], one["backbone"]) for one in figure.records if one["published_on_frontier"] == "true"]
    assert sorted(found) == sorted(best)
    assert ("gmr", "pool") in found


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


def test_a_row_the_paper_does_not_have_stands_at_the_end(make: Any) -> None:
    figure = build([make("gmr_greedy")])
    found = record(figure, "gmr_greedy")
    assert (found["number"], found["published"], found["published_on_frontier"]) == ("22", "", "")
    assert found["measured_on_frontier"] == "true"
    assert "22 GMR greedy decoding, LLM Pool" in words(figure)


def test_what_was_fitted_is_marked_and_has_no_difference(make: Any) -> None:
    figure = build([make("single", backbone="qwen-2.5-14B", calibrated=True)])
    assert "4† Single LLM" in words(figure)
    assert "agreement is no finding" in words(figure)
    found = record(figure, "single", "qwen-2.5-14B")
    assert (found["difference"], found["cost_ratio"], found["calibrated"]) == ("", "", "true")
    assert "no finding" not in words(build([make("gmr")]))


def test_families_differ_in_shape_and_colour() -> None:
    looks = list(pareto_module._LOOKS.values())
    assert {row.family for row in load().methods.values()} == set(pareto_module._LOOKS)
    assert len({look.marker for look in looks}) == len({look.color for look in looks}) == len(looks)


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


def test_another_benchmark_is_refused(make: Any) -> None:
    with pytest.raises(UserError, match="no cell of 'humaneval' among those of gsm_hard"):
        build([make("gmr")], "humaneval")


@given(st.lists(st.floats(-5, 5), min_size=1, max_size=7), st.floats(0.1, 2))
def test_labels_on_a_line_keep_their_distance_and_their_order(wanted: list[float], gap: float) -> None:
    found = apart(wanted, gap)
    order = sorted(range(len(wanted)), key=lambda place: (wanted[place], place))
    for one, other in itertools.pairwise(order):
        assert found[other] - found[one] >= gap - 1e-9
    assert sum(found) == pytest.approx(sum(wanted), abs=1e-6)


@given(st.lists(st.floats(-5, 5), min_size=2, max_size=4), st.floats(0.1, 2), st.integers(0, 1000))
def test_no_other_placement_on_a_line_is_nearer(wanted: list[float], gap: float, seed: int) -> None:
    found = apart(wanted, gap)
    order = np.argsort(wanted, kind="stable")
    cost = sum((one - other) ** 2 for one, other in zip(found, wanted, strict=True))
    moved = np.array(found)[order] + np.random.default_rng(seed).normal(0, 0.3, len(wanted))
    if all(np.diff(moved) >= gap):
        assert cost <= sum((moved - np.array(wanted)[order]) ** 2) + 1e-9


def test_labels_that_have_room_do_not_overlap() -> None:
    points = [(10.0 * x, 10.0 * y) for x in range(1, 6) for y in range(1, 6)]
    places = beside(points, [3.0] * len(points), (4, 3), Box(30, 30, 60, 60))
    for one, other in itertools.combinations(places, 2):
        assert one.overlap(other) == 0
    for place in places:
        assert place.outside(Box(30, 30, 60, 60)) == pytest.approx(0)
        assert all(place.overlap(Box(*point, 3, 3)) == 0 for point in points)


def test_the_overlap_of_two_boxes() -> None:
    assert Box(0, 0, 2, 2).overlap(Box(1, 1, 2, 2)) == 1
    assert Box(0, 0, 4, 4).overlap(Box(0, 0, 2, 1)) == 2
    assert Box(0, 0, 2, 2).overlap(Box(3, 0, 2, 2)) == 0
    assert Box(0, 0, 2, 2).outside(Box(1, 0, 2, 2)) == 2
