"""A bundle replayed: the same bytes, from the bundle alone."""

import contextlib
import dataclasses
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import orjson
import pytest

from harness.benchmarks.prepare import read
from harness.errors import UserError
from harness.files import ROOT
from harness.runner import layout
from harness.sandbox import Execution, Outcome, Program
from harness.sandbox.cache import CachedSandbox
from tests.harness.llm.logged import calls_of
from tests.workflow.bundling import runs
from tests.workflow.bundling.runs import BENCHMARK, CELLS, FOLDERS, TABLE, bundled, files_of, replay
from workflow.bundling import opening
from workflow.bundling.archive import Archive
from workflow.commands import jobs


def assert_same(recorded: Path, replayed: Path, *, logs: bool = True) -> None:
    for file in [*(file for method in CELLS for file in files_of(method)), *TABLE]:
        if file.name != "calls.sqlite":
            assert (replayed / file).read_bytes() == (recorded / file).read_bytes(), file
        elif logs:
            assert rows(replayed / file) == rows(recorded / file), file


def rows(log: Path) -> dict[str, dict[str, Any]]:
    """The rows of a call log by key, whichever call finished first."""
    return {key: {**row, "number": 0} for key, row in calls_of(log).items()}


def test_every_table_comes_out_the_same_without_a_server(place: Path, recorded: Path, bundle: Path) -> None:
    assert_same(recorded, replay(bundle))


def test_nothing_is_taken_from_the_record_that_the_walk_makes(
    place: Path, bundle: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Were results copied, the replay would not notice that programs end otherwise here."""
    execute = CachedSandbox.run

    async def failing(self: CachedSandbox, program: Program) -> Execution:
        ended = await execute(self, program)
        return dataclasses.replace(ended, outcome=Outcome.EXCEPTION, detail="ValueError: other")

    monkeypatch.setattr(CachedSandbox, "run", failing)
    with pytest.raises(UserError, match=r"cot humaneval qwen-2.5-14B seed 0, item \S+: another verdict: right"):
        replay(bundle, "cot")


def test_the_same_run_makes_the_same_bundle(recorded: Path, bundle: Path) -> None:
    assert bundled(recorded, "again.tar").read_bytes() == bundle.read_bytes()


def test_a_bundle_is_unpacked_once(place: Path, bundle: Path) -> None:
    first = replay(bundle, "cot")
    kept = (runs.unpacked(first) / FOLDERS["cot"] / "run.json").stat().st_mtime_ns
    assert replay(bundle, "cot") == first
    assert (runs.unpacked(first) / FOLDERS["cot"] / "run.json").stat().st_mtime_ns == kept


def test_a_bundle_without_questions_holds_none_and_is_replayed_with_the_data(
    place: Path, recorded: Path, without_questions: Path
) -> None:
    folder = replay(without_questions)
    assert_same(recorded, folder, logs=False)
    data = read(recorded / layout.manifest("smoke", BENCHMARK), recorded / layout.items("smoke", BENCHMARK))
    texts = [item.question for item in data.pool]
    for file in runs.unpacked(folder).rglob("*.*"):
        if file.is_file():
            content = file.read_bytes()
            assert not any(text.encode() in content or _quoted(text) in content for text in texts), file
    log = rows(runs.unpacked(folder) / FOLDERS["gmr"] / "calls.sqlite")
    whole = rows(recorded / FOLDERS["gmr"] / "calls.sqlite")
    assert {key: row["reply"] for key, row in log.items()} == {key: row["reply"] for key, row in whole.items()}


def _quoted(text: str) -> bytes:
    return orjson.dumps(text)[1:-1]


def test_snakemake_replays_in_a_folder_of_its_own(place: Path, bundle: Path) -> None:
    for name in ("Snakefile", "workflow", "config", "profiles", "environment.yml"):
        (place / name).symlink_to(ROOT / name)
    relative = os.path.relpath(bundle, place)
    given = ["--config", "preset=replay", f"bundle={relative}"]
    planned = subprocess.run(
        [sys.executable, "-m", "snakemake", "-n", "--cores", "1", "reports/main_table.tex", *given],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert planned.returncode == 0, planned.stderr[-2000:]
    said = planned.stdout + planned.stderr
    folder = place / "replay" / Archive(bundle).sha256[:12]
    assert f"its reports will be in {folder}/reports" in said
    planned_jobs = {name: int(count) for name, count in re.findall(r"^(\w+) +(\d+)$", said, re.MULTILINE)}
    assert planned_jobs == {
        "data": 1,
        "world": 1,
        "cell": 1,
        "learned_cell": 3,
        "table": 1,
        "run_name": 1,
        "published_copy": 1,
        "total": 9,
    }
    assert (runs.unpacked(folder) / "manifest.json").exists()


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "a replay needs a bundle; add bundle=FILE"),
        ({"bundle": "absent.tar"}, r"cannot read .*absent\.tar: No such file"),
        ({"bundle": "b.tar", "limit": {"test": 3}, "seeds": [1]}, "leave out limit, seeds"),
    ],
)
def test_what_is_wrong_with_a_replay_is_said(place: Path, given: dict[str, object], said: str) -> None:
    with pytest.raises(UserError, match=said):
        opening.opened({"preset": "replay", **given})


def test_a_bundle_of_other_code_is_refused_with_its_commit(
    place: Path, bundle: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(opening, "code", lambda: "other")
    with pytest.raises(UserError, match=r"recorded by other code \(commit \w+"):
        replay(bundle)


def test_an_incomplete_run_is_not_bundled(tmp_path: Path, recorded: Path) -> None:
    shutil.copytree(recorded / "results", tmp_path / "results")
    (tmp_path / FOLDERS["puppeteer"] / "run.json").unlink()
    (tmp_path / FOLDERS["gmr"] / "calls.sqlite").unlink()
    with pytest.raises(UserError, match="2 of 4 cells and timings are missing, the first because: puppeteer"):
        bundled(tmp_path, "b.tar")
    assert not (tmp_path / "b.tar").exists()


def test_a_replay_is_not_bundled_again(place: Path, bundle: Path) -> None:
    folder = replay(bundle, "cot")
    with pytest.raises(UserError, match="this folder replays a bundle"):
        bundled(folder, "b.tar")


def test_a_target_that_was_not_bundled_is_named(place: Path, bundle: Path) -> None:
    folder = replay(bundle, "cot")
    with contextlib.chdir(folder), pytest.raises(UserError, match=r"single/.* is not in the bundle, .* main_table"):
        jobs.cell("smoke", "single", BENCHMARK, "qwen-2.5-14B", 0, runs.SET)
