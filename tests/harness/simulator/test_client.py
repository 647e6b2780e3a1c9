"""A cell gets the same bytes from simulated backbones in process and over HTTP, whatever the server does."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import orjson
import pyarrow.parquet as pq
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from harness.errors import UserError
from harness.llm.endpoints import ENDPOINTS, SIMULATED_URL
from harness.runner import cell, layout
from harness.runner.plan import plan, simulated_endpoint
from harness.runner.results import SIMULATED_WARNING, TABLES
from harness.simulator.endpoint import SimulatedEndpoint
from harness.simulator.server import application
from tests.fake_encoder import FakeEncoder
from tests.faults import Faults
from tests.small_run import GMR, SINGLE, results, smoke


@asynccontextmanager
async def serving(
    endpoint: SimulatedEndpoint, faults: Faults | None = None, without: Sequence[str] = ()
) -> AsyncIterator[str]:
    """Serve the simulation behind a socket, or behind a gateway that leaves some fields out of what a server lists."""

    @web.middleware
    async def gateway(http: web.Request, handler: Any) -> web.StreamResponse:
        answer = await handler(http)
        if not http.path.endswith("/models"):
            return answer
        body = orjson.loads(answer.body)
        kept = [{name: value for name, value in one.items() if name not in without} for one in body["data"]]
        return web.json_response({**body, "data": kept})

    app = application(endpoint)
    app.middlewares.append((faults or Faults()).middleware())
    app.middlewares.append(gateway)
    async with TestServer(app) as server:
        yield str(server.make_url("/v1"))


@pytest.fixture
def empty_run(finished_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with the questions of the finished run, nothing else."""
    (tmp_path / "results" / "smoke").mkdir(parents=True)
    (tmp_path / "results" / "smoke" / "data").symlink_to(finished_run / "results" / "smoke" / "data")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("harness.runner.cell.SentenceEncoder", FakeEncoder)
    return tmp_path


@pytest.mark.usefixtures("no_waiting")
async def test_a_cell_has_the_same_bytes_through_delays_and_faults(
    empty_run: Path, finished_run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with serving(simulated_endpoint(smoke()), Faults(share=0.3, latency_s=0.01, hang_s=0.2)) as url:
        monkeypatch.setenv(SIMULATED_URL, url)
        await cell.run(plan(smoke(), GMR))
    folder = layout.cell("smoke", GMR)
    assert results(empty_run, str(folder)) == results(finished_run, str(folder))
    assert (empty_run / folder / "run.json").exists()
    assert "MalformedReplyError: " in (empty_run / folder / "attempts.jsonl").read_text()


@pytest.mark.usefixtures("empty_run")
async def test_another_simulator_and_what_is_no_url_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    async with serving(simulated_endpoint(smoke(length_scale=0.5))) as url:
        monkeypatch.setenv(SIMULATED_URL, url)
        with pytest.raises(UserError, match=rf"{url}, named by GMR_SIMULATED_URL, does not serve .*gmr simulate"):
            await cell.run(plan(smoke(), GMR))
    monkeypatch.setenv(SIMULATED_URL, "localhost:8000")
    with pytest.raises(UserError, match="GMR_SIMULATED_URL is 'localhost:8000'; expected the URL"):
        plan(smoke(), GMR)


@pytest.mark.parametrize(
    ("left_out", "weights", "revision"),
    [(("owned_by",), None, None), (("owned_by", "root"), "random", "0123abc"), (("owned_by", "revision"), None, None)],
)
async def test_whatever_names_a_simulation_or_stands_in_for_a_model_marks_a_run(
    left_out: Sequence[str], weights: str | None, revision: str | None, empty_run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where a gateway leaves out so much that only the replies tell, nothing is made of them."""
    simulation, original = simulated_endpoint(smoke()), plan(smoke(), SINGLE).backbones[SINGLE.backbone].model
    monkeypatch.setattr(simulation, "revision", revision or simulation.revision)
    monkeypatch.setenv(ENDPOINTS, str(empty_run / "endpoints.yaml"))
    async with serving(simulation, without=left_out) as url:
        (empty_run / "endpoints.yaml").write_text(f"{SINGLE.backbone}: {{url: {url!r}, served_name: {original}}}")
        asked = plan(smoke(endpoints="served", weights=weights), SINGLE)
        if "revision" in left_out:
            with pytest.raises(UserError, match=rf"{url} simulates {original}, as its replies say"):
                await cell.run(asked)
            assert not list(asked.folder.glob("*.parquet"))
            return
        made = await cell.run(asked)
    assert made["simulated"]
    for name in TABLES:
        assert pq.read_schema(asked.folder / f"{name}.parquet").metadata[b"simulated"].decode() == SIMULATED_WARNING
