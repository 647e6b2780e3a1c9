"""Clients that log attempts to the test's folder and retry without waiting."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, cast

import orjson
import pytest

from harness.llm.call_log import AttemptLog
from harness.llm.client import ChatClient
from harness.llm.endpoints import Endpoint
from tests.harness.llm.serving import Kept, served_at


class Make:
    """Factory of clients for a backbone ``m``, by endpoint fields; gives access to records and attempts."""

    def __init__(self, stack: AsyncExitStack, attempts: AttemptLog) -> None:
        self.kept = Kept()
        self._stack, self._attempts = stack, attempts

    async def __call__(self, server: Any, timeout_s: float = 5, **more: Any) -> ChatClient:
        served = served_at(chat=server) if callable(server) else served_at(server)
        url = server if isinstance(server, str) else await self._stack.enter_async_context(served)
        client = ChatClient({"m": Endpoint(url=url, timeout_s=timeout_s, **more)}, cast(Any, self.kept), self._attempts)
        return await self._stack.enter_async_context(client)

    @property
    def tried(self) -> list[str | None]:
        return [orjson.loads(line)["error"] for line in self._attempts.path.read_bytes().splitlines()]


@pytest.fixture
async def make(no_waiting: None, tmp_path: Path) -> AsyncIterator[Make]:
    async with AsyncExitStack() as stack:
        yield Make(stack, stack.enter_context(AttemptLog(tmp_path / "attempts.jsonl")))
