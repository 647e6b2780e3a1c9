"""The table of compute and time on cells and timings made by hand, and what timings are refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from analysis.published import load
from analysis.source import Source
from harness.errors import UserError
from tests.analysis.reading import Read as Table
from tests.analysis.reading import Row, hw_cost
from tests.analysis.timed import time, with_calls

WriteCell = Callable[..., Path]
ROWS = {"gmr": "pool", "masrouter": "pool", "puppeteer": "qwen-2.5-32B"}
CALLS = [[("qwen-2.5-14B", 1000, 500)], [("qwen-2.5-14B", 3000, 1500)], [], [("qwen-2.5-32B", 0, 1000)]]
PFLOPS = (28e9 * 6000 + 64e9 * 1000) / 1e15 / 4


def cell(write_cell: WriteCell, method: str = "gmr", benchmark: str = "humaneval", **more: Any) -> Path:
    return with_calls(write_cell(method, ROWS.get(method, "pool"), benchmark, **more), CALLS)


def row(table: Table, method: str) -> Row:
    (found,) = [one for one in table.rows if one.labels[0] == load().methods[method].title]
    return found


def build(cells: list[Path], timings: list[Path]) -> Table:
    return hw_cost.build(Source(tuple(cells), timings=tuple(timings)))


def test_published_and_own_numbers_stand_side_by_side(write_cell: WriteCell, tmp_path: Path) -> None:
    folder = cell(write_cell)
    table = build([folder], [time(folder, tmp_path / "t", 6.0)])
    printed, own, seconds, modelled = row(table, "gmr").entries
    assert (printed.text, seconds.text) == ("0.107", "1.5")
    assert float(own.text) == pytest.approx(PFLOPS, abs=5e-4)
    assert own.beside == f"×{PFLOPS / 0.107:.2f}"
    assert modelled.text == "1.50", "seconds of the pass over the number of questions"
    assert modelled.beside == "×1.00"
    low, high = map(float, own.below.split("–"))
    assert low < PFLOPS < high


@pytest.mark.parametrize(("simulated", "kind"), [(True, "modelled"), (False, "measured")])
def test_the_time_of_simulated_servers_is_called_modelled(
    write_cell: WriteCell, tmp_path: Path, simulated: bool, kind: str
) -> None:
    folder = cell(write_cell, simulated=simulated)
    table = build([folder], [time(folder, tmp_path / "t", 6.0)])
    assert table.simulated is simulated
    assert table.groups[1].columns[1] == kind.capitalize()
    assert kind in table.caption
    notes = " ".join(table.notes)
    assert ("no server was timed" in notes) is simulated
    assert ("64 sequences at once" in notes) is simulated
    assert "32 questions at a time" in notes
    assert "2 processors, Linux-test" in notes
    assert {record["seconds_are"] for record in table.records if record["seconds"]} == {kind}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"schema": 2}, "not of timing schema 1"),
        ({"seconds": 0}, "seconds: 0 should be greater than 0"),
        ({"concurrency": "32"}, "concurrency: '32' should be a whole number"),
        ({"engine": None}, "the speed is modelled"),
        ({"cell": {"run_id": "f" * 64}}, "the timing of run ffffffffffff, which is none of the cells"),
        ({"seed": 1}, "none of the cells"),
        ({"method": "masrouter"}, "none of the cells"),
    ],
)
def test_a_timing_that_does_not_go_with_its_cell_is_refused(
    write_cell: WriteCell, tmp_path: Path, changes: dict[str, Any], message: str
) -> None:
    folder = cell(write_cell)
    with pytest.raises(UserError, match=message):
        build([folder], [time(folder, tmp_path / "t", 6.0, **changes)])
