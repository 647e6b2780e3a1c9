"""Clients whose attempts are noted in the folder of the test, and which do not wait between them."""

from __future__ import annotations

import dataclasses
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import orjson
import pytest

from harness.llm import outage, retries
from harness.llm.attempts import AttemptLog
from harness.llm.client import ChatClient
from harness.llm.endpoints import Endpoint, simulated
from tests.harness.llm.serving import Kept, Scripted

Make = Callable[..., ChatClient]
Tried = Callable[[], list[tuple[int, str | None]]]


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retries, "FIRST_DELAY_S", 0.0)
    monkeypatch.setattr(outage, "PROBE_EVERY_S", 0.01)


@pytest.fixture
def kept() -> Kept:
    """What the clients of a test have recorded."""
    return Kept()


@pytest.fixture
async def attempts(tmp_path: Path) -> AsyncIterator[AttemptLog]:
    log = AttemptLog(tmp_path / "attempts.jsonl")
    yield log
    log.close()


@pytest.fixture
async def make(kept: Kept, attempts: AttemptLog) -> AsyncIterator[Make]:
    """Makes clients of one backbone, ``m``, in process or at URLs."""
    opened: list[ChatClient] = []

    def make(
        answers: Scripted | None = None,
        *urls: str,
        timeout_s: float | None = 5,
        max_in_flight: int = 64,
        extended: bool = True,
        **more: Any,
    ) -> ChatClient:
        served = Endpoint(urls, None, max_in_flight, timeout_s) if urls else simulated()
        endpoint = dataclasses.replace(served, extended=extended)
        wiring: dict[str, Any] = {"log": kept, "attempts": attempts, "in_process": answers, **more}
        opened.append(ChatClient({"m": endpoint}, **wiring))
        return opened[-1]

    yield make
    for client in opened:
        await client.__aexit__()


@pytest.fixture
def tried(attempts: AttemptLog) -> Tried:
    """Number and error of every attempt noted; nothing can be noted afterwards."""

    def tried() -> list[tuple[int, str | None]]:
        attempts.close()
        return [(one["attempt"], one["error"]) for one in map(orjson.loads, attempts.path.read_bytes().splitlines())]

    return tried
