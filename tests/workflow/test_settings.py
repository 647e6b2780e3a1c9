"""The settings of a run in a file: whole, left alone where nothing changed, and enough to repeat any of its jobs."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import orjson
import pytest
import yaml

from harness.errors import UserError
from harness.files import ROOT
from harness.runner import config
from workflow.jobs import settle

CELL = Path("results/smoke/cells/cot/gsm_hard/qwen-2.5-14B/seed0")
FILE = Path("results/smoke/config.yaml")
OVERRIDES = ["limit={test: 3}", "benchmarks=[gsm_hard]", "description=some words"]


def test_a_file_that_says_the_same_is_left_alone_and_another_run_replaces_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    settle(config.preset("smoke")).close()
    os.utime(FILE, (1, 1))
    settle(config.preset("smoke")).close()
    assert FILE.stat().st_mtime == 1
    settle(config.preset("smoke", {"seeds": [7]})).close()
    assert yaml.safe_load(FILE.read_text())["seeds"] == [7]


def test_while_a_run_is_under_way_its_settings_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with settle(config.preset("smoke")), settle(config.preset("smoke")):
        before = FILE.read_text()
        with pytest.raises(UserError, match="a run of preset smoke with other settings is under way"):
            settle(config.preset("smoke", {"seeds": [7]}))
        settle(config.preset("smoke@slope=4.0")).close()
        assert FILE.read_text() == before
    settle(config.preset("smoke", {"seeds": [7]})).close()


def snakemake(folder: Path, *words: str) -> str:
    ended = subprocess.run(
        [sys.executable, "-m", "snakemake", "--workflow-profile", "none", *words],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr[-3000:]
    return ended.stdout + ended.stderr


def test_a_printed_command_repeats_its_job_from_a_bare_shell(tmp_path: Path) -> None:
    for name in ("Snakefile", "workflow", "config", "profiles", "environment.yml"):
        (tmp_path / name).symlink_to(ROOT / name)
    run = ["--cores", "1", f"{CELL}/run.json", "--config", "preset=smoke", *OVERRIDES]
    assert not (snakemake(tmp_path, "-n", *run) and (tmp_path / FILE).exists())
    printed = re.findall(r"gmr --log .* cell .*$", snakemake(tmp_path, "-p", *run), re.MULTILINE)
    first = (tmp_path / CELL / "run.json").read_bytes()
    assert orjson.loads(first)["data"]["n_test"] == 3
    shutil.rmtree(tmp_path / CELL)
    bare = {"HOME": str(Path.home()), "PATH": os.defpath}
    words = [sys.executable, "-m", "workflow", *shlex.split(printed[0])[1:]]
    subprocess.run(words, cwd=tmp_path, env={**bare, "PYTHONPATH": str(ROOT)}, check=True, timeout=120)
    assert (tmp_path / CELL / "run.json").read_bytes() == first
