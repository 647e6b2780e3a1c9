"""Clients that log calls and attempts to the test's folder and retry without waiting."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import orjson
import pytest

from harness.llm.backbones import Endpoint
from harness.llm.call_log import AttemptLog, CallLog
from harness.llm.client import ChatClient
from harness.llm.request import Reply
from tests.harness.llm.serving import served_at


class Make:
    """Factory of clients for a backbone ``m``, by endpoint fields; gives access to logged replies and attempts."""

    def __init__(self, stack: AsyncExitStack, folder: Path) -> None:
        self._stack, self.log = stack, stack.enter_context(CallLog(folder / "calls.sqlite"))
        self._attempts = stack.enter_context(AttemptLog(folder / "attempts.jsonl"))

    async def __call__(self, server: Any, timeout_s: float = 5, **more: Any) -> ChatClient:
        served = served_at(chat=server) if callable(server) else served_at(server)
        url = server if isinstance(server, str) else await self._stack.enter_async_context(served)
        client = ChatClient({"m": Endpoint(url=url, timeout_s=timeout_s, **more)}, self.log, self._attempts)
        return await self._stack.enter_async_context(client)

    @property
    def replies(self) -> list[Reply | None]:
        return [self.log.get(key) for key in self.log.all_keys()]

    @property
    def tried(self) -> list[str | None]:
        return [orjson.loads(line)["error"] for line in self._attempts.path.read_bytes().splitlines()]


@pytest.fixture
async def make(no_waiting: None, tmp_path: Path) -> AsyncIterator[Make]:
    async with AsyncExitStack() as stack:
        yield Make(stack, tmp_path)
