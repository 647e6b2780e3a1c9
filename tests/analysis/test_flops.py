"""FLOPs from calls, against sums written out by hand."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from analysis import flops
from analysis.results import read
from harness.errors import UserError
from tests.analysis.timed import with_calls

WriteCell = Callable[..., Path]


def test_every_call_counts_with_the_size_of_its_backbone(write_cell: WriteCell) -> None:
    folder = with_calls(
        write_cell("gmr", "pool"),
        [
            [("qwen-2.5-32B", 1000, 200), ("llama-3.2-3B", 300, 50)],
            [],
            [("qwen-2.5-14B", 1, 0)],
            [("qwen-2.5-14B", 0, 1)],
        ],
    )
    expected = [(1200 * 64e9 + 350 * 6e9) / 1e15, 0, 28e9 / 1e15, 28e9 / 1e15]
    assert flops.pflops(read(folder)).tolist() == pytest.approx(expected)


def rewrite(folder: Path, change: Callable[[list[dict[str, object]]], list[dict[str, object]]]) -> None:
    path = folder / "calls.parquet"
    pq.write_table(pa.Table.from_pylist(change(pq.read_table(path).to_pylist())), path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda rows: rows[1:], "its calls are not those that items.parquet counts"),
        (lambda rows: [{**row, "item_id": "stranger"} for row in rows], "its calls are not those"),
        (
            lambda rows: [*rows, {**rows[0], "item_id": "x", "prompt_tokens": 0, "completion_tokens": 0}],
            "are not those",
        ),
        (lambda rows: [{**row, "backbone": "gone-7B"} for row in rows], "'gone-7B', whose size config/backbones.yaml"),
        (lambda rows: [{"item_id": row["item_id"]} for row in rows], "not a readable table with the columns item_id"),
    ],
)
def test_calls_that_cannot_be_counted_are_refused(
    write_cell: WriteCell,
    change: Callable[[list[dict[str, object]]], list[dict[str, object]]],
    message: str,
) -> None:
    folder = with_calls(write_cell("gmr", "pool", correct=[True] * 2), [[("qwen-2.5-14B", 5, 5)]] * 2)
    rewrite(folder, change)
    with pytest.raises(UserError, match=message):
        flops.pflops(read(folder))
