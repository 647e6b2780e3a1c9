"""Reports as parquet: the rows and columns of the CSV, types that go by the name, and what the file says of itself."""

from __future__ import annotations

import csv
import hashlib
import json
import math
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis import results
from analysis.artefacts import main_table
from analysis.exports.columns import typed
from analysis.exports.tables import export, parquet
from analysis.render import csv as renderer
from analysis.source import Source
from analysis.tables import SIMULATED
from harness.errors import UserError
from tests.analysis.conftest import WriteCell

WHERE = Path("table.csv")
TEXT = f"# {SIMULATED}\n# run abc\nmethod,seeds,n,measured,calibrated,note\nsingle,0,4,75.00,true,\ncot,0 1,,,,#x\n"


def test_types_go_by_the_name_of_the_column() -> None:
    found = parquet(TEXT, "smoke", WHERE)
    kinds = [pa.string(), pa.string(), pa.int64(), pa.float64(), pa.bool_(), pa.string()]
    assert found.schema.types == kinds
    assert found.to_pylist() == [
        {"method": "single", "seeds": "0", "n": 4, "measured": 75.0, "calibrated": True, "note": None},
        {"method": "cot", "seeds": "0 1", "n": None, "measured": None, "calibrated": None, "note": "#x"},
    ]


def test_metadata_say_what_the_comments_say() -> None:
    about = parquet(TEXT, "smoke", WHERE).schema.metadata
    assert about == {
        b"preset": b"smoke",
        b"simulated": b"true",
        b"warning": SIMULATED.encode(),
        b"run_ids": b"[]",
        b"comments": b"run abc",
        b"csv_sha256": hashlib.sha256(TEXT.encode()).hexdigest().encode(),
    }


def test_a_run_on_real_models_has_no_warning() -> None:
    about = parquet("method,run_id\nsingle,b a\ncot,c\ncot,a\n", "paper", WHERE).schema.metadata
    assert about[b"simulated"] == b"false"
    assert b"warning" not in about
    assert json.loads(about[b"run_ids"]) == ["a", "b", "c"]


@pytest.mark.parametrize("text", ["", f"# {SIMULATED}\n", "a,b\n1\n", "a,b\n1,2,3\n"])
def test_what_is_no_table_is_refused(text: str) -> None:
    with pytest.raises(UserError, match=r"table.csv: not a table"):
        parquet(text, "smoke", WHERE)


@given(st.lists(st.floats(allow_nan=False) | st.none(), min_size=1))
def test_numbers_come_back_as_they_stand_in_the_file(values: list[float | None]) -> None:
    found = typed("cost_total", ["" if value is None else repr(value) for value in values])
    assert found.type == pa.float64()
    assert found.to_pylist() == values


@pytest.mark.parametrize(("name", "kind"), [("cost", pa.float64()), ("n", pa.int64()), ("seeds", pa.string())])
def test_a_column_without_any_value_keeps_its_type(name: str, kind: pa.DataType) -> None:
    assert typed(name, ["", ""]).type == kind


def test_an_infinite_ratio_is_a_number() -> None:
    assert typed("odds_ratio", ["inf", "0.5"]).to_pylist() == [math.inf, 0.5]


def test_parquet_stands_beside_the_csv_and_says_the_same(full_run: list[Path], tmp_path: Path) -> None:
    table = main_table.build(Source.of(full_run))
    reports, out = tmp_path / "reports", tmp_path / "out"
    for name in ("main_table.csv", "ablation/no_halting.csv", "site/data.csv"):
        (reports / name).parent.mkdir(parents=True, exist_ok=True)
        (reports / name).write_text(renderer.render(table))
    written = export(reports, "embedded", out)
    names = ["main_table", "ablation/no_halting"]
    assert written == [out / "tables" / f"{name}.parquet" for name in names]
    for path in written:
        assert path.with_suffix(".csv").read_bytes() == (reports / "main_table.csv").read_bytes()
    _, *lines = (reports / "main_table.csv").read_text().splitlines()
    heads, *rows = csv.reader(lines)
    found = pq.read_table(written[0])
    assert (found.column_names, found.num_rows) == (heads, len(rows))
    for place, name in enumerate(heads):
        for value, field in zip(found[name].to_pylist(), (row[place] for row in rows), strict=True):
            match value:
                case None:
                    assert field == ""
                case bool():
                    assert field == str(value).lower()
                case str():
                    assert field == value
                case _:
                    assert float(field) == value
    runs = {results.read(folder).run.run_id for folder in full_run}
    assert set(json.loads(found.schema.metadata[b"run_ids"])) == runs
    assert pd.read_parquet(written[0])["measured"].dtype == float


def test_equal_tables_give_equal_bytes(write_cell: WriteCell, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(TEXT)
    first, second = (export(tmp_path, "smoke", tmp_path / name)[0].read_bytes() for name in ("one", "two"))
    assert first == second
