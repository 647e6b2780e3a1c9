"""Servers and clients for tests: in process, behind a socket, or below HTTP."""

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web

from harness.llm.request import Message, Reply, Request

MODEL = "some/model"
ANSWER = Reply("re: hello", 7, 2, "stop", MODEL)
ERROR = {"error": {"message": "busy", "type": "server_error"}}

Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]


def request(text: str = "hello", **changes: Any) -> Request:
    return Request(MODEL, None, (Message("user", text),), **changes)


def completion(text: str = "re: hello", model: str = MODEL, **changes: Any) -> dict[str, Any]:
    return {
        "id": "1",
        "object": "chat.completion",
        "created": 0,
        "model": model,
        "choices": [{"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 7, "completion_tokens": 2, "total_tokens": 9},
        **changes,
    }


def models(**changes: Any) -> dict[str, Any]:
    one = {"id": MODEL, "object": "model", "created": 0, "owned_by": "simulated", "revision": "r1", **changes}
    return {"object": "list", "data": [one]}


class Scripted:
    """A server that answers with scripted statuses, then always 200, and records the requests.

    Probes, which request a single token, always succeed.
    """

    def __init__(self, *script: tuple[int, dict[str, Any] | str], **entry: Any) -> None:
        self.script = list(script)
        self.entry = entry
        self.asked: list[dict[str, Any]] = []

    async def chat(self, http: web.Request) -> web.StreamResponse:
        body = await http.json()
        if body.get("max_tokens") == 1:
            return web.json_response(completion(model=body["model"]))
        self.asked.append(body)
        if self.script:
            status, answer = self.script.pop(0)
            text = answer if isinstance(answer, str) else json.dumps(answer)
            return web.json_response(text=text, status=status)
        return web.json_response(completion("re: " + body["messages"][-1]["content"], body["model"]))

    async def models(self, http: web.Request) -> web.Response:
        return web.json_response(models(**self.entry))


@asynccontextmanager
async def served_at(server: Any = None, **answers: Answer) -> AsyncIterator[str]:
    """Serve the methods ``models`` and ``chat`` of an object, or the given answers, over HTTP; yield the URL.

    As on an inference server, a request ends when its client disconnects.
    """
    app = web.Application()
    places = {"models": "/v1/models", "chat": "/v1/chat/completions", "props": "/props"}
    for name, path in places.items():
        if (answer := answers.get(name) or getattr(server, name, None)) is not None:
            app.router.add_route("POST" if name == "chat" else "GET", path, answer)
    runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, backlog=2048).start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
    finally:
        await runner.cleanup()
