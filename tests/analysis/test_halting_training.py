"""The table of training computation on cells made by hand."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from analysis.source import Source
from analysis.tables.halting_training import HALTING, NONE
from harness.errors import UserError
from tests.analysis import traced
from tests.analysis.reading import Read as Table
from tests.analysis.reading import halting_training

# Two updates of 18 rollouts: 2 questions × 3 epochs × 6 rollouts.
SHORT = [{"steps": 45.0, "trajectories": 18.0}, {"steps": 63.0, "trajectories": 18.0}]
LONG = [{"steps": 108.0, "trajectories": 18.0}] * 2


@pytest.fixture
def make(write_cell: Callable[..., Path]) -> functools.partial[Path]:
    return functools.partial(traced.make, write_cell)


def build(*folders: Path) -> Table:
    return halting_training.build(Source.of(folders))


def test_depth_and_steps_beside_what_was_published(make: Any) -> None:
    table = build(make(HALTING, updates=SHORT), make(NONE, updates=LONG))
    assert {row.labels[0]: [entry.text for entry in row.entries] for row in table.rows} == {
        "Halting (GMR)": ["3.4", "3.00", "26.5", "0.1"],
        "No halting": ["6.0", "6.00", "47.9", "0.2"],
        "No halting / halting": ["1.76", "2.00", "1.81", "2.00"],
    }
    assert [entry.beside for entry in table.rows[0].entries] == ["", "−0.40", "", "×0.00"]
    assert [entry.beside for entry in table.rows[2].entries] == ["", "+0.24", "", "+0.19"]
    assert table.groups[0].detail == "2 × 3 × 6"


def test_several_seeds_have_a_deviation_and_seed_0(make: Any) -> None:
    folders = [make(HALTING, updates=SHORT), make(HALTING, 1, updates=LONG), make(NONE, 1, updates=LONG)]
    table = build(*folders)
    depth = table.rows[0].entries[1]
    assert (depth.text, depth.below) == ("4.50", "sd 2.12; seed 0: 3.00")
    assert table.rows[2].entries[1].text == "1.00", "only seed 1 has both"
    assert table.records[0]["by_seed"] == "3 6"
    assert table == build(*folders[::-1])


def test_trainings_of_different_size_say_so_and_one_without_an_update_is_refused(make: Any) -> None:
    table = build(make(HALTING, updates=SHORT, rollouts=(2, 1, 6)), make(NONE, updates=LONG))
    assert table.groups[0].detail == "2 × 1 × 6 or 2 × 3 × 6"
    with pytest.raises(UserError, match="nothing was trained"):
        build(make(HALTING, 1, updates=()))
