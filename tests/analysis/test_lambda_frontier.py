"""The figure of the cost weights on cells made by hand."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from analysis.figure import Figure
from analysis.source import Source
from harness.errors import UserError
from tests.analysis import traced
from tests.analysis.reading import lambda_frontier
from tests.analysis.traced import words

WriteCell = Callable[..., Path]


@pytest.fixture
def make(write_cell: WriteCell) -> functools.partial[Path]:
    return functools.partial(traced.make, write_cell)


@pytest.fixture
def sweep(make: Any) -> list[Path]:
    """λ_c = 20 costs more than 10 and is right less often."""
    return [
        make("gmr_lambda_10", steps=0.002, correct=[True, True, True, False]),
        make("gmr", steps=0.003, correct=[True, True, False, False]),
        make("gmr_lambda_50", steps=0.001, correct=[True, False, False, False]),
    ]


def build(folders: Sequence[Path]) -> Figure:
    return lambda_frontier.build(Source.of(folders))


def test_the_frontier_leaves_out_what_is_beaten(sweep: list[Path]) -> None:
    figure = build(sweep)
    assert [(record["lambda_c"], record["on_frontier"]) for record in figure.records] == [
        ("10", "true"),
        ("20", "false"),
        ("50", "true"),
    ]
    [panel] = traced.picture(figure).axes
    [line] = [line for line in panel.lines if len(line.get_xdata()) > 1]
    assert list(line.get_ydata()) == [25, 25, 75, 75]
    assert list(line.get_xdata())[:3] == pytest.approx([10, 20, 20])
    assert line.get_xdata()[-1] == panel.get_xlim()[1]


def test_points_with_intervals_of_both_axes(sweep: list[Path]) -> None:
    figure = build(sweep)
    [panel] = traced.picture(figure).axes
    assert len(panel.containers) == 3
    for container, record in zip(panel.containers, figure.records, strict=True):
        horizontal, vertical = (bars.get_segments()[0] for bars in container.lines[2])
        assert horizontal[:, 0] == pytest.approx([1e4 * float(record[key]) for key in ("cost_low", "cost_high")])
        assert vertical[:, 1] == pytest.approx([float(record[key]) for key in ("low", "high")], abs=0.01)


def test_the_weights_are_named_and_told_apart_by_shape(sweep: list[Path]) -> None:
    figure = build(sweep)
    said = words(figure)
    assert all(f"λ_c = {weight}" in said for weight in (10, 20, 50))
    assert "no result of this sweep" in said
    [panel] = traced.picture(figure).axes
    assert len({container.lines[0].get_marker() for container in panel.containers}) == 3


def test_a_panel_a_benchmark(make: Any) -> None:
    figure = build([make(benchmark="humaneval"), make(benchmark="gsm_hard")])
    assert ["GSM-Hard" in axes.get_ylabel() for axes in traced.picture(figure).axes] == [True, False]
    assert {record["published"] for record in figure.records} == {""}


def test_another_method_is_refused(make: Any) -> None:
    with pytest.raises(UserError, match="was given gmr_greedy; expected only"):
        build([make("gmr_greedy")])
