"""Bundles of a run: their manifests, tables and damages."""

import contextlib
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import orjson
import pyarrow.parquet as pq
import pytest
import yaml

from cli import bundle
from cli.bundle import describe, licences, pack, withheld_benchmarks
from harness.benchmarks.prepare import read
from harness.database import CALL_LOG
from harness.errors import UserError
from harness.files import ROOT
from harness.llm.archive import METADATA, extract
from harness.runner import config, layout
from harness.runner.layout import Cell
from harness.runner.preset import resolve
from tests.cli.bundles import Members, entities, members, write
from tests.command import gmr
from tests.finished import BENCHMARK
from tests.small_run import make

SINGLE, GMR = Cell("single", BENCHMARK, "qwen-2.5-14B", 0), Cell("gmr", BENCHMARK, "pool", 0)


def test_a_bundle_has_every_setting_that_decides_results_without_its_servers_and_the_same_bytes_each_time(
    few: Path, whole: Path, tmp_path: Path
) -> None:
    packed = yaml.safe_load(members(whole)["config/config.yaml"])
    others = {"in_flight", "budget", "endpoints", "recordings", "servers"}
    assert packed.keys() == {"preset", *config.Keys.model_fields} - others
    timing = orjson.loads(members(whole)[str(layout.cell("smoke", SINGLE) / layout.TIMING)])
    assert {"test_s", "in_flight"} < timing.keys()
    assert {"host", "endpoints"}.isdisjoint(timing)
    with contextlib.chdir(few):
        pack("smoke", tmp_path / "b.zip")
    assert (tmp_path / "b.zip").read_bytes() == whole.read_bytes()


def test_without_questions_no_byte_of_a_question_is_in_it(few: Path, whole: Path, bare: Path) -> None:
    with contextlib.chdir(few):
        pool = read(layout.manifest("smoke", BENCHMARK), layout.items("smoke", BENCHMARK)).pool
    texts = [form for item in pool for form in (item.question.encode(), orjson.dumps(item.question)[1:-1])]
    golds = [item.gold.encode() for item in pool]

    def holding(path: Path, parts: list[bytes]) -> set[str]:
        return {Path(name).name for name, content in members(path).items() if any(part in content for part in parts)}

    assert holding(whole, texts) >= {f"{BENCHMARK}.items.jsonl", CALL_LOG}
    assert holding(bare, [*texts, *golds]) == set()


def test_a_command_packs_a_run_of_two_benchmarks_of_which_one_may_not_be_passed_on(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = {"benchmarks": ["math", "humaneval"], "methods": ["single"], "limit": {"test": 3}}
    run = resolve("smoke", settings)
    make(run, *(Cell("single", benchmark, "llama-3.2-3B", 0) for benchmark in run.benchmarks))
    run.write_settings()
    licensed = resolve("smoke", settings | {"data": "real", "splits": "published"})
    monkeypatch.setattr("cli.bundle.licences", lambda run, usual=licences: usual(licensed))
    printed = gmr("bundle", "--preset", "smoke", "shared/smoke.zip").output
    assert ", without questions of math, by " in printed
    assert "Beside it: outcomes.parquet, croissant.json" in printed
    assert b"SIMULATED" in pq.read_schema("shared/outcomes.parquet").metadata[b"simulated"]
    described = orjson.loads(Path("shared/croissant.json").read_bytes())
    assert described["description"].startswith("SIMULATED")
    # NeurIPS 2026 asks for these eight fields.
    impact = {"dataLimitations", "dataBiases", "personalSensitiveInformation", "dataUseCases", "dataSocialImpact"}
    fields = {f"rai:{name}" for name in impact | {"hasSyntheticData"}} | {"prov:wasDerivedFrom", "prov:wasGeneratedBy"}
    assert {key for key, value in described.items() if key.startswith(("rai:", "prov:")) and value} == fields
    crate = entities(members(Path("shared/smoke.zip")))
    assert str(layout.items("smoke", "math")) not in crate
    terms = crate[crate[str(layout.items("smoke", "humaneval"))]["license"]["@id"]]
    assert (terms["license"], "openai/human-eval" in terms["name"]) == ("MIT", True)


def test_a_table_that_no_bundle_wrote_is_kept(tmp_path: Path) -> None:
    path = shutil.copy(ROOT / "evidence/open_single/open_single.zip", tmp_path)
    (tmp_path / "outcomes.parquet").write_text("mine")
    with pytest.raises(UserError, match="pack into a folder of its own"):
        describe(Path(path))
    assert (tmp_path / "outcomes.parquet").read_text() == "mine"


def test_cells_that_are_not_finished_are_left_out_and_named(few: Path, tmp_path: Path) -> None:
    shutil.copytree(few / "results", tmp_path / "results")
    with contextlib.chdir(tmp_path):
        (layout.cell("smoke", GMR) / "run.json").unlink()
        crate, unfinished = pack("smoke", tmp_path / "b.zip")
        assert [line.split(" of ")[0] for line in unfinished] == [str(GMR)]
        assert [str(layout.cell("smoke", cell) / "run.json") in crate for cell in (SINGLE, GMR)] == [True, False]
        for run in Path("results").rglob("run.json"):
            run.unlink()
        with pytest.raises(UserError, match="no finished cell here; "):
            pack("smoke", tmp_path / "c.zip")
        assert not (tmp_path / "c.zip").exists()


def test_the_manifest_is_an_ro_crate(whole: Path) -> None:
    crate = entities(members(whole))
    assert crate[METADATA]["about"] == {"@id": "./"}
    assert {"name", "description", "datePublished", "license"} <= crate["./"].keys()
    parts = {part["@id"] for part in crate["./"]["hasPart"]}
    assert parts == {name for name, entity in crate.items() if entity["@type"] == "File"}
    # Every reference leads to an entity, and no entity holds another.
    values = [value for entity in crate.values() for value in entity.values()]
    listed = [each for value in values for each in (value if isinstance(value, list) else [value])]
    references = [each for each in listed if isinstance(each, dict)]
    assert {*map(len, references)} == {1}
    assert {each["@id"] for each in references} - crate.keys() == {"https://w3id.org/ro/crate/1.2"}


def lead_outside(files: Members) -> None:
    """Add a member that the manifest lists, and that would lie outside the folder."""
    crate = orjson.loads(files[METADATA])
    crate["@graph"].append({"@id": "../outside", "@type": "File", "contentSize": "0", "sha256": "0"})
    files |= {METADATA: orjson.dumps(crate), "../outside": b""}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda files: files.update({"config/config.yaml": b" "}), "was altered: config/config.yaml is not what its "),
        (lambda files: files.pop("config/config.yaml"), "config/config.yaml is not in both"),
        (lambda files: files.update(more=b""), "more is not in both"),
        (lambda files: files.update({METADATA: b"[]"}), "is damaged or no bundle"),
        (lead_outside, r"was altered: \.\./outside"),
    ],
)
def test_another_content_than_the_manifest_lists_is_refused(
    change: Callable[[Members], object], said: str, whole: Path, tmp_path: Path
) -> None:
    files = members(whole)
    change(files)
    path = write(tmp_path / "b.zip", files)
    with pytest.raises(UserError, match=said):
        extract(path, tmp_path / "new")
    assert {*tmp_path.iterdir()} <= {path, tmp_path / "new"}


@pytest.mark.parametrize("share", [0, 0.3, 0.5, 0.7])
def test_a_file_that_is_cut_off_or_has_another_bit_is_refused(share: float, whole: Path, tmp_path: Path) -> None:
    content, path = bytearray(whole.read_bytes()), tmp_path / "b.zip"
    number = int(share * len(content))
    content[number] ^= 1
    for damaged in (content[:number], content) if share else (b"",):
        path.write_bytes(damaged)
        with pytest.raises(UserError, match=r"b\.zip (is damaged or no bundle|is not what|was altered)"):
            extract(path, tmp_path / "new")


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
def test_a_bundle_says_whose_code_made_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for folder in ("harness", "baselines", "gmr", "analysis", "docs"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "code.yaml").write_text("1")
    monkeypatch.setattr(bundle, "ROOT", tmp_path)
    assert bundle.code_version() == "code of no known commit"
    git = ["git", "-C", str(tmp_path), "-c", "user.name=A", "-c", "user.email=a@example.org"]
    for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "All"]):
        subprocess.run([*git, *words], check=True)
    clean = bundle.code_version()
    assert re.fullmatch(r"commit [0-9a-f]{40}", clean)
    # What decides no result may differ. A file that was never added is code too.
    (tmp_path / "docs" / "code.yaml").write_text("2")
    assert bundle.code_version() == clean
    (tmp_path / "baselines" / "mine.py").write_text("mine = 1")
    assert bundle.code_version() == f"{clean} with changes that are in no commit"


@pytest.mark.parametrize(
    ("name", "kinds"),
    [
        ("embedded", {"suite", "encoder"}),
        ("paper_4bit", {"suite", "encoder", "questions", "backbones"}),
        ("cpu_server", {"suite", "encoder", "weights"}),
    ],
)
def test_the_manifest_names_the_licence_of_whatever_is_others_work(name: str, kinds: set[str]) -> None:
    preset = resolve(name)
    terms = licences(preset)
    assert {name.partition("/")[0] for name in terms} == kinds
    assert "backbones" not in kinds or {f"backbones/{key}" for key in preset.backbones} <= terms.keys()
    assert all(entry["license"] and entry["name"] for entry in terms.values())
    assert withheld_benchmarks() == {"math"}
