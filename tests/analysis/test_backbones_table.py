"""The price table: what the paper prints, what the suite counts with, and where they part."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from analysis.source import Source
from analysis.table import NOT_RUN, Entry
from analysis.tables import backbones as module
from harness.files import ROOT
from harness.runner import config
from tests.analysis.reading import Read as Table
from tests.analysis.reading import backbones

PRINTED = yaml.safe_load((ROOT / "config" / "published.yaml").read_text())["prices"]


def build(preset: str = "embedded", **overrides: object) -> Table:
    return backbones.build(Source(preset=config.preset(preset, overrides)))


def entries(table: Table, key: str) -> tuple[Entry, ...]:
    [place] = [place for place, record in enumerate(table.records) if record["backbone"] == key]
    return tuple(table.rows[place].entries)


def test_size_and_prices_are_those_printed() -> None:
    table = build()
    for key, printed in PRINTED.items():
        texts = [f"{printed[name]:g}" for name in ("size", "input", "output") for _ in range(2)]
        assert [entry[:4] for entry in entries(table, key)[:6]] == [(text, "", "", "") for text in texts]


def test_another_size_is_flagged_a_backbone_of_ones_own_added_and_one_that_is_gone_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    declared: dict[str, dict[str, Any]] = yaml.safe_load(module.BACKBONES.read_text())
    declared["qwen-2.5-14B"]["parameters_b"] = 14.7
    declared["own-7B"] = {**declared.pop("llama-3.1-8B"), "parameters_b": 7}
    monkeypatch.setattr(module, "BACKBONES", tmp_path / "backbones.yaml")
    module.BACKBONES.write_text(yaml.safe_dump(declared, sort_keys=False))
    table = build()
    assert [record["backbone"] for record in table.records] == [*PRINTED, "own-7B"]
    flagged = entries(table, "qwen-2.5-14B")[1:6:2]
    assert [(one.sign, one.beside) for one in flagged] == [("‡", "+0.7"), ("‡", "+0.0021"), ("‡", "+0.007")]
    assert any(note.startswith("‡") for note in table.notes)
    own, gone = entries(table, "own-7B")[:6], entries(table, "llama-3.1-8B")[:6]
    assert [(one.text, one.sign) for one in own] == [(text, "") for text in ("", "7", "", "0.021", "", "0.07")]
    assert [entry.text for entry in gone] == ["8", NOT_RUN, "0.024", NOT_RUN, "0.08", NOT_RUN]


def test_what_is_asked_follows_the_preset() -> None:
    simulated, real = build(backbones=["qwen-2.5-32B"]), build("paper")
    asked = [entry.text for entry in entries(simulated, "qwen-2.5-32B")[6:]]
    assert asked == ["simulated", "not pinned", "32768"]
    assert [entry.text for entry in entries(simulated, "qwen-2.5-14B")[6:]] == [NOT_RUN] * 3
    assert entries(real, "qwen-2.5-14B")[6].text == "by a server"
    assert (simulated.simulated, real.simulated) == (True, False)
