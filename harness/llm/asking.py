"""Calls to backbones behind servers: their attempts, and what tells a failed call from a server that is gone.

The openai package retries by itself what may pass at once. Around it tenacity retries that for longer, and answers that
are no completion. A failed attempt counts against its call where the backbone answered others meanwhile; where it did
not, the call waits. After ten minutes without any answer one token is asked for: either the server lives, and it is the
call that it cannot answer, or the cell stops with nothing recorded.
"""

from __future__ import annotations

import itertools
import logging
import time
from collections.abc import Mapping
from dataclasses import replace

import openai
from tenacity import AsyncRetrying, retry_if_exception, wait_exponential_jitter

from harness.llm.call_log import AttemptLog
from harness.llm.endpoints import Endpoint
from harness.llm.request import Message, Reply, Request, Served
from harness.llm.servers import MalformedReplyError, Server, find_served, http_client, unreachable, with_cause

logger = logging.getLogger(__name__)

MAX_FAILURES = 12
# Failed or lost to outages: a call that brings its server down each time is recorded as failed in the end.
_MAX_ATTEMPTS = 4 * MAX_FAILURES
FIRST_WAIT_S = 0.5
MAX_WAIT_S = 30.0
# After so long without any answer a warning says that calls wait.
SILENCE_S = 30.0
# After so long the cell gives up, and resumes from its log when it is started again.
OUTAGE_S = 600.0
# For one token; long enough for a server with much to do.
_PROBE_S = 30.0
_REFUSES_ALL = (openai.AuthenticationError, openai.PermissionDeniedError, openai.NotFoundError)
# Time-out at a proxy, conflict, too early, too much to do: nothing the request could do about it.
_TRANSIENT_STATUS = frozenset({408, 409, 425, 429})


def connected(endpoints: Mapping[str, Endpoint], attempts: AttemptLog) -> dict[str, ServedBackbone]:
    """Return what each backbone is asked through; those that name the same URL share its server."""
    entries = {url: endpoint for endpoint in endpoints.values() for url in endpoint.urls}
    http = http_client(sum(endpoint.max_in_flight for endpoint in entries.values()))
    servers = {url: Server(url, endpoint, http) for url, endpoint in entries.items()}
    return {
        key: ServedBackbone(key, endpoint, [servers[url] for url in endpoint.urls], attempts)
        for key, endpoint in endpoints.items()
    }


class ServedBackbone:
    """A backbone behind one or more servers that take turns."""

    def __init__(self, key: str, endpoint: Endpoint, servers: list[Server], attempts: AttemptLog) -> None:
        self._key = key
        self._endpoint = endpoint
        self._servers = servers
        self._turns = itertools.cycle(servers)
        self._attempts = attempts
        self._heard = float("-inf")
        self._is_out = False

    async def served(self, model: str) -> Served:
        """Return what the servers agree to serve; those that are down now are not asked again."""
        found, self._servers = await find_served(self._servers, self._key, model, self._endpoint.served_name)
        self._turns = itertools.cycle(self._servers)
        return found

    async def ask(self, request: Request) -> Reply:
        """Return the reply to a request, or that it failed for good.

        Raises:
            UserError: The servers refuse every request, or have been gone for too long.
        """
        began, failures = time.monotonic(), 0

        async def attempt() -> Reply:
            nonlocal failures
            started = time.monotonic()
            try:
                return await self._attempt(request)
            except (openai.APIError, MalformedReplyError) as error:
                if _may_pass(error):
                    answers_others = self._heard > started and not isinstance(error, openai.RateLimitError)
                    failures += answers_others or isinstance(error, MalformedReplyError)
                    if await self._outlasted(request, error, since=max(began, self._heard)):
                        failures = MAX_FAILURES
                raise

        retrying = AsyncRetrying(
            retry=retry_if_exception(_may_pass),
            wait=wait_exponential_jitter(multiplier=FIRST_WAIT_S, max=MAX_WAIT_S, jitter=FIRST_WAIT_S),
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
        """Give up all connections."""
        for server in self._servers:
            await server.close()

    async def _attempt(self, request: Request) -> Reply:
        server = next(self._turns)
        # Who waits for another attempt is out of here, and keeps nobody from the server.
        async with server.places:
            with self._attempts.measure(request.key, server.url):
                reply = await server.complete(request)
        self._heard = time.monotonic()
        if self._is_out:
            self._is_out = False
            logger.warning("%s answers again", self._key)
        return reply

    async def _outlasted(self, request: Request, error: Exception, since: float) -> bool:
        """Whether nobody has been answered for so long, though a server lives, that this call must be why."""
        silence = time.monotonic() - since
        if silence >= OUTAGE_S:
            if await self._lives(request):
                return True
            raise unreachable(self._key, self._urls, error) from error
        if silence >= SILENCE_S and not self._is_out:
            self._is_out = True
            logger.warning(
                "%s does not answer at %s (%s): its calls wait until it does, for at most %.0f minutes",
                *(self._key, self._urls, with_cause(error), OUTAGE_S / 60),
            )
        return False

    async def _lives(self, request: Request) -> bool:
        """Whether any server gives one token, or a refusal, when it is asked now."""
        one_token = replace(request, messages=(Message("user", "Hello"),), response_format=None, max_tokens=1)
        for server in self._servers:
            try:
                await server.complete(one_token, at_once_s=_PROBE_S)
            except (openai.APIError, MalformedReplyError) as error:
                if _may_pass(error):
                    continue
            return True
        return False

    @property
    def _urls(self) -> str:
        return ", ".join(server.url for server in self._servers)


def _may_pass(error: BaseException) -> bool:
    if isinstance(error, openai.APIStatusError):
        return error.status_code >= 500 or error.status_code in _TRANSIENT_STATUS
    return isinstance(error, (openai.APIConnectionError, MalformedReplyError))
