"""The table of gate behaviour on cells made by hand."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from analysis.source import Source
from analysis.table import NOT_RUN, Entry
from harness.errors import UserError
from tests.analysis import traced
from tests.analysis.reading import Read as Table
from tests.analysis.reading import gate_behaviour
from tests.analysis.test_traces import DEPTH, MADE


@pytest.fixture
def make(write_cell: Callable[..., Path]) -> functools.partial[Path]:
    return functools.partial(traced.make, write_cell, made=MADE, depth=DEPTH)


def build(*folders: Path) -> Table:
    return gate_behaviour.build(Source.of(folders))


def entries(table: Table, title: str, section: str = "") -> tuple[Entry, ...]:
    """Published, measured and cases; the sections repeat their titles."""
    [row] = [row for row in table.rows if row.labels[1].startswith(title) and section in row.section]
    return tuple(row.entries)


def test_measured_beside_published_by_both_definitions(make: Any) -> None:
    table = build(make())
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
    table = build(make(), make(seed=1, made=[], depth=[1, 1, 1, 1]))
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
        build(make(), make("gmr_greedy"))
