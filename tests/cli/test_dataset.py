"""A bundle and its data set: questions that are not redistributable, tables, Croissant description."""

import shutil
import zipfile
from pathlib import Path

import orjson
import pytest
import yaml

from cli.bundle import withheld_benchmarks
from cli.description import describe, licences
from cli.replay import replay
from harness.benchmarks.prepare import read
from harness.errors import UserError
from harness.files import ROOT
from harness.llm.archive import METADATA
from harness.runner import layout
from harness.runner.layout import Cell
from harness.runner.preset import resolve
from tests.command import gmr
from tests.small_run import make

BENCHMARKS = ["math", "humaneval"]
CELLS = [Cell("single", benchmark, "llama-3.2-3B", 0) for benchmark in BENCHMARKS]


def test_questions_are_packed_unless_they_are_not_redistributable(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = {"benchmarks": BENCHMARKS, "methods": ["single"], "limit": {"test": 3}}
    run = resolve("smoke", settings)
    make(run, *CELLS)
    run.write_settings()
    licensed = resolve("smoke", settings | {"data": "real", "splits": "published"})
    monkeypatch.setattr("cli.description.licences", lambda run, usual=licences: usual(licensed))
    printed = gmr("bundle", "--preset", "smoke", "shared/smoke.zip").output
    assert ", without questions of math, by " in printed
    assert "Beside it: outcomes.parquet, croissant.json" in printed
    described = orjson.loads(Path("shared/croissant.json").read_bytes())
    assert described["description"].startswith("SIMULATED")
    # NeurIPS 2026 asks for these eight fields.
    impact = {"dataLimitations", "dataBiases", "personalSensitiveInformation", "dataUseCases", "dataSocialImpact"}
    fields = {f"rai:{name}" for name in impact | {"hasSyntheticData"}} | {"prov:wasDerivedFrom", "prov:wasGeneratedBy"}
    assert {key for key, value in described.items() if key.startswith(("rai:", "prov:")) and value} == fields
    with zipfile.ZipFile("shared/smoke.zip") as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    everything = b"\n".join(members.values())
    for benchmark in BENCHMARKS:
        prepared = read(layout.manifest("smoke", benchmark), layout.items("smoke", benchmark))
        asked = [orjson.dumps(item.question)[1:-1] for item in prepared.test[:3]]
        assert [text in everything for text in asked] == [benchmark == "humaneval"] * 3
    # The prompts of calls, too.
    logs = [members[str(layout.cell("smoke", cell) / layout.CALL_LOG)] for cell in CELLS]
    assert [b'"messages":[]' in log for log in logs] == [True, False]
    crate = {entity["@id"]: entity for entity in orjson.loads(members[METADATA])["@graph"]}
    assert str(layout.items("smoke", "math")) not in crate
    terms = crate[crate[str(layout.items("smoke", "humaneval"))]["license"]["@id"]]
    assert terms["license"] == "MIT"
    assert "openai/human-eval" in terms["name"]
    replayed = replay(Path("shared/smoke.zip"), make_reports=False)
    assert replayed.differences == dict.fromkeys(sorted(CELLS), "")


def test_only_math_is_withheld() -> None:
    assert withheld_benchmarks() == {"math"}
    entries = yaml.safe_load((ROOT / "config/licences.yaml").read_text())["questions"]
    assert all("redistributable" in entry for entry in entries.values())


def test_a_table_that_no_bundle_wrote_is_kept(tmp_path: Path) -> None:
    bundle = shutil.copy(ROOT / "evidence/open_single/open_single.zip", tmp_path)
    (tmp_path / "outcomes.parquet").write_text("mine")
    with pytest.raises(UserError, match="pack into a folder of its own"):
        describe(Path(bundle))
    assert (tmp_path / "outcomes.parquet").read_text() == "mine"
