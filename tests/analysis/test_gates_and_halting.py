"""The tables of gate behaviour and of what halting saves in training, on cells made by hand."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from analysis.source import Source
from analysis.table import NOT_RUN, Entry
from analysis.tables.halting_training import HALTING, NONE
from harness.errors import UserError
from tests.analysis import traced
from tests.analysis.reading import Read as Table
from tests.analysis.reading import gate_behaviour, halting_training
from tests.analysis.test_traces import DEPTH, MADE

# Two updates of 18 rollouts: 2 questions × 3 epochs × 6 rollouts.
SHORT = [{"steps": 45.0, "trajectories": 18.0}, {"steps": 63.0, "trajectories": 18.0}]
LONG = [{"steps": 108.0, "trajectories": 18.0}] * 2


@pytest.fixture
def make(write_cell: Callable[..., Path]) -> functools.partial[Path]:
    return functools.partial(traced.make, write_cell)


def gates(*folders: Path) -> Table:
    return gate_behaviour.build(Source.of(folders))


def halting(*folders: Path) -> Table:
    return halting_training.build(Source.of(folders))


def entries(table: Table, title: str, section: str = "") -> tuple[Entry, ...]:
    """Published, measured and cases; the sections repeat their titles."""
    [row] = [row for row in table.rows if row.labels[1].startswith(title) and section in row.section]
    return tuple(row.entries)


def test_measured_beside_published_by_both_definitions(make: Any) -> None:
    table = gates(make(made=MADE, depth=DEPTH))
    rows = {
        ("mean depth", ""): ("2.92", "2.25", "−0.67", "4"),
        ("steps written", ""): ("39.6", "44.4", "+4.8", "4"),
        ("nothing stored", ""): ("", "25.0", "", "4"),
        ("step 2", "pooled"): ("24", "33.3", "+9.3", "2"),
        ("step 2", "mean of cases"): ("24", "25.0", "+1.0", "2"),
        ("step 5", "pooled"): ("11", NOT_RUN, "", "0"),
    }
    for row, expected in rows.items():
        published, measured, cases = entries(table, *row)
        assert (published.text, measured.text, measured.beside, cases.text) == expected, row
    assert "seed 0" not in entries(table, "mean depth")[1].below


def test_several_seeds_show_their_mean_and_seed_0(make: Any) -> None:
    table = gates(make(made=MADE, depth=DEPTH), make(seed=1, made=[], depth=[1, 1, 1, 1]))
    depth, pooled = entries(table, "mean depth"), entries(table, "step 2", "pooled")
    assert [(one[1].text, one[2].text) for one in (depth, pooled)] == [("1.62", "4"), ("33.3", "1")]
    assert depth[1].below.endswith("; seed 0: 2.25")
    records = {record["measure"]: record for record in table.records}
    assert float(records["write_rate"]["measured"]) == pytest.approx(400 / 9)
    assert (records["write_rate"]["published"], records["write_rate"]["by_seed"].split()[1]) == ("39.6", "nan")
    assert (records["depth"]["by_seed"], records["depth"]["seeds"]) == ("2.25 1", "0 1")
    assert float(records["depth"]["low"]) <= 1.625 <= float(records["depth"]["high"])
    assert records["retrieved_5"]["measured"] == ""


def test_two_routers_in_one_table_are_refused(make: Any) -> None:
    with pytest.raises(UserError, match="cells of gmr with pool, gmr_greedy with pool; expected those of one router"):
        gates(make(), make("gmr_greedy"))


def test_depth_and_steps_beside_what_was_published(make: Any) -> None:
    table = halting(make(HALTING, updates=SHORT), make(NONE, updates=LONG))
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
    table = halting(*folders)
    depth = table.rows[0].entries[1]
    assert (depth.text, depth.below) == ("4.50", "sd 2.12; seed 0: 3.00")
    assert table.rows[2].entries[1].text == "1.00", "only seed 1 has both"
    assert table.records[0]["by_seed"] == "3 6"
    assert table == halting(*folders[::-1])


def test_trainings_of_different_size_say_so_and_one_without_an_update_is_refused(make: Any) -> None:
    table = halting(make(HALTING, updates=SHORT, rollouts=(2, 1, 6)), make(NONE, updates=LONG))
    assert table.groups[0].detail == "2 × 1 × 6 or 2 × 3 × 6"
    with pytest.raises(UserError, match="nothing was trained"):
        halting(make(HALTING, 1, updates=()))
