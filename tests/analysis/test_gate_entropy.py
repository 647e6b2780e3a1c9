"""The figure of gate entropies on training logs made by hand."""

from __future__ import annotations

from typing import Any

import pytest

from analysis import figure as drawing
from harness.errors import UserError
from tests.analysis.reading import gate_entropy, words


def test_one_line_a_gate_its_lowest_value_and_a_gap_where_it_had_nothing_to_decide(make: Any) -> None:
    updates = [
        {"entropy_write": 0.6, "entropy_halt": 0.5, "entropy_retrieval": 0.3},
        {"entropy_write": 0.2, "entropy_halt": 0.5},
        {"entropy_write": 0.5, "entropy_halt": 0.4},
    ]
    figure = gate_entropy(make(updates=updates))
    picture = drawing.picture(figure.made)
    lines = [(line.get_xdata(), line.get_ydata()) for line in picture.axes[0].lines]
    curves = [list(y) for _, y in lines if len(y) > 1]
    assert [0.6, 0.2, 0.5] in curves
    assert [0.5, 0.5, 0.4] in curves
    assert [(x[0], y[0]) for x, y in lines if len(y) == 1 and y[0] != 0.3] == [(2, 0.2), (3, 0.4)]
    said = words(picture)
    assert "write, min 0.20" in said
    assert "halt, min 0.40" in said
    assert "retrieve, min 0.30" in said
    assert [record["measure"] for record in figure.records].count("entropy_retrieval") == 1


def test_nothing_trained_is_refused(make: Any) -> None:
    with pytest.raises(UserError, match="nothing was trained"):
        gate_entropy(make())
