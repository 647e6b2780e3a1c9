"""Retries and outage detection of one backbone's servers.

A failed attempt counts against its call if the backbone answered other calls meanwhile; if not, the call waits. After
ten minutes without any reply one token is requested: either a server replies, and the call fails, or the cell stops
with nothing recorded. A server whose replies cannot be charged stops the cell at once.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace

import openai
from tenacity import AsyncRetrying, retry_if_exception, wait_exception, wait_exponential_jitter

from harness.errors import UserError
from harness.llm.call_log import AttemptLog
from harness.llm.endpoints import Endpoint
from harness.llm.request import Message, Reply, Request, Served
from harness.llm.servers import MalformedReplyError, Server, find_served, http_client, unreachable, with_cause

logger = logging.getLogger(__name__)

# Commits model, prompt and completion tokens of an unusable reply that was paid for.
Charge = Callable[[str, int, int], Awaitable[None]]

MAX_FAILURES = 12
# Replies in a row that cannot be charged, of a server that has given no other.
_MAX_UNCOUNTABLE = 3
# Including attempts lost to outages, so that a call that takes its server down each time fails in the end.
_MAX_ATTEMPTS = 4 * MAX_FAILURES
FIRST_WAIT_S = 0.5
MAX_WAIT_S = 30.0
# Time without any reply until a warning says that calls wait.
SILENCE_S = 30.0
# Time without any reply until the cell stops; it resumes from its log when it is started again.
OUTAGE_S = 600.0
# For one token of a busy server.
_PROBE_S = 30.0
_REFUSES_ALL = (openai.AuthenticationError, openai.PermissionDeniedError, openai.NotFoundError)
# Time-out at a proxy, conflict, too early, too many requests: not the fault of the request.
_TRANSIENT_STATUS = frozenset({408, 409, 425, 429})


def connect(endpoints: Mapping[str, Endpoint], attempts: AttemptLog, charge: Charge) -> dict[str, ServedBackbone]:
    """Return the served backbones; those that name the same URL share its server."""
    entries = {url: endpoint for endpoint in endpoints.values() for url in endpoint.urls}
    http = http_client(sum(endpoint.max_in_flight for endpoint in entries.values()))
    servers = {url: Server(url, endpoint, http) for url, endpoint in entries.items()}
    return {
        key: ServedBackbone(key, endpoint, [servers[url] for url in endpoint.urls], attempts, charge)
        for key, endpoint in endpoints.items()
    }


class ServedBackbone:
    """Backbone behind one or more servers, with requests balanced by their load."""

    def __init__(
        self, key: str, endpoint: Endpoint, servers: list[Server], attempts: AttemptLog, charge: Charge
    ) -> None:
        self._key = key
        self._endpoint = endpoint
        self._use(servers)
        self._attempts = attempts
        self._charge = charge
        self._replied_at = float("-inf")
        self._is_out = False

    async def served(self, model: str) -> Served:
        """Return the model as its servers agree to serve it; servers that are down now are not used."""
        served, servers = await find_served(self._servers, self._key, model, self._endpoint.served_name)
        self._use(servers)
        return served

    async def ask(self, request: Request) -> Reply:
        """Return the reply to a call, or its error; UserError if servers refuse every request or are gone for long."""
        began = last = time.monotonic()
        failures = 0
        tried: set[Server] = set()

        async def attempt() -> Reply:
            nonlocal failures, last
            try:
                return await self._attempt(request, tried)
            except (openai.APIError, MalformedReplyError) as error:
                if _is_transient(error):
                    answers_others = self._replied_at > last and not isinstance(error, openai.RateLimitError)
                    failures += answers_others or isinstance(error, MalformedReplyError)
                    last = time.monotonic()
                    if await self._is_calls_fault(request, error, began):
                        failures = MAX_FAILURES
                raise

        retrying = AsyncRetrying(
            retry=retry_if_exception(_is_transient),
            wait=wait_exponential_jitter(multiplier=FIRST_WAIT_S, max=MAX_WAIT_S, jitter=FIRST_WAIT_S)
            + wait_exception(_retry_after),
            stop=lambda state: failures >= MAX_FAILURES or state.attempt_number >= _MAX_ATTEMPTS,
            reraise=True,
        )
        try:
            return await retrying(attempt)
        except _REFUSES_ALL as error:
            raise unreachable(self._key, self._urls, error) from error
        except (openai.APIError, MalformedReplyError) as error:
            return Reply.failed(request.model, str(error))

    async def close(self) -> None:
        """Close all connections."""
        for server in self._servers:
            await server.close()

    def _use(self, servers: list[Server]) -> None:
        self._servers = servers
        self._last_choice = 0
        # Without it, calls would queue at a slow server while another has places.
        self._places = asyncio.Semaphore(sum(server.capacity for server in servers))

    async def _attempt(self, request: Request, tried: set[Server]) -> Reply:
        # A call that waits for its next attempt holds no place.
        async with self._places:
            server = self._choose(tried)
            server.in_flight += 1
            try:
                async with server.places:
                    with self._attempts.measure(request.key, server.url):
                        reply = await server.complete(request)
            except (openai.APIError, MalformedReplyError) as error:
                if _is_transient(error):
                    server.failed_at = time.monotonic()
                if isinstance(error, MalformedReplyError):
                    await self._count(request, server, error)
                raise
            finally:
                server.in_flight -= 1
        self._replied_at = time.monotonic()
        server.has_answered, server.failed_at, server.uncountable = True, float("-inf"), 0
        if self._is_out:
            self._is_out = False
            logger.warning("%s answers again", self._key)
        return reply

    def _choose(self, tried: set[Server]) -> Server:
        """Return the server with the fewest requests among those that the call has not tried; equal ones take turns.

        A server that just failed has few requests because it fails, so it comes last for a while.
        """
        self._last_choice += 1
        now = time.monotonic()
        if tried.issuperset(self._servers):
            tried.clear()
        first = self._last_choice % len(self._servers)
        untried = [server for server in self._servers[first:] + self._servers[:first] if server not in tried]
        server = min(
            untried, key=lambda server: (server.places.locked(), now - server.failed_at < MAX_WAIT_S, server.in_flight)
        )
        tried.add(server)
        return server

    async def _count(self, request: Request, server: Server, error: MalformedReplyError) -> None:
        """Record the tokens of an unusable reply; UserError if the server is unlikely ever to give a usable one."""
        if error.tokens is not None:
            await self._charge(request.model, *error.tokens)
        server.uncountable += bool(error.cure)
        if server.uncountable >= (MAX_FAILURES if server.has_answered else _MAX_UNCOUNTABLE):
            raise UserError(
                f"{server.url} of {self._key} answers with {error}; {error.cure}; then give the same command again "
                "(finished calls are kept)"
            ) from error

    async def _is_calls_fault(self, request: Request, error: Exception, began: float) -> bool:
        """Return whether this call is at fault and not its servers: none has replied for OUTAGE_S, yet to a probe.

        Raises UserError if none has replied for OUTAGE_S, nor replies to the probe.
        """
        while True:
            silence = time.monotonic() - max(began, self._replied_at)
            if silence >= SILENCE_S and not self._is_out:
                self._is_out = True
                logger.warning(
                    "%s does not answer at %s (%s): its calls wait until it does, for at most %.0f minutes",
                    *(self._key, self._urls, with_cause(error), OUTAGE_S / 60),
                )
            # After a time-out in silence, probe before the next attempt, which could outlast OUTAGE_S.
            hangs = isinstance(error, openai.APITimeoutError) and silence >= SILENCE_S
            if silence < OUTAGE_S and not hangs:
                return False
            if await self._replies_to_probe(request):
                return silence >= OUTAGE_S
            if silence >= OUTAGE_S:
                raise unreachable(self._key, self._urls, error) from error
            await asyncio.sleep(MAX_WAIT_S)

    async def _replies_to_probe(self, request: Request) -> bool:
        probe = replace(request, messages=(Message("user", "Hello"),), response_format=None, max_tokens=1)
        for server in self._servers:
            try:
                await server.complete(probe, within_s=_PROBE_S)
            except (openai.APIError, MalformedReplyError) as error:
                if _is_transient(error):
                    continue
            return True
        return False

    @property
    def _urls(self) -> str:
        return ", ".join(server.url for server in self._servers)


def _retry_after(error: BaseException) -> float:
    """Return the seconds of a server's Retry-After, at most a minute, or 0 without one."""
    seconds = error.response.headers.get("retry-after", "") if isinstance(error, openai.APIStatusError) else ""
    return min(float(seconds), 60.0) if seconds.isdecimal() else 0.0


def _is_transient(error: BaseException) -> bool:
    if isinstance(error, openai.APIStatusError):
        return error.status_code >= 500 or error.status_code in _TRANSIENT_STATUS
    return isinstance(error, (openai.APIConnectionError, MalformedReplyError))
