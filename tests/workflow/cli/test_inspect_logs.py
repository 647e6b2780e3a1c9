"""Logs as Inspect itself reads them, held against the tables of the cells."""

import hashlib
import importlib.util
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from harness.benchmarks.items import Item
from harness.errors import UserError
from harness.runner import layout
from harness.runner.config import Cell
from tests.analysis.trajectories.made import Ask, Story, finish, prepare
from tests.workflow.cli.conftest import COT, GMR
from workflow.cli import app

LOGS = "reports/embedded/inspect"
inspect_log = pytest.importorskip("inspect_ai.log", reason="the extra inspect is not installed")


def export(*words: str) -> str:
    ended = CliRunner().invoke(app, ["export", "--preset", "embedded", *words], catch_exceptions=False)
    return ended.output


def files(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.rglob("*.eval")
    }


@pytest.fixture
def logs(run: Path) -> dict[str, Any]:
    """The logs by the row, as Inspect lists and reads them."""
    export()
    return {
        (log := inspect_log.read_eval_log(info.name, resolve_attachments=True)).eval.model: log
        for info in inspect_log.list_eval_logs(LOGS)
    }


def test_every_log_is_listed_and_says_what_it_is_of(logs: dict[str, Any]) -> None:
    assert set(logs) == {"gmr/pool", "cot/qwen-2.5-14B"}
    for log in logs.values():
        assert (log.status, log.eval.task) == ("success", "gsm_hard_simulated")
        assert "simulated" in log.tags
        assert log.metadata["warning"].startswith("SIMULATED BACKBONES")
        assert log.eval.task_display_name.endswith("(simulated backbones)")
        assert str(log.eval.created).startswith("2000-01-01T00:00:00")


def test_samples_are_the_rows_of_the_tables(logs: dict[str, Any]) -> None:
    for cell, name in ((GMR, "gmr/pool"), (COT, "cot/qwen-2.5-14B")):
        log, folder = logs[name], layout.cell("embedded", cell)
        rows = {row["item_id"]: row for row in pq.read_table(folder / "items.parquet").to_pylist()}
        calls = pq.read_table(folder / "calls.parquet").to_pylist()
        assert {sample.id for sample in log.samples} == set(rows)
        assert len({sample.uuid for sample in log.samples} - {None}) == len(rows)
        for sample in log.samples:
            row, own = rows[sample.id], [call for call in calls if call["item_id"] == sample.id]
            assert sample.scores["correct"].value == ("C" if row["correct"] else "I")
            assert sample.scores["correct"].answer == row["answer"]
            assert sample.scores["status"].value == row["status"]
            assert sample.output.completion == row["text"]
            assert sample.metadata["cost_total"] == row["cost_total"]
            spoken = [event for event in sample.events if event.event == "model"]
            assert [event.metadata["key"] for event in spoken] == [call["key"] for call in own]
            used = sample.model_usage["simulated/small"]
            assert used.input_tokens == sum(call["prompt_tokens"] for call in own)
            assert used.output_tokens == sum(call["completion_tokens"] for call in own)
        share = sum(row["correct"] for row in rows.values()) / len(rows)
        assert log.results.scores[0].metrics["accuracy"].value == pytest.approx(share)
        assert log.stats.model_usage["simulated/small"].input_tokens == sum(call["prompt_tokens"] for call in calls)


def test_a_sample_holds_what_was_said_and_decided(logs: dict[str, Any]) -> None:
    (sample,) = [one for one in logs["gmr/pool"].samples if one.id == "q0"]
    assert (sample.input, sample.target) == ("How many are 0 and 4?", "4.0")
    spoken = [event for event in sample.events if event.event == "model"]
    assert [event.input[-1].text for event in spoken] == ["Turn 1: 'Three'?", "Turn 2: 'Four'?", "Together?"]
    assert [event.output.completion for event in spoken] == ["Three", "Four", "The answer is 7"]
    assert [message.text for message in sample.messages] == ["Together?", "The answer is 7"]
    spans = [event.name for event in sample.events if event.event == "span_begin"]
    assert spans == ["step 1: Math/R1 on small", "step 2: Math/R2 on small", "aggregation"]
    said = [event.data for event in sample.events if event.event == "info"]
    assert said == [
        "- **role** Math/R1, 25.0%, one of 4\n- **backbone** small, 50.0%, one of 2\n- **memory** empty\n",
        (
            "- **contribution** stored (probability of being stored 25.0%)\n"
            "- **halting** going on (probability of halting 75.0%)\n- **took** 100 + 10 tokens, cost 4e-07\n"
        ),
        (
            "- **role** Math/R2, 25.0%, one of 4\n- **backbone** small, 50.0%, one of 2\n"
            "- **memory** step 1 left out (probability of being shown 75.0%)\n"
        ),
        (
            "- **contribution** refused (probability of being stored 75.0%)\n"
            "- **halting** halted (probability of halting 25.0%)\n- **took** 100 + 10 tokens, cost 4e-07\n"
        ),
        "- **memory** holds what was said in step 1\n",
        "- **took** 100 + 10 tokens, cost 4e-07\n",
    ]


def test_equal_results_make_equal_bytes(run: Path) -> None:
    export()
    first = files(run / LOGS)
    export()
    assert files(run / LOGS) == first
    assert set(first) == {"gsm_hard/gmr_pool_seed0.eval", "gsm_hard/cot_qwen-2.5-14B_seed0.eval"}


def test_hostile_texts_come_back_as_they_are(run: Path) -> None:
    hostile = "</script><script>alert(1)</script>\x00\x1b[2J\u202e\u2028 {{x}} " + "long" * 50_000
    item = Item("a/b #&%../c", "math", hostile, hostile)
    prepare([item])
    finish(Cell("gmr", "math", "pool", 0), [item], [Story([Ask(hostile, [("user", hostile)])], answer=hostile)])
    export("--method", "gmr")
    (name,) = [info.name for info in inspect_log.list_eval_logs(LOGS) if "/math/" in info.name]
    (sample,) = inspect_log.read_eval_log(name, resolve_attachments=True).samples
    assert (sample.id, sample.input, sample.output.completion) == (item.id, hostile, hostile)
    (spoken,) = [event for event in sample.events if event.event == "model"]
    assert (spoken.input[0].text, spoken.output.completion) == (hostile, hostile)


def test_halves_of_characters_do_not_break_a_log() -> None:
    from analysis.inspect_logs import plain

    assert plain("a\ud800b") == "a?b"
    assert plain("ä\U0001f600") == "ä\U0001f600"


def test_a_log_that_is_gone_is_said_to_be(run: Path) -> None:
    layout.call_log("embedded", GMR).unlink()
    export("--method", "gmr")
    (info,) = inspect_log.list_eval_logs(LOGS)
    sample = inspect_log.read_eval_log(info.name).samples[0]
    assert (
        "the log of the calls is gone" in next(one for one in sample.events if one.event == "model").output.completion
    )


def test_without_the_package_one_line_says_so(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None if name == "inspect_ai" else find(name))
    with pytest.raises(UserError, match=r"inspect_ai is not installed; pip install -e '\.\[inspect\]' adds it"):
        export()


def test_a_method_of_which_nothing_is_finished_is_refused(run: Path) -> None:
    with pytest.raises(UserError, match="nothing of masrouter is finished in preset embedded"):
        export("--method", "masrouter")
