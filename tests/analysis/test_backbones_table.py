"""The price table: what the paper prints, what the suite counts with, and where they part."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from analysis.source import Source
from analysis.table import NOT_RUN
from analysis.tables import backbones as module
from harness.files import ROOT
from harness.runner import config
from tests.analysis.reading import Read as Table
from tests.analysis.reading import Row, backbones

PRINTED = yaml.safe_load((ROOT / "config" / "published.yaml").read_text())["prices"]


def build(preset: str = "embedded", **overrides: object) -> Table:
    return backbones.build(Source(preset=config.preset(preset, overrides)))


def row(table: Table, key: str) -> Row:
    (found,) = [one for one, record in zip(table.rows, table.records, strict=True) if record["backbone"] == key]
    return found


@pytest.fixture
def declared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, dict[str, object]]:
    """The declaration, to be changed; :func:`write` puts it where the table reads it."""
    monkeypatch.setattr(module, "BACKBONES", tmp_path / "backbones.yaml")
    entries: dict[str, dict[str, object]] = yaml.safe_load((ROOT / "config" / "backbones.yaml").read_text())
    return entries


def write(entries: dict[str, dict[str, object]]) -> None:
    module.BACKBONES.write_text(yaml.safe_dump(entries, sort_keys=False))


@pytest.mark.parametrize("key", list(PRINTED))
def test_size_and_prices_are_those_printed(key: str) -> None:
    texts = [entry.text for entry in row(build(), key).entries[:6]]
    printed = [f"{PRINTED[key][name]:g}" for name in ("size", "input", "output")]
    assert texts == [text for text in printed for _ in range(2)]
    assert not any(entry.sign or entry.beside for entry in row(build(), key).entries)


def test_another_size_is_flagged_with_its_difference(declared: dict[str, dict[str, object]]) -> None:
    declared["qwen-2.5-14B"]["parameters_b"] = 14.7
    write(declared)
    table = build()
    entries = row(table, "qwen-2.5-14B").entries
    assert [entry.sign for entry in entries[1:6:2]] == [backbones.OFF] * 3
    assert [entry.beside for entry in entries[1:6:2]] == ["+0.7", "+0.0021", "+0.007"]
    assert any(note.startswith(backbones.OFF) for note in table.notes)


def test_a_backbone_of_ones_own_has_a_row_and_one_that_is_gone_keeps_its_own(
    declared: dict[str, dict[str, object]],
) -> None:
    declared["own-7B"] = {**declared.pop("llama-3.1-8B"), "parameters_b": 7}
    write(declared)
    table = build()
    assert [record["backbone"] for record in table.records] == [*PRINTED, "own-7B"]
    own, gone = row(table, "own-7B").entries, row(table, "llama-3.1-8B").entries
    assert [entry.text for entry in own[:6]] == ["", "7", "", "0.021", "", "0.07"]
    assert not any(entry.sign for entry in own)
    assert [entry.text for entry in gone[:6]] == ["8", NOT_RUN, "0.024", NOT_RUN, "0.08", NOT_RUN]


def test_what_is_asked_follows_the_preset() -> None:
    simulated = build(backbones=["qwen-2.5-32B"])
    assert [entry.text for entry in row(simulated, "qwen-2.5-32B").entries[6:]] == ["simulated", "not pinned", "32768"]
    assert [entry.text for entry in row(simulated, "qwen-2.5-14B").entries[6:]] == [NOT_RUN] * 3
    assert simulated.simulated
    real = build("paper")
    assert row(real, "qwen-2.5-14B").entries[6].text == "by a server"
    assert not real.simulated
