"""Simulated backbones behind a URL: the same bytes as in process, whatever the server's manners."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import openai._base_client
import pytest
from aiohttp import web

from harness.benchmarks.prepare import prepare
from harness.errors import UserError
from harness.files import ROOT
from harness.llm import asking
from harness.llm.endpoints import SIMULATED_URL
from harness.runner import cell, config, layout
from harness.runner.config import Cell, Preset
from harness.runner.plan import plan
from harness.runner.setup import endpoints_of, simulated_endpoint
from harness.simulator.build import build_world_file
from harness.simulator.faults import load_faults
from harness.simulator.server import Manners, application
from tests.fake_encoder import FakeEncoder

OF = Cell("gmr", "gsm_hard", "pool", 0)
CLOCKS = {"timing.json", "attempts.jsonl", "calls.sqlite", "calls.lock"}


def smoke(**changes: object) -> Preset:
    limit = {"train": 2, "test": 6, "epochs": 1}
    return config.preset("smoke", {"benchmarks": ["gsm_hard"], "limit": limit, **changes})


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Questions and world, and the cell as it is in process."""
    folder = tmp_path_factory.mktemp("prepared")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setattr("harness.runner.setup.SentenceEncoder", FakeEncoder)
        paths = layout.items("smoke", "gsm_hard"), layout.manifest("smoke", "gsm_hard")
        prepare("gsm_hard", "embedded", "official", *paths)
        asyncio.run(build_world_file(smoke()))
        asyncio.run(cell.run(plan(smoke(), OF)))
    return folder


@pytest.fixture
def place(prepared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The same questions and world, nothing else."""
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "smoke").mkdir()
    (tmp_path / "results" / "smoke" / "data").symlink_to(prepared / "results" / "smoke" / "data")
    (tmp_path / "results" / "smoke" / "world.json").symlink_to(prepared / "results" / "smoke" / "world.json")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("harness.runner.setup.SentenceEncoder", FakeEncoder)
    return tmp_path


@asynccontextmanager
async def serving(preset: Preset, manners: Manners, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[str]:
    runner = web.AppRunner(application(simulated_endpoint(preset), manners), access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    url = f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
    monkeypatch.setenv(SIMULATED_URL, url)
    try:
        yield url
    finally:
        await runner.cleanup()


def content(folder: Path) -> dict[str, bytes]:
    of = folder / layout.cell("smoke", OF)
    return {
        str(path.relative_to(of)): path.read_bytes()
        for path in of.rglob("*")
        if path.is_file() and path.name not in CLOCKS
    }


async def test_the_same_bytes_as_in_process_through_delays_and_faults(
    place: Path, prepared: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asking, "FIRST_WAIT_S", 0.01)
    monkeypatch.setattr(openai._base_client, "INITIAL_RETRY_DELAY", 0.01)
    faults = load_faults(ROOT / "config" / "faults.yaml")
    manners = Manners(faults=faults.model_copy(update={"hang_s": 0.2, "retry_after_s": 0}), latency_s=0.01)
    async with serving(smoke(), manners, monkeypatch):
        await cell.run(plan(smoke(), OF))
    assert content(place) == content(prepared)
    assert "run.json" in content(place)
    attempts = (place / layout.cell("smoke", OF) / "attempts.jsonl").read_text()
    assert "MalformedReplyError: " in attempts


async def test_another_world_is_refused(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with serving(smoke(length_scale=0.5), Manners(), monkeypatch) as url:
        with pytest.raises(UserError, match=rf"{url}, named by GMR_SIMULATED_URL, does not serve .*gmr simulate"):
            await cell.run(plan(smoke(), OF))


def test_what_is_no_url_is_refused(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SIMULATED_URL, "localhost:8000")
    with pytest.raises(UserError, match="GMR_SIMULATED_URL is 'localhost:8000'; expected the URL"):
        endpoints_of(plan(smoke(), OF))
