"""The table of gate behaviour on cells made by hand."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
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

WriteCell = Callable[..., Path]


@pytest.fixture
def make(write_cell: WriteCell) -> functools.partial[Path]:
    return functools.partial(traced.make, write_cell, made=MADE, depth=DEPTH)


def build(folders: Sequence[Path]) -> Table:
    return gate_behaviour.build(Source.of(folders))


def entries(table: Table, title: str, section: str = "", column: int = 0) -> list[Entry]:
    """Published, measured and cases of one benchmark; the sections repeat their titles."""
    [row] = [row for row in table.rows if row.labels[1].startswith(title) and section in row.section]
    return list(row.entries[3 * column : 3 * column + 3])


def test_measured_beside_published(make: Any) -> None:
    table = build([make()])
    published, measured, cases = entries(table, "mean depth")
    assert (published.text, measured.text, measured.beside, cases.text) == ("2.92", "2.25", "−0.67", "4")
    published, measured, cases = entries(table, "steps written")
    assert (published.text, measured.text, measured.beside, cases.text) == ("39.6", "44.4", "+4.8", "4")
    published, measured, cases = entries(table, "nothing stored")
    assert (published.text, measured.text, measured.beside) == ("", "25.0", "")


def test_both_definitions_stand_beside_the_published_fraction(make: Any) -> None:
    table = build([make()])
    assert [entry.text for entry in entries(table, "step 2", "pooled")] == ["24", "33.3", "2"]
    assert [entry.text for entry in entries(table, "step 2", "mean of cases")] == ["24", "25.0", "2"]
    assert [entry.text for entry in entries(table, "step 5", "pooled")] == ["11", NOT_RUN, "0"]


def test_several_seeds_show_their_mean_and_seed_0(make: Any) -> None:
    first = make()
    one = build([first])
    table = build([first, make(seed=1, made=[], depth=[1, 1, 1, 1])])
    _, measured, cases = entries(table, "mean depth")
    assert (measured.text, cases.text) == ("1.62", "4")
    assert measured.below.endswith("; seed 0: 2.25")
    assert "seed 0" not in entries(one, "mean depth")[1].below
    _, measured, cases = entries(table, "step 2", "pooled")
    assert (measured.text, cases.text) == ("33.3", "1")


def test_records_are_in_the_units_of_the_table(make: Any) -> None:
    records = {record["measure"]: record for record in build([make(), make(seed=1, made=[], depth=DEPTH)]).records}
    assert float(records["write_rate"]["measured"]) == pytest.approx(400 / 9)
    assert records["write_rate"]["published"] == "39.6"
    assert records["write_rate"]["by_seed"].endswith(" nan")
    assert records["depth"]["by_seed"] == "2.25 2.25"
    assert records["depth"]["seeds"] == "0 1"
    assert records["retrieved_5"]["measured"] == ""
    assert float(records["depth"]["low"]) <= 2.25 <= float(records["depth"]["high"])
    for record in records.values():
        assert all(record[key] for key in ("run_id", "config_hash", "code", "data_checksum", "backbones"))


def test_two_routers_in_one_table_are_refused(make: Any) -> None:
    with pytest.raises(UserError, match="cells of gmr with pool, gmr_greedy with pool; expected those of one router"):
        build([make(), make("gmr_greedy")])
