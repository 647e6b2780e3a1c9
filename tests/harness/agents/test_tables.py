import io
import itertools
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.agents import results
from harness.agents.results import ROW_GROUP, rows_of, writing_table
from harness.errors import UserError

SCHEMA = pa.schema([("number", pa.int64()), ("text", pa.string())])


def rows(number: int) -> list[dict[str, object]]:
    return [{"number": at, "text": f"{at % 7}" if at % 3 else None} for at in range(number)]


def written(path: Path, *parts: list[dict[str, object]]) -> bytes:
    with writing_table(path, SCHEMA) as table:
        for part in parts:
            table.add(part)
    return path.read_bytes()


@pytest.mark.parametrize("number", [0, 1, 1000, ROW_GROUP])
def test_a_small_table_is_what_pyarrow_writes_in_one_go(tmp_path: Path, number: int) -> None:
    whole = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows(number), schema=SCHEMA), whole, compression="zstd")
    assert written(tmp_path / "table", rows(number)) == whole.getvalue()
    assert list(rows_of(tmp_path / "table")) == rows(number)


@given(st.lists(st.integers(0, 25), max_size=6))
def test_equal_rows_are_equal_bytes_however_many_come_at_a_time(
    tmp_path_factory: pytest.TempPathFactory, cuts: list[int]
) -> None:
    folder = tmp_path_factory.mktemp("tables")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(results, "ROW_GROUP", 10)
        places = [0, *sorted(cuts), 25]
        parts = [rows(25)[start:end] for start, end in itertools.pairwise(places)]
        assert written(folder / "parts", *parts) == written(folder / "whole", rows(25))
    with pq.ParquetFile(folder / "parts") as file:
        assert [file.metadata.row_group(number).num_rows for number in range(file.num_row_groups)] == [10, 10, 5]
    assert pq.read_table(folder / "parts").to_pylist() == rows(25)
    assert [row["number"] for row in rows_of(folder / "parts", ["number"])] == list(range(25))


def test_no_group_is_empty_where_the_rows_fill_the_groups(tmp_path: Path) -> None:
    written(tmp_path / "table", rows(2 * ROW_GROUP))
    with pq.ParquetFile(tmp_path / "table") as file:
        assert file.num_row_groups == 2


def test_a_table_that_fails_half_way_leaves_the_old_one_and_nothing_else(tmp_path: Path) -> None:
    before = written(tmp_path / "table", rows(3))

    def fail() -> None:
        with writing_table(tmp_path / "table", SCHEMA) as table:
            table.add(rows(ROW_GROUP + 1))
            raise KeyError("later")

    with pytest.raises(KeyError, match="later"):
        fail()
    assert [path.name for path in tmp_path.iterdir()] == ["table"]
    assert (tmp_path / "table").read_bytes() == before


def test_a_full_disk_is_one_line_and_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(UserError, match=r"cannot write .*table: No space left on device"):
        written(tmp_path / "table", rows(3))
    assert list(tmp_path.iterdir()) == []
