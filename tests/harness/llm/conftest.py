"""Clients whose attempts are noted in the folder of the test, and which do not wait between them."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, cast

import openai._base_client
import orjson
import pytest

from harness.llm import served_backbone
from harness.llm.call_log import AttemptLog
from harness.llm.client import ChatClient
from harness.llm.endpoints import Endpoint
from tests.harness.llm.serving import Kept, served_at

Make = Callable[..., Awaitable[ChatClient]]
Tried = Callable[[], list[str | None]]


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(served_backbone, "FIRST_WAIT_S", 0.0)
    monkeypatch.setattr(openai._base_client, "INITIAL_RETRY_DELAY", 0.0)


@pytest.fixture
def kept() -> Kept:
    """Return what the clients of a test have recorded."""
    return Kept()


@pytest.fixture
def attempts(tmp_path: Path) -> Iterator[AttemptLog]:
    with AttemptLog(tmp_path / "attempts.jsonl") as log:
        yield log


@pytest.fixture
async def make(kept: Kept, attempts: AttemptLog) -> AsyncIterator[Make]:
    """Return a function that makes a client of a backbone ``m`` at a server, by fields of its endpoint."""
    async with AsyncExitStack() as stack:

        async def make(server: Any, timeout_s: float = 5, **more: Any) -> ChatClient:
            served = served_at(chat=server) if callable(server) else served_at(server)
            url = server if isinstance(server, str) else await stack.enter_async_context(served)
            endpoint = Endpoint(url=url, timeout_s=timeout_s, **more)
            return await stack.enter_async_context(ChatClient({"m": endpoint}, cast(Any, kept), attempts))

        yield make


@pytest.fixture
def tried(attempts: AttemptLog) -> Tried:
    """Return a function that reads the errors of the attempts, ``None`` for one that was answered."""
    return lambda: [orjson.loads(line)["error"] for line in attempts.path.read_bytes().splitlines()]
