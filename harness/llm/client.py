"""The one request path: every model call of every method goes through :class:`ChatClient`."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import openai

from harness.errors import UserError
from harness.llm.attempts import AttemptLog
from harness.llm.call_log import CallLog, SealedLog
from harness.llm.endpoints import IN_PROCESS, Endpoint
from harness.llm.request import Reply, Request
from harness.llm.transport import ChatEndpoint, InProcessTransport

MAX_ATTEMPTS = 6
FIRST_DELAY_S = 0.5
_TRANSIENT = (openai.APIConnectionError, openai.RateLimitError, openai.InternalServerError)
# Time-out at a proxy, conflict, too early: nothing the request could do about it.
_TRANSIENT_STATUS = frozenset({408, 409, 425})


class MalformedReplyError(Exception):
    """The server answered, but not with a chat completion that reports its usage."""


@dataclass
class Counts:
    """Who answered: ``asked`` a server, the ``log`` of this cell, a call in ``flight``, a ``shared`` sealed log."""

    asked: int = 0
    log: int = 0
    flight: int = 0
    shared: int = 0


@dataclass(frozen=True, slots=True)
class Served:
    """What an endpoint says of the model it serves."""

    model: str
    owned_by: str
    details: Mapping[str, Any] = field(default_factory=dict)

    @property
    def revision(self) -> str | None:
        """The revision of the weights, where the server reports one."""
        return self.details.get("revision")

    @property
    def simulated(self) -> bool:
        """Whether the server itself says that it simulates."""
        return self.owned_by == "simulated"


class ChatClient:
    """Asks backbones, each distinct call once.

    Identical calls in flight share one request; a call that the log holds is not asked again; a sealed log of another
    cell answers where it was declared. Failed attempts are retried with a growing delay and noted in the attempt log,
    never in the call log.

    Args:
        endpoints: Endpoint of each backbone key.
        log: The cell's call log.
        attempts: Where attempts, latencies and hosts go, outside the run's identity.
        shared: Sealed logs of other cells, declared inputs of this one.
        in_process: What answers for endpoints of this process.
    """

    def __init__(
        self,
        endpoints: Mapping[str, Endpoint],
        log: CallLog,
        attempts: AttemptLog,
        shared: Sequence[SealedLog] = (),
        in_process: ChatEndpoint | None = None,
    ) -> None:
        self._endpoints = endpoints
        self._log = log
        self._attempts = attempts
        self._shared = shared
        self._flight: dict[str, asyncio.Task[Reply]] = {}
        self._slots = {e.url: asyncio.Semaphore(e.max_in_flight) for e in endpoints.values()}
        transport = openai.DefaultAsyncHttpxClient(transport=InProcessTransport(in_process)) if in_process else None
        self._client = openai.AsyncOpenAI(
            api_key="none",
            base_url="http://in-process/v1",
            max_retries=0,
            http_client=transport or openai.DefaultAioHttpClient(),
        )
        self.counts = Counts()

    async def __aenter__(self) -> ChatClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        left = list(self._flight.values())
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)
        await self._client.close()

    async def served(self, backbone: str, model: str) -> Served:
        """Ask an endpoint what it serves, before the first paid call.

        Raises:
            UserError: The endpoint cannot be reached, refuses the key, or does not serve this model.
        """
        endpoint = self._endpoints[backbone]
        try:
            listed = {entry.id: entry for entry in (await self._at(endpoint).models.list()).data}
        except openai.APIError as error:
            raise _unreachable(backbone, endpoint, error) from error
        except (ValueError, AttributeError, TypeError) as error:
            raise UserError(
                f"{endpoint.url} of {backbone} does not answer like an OpenAI-compatible server; "
                "does its url in config/endpoints.yaml end in /v1?"
            ) from error
        if model in listed:
            extra = listed[model].model_extra or {}
            details = {key: value for key, value in extra.items() if isinstance(value, (int, str))}
            return Served(model, listed[model].owned_by, details)
        raise UserError(
            f"{endpoint.url} does not serve {model!r} (it serves {', '.join(listed) or 'nothing'}); "
            f"start it with --served-model-name {model}, or correct the entry of {backbone} in config/endpoints.yaml"
        )

    async def complete(self, backbone: str, request: Request) -> Reply:
        """The outcome of a call: from the log, from a call in flight, from a sealed log, or from the server.

        Raises:
            UserError: The endpoint is down or refuses the key; nothing is recorded for this call then.
        """
        key = request.key
        if (known := self._log.get(key)) is not None:
            self.counts.log += 1
            return known
        if key in self._flight:
            self.counts.flight += 1
            return await asyncio.shield(self._flight[key])
        for sealed in self._shared:
            if (known := sealed.get(key)) is not None:
                self.counts.shared += 1
                self._log.append(request, known)
                return known
        task = asyncio.create_task(self._ask(backbone, request))
        self._flight[key] = task
        task.add_done_callback(lambda _: self._flight.pop(key))
        return await asyncio.shield(task)

    async def _ask(self, backbone: str, request: Request) -> Reply:
        endpoint = self._endpoints[backbone]
        async with self._slots[endpoint.url]:
            reply = await self._with_retries(backbone, endpoint, request)
        self.counts.asked += 1
        self._log.append(request, reply)
        return reply

    async def _with_retries(self, backbone: str, endpoint: Endpoint, request: Request) -> Reply:
        for attempt in range(1, MAX_ATTEMPTS + 1):
            try:
                with self._attempts.measure(request.key, endpoint.url, attempt):
                    return await self._once(endpoint, request)
            except (openai.AuthenticationError, openai.PermissionDeniedError, openai.NotFoundError) as error:
                raise _unreachable(backbone, endpoint, error) from error
            except (*_TRANSIENT, MalformedReplyError) as error:
                if attempt == MAX_ATTEMPTS:
                    if isinstance(error, openai.APIConnectionError):
                        raise _unreachable(backbone, endpoint, error) from error
                    return Reply.failed(request.model, str(error))
                await asyncio.sleep(_delay(request.key, attempt))
            except openai.APIStatusError as error:
                if error.status_code not in _TRANSIENT_STATUS or attempt == MAX_ATTEMPTS:
                    return Reply.failed(request.model, str(error))
                await asyncio.sleep(_delay(request.key, attempt))
        raise AssertionError("the loop returns or raises")

    async def _once(self, endpoint: Endpoint, request: Request) -> Reply:
        try:
            # Not chat.completions.create: validating the arguments and the reply against its types is nearly half of
            # what a call costs here, and _reply checks what counts.
            completion = await self._at(endpoint).post("/chat/completions", body=request.body(), cast_to=object)
        except ValueError as error:
            raise MalformedReplyError(f"not JSON: {error}") from error
        return _reply(completion)

    def _at(self, endpoint: Endpoint) -> openai.AsyncOpenAI:
        if endpoint.url == IN_PROCESS:
            return self._client
        return self._client.with_options(base_url=endpoint.url, api_key=endpoint.api_key, timeout=endpoint.timeout_s)


def _reply(completion: Any) -> Reply:
    try:
        choice, usage = completion["choices"][0], completion.get("usage") or {}
        content = choice["message"].get("content") or ""
        # A lone surrogate cannot be stored; the server meant no more by it than a damaged character.
        text = content.encode("utf-8", "replace").decode()
        sent, written = usage.get("prompt_tokens"), usage.get("completion_tokens")
        reason, model = str(choice.get("finish_reason")), str(completion.get("model"))
    except (AttributeError, LookupError, TypeError) as error:
        raise MalformedReplyError(f"not a chat completion: {error!r}") from error
    if not isinstance(sent, int) or not isinstance(written, int):
        raise MalformedReplyError("a chat completion that does not report its usage")
    return Reply(text, sent, written, reason, model)


def _delay(key: str, attempt: int) -> float:
    jitter = int(hashlib.sha256(f"{key}:{attempt}".encode()).hexdigest()[:8], 16) / 0xFFFFFFFF
    return FIRST_DELAY_S * 2 ** (attempt - 1) * (0.5 + jitter)


def _unreachable(backbone: str, endpoint: Endpoint, error: openai.APIError) -> UserError:
    if isinstance(error, (openai.AuthenticationError, openai.PermissionDeniedError)):
        return UserError(f"{endpoint.url} refuses the API key of {backbone}; check the variable named by key_env")
    if isinstance(error, openai.NotFoundError):
        return UserError(
            f"{endpoint.url} does not know what {backbone} asks for ({error}); check config/endpoints.yaml"
        )
    return UserError(
        f"endpoint {endpoint.url} of {backbone} does not answer ({error}); start the server or correct "
        "config/endpoints.yaml, then give the same command again (finished calls are kept)"
    )
