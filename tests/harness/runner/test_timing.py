"""Timing a finished cell: what is measured, what is left alone, and what is refused."""

import asyncio
import dataclasses
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from cli.main import app
from harness.errors import UserError
from harness.files import ROOT
from harness.llm.backbones import load as load_backbones
from harness.llm.call_log import AttemptLog, CallLog, CallLogReader
from harness.llm.endpoints import load as load_endpoints
from harness.llm.endpoints import simulated
from harness.llm.request import Message, Request
from harness.runner import layout, timing
from harness.runner.config import Cell, Preset
from harness.runner.plan import plan
from harness.runner.timing import AskingAlways
from harness.simulator.parameters import EngineParameters
from tests.cli.backbones import Backbones
from tests.fake_encoder import FakeEncoder
from tests.fixtures import content
from tests.small_run import GMR, SINGLE, smoke

# A hundred times as fast as the modelled servers are, so that tests need not wait for them.
FAST = EngineParameters(concurrent_sequences=64, prefill_tokens_per_s_1b=6e6, decode_tokens_per_s_1b=6e4)


@pytest.fixture
def place(finished_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the same cells in the working folder, behind fast servers; temporary files go to ``throw_away``."""
    shutil.copytree(finished_run, tmp_path / "run")
    (tmp_path / "throw_away").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "throw_away"))
    monkeypatch.chdir(tmp_path / "run")
    monkeypatch.setattr("harness.runner.setup.SentenceEncoder", FakeEncoder)
    real = timing.simulated_endpoint

    def fast(preset: Preset) -> Any:
        endpoint = real(preset)
        endpoint.calibration.engine = FAST
        return endpoint

    monkeypatch.setattr("harness.runner.timing.simulated_endpoint", fast)
    return tmp_path


def document(of: Cell) -> dict[str, Any]:
    found: dict[str, Any] = orjson.loads((layout.timing("smoke", of) / timing.FILE).read_bytes())
    return found


def test_a_pass_makes_the_calls_of_the_cell_again_and_says_whose_time_it_is(place: Path) -> None:
    before = content(place)
    found = asyncio.run(timing.run(plan(smoke(), GMR)))
    after = content(place)
    written = Path("run") / layout.timing("smoke", GMR) / timing.FILE
    made_of = Path("run") / layout.made_of("smoke", layout.timing_name(GMR))
    assert {path for path in after if before.get(path) != after[path]} == {str(written), str(made_of)}
    assert set(before) <= set(after)
    calls = pq.read_table(layout.cell("smoke", GMR) / "calls.parquet").to_pandas()
    assert found == document(GMR)
    assert (found["n"], found["calls"], found["failed_calls"]) == (6, len(calls), 0)
    assert found["prompt_tokens"] == calls["prompt_tokens"].sum()
    assert found["completion_tokens"] == calls["completion_tokens"].sum()
    assert found["seconds_per_query"] == pytest.approx(found["seconds"] / 6)
    run = orjson.loads((layout.cell("smoke", GMR) / "run.json").read_bytes())
    assert found["cell"] == {name: run[name] for name in ("run_id", "config_hash", "code", "checkpoint")}
    assert {name: found[name] for name in dataclasses.asdict(GMR)} == dataclasses.asdict(GMR)
    assert (found["preset"], found["simulated"], found["engine"]) == ("smoke", True, FAST.model_dump())
    assert found["concurrency"] == timing.CONCURRENCY


def test_the_modelled_servers_take_their_time(place: Path) -> None:
    """All six questions run at once, each one call of a model of three billion parameters."""
    cell = ["--method", "single", "--benchmark", "gsm_hard", "--backbone", "llama-3.2-3B"]
    limits = ["--set", "benchmarks=[gsm_hard]", "--set", "limit={train: 1, test: 6, epochs: 1}"]
    assert CliRunner().invoke(app, ["timing", "--preset", "smoke", *cell, *limits]).exit_code == 0
    calls = pq.read_table(layout.cell("smoke", SINGLE) / "calls.parquet").to_pylist()
    each = [3 * (call["prompt_tokens"] / 6e6 + call["completion_tokens"] / 6e4) for call in calls]
    assert document(SINGLE)["seconds"] > max(each)
    one_by_one = asyncio.run(timing.run(plan(smoke(in_flight=1), SINGLE)))
    assert one_by_one["seconds"] > sum(each)
    assert document(SINGLE)["concurrency"] == 1


def test_an_interrupted_pass_leaves_nothing_and_starts_over(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = content(place)
    monkeypatch.setattr("harness.runner.timing.CONCURRENCY", 1)

    def two_calls_are_finished() -> bool:
        for log in (place / "throw_away").rglob(layout.CALL_LOG):
            with CallLogReader(log) as reader:
                return sum(calls for _, calls, *_ in reader.paid()) >= 2
        return False

    async def interrupted() -> None:
        task = asyncio.create_task(timing.run(plan(smoke(), SINGLE)))
        while not (task.done() or two_calls_are_finished()):
            await asyncio.sleep(0)
        task.cancel()
        await task

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(interrupted())
    assert content(place) == before
    assert not list((place / "throw_away").iterdir())
    assert asyncio.run(timing.run(plan(smoke(), SINGLE)))["calls"] == 6


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda run: run.update(code="other"), "its code is not that of this suite"),
        (lambda run: run["data"].update(split_checksum="other"), "its questions is not that"),
        (lambda run: run["backbones"]["qwen-2.5-14B"].update(revision="other"), "qwen-2.5-14B is now .* of revision"),
        (lambda run: run.update(checkpoint="other"), "is not what the cell answered with"),
    ],
)
def test_a_cell_that_is_not_of_this_suite_as_it_stands_is_refused(
    place: Path, change: Callable[[dict[str, Any]], Any], message: str
) -> None:
    path = layout.cell("smoke", GMR) / "run.json"
    record = orjson.loads(path.read_bytes())
    change(record)
    path.write_bytes(orjson.dumps(record))
    other = dataclasses.replace(SINGLE, backbone="llama-3.1-8B")
    with pytest.raises(UserError, match=r"single gsm_hard llama-3\.1-8B seed 0 of smoke is not finished; make"):
        asyncio.run(timing.run(plan(smoke(), other)))
    with pytest.raises(UserError, match=message) as caught:
        asyncio.run(timing.run(plan(smoke(), GMR)))
    assert "snakemake --cores all results/smoke/cells/gmr/gsm_hard/pool/seed0/run.json" in str(caught.value)
    assert not layout.timing("smoke", GMR).exists()
    assert not list((place / "throw_away").iterdir())


async def test_the_same_call_is_made_as_often_as_it_is_asked(tmp_path: Path) -> None:
    """Also while it is being made: a client of a cell would share the reply."""
    model = load_backbones(ROOT / "config" / "backbones.yaml")["llama-3.2-3B"].model
    request = Request(model, None, (Message("user", "?"),))
    answering, attempts = Backbones(), AttemptLog(tmp_path / "attempts.jsonl")
    with CallLog(tmp_path / "calls.sqlite") as log:
        async with AskingAlways({"llama-3.2-3B": simulated()}, log, attempts, in_process=answering) as client:
            await asyncio.gather(*(client.complete("llama-3.2-3B", request) for _ in range(2)))
            await client.complete("llama-3.2-3B", request)
    attempts.close()
    assert answering.asked == 3


async def test_real_servers_are_asked_where_they_are(place: Path) -> None:
    async with timing.servers_of(plan(smoke(endpoints="served"), SINGLE)) as servers:
        assert servers == (load_endpoints(ROOT / "config" / "endpoints.yaml", ["llama-3.2-3B"]), None)
