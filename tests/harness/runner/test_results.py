"""Tables: equal rows are equal bytes, and a file is whole or not there."""

import io
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from harness.runner import results
from harness.runner.results import CALLS, DECISIONS, read_rows, write_table

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


def test_the_columns_of_calls_and_decisions_are_those_that_readers_know() -> None:
    texts = ("item_id", "purpose", "backbone", "role", "key", "finish_reason", "error", "tool", "name", "choice")
    types = {**dict.fromkeys(texts, "string"), "cost": "double", "log_prob": "double", "is_step": "bool"}
    for schema, number in ((CALLS, 14), (DECISIONS, 7)):
        assert len(schema) == number
        assert {field.name: str(field.type) for field in schema} == {
            name: types.get(name, "int64") for name in schema.names
        }
