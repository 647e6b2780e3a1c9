"""The tables made of a preset without a cell: prices of backbones, and training questions found in the test."""

import math
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from analysis.exhibit import NOT_RUN, Entry
from harness.benchmarks.items import Item
from harness.benchmarks.leaks import NEAR
from harness.errors import UserError
from harness.files import ROOT
from harness.runner import config
from tests.analysis.reading import Read as Table
from tests.analysis.reading import backbones, leak_report
from tests.cli.stories import prepare

PRINTED = yaml.safe_load((ROOT / "config" / "published.yaml").read_text())["prices"]


def entries(table: Table, key: str) -> tuple[Entry, ...]:
    [place] = [place for place, record in enumerate(table.records) if record["backbone"] == key]
    return tuple(table.rows[place].entries)


def test_size_and_prices_beside_those_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another size is flagged, a backbone of one's own added, one that is gone kept."""
    preset = config.preset("embedded")
    declared = dict(config.backbones(preset))
    declared["qwen-2.5-14B"] = declared["qwen-2.5-14B"].model_copy(update={"parameters_b": 14.7})
    declared["own-7B"] = declared.pop("llama-3.1-8B").model_copy(update={"parameters_b": 7})
    monkeypatch.setattr(config, "backbones", lambda _: declared)
    table = backbones(preset=preset)
    assert [record["backbone"] for record in table.records] == [*PRINTED, "own-7B"]
    for key, printed in PRINTED.items():
        published, here = entries(table, key)[:6:2], entries(table, key)[1:6:2]
        assert [entry.text for entry in published] == [f"{printed[name]:g}" for name in ("size", "input", "output")]
        if key not in ("qwen-2.5-14B", "llama-3.1-8B"):
            assert [entry[:4] for entry in here] == [(entry.text, "", "", "") for entry in published]
    flagged, own, gone = (entries(table, key)[1:6:2] for key in ("qwen-2.5-14B", "own-7B", "llama-3.1-8B"))
    assert [(one.sign, one.beside) for one in flagged] == [("‡", "+0.7"), ("‡", "+0.0021"), ("‡", "+0.007")]
    assert [(one.text, one.sign) for one in own] == [("7", ""), ("0.021", ""), ("0.07", "")]
    assert [one.text for one in gone] == [NOT_RUN] * 3


LONG = "A shop sells {} pencils in boxes of {}; how many boxes must be opened for {} customers who want one each?"
TRAIN = {"t0": LONG.format(120, 12, 37), "t1": "Which residues are squares modulo thirteen? List them all, please."}
NEW = {"e2": "How far does light travel in a year, in kilometres?"}
# One word for word in other case, one nearly, one again.
TEST = {"e0": TRAIN["t0"].upper(), "e1": LONG.format(120, 12, 38), **NEW, "e3": TRAIN["t1"]}


def cosine(a: str, b: str) -> float:
    """Tf-idf cosine over runs of five characters, straight from its definition."""

    def runs(text: str) -> Counter[str]:
        plain = " ".join(text.lower().split())
        return Counter(plain[start : start + 5] for start in range(len(plain) - 4))

    corpus = [*TRAIN.values(), *TEST.values()]
    containing = Counter(run for text in corpus for run in set(runs(text)))
    weight = {run: math.log((1 + len(corpus)) / (1 + n)) + 1 for run, n in containing.items()}
    x, y = ({run: n * weight[run] for run, n in runs(text).items()} for text in (a, b))
    dot = sum(value * y.get(run, 0) for run, value in x.items())
    return dot / math.sqrt(sum(v * v for v in x.values()) * sum(v * v for v in y.values()))


@pytest.fixture
def leaks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Table]:
    """Return the table of prepared questions in a folder of their own, by benchmark those of the test."""
    monkeypatch.chdir(tmp_path)

    def leaks(**tests: dict[str, str]) -> Table:
        for key, test in tests.items():
            sides = ([Item(id_, key, text, "1") for id_, text in texts.items()] for texts in (test, TRAIN))
            prepare(*sides, "smoke")
        return leak_report(preset=config.preset("smoke", {"benchmarks": ["gsm_hard", "humaneval"]}))

    return leaks


@pytest.mark.parametrize("chunk", [1, 3, 256])
def test_each_benchmark_has_its_counts_and_the_csv_every_pair_whatever_the_chunk(
    leaks: Callable[..., Table], chunk: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("harness.benchmarks.leaks.CHUNK", chunk)
    table = leaks(gsm_hard=TEST, humaneval=NEW)
    assert [row.labels[0] for row in table.rows] == ["gsm_hard", "humaneval"]
    assert table.texts == [["2", "4", "2", "1", "75.0"], ["2", "1", "0", "0", "0.0"]]
    pairs = [("t0", "e0", "exact"), ("t0", "e1", "near"), ("t1", "e3", "exact"), ("", "", "none")]
    assert [(row["train"], row["test"], row["kind"]) for row in table.records] == pairs
    expected = cosine(TRAIN["t0"], TEST["e1"])
    assert NEAR <= expected < 1
    assert float(table.records[1]["similarity"]) == pytest.approx(expected, abs=1e-4)
    assert table.records[3]["similarity"] == ""


def test_questions_that_are_not_there_are_told_in_one_line(leaks: Callable[..., Table]) -> None:
    with pytest.raises(UserError, match=r"humaneval\.json cannot be read .*; make it with `snakemake"):
        leaks(gsm_hard=TEST)
    with pytest.raises(UserError, match="name one with --preset"):
        leak_report()
