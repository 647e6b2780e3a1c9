"""The figure of the depth budget on cells made by hand."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from analysis import sweeps
from analysis.figure import Figure
from analysis.source import Source
from harness.errors import UserError
from tests.analysis import traced
from tests.analysis.reading import depth
from tests.analysis.traced import words

WriteCell = Callable[..., Path]


@pytest.fixture
def make(write_cell: WriteCell) -> functools.partial[Path]:
    return functools.partial(traced.make, write_cell, benchmark="math")


@pytest.fixture
def sweep(make: Any) -> list[Path]:
    """φ cents of cost a question; 2 of 4 right up to φ = 6, 3 beyond."""
    return [
        make(method, steps=phi / 100, depth=[1, 1, 2, 2], correct=[True, True, phi > 6, False])
        for method, phi in sweeps.values(sweeps.DEPTHS, "max_depth").items()
    ]


def build(folders: Sequence[Path]) -> Figure:
    return depth.build(Source.of(folders))


def test_accuracy_on_the_left_and_cost_on_the_right(sweep: list[Path]) -> None:
    left, right = traced.picture(build(sweep)).axes
    assert left.lines[0].get_ydata() == pytest.approx([50, 50, 50, 75, 75])
    assert right.lines[0].get_ydata() == pytest.approx([200, 400, 600, 800, 1000])
    assert left.lines[0].get_xdata() == pytest.approx([2, 4, 6, 8, 10], abs=0.1)
    assert [label.get_text() for label in left.get_xticklabels()] == [f"{phi}\n(1.50)" for phi in (2, 4, 6, 8, 10)]


def test_the_lines_are_told_apart_without_colour(sweep: list[Path]) -> None:
    left, right = traced.picture(build(sweep)).axes
    one, other = left.lines[0], right.lines[0]
    assert one.get_linestyle() != other.get_linestyle()
    assert one.get_marker() != other.get_marker()


def test_the_accuracies_have_their_intervals(sweep: list[Path]) -> None:
    figure = build(sweep)
    left, _ = traced.picture(figure).axes
    [bars] = left.collections
    for segment, record in zip(bars.get_segments(), figure.records, strict=True):
        assert segment[:, 1] == pytest.approx([float(record["low"]), float(record["high"])], abs=0.01)


def test_the_caption_tells_what_is_printed_and_what_was_found(sweep: list[Path]) -> None:
    said = words(build(sweep))
    assert "without printing its points" in said
    assert "Here: +25.00 points." in said
    assert "Not run" not in said
    some = words(build(sweep[1:3]))
    assert "Not run: φ = 2, 8, 10." in some
    assert "Here:" not in some


def test_seed_0_is_a_cross_where_there_are_several(make: Any) -> None:
    one, two = make(correct=[True] * 4), make(seed=1, correct=[False] * 4)
    left, _ = traced.picture(build([one, two])).axes
    assert left.lines[0].get_ydata() == pytest.approx([50])
    [cross] = [line for line in left.lines if line.get_marker() == "x"]
    assert list(cross.get_ydata()) == [100]
    left, _ = traced.picture(build([one])).axes
    assert not [line for line in left.lines if line.get_marker() == "x"]


def test_nothing_is_published(sweep: list[Path]) -> None:
    records = build(sweep).records
    assert [record["max_depth"] for record in records] == ["2", "4", "6", "8", "10"]
    for record in records:
        assert record["published"] == ""
        assert record["mean_depth"] == "1.5"
        assert all(record[key] for key in ("run_id", "config_hash", "code", "data_checksum", "backbones", "seeds"))


def test_a_method_outside_the_sweep_is_refused(make: Any) -> None:
    with pytest.raises(UserError, match="was given the method gmr_greedy; expected gmr_depth_2"):
        build([make("gmr_greedy")])
    with pytest.raises(UserError, match="was given several benchmarks"):
        build([make(), make(benchmark="gsm_hard")])
