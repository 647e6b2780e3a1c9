"""Trajectories of hand-made cells: printed by ``gmr show``, and exported to logs that Inspect reads."""

import asyncio
import importlib.util
import math
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import orjson
import pandas as pd
import pyarrow.parquet as pq
import pytest

from analysis.exhibit import md_escape
from cli import reports
from cli.app import run_of
from harness.agents.prompts import EXAMPLES_RUN
from harness.agents.trajectory import Answered, CallSpec, Decision
from harness.benchmarks.items import Item, Status, Verdict, checksum
from harness.errors import UserError
from harness.llm.call_log import CallLog
from harness.llm.request import Message, Reply
from harness.runner import layout, results
from harness.runner.layout import Cell
from harness.scripted import ScriptedModel
from tests.analysis.cells import run_record
from tests.command import gmr
from tests.finished import BENCHMARK
from tests.fixtures import context

LOGS, TABLES = "reports/embedded/inspect", ("items", "calls")
ITEMS = [Item(f"q{number}", "gsm_hard", f"How many are {number} and 4?", f"{number + 4}.0") for number in range(3)]
GMR, COT = Cell("gmr", "gsm_hard", "pool", 0), Cell("cot", "gsm_hard", "qwen-2.5-14B", 0)
RIGHT, WRONG = Verdict(True, "7", Status.GRADED), Verdict(False, "9", Status.GRADED)
BROKEN = Verdict(False, None, Status.CALL_FAILED, "no room left")
QUARTER, HALF = math.log(0.25), math.log(0.5)
TOOL = f"{EXAMPLES_RUN}\n- example passed: assert f() == 1"


class Ask(NamedTuple):
    """A call: its reply, the texts of its messages by role, what the context is told, and the output of a tool."""

    reply: str | Reply
    messages: Sequence[tuple[str, str]]
    about: CallSpec = CallSpec()
    tool: str = ""


class Story(NamedTuple):
    """The trajectory of a question."""

    asks: Sequence[Ask]
    decisions: Sequence[Decision] = ()
    answer: str = "The answer is 7"
    verdict: Verdict = RIGHT


def prepare(items: Sequence[Item]) -> None:
    """Write the questions."""
    facts: dict[str, Any] = dict.fromkeys(("benchmark", "title"), "gsm_hard")
    facts |= {"data": "embedded", "source": "embedded", "splits": "official", "count": len(items)}
    facts |= dict.fromkeys(("checksum", "split_checksum", "pool_checksum"), checksum(items))
    path = layout.manifest("embedded", "gsm_hard")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(orjson.dumps({**facts, "train": [], "test": [item.id for item in items]}))
    layout.items("embedded", "gsm_hard").write_bytes(b"".join(item.to_json() + b"\n" for item in items))


def finish(cell: Cell, *stories: Story) -> None:
    """Write a finished cell, its call log and tables, with a story a question. The utility is the answer's length."""
    folder = layout.cell("embedded", cell)
    folder.mkdir(parents=True)
    answered = asyncio.run(_walk(folder / layout.CALL_LOG, stories))
    record = run_record(cell.method, cell.backbone, cell.benchmark, cell.seed, len(stories), simulated=True)
    identity = {name: value for name, value in record.items() if name not in ("schema", "run_id")}
    results.write(folder, {"test": answered}, identity, lambda one: float(len(one.trajectory.answer)))


async def _walk(path: Path, stories: Sequence[Story]) -> list[Answered]:
    answered = []
    with CallLog(path) as log:
        for item, story in zip(ITEMS, stories, strict=False):
            client = ScriptedModel("")
            told = context(item, client)
            for ask in story.asks:
                client.replies = [ask.reply]
                call = await told.ask("small", tuple(Message(*one) for one in ask.messages), ask.about)
                told.record_tool_output(call, ask.tool, item)
                reply = ask.reply if isinstance(ask.reply, Reply) else Reply(ask.reply, 100, 10, "stop", "org/model")
                await log.append(client.asked[-1][1], reply)
            for decision in story.decisions:
                told.decide(decision)
            answered.append(Answered(told.close(story.answer), story.verdict))
    return answered


def step(number: int, write: str, halt: str, *retrieved: str) -> list[Decision]:
    return [
        Decision(number, "role", 0, f"Math/R{number}", 4, QUARTER),
        Decision(number, "backbone", 0, "small", 2, HALF),
        *(Decision(number, "retrieve", slot, choice, 2, QUARTER) for slot, choice in enumerate(retrieved)),
        Decision(number, "write", 0, write, 2, QUARTER),
        Decision(number, "halt", 0, halt, 2, QUARTER),
    ]


def act(number: int, reply: str) -> Ask:
    messages = [("system", "You count."), ("user", f"Turn {number}: {reply!r}?")]
    return Ask(reply, messages, CallSpec(role=f"Math/R{number}", step=number, purpose="act"), TOOL)


def asked(reply: str | Reply, verdict: Verdict, answer: str = "The answer is 9") -> Story:
    return Story([Ask(reply, [("user", f"{reply}?")])], answer=answer, verdict=verdict)


AGGREGATE = Ask("The answer is 7", [("user", "Together?")], CallSpec(step=3, purpose="aggregate", is_step=False))


@pytest.fixture
def run(folder: Path) -> None:
    """Finish two cells in a folder: GMR is right, right and wrong; CoT wrong, without an answer, and right."""
    prepare(ITEMS)
    walk = Story([act(1, "Three"), act(2, "Four"), AGGREGATE], [*step(1, "yes", "no"), *step(2, "no", "yes", "no")])
    finish(GMR, walk, Story([act(1, "x")]), Story([act(1, "\x1b[2Jy")], answer="9", verdict=WRONG))
    finish(COT, asked("n", WRONG), asked(Reply.failed("org/model", "too long"), BROKEN, ""), asked("p", RIGHT))


def show(*words: str) -> str:
    return gmr("show", *words, COLUMNS="100").stdout


def test_decisions_prompts_purposes_and_failures_are_shown(run: None) -> None:
    whole = show("gmr", "gsm_hard", "q0", "--full")
    assert whole.startswith("SIMULATED BACKBONES")
    assert "Step 2: Math/R2 on small\n  memory     step 1: no, 25.0 %\n" in whole
    assert "  role       Math/R2, 25.0 %, one of 4\n" in whole
    assert "  halt       yes, 25.0 %\n  write      no, 25.0 %\n\nAggregation" in whole
    assert "3 calls in 2 steps, 300 + 30 tokens.\nCost 1.2e-06, of this 8e-07 in steps. Utility 15.0000.\n" in whole
    assert "  system     You count.\n  user       Turn 1: 'Three'?\n  reply      Three\n" in whole
    assert "  reply      \\x1b[2Jy\n" in show("gmr", "gsm_hard", "q2")
    failed = show("cot", "gsm_hard", "q1", "--backbone", "qwen-2.5-14B")
    assert "  answer     (empty)\n" in failed
    assert "extracted  none\n  verdict    wrong (call_failed, no room left)\n" in failed
    assert "Step 1\n  asked      small (solve)\n  reply      (the call failed: too long)\n\n" in failed
    assert "memory" not in failed


def test_the_list_has_every_question_and_can_be_narrowed(run: None) -> None:
    text = show("gmr", "gsm_hard")
    assert "2 of 3 right, 0 in error." in text
    assert [line.split()[:2] for line in text.splitlines()[5:]] == [["q0", "right"], ["q1", "right"], ["q2", "wrong"]]
    row = ("cot", "gsm_hard")  # of its two rows the finished one
    assert [line.split()[0] for line in show(*row, "--wrong").splitlines()[5:]] == ["q0", "q1"]
    failed = show(*row, "--wrong").splitlines()[-1]
    assert re.split("  +", failed)[:3] == ["q1", "error", "1 calls"]
    assert failed.endswith("cost 0.00e+00  call_failed: no room left")
    lost = show("gmr", "gsm_hard", "--lost-to", "cot")
    assert "Lost to cot/gsm_hard/qwen-2.5-14B/0:\nShown: 1.\n\nq2  wrong" in lost
    assert [line.split()[0] for line in show(*row, "--lost-to", "gmr").splitlines()[6:]] == ["q0", "q1"]
    assert [line.split()[0] for line in show(*row, "--won-against", "gmr").splitlines()[6:]] == ["q2"]


def test_decisions_of_other_methods_by_their_names(finished: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(finished)
    item = show("masrouter", BENCHMARK).splitlines()[5].split()[0]
    text = show("masrouter", BENCHMARK, item)
    assert "Before the first step\n" in text
    assert re.search(r"role 1 +Code/\w+, [\d.]+ %, one of 7", text)
    assert "memory" not in text


def test_questions_of_others_and_a_damaged_log_are_refused_and_without_a_log_decisions_are_shown(run: None) -> None:
    prepare(ITEMS[1:])
    with pytest.raises(UserError, match="its question 'q0' is none of the prepared ones"):
        show("gmr", "gsm_hard", "q0")
    prepare(ITEMS)
    log = layout.cell("embedded", GMR) / layout.CALL_LOG
    log.write_bytes(b"no database" * 1000)
    with pytest.raises(UserError, match=r"calls\.sqlite is damaged"):
        show("gmr", "gsm_hard", "q0")
    log.unlink()
    text = show("gmr", "gsm_hard", "q0")
    assert "reply      (unknown, since the call log is missing)" in text
    assert "write      yes, 25.0 %" in text


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["gmr", "gsm_hard", "q9"], "unknown question 'q9'; known: q0, q1, q2"),
        (["gmr", "math"], "of preset embedded is not finished; make it with `snakemake --cores all results/"),
        (["gmr", "gsm_hard", "--preset", "smoke"], "is not finished; add `--preset embedded`, which has it, or"),
        (["gmr", "gsm_hard", "q0", "--wrong"], "filter the list"),
    ],
)
def test_a_mistake_is_refused_with_what_to_do(run: None, words: list[str], message: str) -> None:
    with pytest.raises(UserError, match=message) as refusal:
        show(*words)
    assert "\n" not in str(refusal.value)


def export(preset: str = "embedded") -> None:
    reports.write("inspect", run_of(preset, None))


Logs = Callable[[], dict[str, Any]]


@pytest.fixture
def read_logs(run: None) -> Logs:
    """Read the logs as Inspect lists and reads them, by benchmark and name."""
    inspect_log = pytest.importorskip("inspect_ai.log", reason="the extra inspect is not installed")
    return lambda: {
        "/".join(Path(info.name).with_suffix("").parts[-2:]): inspect_log.read_eval_log(
            info.name, resolve_attachments=True
        )
        for info in inspect_log.list_eval_logs(LOGS)
    }


def events(sample: Any, kind: str) -> list[Any]:
    return [event for event in sample.events if event.event == kind]


def test_samples_are_the_rows_of_the_tables_and_hold_what_was_said_and_decided(read_logs: Logs) -> None:
    export()
    logs = read_logs()
    for cell, name in ((COT, "cot_qwen-2.5-14B"), (GMR, "gmr_pool")):
        log = logs.pop(f"gsm_hard/{name}_seed0")
        assert (log.status, log.eval.task, "simulated" in log.tags) == ("success", "gsm_hard_simulated", True)
        assert log.metadata["warning"].startswith("SIMULATED BACKBONES")
        assert log.eval.model.startswith(f"openai-api/{cell.method}/")
        assert (log.eval.created[:4] > "2000", "gmr-suite" in log.eval.packages) == (True, True)
        assert log.eval.task_display_name.endswith("(simulated backbones)")
        items, calls = (layout.cell("embedded", cell) / f"{name}.parquet" for name in TABLES)
        rows, calls = {row["item_id"]: row for row in pq.read_table(items).to_pylist()}, pd.read_parquet(calls)
        samples = {sample.id: sample for sample in log.samples}
        assert samples.keys() == rows.keys()
        for id_, row in rows.items():
            sample, of_item = samples[id_], calls[calls["item_id"] == id_]
            scores = sample.scores["correct"], sample.scores["status"]
            assert (scores[0].value, scores[0].answer) == ("C" if row["correct"] else "I", row["answer"])
            assert (scores[1].value, sample.output.completion) == (row["status"], row["text"])
            assert sample.metadata["cost_total"] == row["cost_total"]
            assert [event.metadata["key"] for event in events(sample, "model")] == of_item["key"].tolist()
            used = sample.model_usage["simulated/small"]
            tokens = of_item[["prompt_tokens", "completion_tokens"]].sum().tolist()
            assert [used.input_tokens, used.output_tokens] == tokens
        n, share = len(rows), sum(row["correct"] for row in rows.values()) / len(rows)
        metrics = {name: metric.value for name, metric in log.results.scores[0].metrics.items()}
        assert metrics == pytest.approx({"accuracy": share, "stderr": (share * (1 - share) / (n - 1)) ** 0.5})
        assert log.stats.model_usage["simulated/small"].input_tokens == calls["prompt_tokens"].sum()
    assert not logs
    (event,) = events(samples["q2"], "model")
    assert event.output.completion == "\x1b[2Jy", "as it is, whatever a terminal would make of it"
    first = samples["q0"]
    assert (first.input, first.target) == ("How many are 0 and 4?", "4.0")
    spoken = events(first, "model")
    assert [event.input[-1].text for event in spoken] == ["Turn 1: 'Three'?", "Turn 2: 'Four'?", "Together?"]
    assert [event.output.completion for event in spoken] == ["Three", "Four", "The answer is 7"]
    assert [event.role for event in spoken] == ["Math/R1", "Math/R2", "aggregate"]
    assert [message.text for message in first.messages] == ["Together?", "The answer is 7"]
    spans = [event.name for event in events(first, "span_begin")]
    assert spans == ["Step 1: Math/R1 on small", "Step 2: Math/R2 on small", "Aggregation"]
    text = "".join(event.data for event in events(first, "info"))
    assert "**role** Math/R1, 25.0 %, one of 4" in text
    assert "**halt** yes, 25.0 %" in text
    assert text.count(md_escape(TOOL)) == 2


def test_what_the_folder_holds_is_exported_whichever_run_made_it_and_the_rest_is_named(
    read_logs: Logs, caplog: pytest.LogCaptureFixture
) -> None:
    ablation, foreign = Cell("gmr_no_write_gate", "gsm_hard", "pool", 0), Cell("of_a_user", "gsm_hard", "pool", 0)
    for cell in (ablation, foreign):
        finish(cell, asked("7", RIGHT))
    layout.cell("embedded", Cell("masrouter", "gsm_hard", "pool", 0)).mkdir(parents=True)
    names = {"gmr_pool", "cot_qwen-2.5-14B", "gmr_no_write_gate_pool", "of_a_user_pool"}
    export()
    assert set(read_logs()) == {f"gsm_hard/{name}_seed0" for name in names}
    assert "1 of 5 cells are not finished (masrouter gsm_hard pool seed0)" in caplog.text
    (layout.cell("embedded", foreign) / "items.parquet").write_bytes(b"")
    export()
    assert "left out: results/embedded/cells/of_a_user/gsm_hard/pool/seed0/items.parquet is damaged" in caplog.text


def test_what_cannot_be_exported_is_one_line(run: None, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UserError, match=r"nothing of preset smoke is finished; make it with `snakemake"):
        export("smoke")
    find = importlib.util.find_spec
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None if name == "inspect_ai" else find(name))
    with pytest.raises(UserError, match=r"inspect_ai is not installed; pip install -e '\.\[inspect\]' adds it"):
        export()
