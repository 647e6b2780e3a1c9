"""Tables: equal rows are equal bytes, and a file is whole or not there; and what all of them add up to."""

import io
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from harness.agents.trajectory import Answered
from harness.benchmarks.items import Item, Status, Verdict
from harness.errors import UserError
from harness.llm.request import Message, Reply
from harness.runner import results
from harness.runner.results import ledger, read_rows, write_table
from tests import scripted
from tests.scripted import ScriptedClient

SCHEMA = pa.schema([("number", pa.int64()), ("text", pa.string())])


def rows(number: int) -> list[dict[str, object]]:
    return [{"number": at, "text": f"{at % 7}" if at % 3 else None} for at in range(number)]


@pytest.mark.parametrize(("number", "groups"), [(0, [0]), (1, [1]), (10, [10]), (25, [10, 10, 5])])
def test_a_table_is_what_pyarrow_writes_in_row_groups_of_one_size(
    tmp_path: Path, number: int, groups: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(results, "ROW_GROUP", 10)
    write_table(tmp_path / "table", SCHEMA, iter(rows(number)), simulated=False)
    whole = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows(number), schema=SCHEMA), whole, compression="zstd", row_group_size=10)
    assert (tmp_path / "table").read_bytes() == whole.getvalue()
    assert list(read_rows(tmp_path / "table")) == rows(number)
    assert [row["number"] for row in read_rows(tmp_path / "table", ["number"])] == list(range(number))
    metadata = pq.read_metadata(tmp_path / "table")
    assert [metadata.row_group(at).num_rows for at in range(metadata.num_row_groups)] == groups


def test_a_table_that_fails_half_way_leaves_the_old_one_and_nothing_else(tmp_path: Path) -> None:
    write_table(tmp_path / "table", SCHEMA, rows(3), simulated=False)
    before = (tmp_path / "table").read_bytes()
    with pytest.raises(ZeroDivisionError):
        write_table(tmp_path / "table", SCHEMA, ({"number": 1 // (5000 - at)} for at in range(5001)), simulated=False)
    assert [path.name for path in tmp_path.iterdir()] == ["table"]
    assert (tmp_path / "table").read_bytes() == before


async def write_cell(folder: Path, *questions: str | Reply) -> Path:
    """Write a finished cell that asked these questions; a reply stands for a question that got it."""
    answered = []
    for number, question in enumerate(questions):
        item = Item(id=str(number), benchmark="math", question=str(question), gold="1")
        client = ScriptedClient(question if isinstance(question, Reply) else "x")
        context = scripted.context(item, client, "")
        await context.ask("small", (Message("user", str(question)),))
        answered.append(Answered(context.close("x"), Verdict(False, None, Status.GRADED)))
    results.write(folder, {"test": answered}, {"cell": str(folder), "simulated": False})
    return folder


async def test_uses_distinct_calls_and_calls_of_several_cells_are_told_apart(tmp_path: Path) -> None:
    cells = [
        await write_cell(tmp_path / "single" / "math" / "small" / "seed0", "a", "b", "b"),
        await write_cell(tmp_path / "cot" / "math" / "small" / "seed0", "b", "c", Reply.failed("m", "down")),
    ]
    table = ledger([*cells, tmp_path / "cot" / "math" / "large" / "seed0"])
    assert table.loc["single", ["uses", "calls", "shared", "failed"]].tolist() == [3, 2, 1, 0]
    assert table.loc["cot", ["uses", "calls", "shared", "failed"]].tolist() == [3, 3, 1, 1]
    assert table.loc["all", ["uses", "calls", "shared", "failed"]].tolist() == [6, 5, 2, 1]
    assert table.loc["single", "prompt_tokens"] == 300
    assert table.loc["all", "cost"] == pytest.approx(5 * (100 * 0.003 + 10 * 0.010) / 1e6)


async def test_what_a_method_learned_from_has_a_row_of_its_own(tmp_path: Path) -> None:
    cell = await write_cell(tmp_path / "routed" / "math" / "pool" / "seed0", "a", "b")
    learned = await write_cell(tmp_path / "elsewhere", "b", "c", "c")
    (learned / "calls.parquet").rename(cell / "training_calls.parquet")
    table = ledger([cell])
    assert table.loc["routed", ["uses", "calls"]].tolist() == [2, 2]
    assert table.loc["routed training", ["uses", "calls"]].tolist() == [3, 1]
    assert table.loc["all", ["uses", "calls"]].tolist() == [5, 3]


async def test_what_learns_no_more_has_no_training(tmp_path: Path) -> None:
    cell = await write_cell(tmp_path / "once", "a")
    shutil.copy(cell / "calls.parquet", cell / "training_calls.parquet")
    await write_cell(cell, "a")
    assert {path.stem for path in cell.glob("*.parquet")} == {"calls", "decisions", "items"}


def test_a_run_without_a_finished_cell_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no cell of this run is finished"):
        ledger([tmp_path])
