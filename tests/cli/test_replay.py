"""Replay and audit: recorded runs are complete, and today's code reproduces them without a server."""

import asyncio
import re
import shutil
import sqlite3
import sys
from dataclasses import replace
from pathlib import Path
from unittest.mock import Mock

import pytest

from analysis import registry
from analysis.finished_cells import answers_of, read_run
from cli.app import last_run
from cli.replay import REPLAYED, replay
from harness.benchmarks.catalogue import benchmark
from harness.benchmarks.prepare import Prepared
from harness.errors import UserError
from harness.files import ROOT
from harness.llm.encoder import Encoded
from harness.runner import cell as cells
from harness.runner import layout
from harness.runner.layout import Cell
from harness.runner.plan import plan, questions
from harness.runner.run import Run
from harness.scripted import vector
from tests.cli.bundles import Members, made
from tests.command import gmr, program
from tests.fake_encoder import FakeEncoder
from tests.finished import BENCHMARK

SINGLE, GMR = Cell("single", BENCHMARK, "qwen-2.5-14B", 0), Cell("gmr", BENCHMARK, "pool", 0)
AGAIN = ("main_table", "gate_entropy")


@pytest.fixture
def place(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Work in a new folder, without a server, with another type of processor."""
    closed = Mock(side_effect=AssertionError("something reached for a server"))
    monkeypatch.setattr(FakeEncoder, "identity", "another processor")
    for name in ("socket.socket.connect", "harness.runner.plan.simulated_endpoint"):
        monkeypatch.setattr(name, closed)
    monkeypatch.setattr(registry, "of_run", lambda preset: [*map(registry.artefact, AGAIN)])
    return folder


@pytest.fixture
def run(few: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Work in a copy of the finished run, with the cells of two methods alone."""
    monkeypatch.setattr(registry, "of_run", lambda preset: [*map(registry.artefact, AGAIN)])
    others = shutil.ignore_patterns("masrouter", "puppeteer")
    return shutil.copytree(few, folder, dirs_exist_ok=True, ignore=others)


def test_cells_and_reports_come_out_again(bare: Path, few: Path, place: Path) -> None:
    found = replay(made(bare, lambda files: None, "(single|gmr)/"))
    assert [*found.differences.values()] == [""] * 2
    assert (found.asked, found.remarks.keys()) == (None, {"not recorded", "audit"})
    assert "the prompt of call " in found.remarks["audit"], "the prompts of this bundle are withheld"
    assert len(found.vectors.passed) == found.vectors.used > 0
    files = [path for path in (REPLAYED / "smoke").rglob("*.*") if path.name != "index.html"]
    assert {path.name.split(".")[0] for path in files} == {*AGAIN, "outcomes"}
    assert found.answers in (REPLAYED / "smoke/index.html").read_text()
    runs = [read_run(few / layout.cell("smoke", cell)) for cell in found.differences if isinstance(cell, Cell)]
    assert found.answers == answers_of(runs), "the digest of the answers does not depend on the recording"
    assert sorted(path.name for path in place.iterdir()) == ["reports", "results", "strange.zip"]


def test_other_vector_instructions_make_the_same_of_it(bare: Path, tmp_path: Path) -> None:
    start = (
        "import sys; from pathlib import Path; from harness.runner import resources;"
        "from tests.fake_encoder import FakeEncoder;"
        "resources.SentenceEncoder = FakeEncoder; from cli.replay import replay;"
        "print(replay(Path(sys.argv[1]), make_reports=False).differences.values())"
    )
    switches = {"ATEN_CPU_CAPABILITY": "default", "MKL_CBWR": "COMPATIBLE", "ONEDNN_MAX_CPU_ISA": "SSE41"}
    (tmp_path / "results").mkdir()
    printed = program(sys.executable, "-c", start, bare, folder=tmp_path, PYTHONPATH=str(ROOT), **switches)
    assert printed.endswith("dict_values(['', '', '', ''])\n"), printed


def test_vectors_that_tell_the_right_model_are_a_difference_and_without_the_encoder_they_are_not_checked(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.rmtree(layout.cell("smoke", GMR))
    with monkeypatch.context() as patch:
        patch.setattr(FakeEncoder, "identity", "another")
        patch.setattr(FakeEncoder, "encode", lambda _, text: Encoded(vector(f"the right model for {text}"), 1))
        asyncio.run(cells.run(plan(last_run("smoke"), GMR)))
    assert "is not the encoder's" in replay(Path("results/smoke"), make_reports=False).differences[GMR]
    monkeypatch.setattr(FakeEncoder, "encode", Mock(side_effect=UserError("no weights here")))
    found = replay(Path("results/smoke"))
    assert str(found.vectors) == "vectors not checked: no weights here"
    assert "vectors not checked" in (REPLAYED / "smoke/main_table.md").read_text()


def test_a_call_that_was_not_recorded_names_cell_and_prompt_and_tables_are_made_all_the_same(
    bare: Path, place: Path
) -> None:
    def forget_a_call(files: Members) -> None:
        name = str(layout.cell("smoke", SINGLE) / layout.CALL_LOG)
        Path("log").write_bytes(files[name])
        with sqlite3.connect("log") as log:
            log.execute("DELETE FROM calls WHERE number = (SELECT min(number) FROM calls)")
        files[name] = Path("log").read_bytes()

    replayed = gmr("replay", str(made(bare, forget_a_call, "(single|gmr)/")))
    assert replayed.exit_code == 1
    assert "Complete: " in replayed.output
    assert "Reproduced: 1 of 2 cells" in replayed.output
    assert re.search(r"^Answers: [0-9a-f]{12} ", replayed.output, re.MULTILINE)
    assert re.search(rf"^  {SINGLE}: \d of its calls are recorded so far; call ", replayed.output, re.MULTILINE)
    assert "its prompt begins '" in replayed.output
    assert (REPLAYED / "smoke/main_table.md").exists()


def test_without_its_questions_nothing_is_shown_and_that_is_said(
    bare: Path, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("harness.runner.questions.prepare", Mock(side_effect=UserError("no questions here")))
    replayed = gmr("replay", str(bare))
    assert replayed.exit_code == 0
    why = f"{BENCHMARK}: not replayed: no questions here; bare.zip has no {BENCHMARK} questions"
    assert (why in replayed.output, REPLAYED.exists()) == (True, False)


def test_a_test_question_in_a_training_fails_the_audit(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def leaking(preset: Run, benchmark_key: str, seed: int) -> Prepared:
        """Test on a training question, and on a text that is in every prompt about another one."""
        prepared = questions(preset, benchmark_key, seed)
        first, second, *_ = prepared.train
        rule = benchmark(benchmark_key).output_rules.splitlines()[0]
        test = [replace(first, id="same", question=first.question.upper()), replace(second, id="part", question=rule)]
        return replace(prepared, test=test)

    found = gmr("audit", "--preset", "smoke")
    assert (found.exit_code, "that a training used: none" in found.output) == (0, True)
    monkeypatch.setattr("cli.replay.questions", leaking)
    found = gmr("audit", "--preset", "smoke")
    assert (found.exit_code, "that a training used: part, same" in found.output) == (1, True)
