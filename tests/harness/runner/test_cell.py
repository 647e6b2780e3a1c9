"""Cells: targets from other cells, the sandbox check before the first call; concurrent questions, errors, progress."""

import asyncio
import re
import shutil
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import Any
from unittest.mock import AsyncMock

import orjson
import pyarrow.parquet as pq
import pytest

from analysis import finished_cells
from harness.benchmarks.catalogue import benchmark
from harness.benchmarks.items import Item, Status, Verdict
from harness.database import connect
from harness.errors import UserError
from harness.llm.request import Message, Reply, Request, Sampling, Served
from harness.method import Context
from harness.runner import cell, layout
from harness.runner.evaluation import evaluate, progress
from harness.runner.layout import Cell
from harness.runner.plan import plan
from harness.runner.preset import resolve
from harness.runner.resources import check_confinement
from harness.runner.results import read_finished
from harness.sandbox import FULL
from tests.finished import BENCHMARK, preset
from tests.fixtures import Client, Toy, answered_by, questions, runtime, training
from tests.harness.training.test_loop import Counter
from tests.small_run import prepare_questions

GMR = Cell("gmr", BENCHMARK, "pool", 0)
SLOW = {"tokens": (100, 1000), "late": lambda number: 20}
Run = Callable[..., dict[str, Any]]


@pytest.fixture
def source(finished: Path, folder: Path) -> None:
    shutil.copytree(finished / "results", folder / "results", dirs_exist_ok=True)


@pytest.mark.usefixtures("source")
def test_a_cell_meets_the_mean_cost_of_a_finished_one_and_says_so() -> None:
    planned = plan(preset(), replace(GMR, method="self_consistency"))
    run = asyncio.run(cell.run(planned))
    items = pq.read_table(layout.cell("smoke", GMR) / "items.parquet").to_pydict()
    assert run["matched"] == {"method": "gmr", "cost": fmean(items["cost_steps"]), "depth": fmean(items["depth"])}
    calls = pq.read_table(planned.folder / "calls.parquet").to_pylist()
    assert {(call["purpose"], call["step"]) for call in calls} == {("solve", 1)}
    assert plan(preset(), replace(GMR, method="full_history")).setting.seed == 100
    (layout.cell("smoke", GMR) / "run.json").unlink()
    with pytest.raises(UserError, match=r"cost or depth of gmr humaneval pool seed 0, .*`snakemake .*/run\.json "):
        plan(preset(), planned.cell)


@pytest.mark.usefixtures("source")
def test_a_cell_that_is_not_of_this_suite_as_it_stands_is_refused() -> None:
    path = layout.cell("smoke", GMR) / "run.json"
    record = orjson.loads(path.read_bytes())
    others = {"code": {"code": "other"}, "questions": {"data": {**record["data"], "split_checksum": "other"}}}
    for what, change in others.items():
        path.write_bytes(orjson.dumps({**record, **change}))
        with pytest.raises(UserError, match=f"its {what} differs from.*snakemake --cores all {path}"):
            read_finished(preset().cell(GMR))


class Owned:
    """Simulated backbones with an owner, which keep the temperatures of their calls."""

    def __init__(self, owner: str = "simulated", details: tuple[int, ...] = ()) -> None:
        self._owner, self._details = owner, details
        self.temperatures: list[float] = []

    def served(self, model: str) -> Served:
        return Served(model, self._owner)

    def complete(self, request: Request) -> Reply:
        self.temperatures.append(request.temperature)
        text = "Added up, they are twelve.\nThe answer is 12"
        return Reply(text, 100, 10, "stop", request.model, None, *self._details)


@pytest.fixture
def run_by(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run a cell of two questions that need no program where only the weakest level works."""
    monkeypatch.setattr("harness.sandbox.pool.best_level", lambda: "rlimit")
    prepare_questions()

    def run(backbones: Owned, method: str = "cot", **overrides: Any) -> dict[str, Any]:
        few = resolve("smoke", {"benchmarks": ["gsm_hard"], "limit": {"test": 2}, **overrides})
        planned = plan(few, Cell(method, "gsm_hard", "qwen-2.5-14B", 0))
        return asyncio.run(cell.run(replace(planned, in_process=backbones)))

    return run


def test_the_weakest_level_is_for_simulated_backbones_alone(run_by: Run) -> None:
    simulated, real = Owned(), Owned("vllm")
    with pytest.raises(
        UserError, match=r"rlimit.*of real or recorded models \(qwen-2.5-14B\).*gmr check sandbox.*Linux"
    ):
        run_by(real)
    assert real.temperatures == []
    assert not list(Path().rglob("run.json"))
    assert run_by(simulated)["sandbox"] == "rlimit"
    assert len(simulated.temperatures) == 2
    with pytest.raises(UserError, match=r"\(small\)"):
        check_confinement("rlimit", {"small": Served("org/small", "simulated")}, is_recorded=True)
    check_confinement(FULL, {"large": Served("org/large", "vllm")})


@pytest.mark.parametrize("method", ["macnet_chain", "macnet_chain_greedy"])
def test_an_entry_may_decode_greedily_under_a_preset_that_does_not(method: str, run_by: Run) -> None:
    backbones = Owned()
    recorded = run_by(backbones, method)["sampling"]
    assert (set(backbones.temperatures) == {0.0}) == (method == "macnet_chain_greedy")
    assert recorded == [Sampling(temperature)._asdict() for temperature in sorted({*backbones.temperatures})]


def test_a_method_that_learns_nothing_may_answer_the_training_questions_which_no_table_counts(run_by: Run) -> None:
    plain = run_by(Owned())
    limit = {"test": {"default": 1, "gsm_hard": 2}, "train": {"gsm_hard": 3}}
    both = run_by(Owned(), limit=limit, answer_training=True)
    assert [run["data"]["n_train"] for run in (plain, both)] == [0, 3]
    assert both["config_hash"] != plain["config_hash"]
    folder = layout.cell("smoke", Cell("cot", "gsm_hard", "qwen-2.5-14B", 0))
    assert "cached_tokens" not in pq.read_schema(folder / "calls.parquet").names
    items = pq.read_table(folder / "items.parquet").to_pandas()
    assert list(items["split"]) == ["test"] * 2 + ["train"] * 3
    with closing(connect(folder / layout.VECTORS, writes=False)) as database:
        assert database.execute("SELECT count(*) FROM embeddings").fetchone() == (5,)
    read = finished_cells.read(folder)
    assert set(read.items["item_id"]) == set(items["item_id"][:2])
    assert set(read.rows("calls", ["key"])["item_id"]) == set(items["item_id"][:2])


def test_token_details_have_columns_if_a_server_tells_them_and_what_learns_no_more_has_no_training(run_by: Run) -> None:
    folder = layout.cell("smoke", Cell("cot", "gsm_hard", "qwen-2.5-14B", 0))
    folder.mkdir(parents=True)
    (folder / "training_calls.parquet").touch()
    run_by(Owned(details=(90, 4)))
    calls = pq.read_table(folder / "calls.parquet").to_pydict()
    assert (calls["cached_tokens"], calls["reasoning_tokens"]) == ([90, 90], [4, 4])
    assert {path.stem for path in folder.glob("*.parquet")} == {"calls", "decisions", "items"}


class Ask:
    """Asks the question a number of times and answers with the last reply."""

    def __init__(self, calls: int = 1) -> None:
        self.calls = calls

    async def solve(self, item: Item, context: Context) -> str:
        replies = [await context.ask("small", (Message("user", item.question),)) for _ in range(self.calls)]
        return replies[-1].text


@pytest.mark.parametrize("failing", [2, 3])
async def test_a_cell_finishes_unless_too_many_of_all_its_questions_fail(failing: int) -> None:
    """The longest questions begin first, and a refusal comes back before any reply."""
    items = [Item(id=str(n), benchmark="toy", question="x" * (60 - n), gold="right") for n in range(60)]

    def refuse(backbone: str, request: Request) -> str | Reply:
        return Reply.failed("m", "too long") if len(request.messages[0].content) > 60 - failing else "right"

    client = Client(refuse, late=lambda number: 0 if number <= failing else 5)
    cell = answered_by(Ask(), client, items, limit=0.04)
    if failing == 2:
        assert [one.verdict.status for one in await cell] == [Status.CALL_FAILED] * 2 + [Status.GRADED] * 58
        return
    with pytest.raises(UserError, match=r"3 of 60 attempts failed \(limit 4%\)"):
        await cell
    assert len(client.asked) < 60


async def test_an_error_is_told_from_a_wrong_answer_and_what_is_cut_off_from_what_is_stated() -> None:
    unfinished = "multiply both sides by 2 to get"
    told = [
        (Reply.failed("m", "context too long"), (Status.CALL_FAILED, None, False)),
        (Reply(unfinished, 1, 2048, "length", "m"), (Status.TRUNCATED, None, True)),
        (Reply(" ", 1, 2048, "length", "m"), (Status.TRUNCATED, None, True)),
        (Reply("-", 1, 5, "stop", "m"), (Status.UNPARSABLE, None, False)),
        (Reply("", 1, 0, "stop", "m"), (Status.EMPTY, None, False)),
        (Reply("", 1, 9, "tool_calls", "m"), (Status.TOOL_CALLS, None, False)),
        (Reply(unfinished, 1, 9, "stop", "m"), (Status.GRADED, "2", False)),
        (Reply(f"The answer is 5. Check: {unfinished}", 1, 2048, "length", "m"), (Status.GRADED, "5", True)),
    ]
    client = Client(lambda backbone, request: told[int(request.messages[0].content)][0])
    items = [Item(str(n), "gsm_hard", str(n), "5.0" if n == len(told) - 1 else "0.0") for n in range(len(told))]
    graded = replace(runtime(client), benchmark=benchmark("gsm_hard"))
    answered = await evaluate([(Ask().solve, item) for item in items], graded, "gsm_hard", in_flight=8)
    found = [(one.verdict.status, one.verdict.answer, one.trajectory.cut_off) for one in answered]
    assert found == [expected for _, expected in told]
    assert [one.verdict.correct for one in answered] == [False] * (len(told) - 1) + [True]


async def test_a_failing_sandbox_stops_the_run_instead_of_counting_as_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    broken = AsyncMock(return_value=Verdict(False, "", Status.SANDBOX_ERROR, "cannot fork"))
    monkeypatch.setattr(Toy, "grade", broken)
    with pytest.raises(UserError, match=r"the sandbox failed on question q\d \(cannot fork\)"):
        await answered_by(Ask(), Client(), questions(2))


@pytest.fixture
def lines(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    """Log a line of progress in every turn of the event loop."""
    monkeypatch.setattr("harness.runner.evaluation.INTERVAL_S", 0.0)
    caplog.set_level("INFO", "harness.runner.evaluation")
    return caplog


async def test_a_long_question_is_told_by_its_calls(lines: pytest.LogCaptureFixture) -> None:
    await answered_by(Ask(3), Client(**SLOW), questions(2))
    *before, last = lines.messages
    under_way = [line for line in before if line.startswith("toy: 0/2 questions")]
    assert all("[00:00<?], " in line for line in under_way), "nothing is said of the time left"
    told = [re.search(r"\], (\d) calls, ([\d,]+) tokens written", line) for line in under_way]
    assert {one.groups() for one in told if one} >= {("0", "0"), ("2", "2,000"), ("4", "4,000")}
    assert re.match(r"toy: 2/2 questions .* 0\.0 % right, cost \S+ a question, 6 calls, 6,000 tokens", last)


async def test_a_long_update_is_told_by_its_calls(lines: pytest.LogCaptureFixture) -> None:
    client = Client(lambda backbone, request: "right", **SLOW)
    run = training(client, questions(2))
    with progress(client, run.progress):  # type: ignore[arg-type]
        await Counter().fit(run, 2)
    first, *_ = [line for line in lines.messages if "4 calls" in line]
    assert re.match(r"toy cell, training, epoch 0: 0/\S+ updates \[00:00<\?\], 4 calls, 4,000 tokens", first)
    assert any("epoch 1: 1/2 updates" in line for line in lines.messages)
    assert re.match(r"toy cell, training, epoch 2: 2/2 updates .* 100\.0 % right, depth 1", lines.messages[-1])
