"""Retries and outage detection of a backbone's server.

A failed attempt counts against its call if the server answered other calls in the meantime. Otherwise the call waits.
After ten minutes without any reply a probe requests one token. If the server answers it, the call is tried once more
before it fails. If not, the cell stops and records nothing. Replies without token counts stop the cell at once.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace

import httpx2
import openai
from tenacity import AsyncRetrying, retry_if_exception, wait_exception, wait_exponential_jitter

from harness.errors import UserError
from harness.llm.backbones import Endpoint
from harness.llm.call_log import AttemptLog
from harness.llm.completion import OUTAGE_S, MalformedReplyError, is_spent, retry_after_s, status_of
from harness.llm.request import Message, Reply, Request
from harness.llm.servers import Server, refuses_all, with_cause

logger = logging.getLogger(__name__)

# Commits (model, prompt tokens, completion tokens) of an unusable reply that was paid for.
Charge = Callable[[str, int, int], Awaitable[None]]

MAX_FAILURES = 12
# Maximum number of consecutive replies without token counts from a server that has sent no usable reply.
_MAX_UNCOUNTABLE = 3
# Includes attempts lost to outages, so that a call that crashes its server each time fails eventually.
_MAX_ATTEMPTS = 4 * MAX_FAILURES
FIRST_WAIT_S = 0.5
MAX_WAIT_S = 30.0
# Longest wait that a server's Retry-After adds.
_LONGEST_WAIT_S = 60.0
# Time without any reply before a warning is logged.
SILENCE_S = 30.0
# Time limit of a probe, which waits behind other calls.
_PROBE_S = 30.0
# Proxy timeout, conflict, too early, too many requests.
_TRANSIENT_STATUS = frozenset({408, 409, 425, 429})


class ServedBackbone(Server):
    """Server with retries: each call ends with a reply or with a final error."""

    def __init__(
        self, backbone: str, endpoint: Endpoint, http: httpx2.AsyncClient, attempts: AttemptLog, charge: Charge
    ) -> None:
        super().__init__(backbone, endpoint, http)
        self._attempts = attempts
        self._charge = charge
        self._slots = asyncio.Semaphore(endpoint.max_in_flight)
        self._replied_at = 0.0  # none so far
        self._uncountable = 0  # consecutive replies without token counts
        self._is_out = False

    async def ask(self, request: Request) -> Reply:
        """Return the reply or final error. Raises UserError if a server refuses everything or is gone for OUTAGE_S."""
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
                        # The first time, the server may just have come back.
                        failures = MAX_FAILURES if is_suspect else failures
                        is_suspect = True
                raise

        retrying = AsyncRetrying(
            retry=retry_if_exception(is_transient),
            wait=wait_exponential_jitter(multiplier=FIRST_WAIT_S, max=MAX_WAIT_S, jitter=FIRST_WAIT_S)
            + wait_exception(lambda error: min(retry_after_s(error), _LONGEST_WAIT_S)),
            stop=lambda state: failures >= MAX_FAILURES or state.attempt_number >= _MAX_ATTEMPTS,
            reraise=True,
        )
        try:
            return await retrying(attempt)
        except (openai.APIError, MalformedReplyError) as error:
            # A 403 after a successful reply concerns one request.
            if refuses_all(error) and not (status_of(error) == 403 and self._replied_at):
                raise self.unreachable(error) from error
            return Reply.failed(request.model, str(error))

    async def _attempt(self, request: Request) -> Reply:
        # A call that backs off holds no slot.
        async with self._slots:
            try:
                with self._attempts.measure(request.key, self.endpoint.url):
                    reply = await self.complete(request)
            except MalformedReplyError as error:
                if error.tokens is not None:
                    await self._charge(request.model, *error.tokens)
                self._uncountable += bool(error.cure)
                if error.cure and self._uncountable >= (MAX_FAILURES if self._replied_at else _MAX_UNCOUNTABLE):
                    cure = f"{error.cure}; then give the same command again (finished calls are kept)"
                    raise UserError(f"{self} answers with {error}", cure) from error
                raise
        self._replied_at, self._uncountable = time.monotonic(), 0
        if self._is_out:
            self._is_out = False
            logger.warning("%s answers again", self.backbone)
        return reply

    async def _is_calls_fault(self, request: Request, error: Exception, began: float) -> bool:
        """Whether the call is at fault: the server answers a probe after OUTAGE_S. If it does not, raises UserError."""
        silence = time.monotonic() - max(began, self._replied_at)
        if silence >= SILENCE_S and not self._is_out:
            self._is_out = True
            wait = f"its calls wait until it does, for at most {OUTAGE_S / 60:.0f} minutes"
            logger.warning("%s does not answer (%s): %s", self, with_cause(error), wait)
        if silence < OUTAGE_S:
            return False
        probe = replace(request, messages=(Message("user", "Hello"),), response_format=None, max_tokens=1)
        try:
            await self.complete(probe, within_s=_PROBE_S)
        except (openai.APIError, MalformedReplyError) as refusal:
            if is_transient(refusal):
                raise self.unreachable(error) from error
        return True


def is_transient(error: BaseException) -> bool:
    if (status := status_of(error)) is not None:
        return (status >= 500 or status in _TRANSIENT_STATUS) and not is_spent(error)
    return isinstance(error, (openai.APIConnectionError, MalformedReplyError))
