"""Server outages: waiting, messages, and failures that are not recorded."""

import asyncio
import re
from collections.abc import Callable

import pytest
from aiohttp import web

from harness.errors import UserError
from harness.llm import served_backbone
from tests.harness.llm.conftest import Make
from tests.harness.llm.serving import ANSWER, ERROR, completion, request, served_at

CALLS = 20


class Ill:
    """A server that meets everybody, or a call about what is odd, with a status."""

    def __init__(self, status: int = 200) -> None:
        self.status = status

    async def chat(self, http: web.Request) -> web.Response:
        (message,) = (await http.json())["messages"]
        status = 500 if message["content"] == "odd" else self.status
        return web.json_response(completion() if status == 200 else ERROR, status=status)


@pytest.fixture(autouse=True)
def pace(no_waiting: None, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Wait a little, so that a call does not use up its attempts in an outage. Return a function that sets times."""

    def set_times(**seconds: float) -> None:
        for name, value in seconds.items():
            monkeypatch.setattr(served_backbone, name, value)

    set_times(FIRST_WAIT_S=0.02, MAX_WAIT_S=0.1, SILENCE_S=0.1)
    return set_times


async def test_while_a_server_is_ill_calls_wait(make: Make, caplog: pytest.LogCaptureFixture) -> None:
    server = Ill()
    async with served_at(server) as url:
        client = await make(url)
        await client.complete("m", request("before"))
        server.status = 503
        calls = [asyncio.create_task(client.complete("m", request(str(number)))) for number in range(CALLS)]
        async with asyncio.timeout(60):
            while len(make.tried) <= (served_backbone.MAX_FAILURES + 2) * CALLS:
                await asyncio.sleep(0.005)
        assert len(make.log) == 1
        server.status = 200
        assert await asyncio.gather(*calls) == [ANSWER] * CALLS
    assert [reply.error for reply in make.replies] == [None] * (CALLS + 1)
    first, last = (record.message for record in caplog.records if record.name == served_backbone.__name__)
    assert first.startswith(f"{url} of m does not answer (")
    assert first.endswith("its calls wait until it does, for at most 10 minutes")
    assert last == "m answers again"


@pytest.mark.parametrize(
    ("listens", "refused"),
    [(True, "Error code: 500"), (False, "APIConnectionError: Connection error. (Cannot connect to host")],
)
async def test_a_long_outage_stops_the_cell(listens: bool, refused: str, make: Make, pace: Callable[..., None]) -> None:
    pace(OUTAGE_S=0.3)
    async with served_at(Ill(500)) as url:
        client = await make(url if listens else "http://127.0.0.1:9/v1")
        calls = (client.complete("m", request(str(number))) for number in range(CALLS))
        errors = await asyncio.gather(*calls, return_exceptions=True)
    assert [type(error) for error in errors] == [UserError] * CALLS
    assert re.search(r"of m does not answer \(.*(Cannot connect|busy).*\); start the server", str(errors[0]))
    assert len(make.log) == 0
    assert all(refused in str(error) for error in make.tried)


async def test_a_server_that_hangs_is_noticed_by_a_single_token(make: Make, pace: Callable[..., None]) -> None:
    pace(OUTAGE_S=0.3, _PROBE_S=0.1)
    asked: list[str] = []

    async def chat(http: web.Request) -> web.Response:
        asked.append((await http.json())["messages"][0]["content"])
        await asyncio.sleep(3600)
        raise AssertionError

    client = await make(chat, timeout_s=0.4)
    with pytest.raises(UserError, match=r"of m does not answer .*no whole response"):
        await client.complete("m", request("hangs"))
    assert asked == ["hangs", "Hello"]
    assert len(make.log) == 0


async def test_calls_that_a_stall_cut_off_are_tried_again(make: Make, pace: Callable[..., None]) -> None:
    pace(OUTAGE_S=0.5)
    stalled: set[str] = set()

    async def chat(http: web.Request) -> web.Response:
        content = (await http.json())["messages"][0]["content"]
        if content != "Hello" and content not in stalled:
            stalled.add(content)
            await asyncio.sleep(1.5)
        return web.json_response(completion())

    client = await make(chat, timeout_s=1)
    replies = await asyncio.gather(*(client.complete("m", request(text)) for text in ("a", "b", "c")))
    assert [reply.error for reply in replies] == [None] * 3


async def test_a_call_that_alone_fails(make: Make, caplog: pytest.LogCaptureFixture, pace: Callable[..., None]) -> None:
    pace(SILENCE_S=60.0)
    client = await make(Ill())
    odd, number = asyncio.create_task(client.complete("m", request("odd"))), 0
    while not odd.done():
        number += 1
        assert await client.complete("m", request(str(number))) == ANSWER
    assert odd.result().error is not None
    # An attempt counts if another call was answered meanwhile, which a loaded machine may delay.
    failures = len([error for error in make.tried if error])
    assert served_backbone.MAX_FAILURES <= failures < served_backbone._MAX_ATTEMPTS
    assert caplog.records == []


async def test_a_call_that_fails_while_a_token_is_answered_is_recorded(make: Make, pace: Callable[..., None]) -> None:
    pace(OUTAGE_S=0.3)
    reply = await (await make(Ill())).complete("m", request("odd"))
    assert make.replies == [reply]
    assert str(reply.error).startswith("Error code: 500")
    # Fewer than a call has that waits in an outage.
    assert len(make.tried) < served_backbone._MAX_ATTEMPTS / 2
