"""What a change makes run again: nothing that it cannot have changed."""

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from harness.files import ROOT

FOLDERS = ("workflow", "config", "profiles", "harness", "gmr", "baselines", "analysis", "docs")
PARTS = ("Snakefile", "environment.yml", *FOLDERS)
TARGETS = [
    "reports/smoke/pareto_he.png",
    "reports/smoke/ablation/no_write_gate.csv",
    "reports/smoke/ablation/no_halting.csv",
]
CONFIG = ["--config", "methods=[single, gmr]", "backbones=[qwen-2.5-14B]"]
# Stands in for the real commands: a job leaves the files it has to leave, and is done.
COMMAND = """#!/bin/sh
case "$3" in
  data) make="results/$5/data/$7.json results/$5/data/$7.items.jsonl" ;;
  world) make="results/$5/world.json" ;;
  health) make="results/$5/served/$7.json" ;;
  report) make="" ; for kind in tex csv md html pdf png svg; do make="$make reports/$6/$4.$kind"; done ;;
  cell) folder="results/$5/cells/$7/$9/${11}/seed${13}" ; make="$folder/run.json"
    for name in items calls decisions training training_calls training_decisions; do
      make="$make $folder/$name.parquet"
    done
    make="$make $folder/trained.safetensors $folder/timing.json" ;;
esac
for file in $make; do mkdir -p "$(dirname "$file")"; echo made > "$file"; done
[ "$3" = "$(cat killed_by)" ] && rm killed_by && kill -9 "${GMR_PARENT##*:}"
true
"""
# A line of code more.
CODE = ("from __future__ import annotations", "from __future__ import annotations\n\nLATER = True")
SNAKEMAKE = "import sys; sys.executable = sys.argv.pop(1); from snakemake.cli import main; main()"


def snakemake(house: Path, *words: str, status: int = 0) -> str:
    """What Snakemake says in a checkout of its own, whose modules it imports and whose ``gmr`` it calls."""
    given = {key: value for key, value in os.environ.items() if key not in ("PYTHONSAFEPATH", "PYTHONPATH")}
    ended = subprocess.run(
        [sys.executable, "-c", SNAKEMAKE, str(house / "bin" / "python"), "--cores", "1", *TARGETS, *CONFIG, *words],
        cwd=house,
        env={**given, "PYTHONPATH": str(house)},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert ended.returncode == status, ended.stderr[-3000:]
    return ended.stdout + ended.stderr


def copied(folder: Path) -> Path:
    """A checkout in a folder, whose jobs only pretend."""
    for part in PARTS:
        if (ROOT / part).is_dir():
            shutil.copytree(ROOT / part, folder / part, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / part, folder)
    (folder / "bin").mkdir()
    (folder / "bin" / "gmr").write_text(COMMAND)
    (folder / "bin" / "python").write_text('#!/bin/sh\nshift 2\nexec gmr "$@"\n')
    for name in ("gmr", "python"):
        (folder / "bin" / name).chmod(0o755)
    return folder


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkout in which the targets are made, as far as Snakemake can tell."""
    folder = copied(tmp_path_factory.mktemp("house"))
    snakemake(folder)
    return folder


@contextmanager
def changed(path: Path, old: str, new: str) -> Iterator[None]:
    """A file with one text in place of another, until the end of the block."""
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
    try:
        yield
    finally:
        path.write_text(text)


def reruns(house: Path, *words: str) -> set[str]:
    """The jobs a dry run plans: the rule and what tells a job from others of the rule."""
    # The profile keeps jobs quiet.
    said = snakemake(house, *words, "-n", "--workflow-profile", "none")
    planned = re.findall(r"^rule (\w+):\n(?: .*\n)*?    wildcards: (.*)$", said, re.MULTILINE)
    return {
        f"{rule} {re.sub(r'(preset|backbone|seed)=[^,]+(, )?', '', values).strip(', ')}" for rule, values in planned
    }


def test_what_is_made_stays_made(house: Path) -> None:
    assert reruns(house) == set()


def test_a_changed_ablation_reruns_itself_and_what_shows_it(house: Path) -> None:
    old = "{extends: gmr, title: GMR w/o write gate, config: {write_gate: false}}"
    new = "{extends: gmr, title: GMR w/o write gate, config: {write_gate: false, lr: 0.02}}"
    with changed(house / "config" / "methods.yaml", old, new):
        assert reruns(house) == {
            "learned_cell method=gmr_no_write_gate, benchmark=gsm_hard",
            "learned_cell method=gmr_no_write_gate, benchmark=humaneval",
            "table name=ablation/no_write_gate",
        }


@pytest.mark.parametrize("file", ["gmr/networks.py", "harness/agents/activation.py", "analysis/figures/pareto.py"])
def test_a_comment_reruns_nothing(house: Path, file: str) -> None:
    old = "from __future__ import annotations"
    with changed(house / file, old, f"{old}  # All of them.\n\n# Nothing else has changed."):
        assert reruns(house) == set()


def test_the_style_of_a_plot_reruns_the_plot_alone(house: Path) -> None:
    with changed(house / "analysis" / "figures" / "pareto.py", *CODE):
        assert reruns(house) == {"figure name=pareto_he"}


def test_what_all_artefacts_read_reruns_reports_and_no_cell(house: Path) -> None:
    with changed(house / "config" / "published.yaml", "# The numbers", "# All numbers"):
        assert reruns(house) == {
            "figure name=pareto_he",
            "table name=ablation/no_halting",
            "table name=ablation/no_write_gate",
        }


def test_a_published_number_that_the_simulation_is_calibrated_to_reruns_the_world(house: Path) -> None:
    with changed(house / "config" / "published.yaml", "{accuracy: 62.79,", "{accuracy: 62.78,"):
        assert any(rerun.startswith("world") for rerun in reruns(house))


def test_another_title_reruns_what_shows_it_and_no_cell(house: Path) -> None:
    old = "{extends: gmr, title: GMR w/o write gate, "
    with changed(house / "config" / "methods.yaml", old, old.replace("w/o", "without")):
        assert reruns(house) == {"table name=ablation/no_write_gate"}


@contextmanager
def gone(path: Path) -> Iterator[None]:
    """A file or folder that is not there until the end of the block."""
    path.rename(path.with_name("elsewhere"))
    try:
        yield
    finally:
        path.with_name("elsewhere").rename(path)


def test_the_results_of_a_method_that_are_gone_are_made_again_with_what_shows_them(house: Path) -> None:
    with gone(house / "results/smoke/cells/gmr_no_halting"):
        assert reruns(house) == {
            "learned_cell method=gmr_no_halting, benchmark=gsm_hard",
            "learned_cell method=gmr_no_halting, benchmark=humaneval",
            "table name=ablation/no_halting",
        }


@pytest.mark.parametrize(
    "name",
    ["run.json", "items.parquet", "training_calls.parquet", "trained.safetensors", "timing.json"],
)
def test_a_file_of_a_cell_that_is_gone_is_made_again_with_what_shows_the_cell(house: Path, name: str) -> None:
    with gone(house / "results/smoke/cells/gmr_no_halting/gsm_hard/pool/seed0" / name):
        assert reruns(house) == {
            "learned_cell method=gmr_no_halting, benchmark=gsm_hard",
            "table name=ablation/no_halting",
        }


def test_a_run_killed_before_a_health_check_is_noted_goes_on_to_its_end_with_one_command(tmp_path: Path) -> None:
    house, served = copied(tmp_path), "endpoints=served"
    (house / "killed_by").write_text("health")
    snakemake(house, served, status=-signal.SIGKILL)
    checks = sorted((house / "results/smoke/served").glob("*.json"))
    assert checks
    assert not (house / "results/smoke/cells").exists()
    snakemake(house, served, "--nolock")
    assert [target for target in TARGETS if not (house / target).exists()] == []
    # That servers are checked again, by hand, makes no finished cell anew.
    for file in (house / "results/smoke/served").iterdir():
        file.touch()
    assert reruns(house, served, "--nolock") == set()
