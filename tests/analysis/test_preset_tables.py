"""The table of backbones and prices, which needs no cell."""

import yaml

from analysis.exhibit import NOT_RUN, Entry
from harness.files import ROOT
from harness.runner.preset import resolve
from tests.analysis.reading import Read as Table
from tests.analysis.reading import backbones

PRINTED = yaml.safe_load((ROOT / "config" / "published.yaml").read_text())["prices"]


def entries(table: Table, key: str) -> tuple[Entry, ...]:
    [place] = [place for place, record in enumerate(table.records) if record["backbone"] == key]
    return tuple(table.rows[place].entries)


def test_size_and_prices_beside_those_printed() -> None:
    """Another size is flagged, a backbone of one's own added, one that is gone kept."""
    preset = resolve("embedded")
    declared = dict(preset.declared)
    declared["qwen-2.5-14B"] = declared["qwen-2.5-14B"].model_copy(update={"parameters_b": 14.7})
    declared["own-7B"] = declared.pop("llama-3.1-8B").model_copy(update={"parameters_b": 7})
    table = backbones(preset=preset.model_copy(update={"declared": declared}))
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
