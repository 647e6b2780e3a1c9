"""The report on training questions that come back in the test, as a table."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import orjson
import pytest

from analysis.source import Source
from harness.benchmarks.items import Item, checksum
from harness.errors import UserError
from harness.runner import config, layout
from tests.analysis.reading import Read as Table
from tests.analysis.reading import leak_report

LONG = "A shop sells {} pencils in boxes of {}; how many boxes must be opened for {} customers who want one each?"
TRAIN = {"t0": LONG.format(120, 12, 37), "t1": "Which residues are squares modulo thirteen? List them all, please."}
NEW = {"e2": "How far does light travel in a year, in kilometres?"}
# One word for word in other case, one nearly, one again.
TEST = {"e0": TRAIN["t0"].upper(), "e1": LONG.format(120, 12, 38), **NEW, "e3": TRAIN["t1"]}


@pytest.fixture
def build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Table]:
    """The table of prepared questions in a folder of their own, by benchmark those of the test."""
    monkeypatch.chdir(tmp_path)

    def build(**tests: dict[str, str]) -> Table:
        for key, test in tests.items():
            pool = [Item(id=id_, benchmark=key, question=text, gold="1") for id_, text in {**TRAIN, **test}.items()]
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
                "train": list(TRAIN),
                "test": list(test),
            }
            layout.items("smoke", key).parent.mkdir(parents=True, exist_ok=True)
            layout.items("smoke", key).write_bytes(b"".join(item.to_json() + b"\n" for item in pool))
            layout.manifest("smoke", key).write_bytes(orjson.dumps(manifest))
        preset = config.preset("smoke", {"benchmarks": ["gsm_hard", "humaneval"]})
        return leak_report.build(Source(preset=preset))

    return build


def test_each_benchmark_has_its_counts_and_the_csv_every_pair(build: Callable[..., Table]) -> None:
    table = build(gsm_hard=TEST, humaneval=NEW)
    assert [(row.labels[0], *(entry.text for entry in row.entries)) for row in table.rows] == [
        ("mini-gsm_hard", "2", "4", "2", "1", "75.0"),
        ("mini-humaneval", "2", "1", "0", "0", "0.0"),
    ]
    assert [(row["train"], row["test"], row["kind"]) for row in table.records] == [
        ("t0", "e0", "exact"),
        ("t0", "e1", "near"),
        ("t1", "e3", "exact"),
        ("", "", "none"),
    ]
    assert 0.9 <= float(table.records[1]["similarity"]) < 1
    assert table.records[3]["similarity"] == ""
    assert {row["data_checksum"] for row in table.records} == {"1" * 64}


def test_questions_that_are_not_there_are_told_in_one_line(build: Callable[..., Table]) -> None:
    with pytest.raises(UserError, match=r"humaneval\.json cannot be read .*; make it with `snakemake"):
        build(gsm_hard=TEST)
    with pytest.raises(UserError, match="name one with --preset"):
        leak_report.build(Source())
