"""The report on training questions that come back in the test, as a table."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from pathlib import Path

import orjson
import pytest

from analysis.source import Source
from analysis.table import csv as csv_text
from harness.benchmarks.items import Item, checksum
from harness.errors import UserError
from harness.runner import config, layout
from harness.runner.config import Preset
from tests.analysis.reading import Read as Table
from tests.analysis.reading import leak_report

LONG = "A shop sells {} pencils in boxes of {}; how many boxes must be opened for {} customers who want one each?"
TRAIN = {"t0": LONG.format(120, 12, 37), "t1": "Which residues are squares modulo thirteen? List them all, please."}
TEST = {
    "e0": TRAIN["t0"].upper(),
    "e1": LONG.format(120, 12, 38),
    "e2": "How far does light travel in a year, in kilometres?",
    "e3": TRAIN["t1"],
}
Write = Callable[..., None]


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    """Prepared questions of a benchmark, in a folder of their own."""
    monkeypatch.chdir(tmp_path)

    def prepared(key: str, train: dict[str, str] = TRAIN, test: dict[str, str] = TEST, preset: str = "smoke") -> None:
        pool = [Item(id=id_, benchmark=key, question=text, gold="1") for id_, text in {**train, **test}.items()]
        manifest = {
            "benchmark": key,
            "title": f"mini-{key}",
            "data": "embedded",
            "source": "here",
            "splits": "official",
            "count": len(pool),
            "checksum": "1" * 64,
            "split_checksum": "2" * 64,
            "pool_checksum": checksum(pool),
            "train": list(train),
            "test": list(test),
        }
        layout.items(preset, key).parent.mkdir(parents=True, exist_ok=True)
        layout.items(preset, key).write_bytes(b"".join(item.to_json() + b"\n" for item in pool))
        layout.manifest(preset, key).write_bytes(orjson.dumps(manifest))

    return prepared


def smoke(name: str = "smoke") -> Preset:
    return config.preset(name, {"benchmarks": ["gsm_hard", "humaneval"]})


def build(preset: Preset | None = None) -> Table:
    return leak_report.build(Source(preset=preset or smoke()))


def test_each_benchmark_has_its_counts(write: Write) -> None:
    """One test question word for word in other case, one again, one nearly; the last is new."""
    write("gsm_hard")
    write("humaneval", test={"e2": TEST["e2"]})
    table = build()
    assert [row.labels[0] for row in table.rows] == ["mini-gsm_hard", "mini-humaneval"]
    assert [[entry.text for entry in row.entries] for row in table.rows] == [
        ["2", "4", "2", "1", "75.0"],
        ["2", "1", "0", "0", "0.0"],
    ]


def test_the_csv_has_every_pair_and_where_it_is_from(write: Write) -> None:
    write("gsm_hard")
    write("humaneval", test={"e2": TEST["e2"]})
    made = build()
    text = csv_text(made.frame, made.warning)
    rows = list(csv.DictReader(io.StringIO(text.split("\n", 1)[1])))
    assert [(row["train"], row["test"], row["kind"]) for row in rows] == [
        ("t0", "e0", "exact"),
        ("t0", "e1", "near"),
        ("t1", "e3", "exact"),
        ("", "", "none"),
    ]
    assert 0.9 <= float(rows[1]["similarity"]) < 1
    assert rows[3]["similarity"] == ""
    assert {row["data_checksum"] for row in rows} == {"1" * 64}
    assert text.startswith("# SIMULATED")


def test_questions_that_are_not_there_are_told_in_one_line(write: Write) -> None:
    write("gsm_hard")
    with pytest.raises(UserError, match=r"humaneval\.json cannot be read .*; make it with `snakemake"):
        build()
    with pytest.raises(UserError, match="name one with --preset"):
        leak_report.build(Source())
