"""What carries requests: one pool of connections for all servers, or a call of a function in this process.

The client above is the same code, object by object, for both; only the last step, from request bytes to response bytes,
needs no socket in this process.
"""

from __future__ import annotations

import resource
from typing import Any, Protocol

import httpx2
import openai
import orjson

from harness.errors import UserError
from harness.llm.endpoints import their_file

# Beside the connections: tables, logs, pipes to workers.
_OTHER_FILES = 256


class ChatEndpoint(Protocol):
    """What answers in this process: a pure function of the request body."""

    def chat(self, request: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        """HTTP status and body for ``POST /v1/chat/completions``."""

    def models(self) -> dict[str, Any]:
        """Body for ``GET /v1/models``."""


class InProcessTransport(httpx2.AsyncBaseTransport):
    """Carries requests to a :class:`ChatEndpoint` of this process."""

    def __init__(self, endpoint: ChatEndpoint) -> None:
        self._endpoint = endpoint

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Answer one HTTP request."""
        if request.url.path.endswith("/models"):
            return _response(request, 200, self._endpoint.models())
        status, body = self._endpoint.chat(orjson.loads(request.content))
        return _response(request, status, body)


def http_client(in_process: ChatEndpoint | None, connections: int) -> httpx2.AsyncClient:
    """The one HTTP client of a process.

    Args:
        in_process: What answers instead of servers.
        connections: How many may be open at once.

    Raises:
        UserError: The system does not let a process have so many files open.
    """
    if in_process is not None:
        return openai.DefaultAsyncHttpxClient(transport=InProcessTransport(in_process))
    _allow_open_files(connections + _OTHER_FILES)
    limits = httpx2.Limits(max_connections=connections, max_keepalive_connections=connections)
    return openai.DefaultAioHttpClient(limits=limits)


def _allow_open_files(number: int) -> None:
    """Raise this process's own limit where the system allows it: the usual 1,024 are fewer than five full servers."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= number:
        return
    if hard != resource.RLIM_INFINITY and hard < number:
        raise UserError(
            f"{their_file()} wants up to {number - _OTHER_FILES} connections, but a process may open {hard} "
            "files here; lower max_in_flight, or raise the limit (ulimit -Hn)"
        )
    resource.setrlimit(resource.RLIMIT_NOFILE, (number, hard))


def _response(request: httpx2.Request, status: int, body: dict[str, Any]) -> httpx2.Response:
    headers = {"content-type": "application/json"}
    return httpx2.Response(status, headers=headers, content=orjson.dumps(body), request=request)
