"""``gmr regrade``: the verdicts of finished cells repeated, or replaced by those of other rules, without a model."""

import asyncio
import dataclasses
from pathlib import Path
from typing import Any

import orjson
import pandas as pd
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner, Result

from harness import regrading
from harness.benchmarks.gsm_hard import GsmHard
from harness.benchmarks.items import Item, Status
from harness.benchmarks.prepare import prepare, read
from harness.errors import UserError
from harness.llm.request import Reply, Request
from harness.runner import cell, config, layout
from harness.runner.config import Cell
from harness.runner.plan import Plan, plan
from tests.workflow.trained import Backbones
from workflow.cli import app

COT = Cell("cot", "gsm_hard", "qwen-2.5-14B", 0)
CODE = Cell("cot", "humaneval", "qwen-2.5-14B", 0)
LIMITS = {"limit": {"test": 12}, "max_error_share": 1.0}
OVERRIDES = ["--set", "limit={test: 12}", "--set", "max_error_share=1.0"]
THEN = GsmHard.rule_version
TABLES = ("items.parquet", "calls.parquet", "decisions.parquet", "run.json")


class Answering(Backbones):
    """Backbones that answer each question in its own way: right, twice the answer, or not at all."""

    def __init__(self, questions: list[Item]) -> None:
        super().__init__()
        self._questions = questions

    def complete(self, request: Request) -> Reply:
        said = request.messages[-1].content
        place, item = next((i, one) for i, one in enumerate(self._questions) if one.question.strip() in said)
        if item.code:
            right = item.gold if place % 2 else f"def {item.code.entry_point}(*given):\n    return {place}\n"
            texts = [(f"```python\n{right}\n```", "stop")]
        else:
            texts = [
                (f"The answer is \\boxed{{{item.gold}}}", "stop"),
                (f"The answer is \\boxed{{{2 * float(item.gold)!r}}}", "stop"),
                ("I cannot say.", "stop"),
                ("So far I have", "length"),
                (" \n", "stop"),
                ("", "refused"),
            ]
        text, reason = texts[place % len(texts)]
        if reason == "refused":
            return Reply.failed(request.model, "Error code: 400 - too long for me")
        return dataclasses.replace(super().complete(request), text=text, finish_reason=reason)


@pytest.fixture
def finished(endpoint: Backbones, monkeypatch: pytest.MonkeyPatch) -> Plan:
    """A finished cell in which every status occurs."""
    return run(COT, monkeypatch)


def planned(of: Cell) -> Plan:
    return plan(config.preset("smoke", LIMITS), of)


def run(of: Cell, monkeypatch: pytest.MonkeyPatch) -> Plan:
    paths = layout.items("smoke", of.benchmark), layout.manifest("smoke", of.benchmark)
    if not paths[0].exists():
        prepare(of.benchmark, "embedded", "official", *paths)
    answering = Answering(read(paths[1], paths[0]).test)
    monkeypatch.setattr("harness.runner.setup.simulated_endpoint", lambda preset: answering)
    asyncio.run(cell.run(planned(of)))
    return planned(of)


def files(made: Plan) -> dict[str, bytes]:
    return {name: (made.folder / name).read_bytes() for name in TABLES}


def run_record(made: Plan) -> dict[str, Any]:
    return orjson.loads((made.folder / "run.json").read_bytes())  # type: ignore[no-any-return]


def other_rules(monkeypatch: pytest.MonkeyPatch, version: str = "other") -> None:
    """Rules by which twice the answer is right and the answer is not, and any text without a number is a zero."""
    judge, extract = GsmHard.judge, GsmHard.extract

    async def twice(self: GsmHard, item: Item, answer: str, tools: Any) -> Any:
        return await judge(self, dataclasses.replace(item, gold=repr(2 * float(item.gold))), answer, tools)

    monkeypatch.setattr(GsmHard, "judge", twice)
    monkeypatch.setattr(GsmHard, "extract", lambda self, item, text: extract(self, item, text) or "0")
    monkeypatch.setattr(GsmHard, "rule_version", version)


def gmr(*words: str) -> Result:
    return CliRunner().invoke(app, ["regrade", "--preset", "smoke", *OVERRIDES, *words], catch_exceptions=False)


def test_rules_that_did_not_change_repeat_every_verdict_to_the_byte(finished: Plan) -> None:
    before = files(finished)
    found = asyncio.run(regrading.regrade(finished))
    assert {one.verdict.status for one in found.now} == set(Status) - {Status.SANDBOX_ERROR}
    assert (found.changes, found.is_due) == ([], False)
    for name in TABLES[:3]:
        (finished.folder / name).unlink()
    regrading.write(found)
    assert files(finished) == before


def test_other_rules_leave_what_a_rerun_by_them_would_leave(
    finished: Plan, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    before = files(finished)
    other_rules(monkeypatch)
    found = asyncio.run(regrading.regrade(finished))
    assert files(finished) == before
    assert (found.rules, found.is_due, found.accuracies) == ((THEN, "other"), True, (2 / 12, 2 / 12))
    kinds = [change.kind for change in found.changes]
    assert kinds == [*("right -> wrong", "wrong -> right", "status", "status")] * 2
    regrading.write(found)
    regraded = files(finished)
    run(COT, monkeypatch)
    assert files(finished) == regraded
    assert regraded["items.parquet"] != before["items.parquet"]
    assert asyncio.run(regrading.regrade(finished)).is_due is False


def test_a_new_version_without_another_verdict_is_noted(finished: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    before = files(finished)
    monkeypatch.setattr(GsmHard, "rule_version", "newer")
    found = asyncio.run(regrading.regrade(finished))
    assert (found.changes, found.is_due) == ([], True)
    regrading.write(found)
    after = files(finished)
    assert [name for name in TABLES if after[name] != before[name]] == ["run.json"]
    assert run_record(finished)["rule_version"] == "newer"


def test_a_learned_cell_says_which_rules_rewarded_it(finished: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    learned = dataclasses.replace(finished, method=config.methods()["aflow"])
    with monkeypatch.context() as changed:
        for version in ("newer", "newest"):
            other_rules(changed, version)
            regrading.write(asyncio.run(regrading.regrade(learned)))
            record = run_record(learned)
            assert (record["rule_version"], record["regraded_from"]) == (version, THEN)
    items = pq.read_table(learned.folder / "items.parquet").to_pylist()
    assert [row["utility"] for row in items] == [float(row["correct"]) for row in items]
    regrading.write(asyncio.run(regrading.regrade(learned)))
    assert "regraded_from" not in run_record(learned)


def test_programs_are_executed_again_at_the_level_of_then(endpoint: Backbones, monkeypatch: pytest.MonkeyPatch) -> None:
    made = run(CODE, monkeypatch)
    before = files(made)
    layout.cache().unlink()
    found = asyncio.run(regrading.regrade(made))
    assert 0 < found.accuracies[0] < 1
    assert found.changes == []
    regrading.write(found)
    assert files(made) == before
    (made.folder / "run.json").write_bytes(orjson.dumps({**run_record(made), "sandbox": "glass"}))
    with pytest.raises(UserError, match="glass"):
        asyncio.run(regrading.regrade(made))


def test_a_timing_goes_on_being_of_its_cell(finished: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    path = layout.timing("smoke", COT) / "timing.json"
    path.parent.mkdir(parents=True)
    of_this, of_another = run_record(finished)["run_id"], "another"
    monkeypatch.setattr(GsmHard, "rule_version", "newer")
    for run_id in (of_this, of_another):
        path.write_bytes(orjson.dumps({"cell": {"run_id": run_id}, "seconds": 1.5}))
        regrading.write(asyncio.run(regrading.regrade(finished)))
        expected = run_record(finished)["run_id"] if run_id == of_this else run_id
        assert orjson.loads(path.read_bytes()) == {"cell": {"run_id": expected}, "seconds": 1.5}
    assert run_record(finished)["run_id"] != of_this


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("items.parquet", None, "items.parquet: not a readable table"),
        ("calls.parquet", b"PAR1 damaged", "calls.parquet: not a readable table"),
        ("run.json", b"{", "does not tell of a finished cell"),
        ("run.json", None, "is not finished"),
    ],
)
def test_a_damaged_cell_is_refused(finished: Plan, file: str, content: bytes | None, message: str) -> None:
    (finished.folder / file).unlink()
    if content is not None:
        (finished.folder / file).write_bytes(content)
    with pytest.raises(UserError, match=message):
        asyncio.run(regrading.regrade(finished))


def test_tables_of_other_questions_or_columns_are_refused(finished: Plan) -> None:
    path = finished.folder / "items.parquet"
    whole = pq.read_table(path)
    pq.write_table(whole.slice(1), path)
    with pytest.raises(UserError, match="not about the questions of this test"):
        asyncio.run(regrading.regrade(finished))
    pq.write_table(whole.drop(["detail"]), path)
    with pytest.raises(UserError, match="columns are not those"):
        asyncio.run(regrading.regrade(finished))


def test_a_cell_of_other_settings_is_refused(finished: Plan) -> None:
    (finished.folder / "run.json").write_bytes(orjson.dumps({**run_record(finished), "config_hash": "another"}))
    with pytest.raises(UserError, match="its config_hash is not that of this suite"):
        asyncio.run(regrading.regrade(finished))


def test_other_code_than_that_which_asked_is_no_reason_to_refuse(finished: Plan) -> None:
    (finished.folder / "run.json").write_bytes(orjson.dumps({**run_record(finished), "code": "another"}))
    regrading.write(asyncio.run(regrading.regrade(finished)))
    assert run_record(finished)["code"] == "another"


def test_the_command_tells_and_lists_and_writes_when_told(finished: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    before = files(finished)
    other_rules(monkeypatch)
    shown = gmr().stdout
    assert files(finished) == before
    assert f"cot gsm_hard qwen-2.5-14B seed 0 {THEN} -> other" in shown
    assert "8 changed verdicts: reports/smoke/regrade.csv. 1 of 1 cells would be written again by --write." in shown
    assert "1 of 1 cells written again" in gmr("--write").stdout
    listed = pd.read_csv("reports/smoke/regrade.csv", comment="#")
    assert list(listed["change"]) == ["right -> wrong", "wrong -> right", "status", "status"] * 2
    assert listed.loc[2, ["status_then", "status_now", "answer_now"]].tolist() == ["unparsable", "graded", 0]
    assert Path("reports/smoke/regrade.csv").read_text().startswith("# SIMULATED BACKBONES")
    assert "0 changed verdicts" in gmr().stdout
    assert pd.read_csv("reports/smoke/regrade.csv", comment="#").empty


def test_only_the_selected_cells_are_graded(finished: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    single = run(Cell("single", "gsm_hard", "qwen-2.5-14B", 0), monkeypatch)
    untouched = files(single)
    other_rules(monkeypatch)
    assert "1 of 1 cells written" in gmr("--method", "cot", "--seed", "0", "--write").stdout
    assert files(single) == untouched
    for words, message in (
        (["--method", "cott"], "unknown method 'cott'; did you mean 'cot'?"),
        (["--seed", "7"], "unknown seed '7'"),
    ):
        with pytest.raises(UserError, match=message.replace("?", r"\?")):
            gmr(*words)


def test_a_cell_that_cannot_be_graded_does_not_stop_the_others(
    finished: Plan, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    single = run(Cell("single", "gsm_hard", "qwen-2.5-14B", 0), monkeypatch)
    other_rules(monkeypatch)
    (finished.folder / "items.parquet").write_bytes(b"")
    with pytest.raises(UserError, match="1 of 2 finished cells were left out"):
        gmr("--write")
    assert "cot gsm_hard qwen-2.5-14B seed 0: left out: " in caplog.text
    assert run_record(single)["rule_version"] == "other"


def test_a_preset_without_a_finished_cell_is_one_line(endpoint: Backbones) -> None:
    with pytest.raises(UserError, match="no cell of preset smoke is finished"):
        gmr()
    with pytest.raises(UserError, match="unknown preset 'smok'"):
        CliRunner().invoke(app, ["regrade", "--preset", "smok"], catch_exceptions=False)
