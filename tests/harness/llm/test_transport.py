"""Open files: as many as the connections of full servers need."""

from __future__ import annotations

import resource

import pytest

from harness.errors import UserError
from harness.llm.transport import http_client
from tests.harness.llm.serving import Scripted


@pytest.fixture
def limits(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """What the limit is set to, where it is 1,024 and may become 4,096."""
    found: list[tuple[int, int]] = []
    monkeypatch.setattr(resource, "getrlimit", lambda which: (1024, 4096))
    monkeypatch.setattr(resource, "setrlimit", lambda which, limit: found.append(limit))
    return found


async def test_the_limit_is_raised_where_it_has_to_be(limits: list[tuple[int, int]]) -> None:
    for connections in (64, 5 * 256):
        client = http_client(None, connections)
        transport = client._transport
        assert transport.limits.max_connections == connections  # type: ignore[attr-defined]
        await client.aclose()
    assert limits == [(5 * 256 + 256, 4096)]
    await http_client(Scripted(), 10**6).aclose()


def test_more_than_the_system_allows_is_one_line(limits: list[tuple[int, int]]) -> None:
    with pytest.raises(UserError, match=r"up to 4000 connections, but a process may open 4096 files.*ulimit -Hn"):
        http_client(None, 4000)
    assert limits == []
