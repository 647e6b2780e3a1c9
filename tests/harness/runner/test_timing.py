"""Timing a finished cell: what is measured, what is left alone, and what is refused."""

import asyncio
import dataclasses
import shutil
import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import orjson
import pyarrow.parquet as pq
import pytest
from aiohttp.test_utils import TestServer

from harness.errors import UserError
from harness.files import ROOT
from harness.llm.backbones import load as load_backbones
from harness.llm.call_log import AttemptLog, CallLog, CallLogReader
from harness.llm.endpoints import ENDPOINTS, Endpoint, simulated
from harness.llm.request import Message, Request
from harness.runner import cell as cells
from harness.runner import config_hash, layout, timing
from harness.runner.config import Cell
from harness.runner.plan import Plan, plan, simulated_endpoint
from harness.runner.timing import AskingAlways
from harness.simulator.server import application
from tests.cli.backbones import Backbones
from tests.command import gmr
from tests.fake_encoder import FakeEncoder
from tests.fixtures import content
from tests.small_run import GMR, SINGLE, smoke


@pytest.fixture
def folder(finished_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the same cells in the working folder; temporary files go to ``throw_away``."""
    shutil.copytree(finished_run, tmp_path / "run")
    (tmp_path / "throw_away").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "throw_away"))
    monkeypatch.chdir(tmp_path / "run")
    monkeypatch.setattr("harness.runner.cell.SentenceEncoder", FakeEncoder)
    return tmp_path


def run_of(cell: Cell) -> Any:
    return orjson.loads((layout.cell("smoke", cell) / "run.json").read_bytes())


@asynccontextmanager
async def behind_a_socket(cell: Cell) -> AsyncIterator[Plan]:
    """Serve the backbones of a cell as real servers are asked, and return its plan."""
    async with TestServer(application(simulated_endpoint(smoke()))) as server:
        planned, endpoint = plan(smoke(), cell), Endpoint(url=str(server.make_url("/v1")))
        yield dataclasses.replace(planned, endpoints=dict.fromkeys(planned.backbones, endpoint), in_process=None)


@pytest.mark.parametrize(("in_flight", "at_once"), [(None, timing.CONCURRENCY), (1, 1), (99, timing.CONCURRENCY)])
async def test_what_a_timing_holds_and_that_nothing_else_changes(
    in_flight: int | None, at_once: int, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with TestServer(application(simulated_endpoint(smoke()))) as server:
        addresses = folder / "endpoints.yaml"
        entries = {key: {"url": str(server.make_url("/v1"))} for key in smoke().backbones}
        addresses.write_bytes(orjson.dumps(entries))
        monkeypatch.setenv(ENDPOINTS, str(addresses))
        preset = smoke(endpoints="served", in_flight=in_flight)
        run = await cells.run(plan(preset, SINGLE))
        before = content(folder)
        found = await timing.run(preset, SINGLE)
    after = content(folder)
    written = Path("run") / layout.timing("smoke", SINGLE) / timing.FILE
    made_of = Path("run") / layout.made_of("smoke", layout.timing_name(SINGLE))
    assert {path for path in after if before.get(path) != after[path]} == {str(written), str(made_of)}
    assert set(before) <= set(after)
    calls = pq.read_table(layout.cell("smoke", SINGLE) / "calls.parquet").to_pandas()
    assert found == orjson.loads((folder / written).read_bytes())
    expected = {"preset": "smoke", **dataclasses.asdict(SINGLE), "simulated": True, "concurrency": at_once, "n": 6}
    expected |= {"calls": len(calls), "failed_calls": 0, "seconds_per_query": found["seconds"] / 6}
    expected |= {name: calls[name].sum() for name in ("prompt_tokens", "completion_tokens")}
    expected["cell"] = {name: run.get(name) for name in ("run_id", "config_hash", "code", "checkpoint")}
    assert expected.items() <= found.items()


def test_simulated_backbones_are_not_timed(folder: Path) -> None:
    before = content(folder)
    with pytest.raises(UserError, match="of smoke is simulated; only calls of real models take a time"):
        gmr("cell", "--timing", "--preset", "smoke", "--method", "gmr", "--benchmark", "gsm_hard", "--backbone", "pool")
    assert content(folder) == before


async def test_real_servers_answer_once_more_and_the_clock_counts(folder: Path) -> None:
    before = content(folder)
    async with behind_a_socket(GMR) as planned:
        calls, measured = await timing.timed(planned, run_of(GMR), 32)
    recorded = pq.read_table(layout.cell("smoke", GMR) / "calls.parquet").to_pandas()
    assert sorted(call["key"] for call in calls) == sorted(recorded["key"])
    assert measured["seconds"] > 0
    assert content(folder) == before


async def test_an_interrupted_pass_leaves_nothing(folder: Path) -> None:
    before = content(folder)

    def two_calls_are_finished() -> bool:
        for log in (folder / "throw_away").rglob(layout.CALL_LOG):
            with CallLogReader(log) as reader:
                return sum(calls for _, calls, *_ in reader.paid()) >= 2
        return False

    async with behind_a_socket(SINGLE) as planned:
        task = asyncio.create_task(timing.timed(planned, run_of(SINGLE), 1))
        while not (task.done() or two_calls_are_finished()):
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert content(folder) == before
    assert not list((folder / "throw_away").iterdir())


async def test_other_weights_and_another_checkpoint_are_refused(folder: Path) -> None:
    async with behind_a_socket(GMR) as planned:
        run = run_of(GMR)
        with pytest.raises(UserError, match="is not what the cell answered with"):
            await timing.timed(planned, {**run, "checkpoint": "other"}, 32)
        run["backbones"]["qwen-2.5-14B"]["revision"] = "other"
        with pytest.raises(UserError, match=r"qwen-2\.5-14B is now .* of revision"):
            await timing.timed(planned, run, 32)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda run: run.update(code="other"), "its code is not that of this suite"),
        (lambda run: run["data"].update(split_checksum="other"), "its questions is not that"),
    ],
)
def test_a_cell_that_is_not_of_this_suite_as_it_stands_is_refused(
    folder: Path, change: Callable[[dict[str, Any]], Any], message: str
) -> None:
    record = run_of(GMR)
    change(record)
    (layout.cell("smoke", GMR) / "run.json").write_bytes(orjson.dumps(record))
    other = dataclasses.replace(SINGLE, backbone="llama-3.1-8B")
    with pytest.raises(UserError, match=r"single gsm_hard llama-3\.1-8B seed 0 of smoke is not finished; make"):
        config_hash.finished_run(smoke(), other)
    with pytest.raises(UserError, match=message) as caught:
        config_hash.finished_run(smoke(), GMR)
    assert "snakemake --cores all results/smoke/cells/gmr/gsm_hard/pool/seed0/run.json" in str(caught.value)


async def test_the_same_call_is_made_as_often_as_it_is_asked(tmp_path: Path) -> None:
    """Also while it is being made: a client of a cell would share the reply."""
    model = load_backbones(ROOT / "config" / "backbones.yaml")["llama-3.2-3B"].model
    request = Request(model, None, (Message("user", "?"),))
    answering = Backbones()
    with CallLog(tmp_path / "calls.sqlite") as log, AttemptLog(tmp_path / "attempts.jsonl") as attempts:
        async with AskingAlways({"llama-3.2-3B": simulated()}, log, attempts, in_process=answering) as client:
            await asyncio.gather(*(client.complete("llama-3.2-3B", request) for _ in range(2)))
            await client.complete("llama-3.2-3B", request)
    assert answering.asked == 3
