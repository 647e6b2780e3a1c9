"""All ten methods from the questions to the reports, twice; and a bundle of them: the same again from it alone."""

import asyncio
import contextlib
import io
import shutil
import sqlite3
import subprocess
import tarfile
from collections.abc import Callable
from pathlib import Path

import orjson
import pytest
import yaml
import zstandard

from cli import bundle, reports
from cli.bundle import pack, unpack
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
Members = list[tuple[tarfile.TarInfo, bytes]]
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
    return {name: packed(finished, folder / f"{name}.tar.zst", whole=name == "whole") for name in ("whole", "bare")}


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
    assert set(AGAIN) <= set(orjson.loads(Path("manifest.json").read_bytes())["reports"])
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
        again = packed(finished, tmp_path / "again.tar.zst", whole=name == "whole")
        assert again.read_bytes() == path.read_bytes()
    words = [["--directory", str(tmp_path / name), "--cores", "1", "reports/main_table.md"] for name in bundles]
    for status, output in plans(checkout(tmp_path / "checkout"), words):
        jobs = {line.split(":")[0] for line in output.split("Job stats")[0].splitlines() if ": " in line}
        assert (status, jobs) == (0, {"to do", "table main_table", "link main_table.md"}), output


def members(path: Path) -> list[tuple[str, bytes]]:
    with zstandard.open(path, "rb") as stream, tarfile.open(fileobj=io.BytesIO(stream.read())) as tar:
        return [(member.name, tar.extractfile(member).read()) for member in tar]  # type: ignore[union-attr]


def test_without_questions_no_byte_of_a_question_is_in_it(finished: Path, whole: Path, bare: Path) -> None:
    with contextlib.chdir(finished):
        pool = read(layout.manifest("smoke", BENCHMARK), layout.items("smoke", BENCHMARK)).pool
    texts = [form for item in pool for form in (item.question.encode(), orjson.dumps(item.question)[1:-1])]
    golds = [item.gold.encode() for item in pool]

    def holding(path: Path, parts: list[bytes]) -> set[str]:
        return {Path(name).name for name, content in members(path) if any(part in content for part in parts)}

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
        manifest = pack("smoke", tmp_path / "b.tar.zst", questions=True)
        assert [line.split(" of ")[0] for line in manifest["unfinished"]] == [str(CELLS[1])]
        assert str(layout.cell("smoke", CELLS[0])) in manifest["cells"]
        assert "main_table" not in manifest["reports"]
        for run in Path("results").rglob("run.json"):
            run.unlink()
        with pytest.raises(UserError, match="no finished cell here; "):
            pack("smoke", tmp_path / "c.tar.zst", questions=True)
        assert not (tmp_path / "c.tar.zst").exists()


@pytest.mark.parametrize(
    ("encoder", "said"), [("fake-encoder", "the log is incomplete"), ("other", "recorded on another processor type")]
)
def test_a_call_that_is_not_in_the_log_is_one_line(
    encoder: str, said: str, whole: Path, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(FakeEncoder, "identity", encoder)
    preset = unpacked(whole, place, monkeypatch)
    with contextlib.closing(sqlite3.connect(layout.call_log("smoke", CELLS[0]))) as log, log:
        log.execute("DELETE FROM calls WHERE rowid = (SELECT max(rowid) FROM calls)")
    with pytest.raises(UserError, match=rf"call \w+ of Qwen/\S+ is not in the call log of .*: {said}"):
        asyncio.run(cells.run(plan(preset, CELLS[0])))


def test_what_was_not_recorded_is_one_line(whole: Path, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    preset = unpacked(whole, place, monkeypatch)
    with pytest.raises(UserError, match=r"cot/.* holds no recorded run, and no server is asked here"):
        asyncio.run(cells.run(plan(preset, Cell("cot", BENCHMARK, "qwen-2.5-14B", 1))))
    with pytest.raises(UserError, match="unpacked from a bundle"):
        pack("smoke", place / "b.tar.zst", questions=True)
    recorded = Recorded(layout.cell("smoke", CELLS[0]), "fake-encoder")
    with pytest.raises(UserError, match="some/model was not asked in the recorded run of"):
        recorded.served("some/model")


def changed(whole: Path, path: Path, change: Change) -> Path:
    """Write the bundle with other members, as somebody would who knows the format."""
    files = [(tarfile.TarInfo(name), content) for name, content in members(whole)]
    change(files)
    with zstandard.open(path, "wb") as stream, tarfile.open(fileobj=stream, mode="w|") as tar:
        for info, content in files:
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return path


def listed(files: Members, info: tarfile.TarInfo) -> None:
    """Add a member that the manifest lists."""
    manifest = orjson.loads(files[0][1])
    manifest["files"][info.name] = {"size": 0, "sha256": "0"}
    files[0] = (files[0][0], orjson.dumps(manifest))
    files.insert(1, (info, b""))


def link() -> tarfile.TarInfo:
    info = tarfile.TarInfo("results/link")
    info.type, info.linkname = tarfile.SYMTYPE, "/etc/passwd"
    return info


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda found: found.__setitem__(3, (found[3][0], found[3][1] + b"x")), "was altered: .* is not what its man"),
        (lambda found: found.pop(), "was cut off: results/.* is missing"),
        (lambda found: found.pop(0), "no bundle of this suite: config/config.yaml is none of its files"),
        (lambda found: found.append((tarfile.TarInfo("results/more"), b"")), "results/more is none of its files"),
        (lambda found: listed(found, tarfile.TarInfo("../outside")), r"\.\./outside.* outside the destination"),
        (lambda found: listed(found, link()), "results/link is none of its files"),
    ],
)
def test_another_content_than_the_manifest_lists_is_refused(
    change: Change, said: str, whole: Path, place: Path
) -> None:
    (place / "deep").mkdir()
    path = changed(whole, place / "b.tar.zst", change)
    with pytest.raises(UserError, match=said):
        unpack(path, place / "deep" / "new")
    assert sorted(place.rglob("*")) == [path, place / "deep"]


@pytest.mark.parametrize(("share", "is_cut"), [(0, True), (0.5, True), (0.99, False)])
def test_a_damaged_file_is_refused(share: float, is_cut: bool, whole: Path, place: Path) -> None:
    content = bytearray(whole.read_bytes())
    number = max(int(share * len(content)), 3)
    content[number] ^= 1
    path = place / "b.tar.zst"
    path.write_bytes(content[:number] if is_cut else content)
    with pytest.raises(UserError, match=r"b\.tar\.zst (is damaged or no bundle|is no bundle|was altered|was cut off)"):
        unpack(path, place / "new")
    assert list(place.iterdir()) == [path]


def test_other_code_an_existing_folder_and_an_absent_file_are_refused(
    whole: Path, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(UserError, match="exists; name a new folder"):
        unpack(whole, place)
    with pytest.raises(UserError, match=r"cannot read .*absent: No such file"):
        unpack(place / "absent", place / "new")
    monkeypatch.setattr(bundle, "_code", lambda: {"sha256": "other"})
    with pytest.raises(UserError, match=r"made by other code: (commit \w+|code of no known commit)"):
        unpack(whole, place / "new")


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
def test_a_bundle_says_whose_code_made_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for folder in ("harness", "baselines", "gmr", "analysis", "docs"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "code.yaml").write_text("1")
    monkeypatch.setattr(bundle, "ROOT", tmp_path)
    assert bundle.whose(bundle._code()).startswith("code of no known commit, digest ")
    git = ["git", "-C", str(tmp_path), "-c", "user.name=A", "-c", "user.email=a@example.org"]
    for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "All"]):
        subprocess.run([*git, *words], check=True)
    clean = bundle._code()
    assert (len(clean["commit"]), clean["dirty"]) == (40, False)
    # What decides no result may differ.
    (tmp_path / "docs" / "code.yaml").write_text("2")
    assert bundle._code() == clean
    # A file that was never added is code too.
    (tmp_path / "baselines" / "mine.py").write_text("mine = 1")
    dirty = bundle._code()
    assert dirty == {"commit": clean["commit"], "dirty": True, "sha256": dirty["sha256"]}
    assert dirty["sha256"] != clean["sha256"]
    assert "with changes that are in no commit" in bundle.whose(dirty)


def test_the_manifest_names_the_licence_of_whatever_is_others_work() -> None:
    for name, kinds in {
        "embedded": {"suite", "encoder"},
        "paper_4bit": {"suite", "encoder", "questions", "backbones"},
        "cpu_server": {"suite", "encoder", "weights"},
    }.items():
        preset = config.preset(name)
        licences = bundle._licences(preset)
        assert licences.keys() == kinds
        assert licences.get("questions", {}).keys() in (set(preset.benchmarks), set())
        assert licences.get("backbones", {}).keys() in (set(preset.backbones), set())
