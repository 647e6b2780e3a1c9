"""Retries and outage detection of a backbone's server.

A failed attempt counts against its call if the server answered other calls meanwhile; if not, the call waits. After ten
minutes without any reply one token is requested: either the server replies, and the call is tried once more before it
fails, or the cell stops with nothing recorded. A server whose replies cannot be charged stops the cell at once.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from email.utils import parsedate_to_datetime

import httpx2
import openai
from tenacity import AsyncRetrying, retry_if_exception, wait_exception, wait_exponential_jitter

from harness.errors import UserError
from harness.llm.call_log import AttemptLog
from harness.llm.completion import MalformedReplyError, status_of
from harness.llm.endpoints import Endpoint
from harness.llm.request import Message, Reply, Request
from harness.llm.servers import REFUSES_ALL, Server, with_cause

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
# Time-out at a proxy, conflict, too early, too many requests: not the fault of the request.
_TRANSIENT_STATUS = frozenset({408, 409, 425, 429})


class ServedBackbone(Server):
    """Server whose calls are tried until they have a reply or have failed for good."""

    def __init__(
        self, backbone: str, endpoint: Endpoint, http: httpx2.AsyncClient, attempts: AttemptLog, charge: Charge
    ) -> None:
        super().__init__(backbone, endpoint, http)
        self._attempts = attempts
        self._charge = charge
        self._slots = asyncio.Semaphore(endpoint.max_in_flight)
        self._replied_at = float("-inf")
        self._uncountable = 0  # replies in a row that cannot be charged
        self._is_out = False

    async def ask(self, request: Request) -> Reply:
        """Return the reply to a call, or its error; UserError if the server refuses all or is gone for long."""
        began = last = time.monotonic()
        failures, is_suspect = 0, False

        async def attempt() -> Reply:
            nonlocal failures, last, is_suspect
            try:
                return await self._attempt(request)
            except (openai.APIError, MalformedReplyError) as error:
                if is_transient(error):
                    answers_others = self._replied_at > last and status_of(error) != 429
                    failures += answers_others or isinstance(error, MalformedReplyError)
                    last = time.monotonic()
                    if await self._is_calls_fault(request, error, began):
                        # Once may be a server that came back meanwhile.
                        failures = MAX_FAILURES if is_suspect else failures
                        is_suspect = True
                raise

        retrying = AsyncRetrying(
            retry=retry_if_exception(is_transient),
            wait=wait_exponential_jitter(multiplier=FIRST_WAIT_S, max=MAX_WAIT_S, jitter=FIRST_WAIT_S)
            + wait_exception(_retry_after),
            stop=lambda state: failures >= MAX_FAILURES or state.attempt_number >= _MAX_ATTEMPTS,
            reraise=True,
        )
        try:
            return await retrying(attempt)
        except (openai.APIError, MalformedReplyError) as error:
            # After a reply, 403 is about one request: a filter of prompts.
            if (status := status_of(error)) in REFUSES_ALL and not (status == 403 and self._has_replied):
                raise self.unreachable(error) from error
            return Reply.failed(request.model, str(error))

    @property
    def _has_replied(self) -> bool:
        return self._replied_at > float("-inf")

    async def _attempt(self, request: Request) -> Reply:
        # A call that waits for its next attempt holds no slot.
        async with self._slots:
            try:
                with self._attempts.measure(request.key, self.endpoint.url):
                    reply = await self.complete(request)
            except MalformedReplyError as error:
                await self._count_unusable(request, error)
                raise
        self._replied_at, self._uncountable = time.monotonic(), 0
        if self._is_out:
            self._is_out = False
            logger.warning("%s answers again", self.backbone)
        return reply

    async def _count_unusable(self, request: Request, error: MalformedReplyError) -> None:
        """Record the tokens of an unusable reply; UserError if the server is unlikely ever to give a usable one."""
        if error.tokens is not None:
            await self._charge(request.model, *error.tokens)
        self._uncountable += bool(error.cure)
        # Where nothing was charged, it is no server of completions.
        most = MAX_FAILURES if self._has_replied else 1 if error.tokens is None else _MAX_UNCOUNTABLE
        if error.cure and self._uncountable >= most:
            raise UserError(
                f"{self} answers with {error}; {error.cure}; then give the same command again (finished calls are kept)"
            ) from error

    async def _is_calls_fault(self, request: Request, error: Exception, began: float) -> bool:
        """Return whether this call is at fault: the server has not replied for OUTAGE_S, yet replies to a probe.

        Raises UserError if it has not replied for OUTAGE_S, nor replies to the probe.
        """
        while True:
            silence = time.monotonic() - max(began, self._replied_at)
            if silence >= SILENCE_S and not self._is_out:
                self._is_out = True
                logger.warning(
                    "%s does not answer at %s (%s): its calls wait until it does, for at most %.0f minutes",
                    self.backbone,
                    self.endpoint.url,
                    with_cause(error),
                    OUTAGE_S / 60,
                )
            # After a time-out in silence, probe before the next attempt, which could outlast OUTAGE_S.
            hangs = isinstance(error, openai.APITimeoutError) and silence >= SILENCE_S
            if silence < OUTAGE_S and not hangs:
                return False
            if await self._replies_to_probe(request):
                return silence >= OUTAGE_S
            if silence >= OUTAGE_S:
                raise self.unreachable(error) from error
            await asyncio.sleep(MAX_WAIT_S)

    async def _replies_to_probe(self, request: Request) -> bool:
        probe = replace(request, messages=(Message("user", "Hello"),), response_format=None, max_tokens=1)
        try:
            await self.complete(probe, within_s=_PROBE_S)
        except (openai.APIError, MalformedReplyError) as error:
            return not is_transient(error)
        return True


def _retry_after(error: BaseException) -> float:
    """Return the seconds of a server's Retry-After, a number or a date, at most a minute; 0 without one."""
    text = error.response.headers.get("retry-after", "") if isinstance(error, openai.APIStatusError) else ""
    try:
        seconds = float(text)
    except ValueError:
        try:
            seconds = parsedate_to_datetime(text).timestamp() - time.time()
        except ValueError:
            seconds = 0.0
    # In this order also of a number that is none.
    return min(max(0.0, seconds), 60.0)


def is_transient(error: BaseException) -> bool:
    """Return whether another attempt may have a reply."""
    if (status := status_of(error)) is not None:
        return status >= 500 or status in _TRANSIENT_STATUS
    return isinstance(error, (openai.APIConnectionError, MalformedReplyError))
