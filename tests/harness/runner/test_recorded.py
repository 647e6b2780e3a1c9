"""Recordings that answer calls of other runs: look-up, missing calls, and fallback to servers."""

import asyncio
import json
import os
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pyarrow.parquet as pq
import pytest
import yaml

from cli.bundle import pack
from cli.replay import replay
from gmr.enumeration import enumerate_steps
from harness.agents.code_tools import CodeTools
from harness.database import CALL_LOG
from harness.errors import UserError
from harness.llm.recordings import SERVERS, Recording, Recordings, opened
from harness.runner import cell as cells
from harness.runner import config, layout, questions
from harness.runner.layout import Cell
from harness.runner.plan import plan
from harness.runner.preset import resolve
from harness.runner.resources import recorded_tools
from harness.runner.run import Run
from harness.sandbox import Sandbox
from tests.command import gmr
from tests.faults import Simulation
from tests.finished import BENCHMARK
from tests.harness.llm.logged import calls_of, execute
from tests.harness.llm.serving import served_at

SINGLE, GMR = Cell("single", BENCHMARK, "qwen-2.5-14B", 0), Cell("gmr", BENCHMARK, "pool", 0)


@pytest.fixture
def source(finished: Path, folder: Path) -> Path:
    return Path(shutil.copytree(finished / "results" / "smoke", folder / "theirs" / "results" / "smoke"))


def recorded(*paths: Path, **changes: Any) -> Run:
    """Return a preset that states no more than it has to, with its questions prepared."""
    keys = {"description": "x", "methods": ["single"], "seeds": [0], "endpoints": "recorded"}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(config, "FOLDER", Path(shutil.copytree(config.FOLDER, "house", dirs_exist_ok=True)))
        whole = {**keys, "recordings": list(map(str, paths)), **changes}
        Path("house/presets/mine.yaml").write_text(yaml.safe_dump(whole))
        preset = resolve("mine")
    for key in preset.benchmarks:
        questions.write(preset, key)
    preset.write_settings()
    return preset


def made(preset: Run, cell: Cell) -> dict[str, Any]:
    return asyncio.run(cells.run(plan(preset, cell)))


def tables(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.glob("*.parquet")}


def test_a_run_of_five_lines_makes_the_same_tables_without_a_call(
    source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    access = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: source not in Path(path).parents and access(path, mode))
    before = {path: path.stat().st_mtime_ns for path in source.rglob("*") if path.is_file()}
    preset = recorded(source)
    assert (preset.simulated, preset.limit.test, preset.backbones) == (True, 3, ("qwen-2.5-14B",))
    for cell in (SINGLE, GMR):
        run = made(preset, cell)
        folder = layout.cell("mine", cell)
        assert tables(folder) == tables(source / Path(*folder.parts[2:]))
        assert run["recordings"] == {"smoke": opened(source).sha256}
        assert (run["replies"]["asked"], run["replies"]["recorded"] > 0) == (0, True)
        assert calls_of(folder / CALL_LOG) == {}
        assert not (folder / layout.VECTORS).exists()
    assert {path: path.stat().st_mtime_ns for path in source.rglob("*") if path.is_file()} == before
    # A bundle of it holds the recorded replies and vectors.
    pack("mine", Path("mine.zip"))
    assert replay(Path("mine.zip"), make_reports=False).differences == {SINGLE: "", GMR: ""}


def test_a_cell_has_the_description_that_its_own_server_gave(source: Path) -> None:
    files = {cell: source / Path(*layout.cell("smoke", cell).parts[2:]) / SERVERS for cell in (SINGLE, GMR)}
    for length, file in enumerate(files.values()):
        described = orjson.loads(file.read_bytes())
        (model,) = described["served"]
        described["served"][model]["details"] = {"max_model_len": length}
        file.write_bytes(orjson.dumps(described))
    recordings = [Recording(source)]
    for length, cell in enumerate(files):
        with Recordings(recordings, resolve("smoke").cell(cell)) as found:
            served = found.served.get(model)
        assert served is not None
        assert served.details == {"max_model_len": length}


def test_programs_with_tests_of_a_stranger_run_once_in_a_preset(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.runner.questions.is_at_hand", lambda *_: False)
    preset = recorded(source)
    made(preset, SINGLE)
    monkeypatch.setattr(Sandbox, "_execute", lambda *_: pytest.fail("a program ran again"))
    made(preset, SINGLE)
    assert layout.cache("mine").is_file()
    assert not layout.cache().exists()


def test_a_damaged_recording_is_named_with_its_cure(source: Path) -> None:
    preset = recorded(source)
    folder = source / "cells/gmr" / BENCHMARK / "pool/seed0"
    for file, change in (
        (layout.VECTORS, "UPDATE embeddings SET value = 50000000000"),
        (CALL_LOG, "UPDATE calls SET reply = 'another'"),
    ):
        shutil.copy(folder / file, "kept")
        execute(folder / file, change)
        with pytest.raises(UserError, match=r"is damaged \(.*; fetch (it|the recording) again$") as caught:
            made(preset, GMR)
        assert "sqlite3" not in str(caught.value)
        shutil.copy("kept", folder / file)


def test_what_is_missing_is_one_line_that_says_what_there_is(source: Path) -> None:
    preset = recorded(source, limit={"test": 6, "train": 1}, methods=["single"])
    said = (
        r"^single .*: \d of its calls are recorded so far; call \w{12}, which asks \S+ for solve \(max_tokens \d+\), "
        r"is not; its prompt begins '.*'. smoke holds cells/aflow, .* by .*; use the settings of the recording"
    )
    with pytest.raises(UserError, match=said):
        asyncio.run(cells.run(replace(plan(preset, SINGLE), in_flight=1)))


def test_recordings_that_disagree_are_an_error_that_names_the_key(source: Path, folder: Path) -> None:
    other = Path(shutil.copytree(source, folder / "other"))
    assert opened(other).sha256 == opened(source).sha256
    settings = yaml.safe_load((other / "config.yaml").read_text())
    for key, value, named in (
        ("decoding", "greedy", "its decoding differs from"),
        ("limit", {"test": 1}, "its limit differs"),
        ("pool", {"m": {"max_tokens": 2}}, r"its pool\.m differs"),
    ):
        for path, changes in ((source, {"pool": {"m": {"max_tokens": 1}}}), (other, {key: value})):
            (path / "config.yaml").write_text(yaml.safe_dump({**settings, **changes}))
        opened.cache_clear()
        with pytest.raises(UserError, match=named):
            recorded(source, other)
    opened.cache_clear()
    for changes in ({"endpoints": "simulated"}, {"recordings": None}):
        with pytest.raises(UserError, match=r"mine\.yaml: .* need each other; set both"):
            recorded(source, **changes)
    with pytest.raises(UserError, match="is no recording: expected a bundle, or a folder"):
        recorded(folder)
    with pytest.raises(UserError, match="two recordings are called smoke"):
        recorded(source, Path(shutil.copytree(source, folder / "host" / "smoke")))


@pytest.mark.usefixtures("folder")
def test_the_log_of_an_enumeration_answers_a_router_of_one_step() -> None:
    changes = {"backbones": ["llama-3.2-3B", "qwen-2.5-32B"], "large": None, "benchmarks": [BENCHMARK]}
    changes |= {"limit": {"train": 2, "test": 2, "epochs": 1}}
    questions.write(resolve("smoke", changes), BENCHMARK)
    row = Cell("gmr_one_step", BENCHMARK, "pool", 0)
    given = [word for name, value in changes.items() for word in ("--set", f"{name}={json.dumps(value)}")]
    gmr("enumerate", "--preset", "smoke", "--benchmark", BENCHMARK, *given)
    about, _ = pack("smoke", Path("tree.zip"))
    assert about["./"]["description"].startswith("SIMULATED BACKBONES. Preset smoke, 0 finished cells")
    planned = plan(recorded(Path("tree.zip"), methods=["gmr_one_step"]), row)
    tools = recorded_tools(planned)
    assert len(tools) == pq.read_table(layout.tree("smoke", BENCHMARK) / "tools.parquet").num_rows > 0
    with pytest.MonkeyPatch.context() as patch:  # Only graders run programs.
        run_program = CodeTools._run
        patch.setattr(CodeTools, "_run", lambda self, program: run_program(self, self._recorded[program] and program))
        assert asyncio.run(cells.run(planned))["replies"]["asked"] == 0
    # The same replies answer any split of the questions, of which the audit knows each cell's own.
    given = {"methods": ["gmr_one_step", "single"], "splits": "resampled", "seeds": [*range(3)]}
    drawn = recorded(Path("tree.zip"), **given, limit={"train": 2, "epochs": 1})
    plans = [plan(drawn, replace(row, seed=seed)) for seed in drawn.seeds]
    everything = {*plan(drawn, Cell("single", BENCHMARK, "qwen-2.5-32B", 0)).questions.drawn.test}
    splits = [each.questions.drawn for each in plans]
    assert all({*split.train} ^ {*split.test} == everything and len(split.train) == 2 for split in splits)
    assert len({each.cell.record["config_hash"] for each in plans}) == 3 > 1 < len({*splits})
    runs = [asyncio.run(cells.run(each)) for each in plans]
    assert [run["data"]["drawn"] for run in runs] == [split.checksum for split in splits]
    assert "that a training used: none" in gmr("audit", "--preset", "mine").output
    with pytest.raises(UserError, match=r"limit: \{train: 4\} leaves no test question of humaneval; .* 4 questions"):
        plan(drawn.model_copy(update={"limit": drawn.limit.model_copy(update={"train": 4})}), row)
    with pytest.raises(UserError, match=r"set `limit: \{train: n\}`"):
        recorded(Path("tree.zip"), **given, limit={"train": 2, "test": 2})
    shutil.rmtree("results/mine")
    planned = plan(recorded(Path("tree.zip"), methods=["gmr_one_step"]), row)
    asyncio.run(enumerate_steps(planned))
    pack("mine", Path("again.zip"))
    assert replay(Path("again.zip"), make_reports=False).differences == {f"enumeration of {BENCHMARK}": ""}


async def test_a_server_is_asked_what_no_recording_holds_and_a_killed_training_goes_on(
    source: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    smoke = resolve("smoke", {"benchmarks": [BENCHMARK], "backbones": ["qwen-2.5-14B"]})
    questions.write(smoke, BENCHMARK)
    log = source / Path(*layout.cell("smoke", GMR).parts[2:]) / CALL_LOG
    execute(log, "DELETE FROM calls WHERE number % 2")
    for cells_of in source.glob("cells/[!g]*"):
        shutil.rmtree(cells_of)
    monkeypatch.setenv("GMR_ENDPOINTS", "endpoints.yaml")
    simulation = plan(smoke, GMR).in_process
    async with served_at(Simulation(simulation)) as url:
        Path("endpoints.yaml").write_text(f"qwen-2.5-14B: {{url: {url!r}}}")
        preset = recorded(source, endpoints=["recorded", "served"])
        planned = plan(preset, GMR)
        run = await cells.run(planned)
        assert min(run["replies"].values()) > 0
        first = tables(planned.folder)
        (planned.folder / "run.json").unlink()
        attempts = (planned.folder / "attempts.jsonl").read_bytes()
        caplog.set_level("INFO")
        again = await cells.run(planned)
        assert "of them repeated from the log, 0 tokens written" in caplog.text
        assert (tables(planned.folder), again["replies"]) == (first, run["replies"])
        assert (planned.folder / "attempts.jsonl").read_bytes() == attempts
        # A bundle of it needs no vector of the recording.
        theirs = source / planned.folder.relative_to("results/mine")
        keys = [execute(each / layout.VECTORS, "SELECT key FROM embeddings") for each in (theirs, planned.folder)]
        assert {*keys[0]} & {*keys[1]}


@pytest.mark.parametrize(
    "text", ["a: " + "[" * 100_000, "a: &a [1]\nb: [*a, *a]", "limit: !!int ''", "limit: 2001-99-99"]
)
def test_settings_that_no_run_writes_are_one_line(tmp_path: Path, text: str) -> None:
    (tmp_path / "config.yaml").write_text(text)
    with pytest.raises(UserError, match="is damaged or no bundle"):
        Recording(tmp_path)
