"""The figure of gate entropies on training logs made by hand."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from matplotlib.axes import Axes

from analysis.figure import Figure
from analysis.source import Source
from harness.errors import UserError
from tests.analysis import traced
from tests.analysis.reading import gate_entropy
from tests.analysis.traced import words

WriteCell = Callable[..., Path]
WRITE, HALT = (0.6, 0.2, 0.5), (0.5, 0.5, 0.4)


def log(write: Sequence[float] = WRITE, halt: Sequence[float] = HALT) -> list[dict[str, float]]:
    return [{"entropy_write": one, "entropy_halt": other} for one, other in zip(write, halt, strict=True)]


@pytest.fixture
def make(write_cell: WriteCell) -> functools.partial[Path]:
    return functools.partial(traced.make, write_cell, updates=log())


def build(folders: Sequence[Path]) -> Figure:
    return gate_entropy.build(Source.of(folders))


def panel(figure: Figure) -> Axes:
    """The gates of the first benchmark."""
    return traced.picture(figure).axes[0]


def curves(axes: Axes) -> list[list[float]]:
    return [list(line.get_ydata()) for line in axes.lines if len(line.get_ydata()) > 1]


def test_one_line_a_gate_and_its_lowest_value(make: Any) -> None:
    figure = build([make()])
    axes = panel(figure)
    assert curves(axes) == [list(WRITE), list(HALT)]
    rings = [line for line in axes.lines if len(line.get_ydata()) == 1]
    assert [(line.get_xdata()[0], line.get_ydata()[0]) for line in rings] == [(2, 0.2), (3, 0.4)]
    said = words(figure)
    assert "write, min 0.20" in said
    assert "halt, min 0.40" in said
    assert "retrieve, min" not in said


def test_a_gate_with_nothing_to_decide_leaves_a_gap(make: Any) -> None:
    updates = [{"entropy_write": 0.5, "entropy_retrieval": 0.3}, {"entropy_write": 0.4}, {"entropy_write": 0.3}]
    figure = build([make(updates=updates)])
    measures = [record["measure"] for record in figure.records]
    assert measures.count("entropy_retrieval") == 1
    assert measures.count("entropy_write") == 3
    assert "retrieve, min 0.30" in words(figure)


def test_nothing_trained_is_refused(make: Any) -> None:
    with pytest.raises(UserError, match="nothing was trained"):
        build([make(updates=())])
