"""Servers that call a model otherwise than the request does."""

from __future__ import annotations

from typing import Any

import pytest
from aiohttp import web

from harness.errors import UserError
from harness.llm.asking import MAX_FAILURES
from harness.llm.attempts import AttemptLog
from harness.llm.client import ChatClient
from harness.llm.endpoints import Endpoint
from tests.harness.llm.conftest import Make
from tests.harness.llm.serving import MODEL, Kept, completion, request, served_at


class Named:
    """A server of some names, which answers in that of ``answers_as``."""

    def __init__(self, *names: str, answers_as: str, **entry: Any) -> None:
        self.names, self.answers_as, self.entry = names, answers_as, entry
        self.asked: list[dict[str, Any]] = []

    async def models(self, _: web.Request) -> web.Response:
        common = {"object": "model", "created": 0, "owned_by": "library", **self.entry}
        return web.json_response({"object": "list", "data": [{"id": name, **common} for name in self.names]})

    async def chat(self, http_request: web.Request) -> web.Response:
        self.asked.append(await http_request.json())
        return web.json_response(completion(model=self.answers_as))


async def answered(server: Named, kept: Kept, attempts: AttemptLog, served_name: str | None) -> str | None:
    """What became of one request: its error, or ``None``."""
    async with served_at(models=server.models, chat=server.chat) as url:
        endpoint = Endpoint((url,), served_name=served_name)
        async with ChatClient({"m": endpoint}, kept, attempts) as client:  # type: ignore[arg-type]
            await client.served("m", MODEL)
            return (await client.complete("m", request())).error


async def test_a_served_name_goes_over_the_wire_and_into_no_log(kept: Kept, attempts: AttemptLog) -> None:
    server = Named("llama3.1:8b", answers_as="llama3.1:8b")
    assert await answered(server, kept, attempts, "llama3.1:8b") is None
    assert [one["model"] for one in server.asked] == ["llama3.1:8b"]
    ((asked, reply),) = kept.calls
    assert (asked, reply.model) == (request(), MODEL)


async def test_a_served_name_that_is_not_served_is_told(kept: Kept, attempts: AttemptLog) -> None:
    with pytest.raises(UserError, match=r"does not serve 'mine' .*; .* or what it calls this model, as served_name$"):
        await answered(Named(MODEL, answers_as=MODEL), kept, attempts, "mine")


async def test_a_server_of_several_names_for_one_model_may_answer_by_any(kept: Kept, attempts: AttemptLog) -> None:
    server = Named("first/name", MODEL, answers_as="first/name", root="/models/one")
    assert await answered(server, kept, attempts, None) is None
    assert [one["model"] for one in server.asked] == [MODEL]
    assert kept.replies[0].model == MODEL


@pytest.mark.parametrize("entry", [{}, {"root": None}])
async def test_names_that_nothing_says_are_one_model_are_several(
    entry: dict[str, Any], kept: Kept, attempts: AttemptLog
) -> None:
    server = Named("first/name", MODEL, answers_as="first/name", **entry)
    error = await answered(server, kept, attempts, None)
    assert error == f"a completion of the model 'first/name', while {MODEL!r} was asked"
    assert len(server.asked) == MAX_FAILURES


async def test_where_the_weights_lie_is_no_part_of_what_is_served(make: Make) -> None:
    here, there = Named(MODEL, answers_as=MODEL, root="/a"), Named(MODEL, answers_as=MODEL, root="/b")
    async with served_at(models=here.models) as one, served_at(models=there.models) as other:
        found = await (await make(one, other)).served("m", MODEL)
    assert found.details == {}


async def test_the_weights_of_another_model_under_the_right_name_are_refused(make: Make) -> None:
    async with served_at(models=Named(MODEL, answers_as=MODEL, root="some/model-AWQ").models) as url:
        with pytest.raises(UserError, match="serves the weights of some/model-AWQ under the name some/model; start it"):
            await (await make(url)).served("m", MODEL)
