"""``gmr run`` in front of a real Snakemake with a DAG of one rule: its statuses, what it says, how it stops."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from harness import config
from harness.errors import UserError
from harness.files import ROOT
from workflow import engine
from workflow.engine import Engine

TABLE = "reports/smoke/main_table.tex"
RULE = """
rule table:
    output: "reports/{preset}/main_table.tex"
    shell: "%s"
"""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "results").mkdir()
    return tmp_path


def start(place: Path, shell: str, *words: str) -> subprocess.Popen[str]:
    (place / "Snakefile").write_text(RULE % shell)
    return subprocess.Popen(
        [sys.executable, "-m", "workflow", "run", "--preset", "smoke", "--cores", "1", *words],
        cwd=place,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def ended(place: Path, shell: str, *words: str) -> tuple[int, str, str]:
    process = start(place, shell, *words)
    said, logged = process.communicate(timeout=120)
    return process.returncode, said, logged


def test_a_run_to_its_end_names_what_it_made(place: Path) -> None:
    status, said, logged = ended(place, "touch {output}")
    assert (status, said) == (0, f"{TABLE}\n"), logged
    assert logged.splitlines()[-1].startswith("cells 0/42 · jobs 1/1 · 0 calls (0/s)")
    assert (place / TABLE).exists()
    assert "Job stats:" in (place / "results" / "smoke" / "logs" / "run.log").read_text()


def test_a_run_in_which_something_failed_shows_the_error_and_can_go_on(place: Path) -> None:
    log = place / "results" / "smoke" / "logs" / "cells" / "single" / "gsm_hard" / "qwen-2.5-14B" / "seed0.log"
    log.parent.mkdir(parents=True)
    log.write_text("begun\nerror: the server is gone; start it\n")
    status, said, logged = ended(place, "echo 'error: the server is gone; start it' >&2; exit 2")
    assert (status, said) == (3, "")
    lines = logged.splitlines()
    assert lines.count("error: the server is gone; start it") == 1
    assert f"  single gsm_hard qwen-2.5-14B seed 0 ({log.relative_to(place)})" in lines
    assert lines[-1].endswith("Finished calls are kept; the same command goes on.")


def test_what_snakemake_refuses_is_a_mistake_and_shows_its_words(place: Path) -> None:
    status, _, logged = ended(place, "touch {output}", "reports/smoke/claims.html")
    assert status == 2
    assert "MissingRuleException" in logged


def test_a_dry_run_makes_nothing(place: Path) -> None:
    status, said, _ = ended(place, "touch {output}", "--dry-run")
    assert status == 0
    assert "table" in said
    assert not (place / TABLE).exists()
    assert ended(place, "touch {output}", "reports/smoke/claims.html", "--dry-run")[0] == 2


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_the_run_and_all_it_started(place: Path, number: signal.Signals, status: int) -> None:
    process = start(place, "echo $$ > pid; exec sleep 300")
    while not (place / "pid").exists() or not (place / "pid").read_text().strip():
        assert process.poll() is None, process.communicate()[1]
        time.sleep(0.05)
    process.send_signal(number)
    _, logged = process.communicate(timeout=60)
    assert process.returncode == status, logged
    assert logged.splitlines()[-1] == "stopped; give the same command again"
    with pytest.raises(ProcessLookupError):
        os.kill(int((place / "pid").read_text()), 0)
    if number is signal.SIGINT:
        assert ended(place, "touch {output}")[0] == 0


def test_without_a_dag_one_line_says_so(place: Path) -> None:
    words = [sys.executable, "-m", "workflow", "run"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    found = subprocess.run(words, cwd=place, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert found.returncode == 2
    assert found.stderr == "error: no Snakefile here; give the command in the checkout of the suite\n"


def test_targets_are_files_of_the_preset() -> None:
    preset = config.preset("embedded")
    named = ["main_table", "pareto_he", "reports/claims.html", "all"]
    expected = ["reports/embedded/main_table.tex", "reports/embedded/pareto_he.pdf", "reports/claims.html", "all"]
    assert engine.files_of(preset, named) == expected
    with pytest.raises(UserError, match="depth cannot be made of preset smoke"):
        engine.files_of(config.preset("smoke"), ["depth"])


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.text(st.characters(codec="ascii", categories=["L", "N"]), max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("abc", min_size=1), inner, max_size=3),
    max_leaves=6,
)


@given(VALUES)
def test_an_override_reaches_snakemake_as_it_was_given(value: Any) -> None:
    words = engine.command(config.preset("smoke"), ["all"], {"limit": value}, ["--cores", "2"])
    assert words[1:8] == ["-m", "snakemake", "--cores", "2", "all", "--config", "preset=smoke"]
    key, _, text = words[8].partition("=")
    assert (key, yaml.safe_load(text)) == ("limit", value)
    assert "\n" not in text


def test_what_an_earlier_run_said_is_no_news(tmp_path: Path) -> None:
    output = tmp_path / "run.log"
    output.write_text("Job stats:\nerror: of yesterday\n9 of 9 steps (100%) done\n")
    script = "print('error: of today'); print('2 of 5 steps (40%) done'); print('error: torn', end='')"
    found = Engine([sys.executable, "-c", script], output)
    assert found.wait(30) == 0
    assert found.news() == ["error: of today"]
    assert found.news() == []
    assert (found.steps, found.has_begun) == ("2/5", False)
