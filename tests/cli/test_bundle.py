"""All ten methods from the questions to the reports, twice; and a bundle of them: the same again from it alone."""

import asyncio
import contextlib
import re
import shutil
import sqlite3
import subprocess
from collections.abc import Callable
from pathlib import Path
from zipfile import ZipFile

import orjson
import pytest
import yaml

from cli import bundle, reports
from cli.bundle import METADATA, pack, unpack
from harness.benchmarks.prepare import prepare, read
from harness.errors import UserError
from harness.llm.call_log import CALL_LOG
from harness.llm.client import Recorded
from harness.runner import cell as cells
from harness.runner import config, layout
from harness.runner.config import Cell, Preset
from harness.runner.plan import plan
from tests.fake_encoder import FakeEncoder
from tests.finished import BENCHMARK, finish, settled
from tests.planning import checkout, plans
from tests.small_run import results

CELLS = [Cell("cot", BENCHMARK, "qwen-2.5-14B", 0), Cell("gmr", BENCHMARK, "pool", 0)]
SAME = ("run.json", "items.parquet", "calls.parquet", "decisions.parquet", "training.parquet", "trained.safetensors")
Members = dict[str, bytes]
Change = Callable[[Members], object]
AGAIN = ("main_table", "costs", "gate_entropy", "leak_report")


@pytest.fixture(autouse=True)
def _encoder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.runner.setup.SentenceEncoder", FakeEncoder)


def test_every_method_has_its_row_and_two_runs_make_the_same_bytes(finished: Path, tmp_path: Path) -> None:
    preset = config.preset("smoke", yaml.safe_load((finished / layout.settings("smoke")).read_text()))
    parts = ("results/smoke/cells", "reports")
    first, again = results(finished, *parts), results(finish(tmp_path / "run", AGAIN, in_flight=1), *parts)
    rows = [line for line in (finished / "reports/smoke/main_table.md").read_text().splitlines() if line[:2] == "| "]
    for cell in config.cells(preset):
        assert any(row.startswith(f"| {config.methods()[cell.method].title} |") for row in rows), cell
        assert str(layout.cell("smoke", cell) / "decisions.parquet") in first
    assert len({cell.method for cell in config.cells(preset)}) == 10
    assert not list(finished.rglob("checkpoints")), "a finished cell needs none"
    assert {Path(name).stem for name in again if name.startswith("reports")} == set(AGAIN)
    assert {name for name in first if "/cells/" in name} == {name for name in again if "/cells/" in name}
    assert [name for name in again if first[name] != again[name]] == []


def packed(finished: Path, path: Path, *, whole: bool = True) -> Path:
    with contextlib.chdir(finished):
        pack("smoke", path, questions=whole, checkpoints=whole)
    return path


@pytest.fixture(scope="module")
def bundles(finished: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Return a bundle with questions and checkpoints, and one without."""
    folder = tmp_path_factory.mktemp("bundles")
    return {name: packed(finished, folder / f"{name}.zip", whole=name == "whole") for name in ("whole", "bare")}


@pytest.fixture(scope="module")
def whole(bundles: dict[str, Path]) -> Path:
    return bundles["whole"]


@pytest.fixture(scope="module")
def bare(bundles: dict[str, Path]) -> Path:
    return bundles["bare"]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Work in a folder on a machine without network and simulator."""

    def closed(*_: object, **__: object) -> None:
        raise AssertionError("something reached for a server")

    for name in ("socket.socket.connect", "socket.socket.connect_ex", "harness.runner.setup.simulated_endpoint"):
        monkeypatch.setattr(name, closed)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def unpacked(bundle: Path, place: Path, monkeypatch: pytest.MonkeyPatch) -> Preset:
    """Unpack a bundle, make that the working folder, and return its preset."""
    unpack(bundle, place / "new")
    monkeypatch.chdir(place / "new")
    return settled()


@pytest.mark.parametrize("name", ["whole", "bare"])
def test_reports_and_cells_are_made_again_without_a_server(
    name: str, bundles: dict[str, Path], finished: Path, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    preset = unpacked(bundles[name], place, monkeypatch)
    for cell in CELLS:
        for file in SAME:
            (layout.cell("smoke", cell) / file).unlink(missing_ok=True)
        asyncio.run(cells.run(plan(preset, cell)))
    for report in AGAIN:
        reports.write(report, preset)
    paths = [path for path in Path("reports").rglob("*.*") if path.is_file()]
    paths += [layout.cell("smoke", cell) / file for cell in CELLS for file in SAME[: 6 if cell.method == "gmr" else 4]]
    assert len(paths) > 3 * len(AGAIN)
    assert [str(file) for file in paths if file.read_bytes() != (finished / file).read_bytes()] == []


def test_snakemake_plans_reports_alone_and_the_same_run_makes_the_same_bytes(
    finished: Path, bundles: dict[str, Path], tmp_path: Path
) -> None:
    for name, path in bundles.items():
        unpack(path, tmp_path / name)
        again = packed(finished, tmp_path / "again.zip", whole=name == "whole")
        assert again.read_bytes() == path.read_bytes()
    words = [["--directory", str(tmp_path / name), "--cores", "1", "reports/main_table.md"] for name in bundles]
    for status, output in plans(checkout(tmp_path / "checkout"), words):
        jobs = {line.split(":")[0] for line in output.split("Job stats")[0].splitlines() if ": " in line}
        assert (status, jobs) == (0, {"to do", "table main_table", "link main_table.md"}), output


def members(path: Path) -> Members:
    with ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def test_without_questions_no_byte_of_a_question_is_in_it(finished: Path, whole: Path, bare: Path) -> None:
    with contextlib.chdir(finished):
        pool = read(layout.manifest("smoke", BENCHMARK), layout.items("smoke", BENCHMARK)).pool
    texts = [form for item in pool for form in (item.question.encode(), orjson.dumps(item.question)[1:-1])]
    golds = [item.gold.encode() for item in pool]

    def holding(path: Path, parts: list[bytes]) -> set[str]:
        return {Path(name).name for name, content in members(path).items() if any(part in content for part in parts)}

    assert holding(whole, texts) >= {f"{BENCHMARK}.items.jsonl", CALL_LOG}
    assert holding(bare, [*texts, *golds]) == set()


def test_other_questions_than_the_recorded_ones_are_refused(
    bare: Path, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def other(key: str, data: str, splits: str, items: Path, manifest: Path) -> None:
        prepare("mbpp", data, splits, items, manifest)

    monkeypatch.setattr(bundle, "prepare", other)
    with pytest.raises(UserError, match=r"questions of humaneval are not those of the recorded run: benchmark differs"):
        unpack(bare, place / "new")
    assert list(place.iterdir()) == []


def test_cells_that_are_not_finished_are_left_out_and_named(finished: Path, tmp_path: Path) -> None:
    shutil.copytree(finished / "results", tmp_path / "results")
    with contextlib.chdir(tmp_path):
        (layout.cell("smoke", CELLS[1]) / "run.json").unlink()
        crate, unfinished = pack("smoke", tmp_path / "b.zip", questions=True)
        assert [line.split(" of ")[0] for line in unfinished] == [str(CELLS[1])]
        assert [str(layout.cell("smoke", cell) / "run.json") in crate for cell in CELLS] == [True, False]
        for run in Path("results").rglob("run.json"):
            run.unlink()
        with pytest.raises(UserError, match="no finished cell here; "):
            pack("smoke", tmp_path / "c.zip", questions=True)
        assert not (tmp_path / "c.zip").exists()


def test_the_manifest_is_an_ro_crate(whole: Path) -> None:
    graph = orjson.loads(members(whole)[METADATA])["@graph"]
    crate = {entity["@id"]: entity for entity in graph}
    assert len(crate) == len(graph)
    assert crate[METADATA]["about"] == {"@id": "./"}
    assert {"name", "description", "datePublished", "license"} <= crate["./"].keys()
    parts = {part["@id"] for part in crate["./"]["hasPart"]}
    assert parts == {name for name, entity in crate.items() if entity["@type"] == "File"}
    # Every reference leads to an entity, and no entity holds another.
    for entity in graph:
        for value in entity.values():
            for reference in value if isinstance(value, list) else [value]:
                if isinstance(reference, dict):
                    assert [*reference] == ["@id"]
                    assert reference["@id"] in crate or reference["@id"].startswith("https://w3id.org/ro/crate")


def test_a_call_that_is_not_in_the_log_is_one_line_with_its_prompt(
    whole: Path, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    preset = unpacked(whole, place, monkeypatch)
    with contextlib.closing(sqlite3.connect(layout.call_log("smoke", CELLS[0]))) as log, log:
        log.execute("DELETE FROM calls WHERE rowid = (SELECT max(rowid) FROM calls)")
    with pytest.raises(UserError, match=r"call \w+ of Qwen/\S+ is not in the call log of .*; its prompt begins '\w+"):
        asyncio.run(cells.run(plan(preset, CELLS[0])))


def test_what_was_not_recorded_is_one_line(whole: Path, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    preset = unpacked(whole, place, monkeypatch)
    with pytest.raises(UserError, match=r"cot/.* holds no recorded run, and no server is asked here"):
        asyncio.run(cells.run(plan(preset, Cell("cot", BENCHMARK, "qwen-2.5-14B", 1))))
    with pytest.raises(UserError, match="unpacked from a bundle"):
        pack("smoke", place / "b.zip", questions=True)
    with pytest.raises(UserError, match="some/model was not asked in the recorded run of"):
        Recorded(layout.cell("smoke", CELLS[0])).served("some/model")


def changed(whole: Path, path: Path, change: Change) -> Path:
    """Write the bundle with other members, as somebody would who knows the format."""
    files = members(whole)
    change(files)
    with ZipFile(path, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return path


def alter(files: Members) -> None:
    files["config/config.yaml"] += b" "


def lead_outside(files: Members) -> None:
    """Add a member that the manifest lists, and that would lie outside the folder."""
    crate = orjson.loads(files[METADATA])
    crate["@graph"].append({"@id": "../outside", "@type": "File", "contentSize": "0", "sha256": "0"})
    files |= {METADATA: orjson.dumps(crate), "../outside": b""}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (alter, "was altered: config/config.yaml is not what its manifest says"),
        (lambda files: files.pop("config/config.yaml"), "config/config.yaml is not in both"),
        (lambda files: files.update(more=b""), "more is not in both"),
        (lambda files: files.pop(METADATA), "is damaged or no bundle"),
        (lambda files: files.update({METADATA: b"[]"}), "is damaged or no bundle"),
        (lead_outside, r"was altered: \.\./outside"),
    ],
)
def test_another_content_than_the_manifest_lists_is_refused(
    change: Change, said: str, whole: Path, place: Path
) -> None:
    (place / "deep").mkdir()
    path = changed(whole, place / "b.zip", change)
    with pytest.raises(UserError, match=said):
        unpack(path, place / "deep" / "new")
    assert sorted(place.rglob("*")) == [path, place / "deep"]


@pytest.mark.parametrize(("share", "is_cut"), [(0, True), (0.5, True), (0.3, False), (0.99, False)])
def test_a_damaged_file_is_refused(share: float, is_cut: bool, whole: Path, place: Path) -> None:
    content = bytearray(whole.read_bytes())
    number = int(share * len(content))
    content[number] ^= 1
    path = place / "b.zip"
    path.write_bytes(content[:number] if is_cut else content)
    with pytest.raises(UserError, match=r"b\.zip (is damaged or no bundle|is not what|was altered)"):
        unpack(path, place / "new")
    assert list(place.iterdir()) == [path]


def test_other_code_an_existing_folder_and_an_absent_file_are_refused(
    whole: Path, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(UserError, match="exists; name a new folder"):
        unpack(whole, place)
    with pytest.raises(UserError, match=r"cannot read .*absent: No such file"):
        unpack(place / "absent", place / "new")
    monkeypatch.setattr(bundle, "_code", lambda: {"identifier": "other"})
    with pytest.raises(UserError, match=r"made by other code: (commit \w+|code of no known commit)"):
        unpack(whole, place / "new")


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
def test_a_bundle_says_whose_code_made_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for folder in ("harness", "baselines", "gmr", "analysis", "docs"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "code.yaml").write_text("1")
    monkeypatch.setattr(bundle, "ROOT", tmp_path)
    assert bundle._code()["version"] == "code of no known commit"
    git = ["git", "-C", str(tmp_path), "-c", "user.name=A", "-c", "user.email=a@example.org"]
    for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "All"]):
        subprocess.run([*git, *words], check=True)
    clean = bundle._code()
    assert re.fullmatch(r"commit [0-9a-f]{40}", clean["version"])
    # What decides no result may differ.
    (tmp_path / "docs" / "code.yaml").write_text("2")
    assert bundle._code() == clean
    # A file that was never added is code too.
    (tmp_path / "baselines" / "mine.py").write_text("mine = 1")
    dirty = bundle._code()
    assert dirty["version"] == f"{clean['version']} with changes that are in no commit"
    assert dirty["identifier"] != clean["identifier"]


def test_the_manifest_names_the_licence_of_whatever_is_others_work() -> None:
    for name, kinds in {
        "embedded": {"suite", "encoder"},
        "paper_4bit": {"suite", "encoder", "questions", "backbones"},
        "cpu_server": {"suite", "encoder", "weights"},
    }.items():
        preset = config.preset(name)
        licences = bundle._licences(preset)
        assert {name.partition("/")[0] for name in licences} == kinds
        assert kinds.isdisjoint({"backbones"}) or {f"backbones/{key}" for key in preset.backbones} <= licences.keys()
        assert all(entry["license"] and entry["name"] for entry in licences.values())
