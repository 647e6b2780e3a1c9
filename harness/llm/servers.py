"""OpenAI-compatible servers: the connection to each, what it says it serves, and what counts as a reply."""

from __future__ import annotations

import asyncio
import logging
import re
import resource
from collections.abc import Sequence
from typing import Any

import aiohttp
import httpx2
import openai
from openai.types import Model
from openai.types.chat import ChatCompletion

from harness.concurrency import gather
from harness.errors import UserError
from harness.llm.endpoints import ENDPOINTS, Endpoint, endpoints_file
from harness.llm.request import Reply, Request, Served, is_simulated

logger = logging.getLogger(__name__)

# Tries of what no call waits for: which models there are, and the short completion of a health check.
TRIES = 3
_CONNECT_S = 10.0
_LISTING_S = 60.0
# Beside the connections: tables, logs, pipes to workers.
_OTHER_FILES = 256
_ON_THE_HUB = re.compile(r"[A-Za-z0-9][\w.-]*/[\w.-]+")
# Of a generation that came to its end. For others engines have words of their own, such as `abort`, or none.
_FINISHED = ("stop", "length", "content_filter", "tool_calls")
_REPORT_USAGE = "nothing can be charged without counts of tokens: let it report `usage`, or serve by another engine"
# Tokens that no text accounts for: a chat template with a system prompt of its own, what an engine writes ahead.
_UNSEEN_TOKENS = 4096


class MalformedReplyError(Exception):
    """An answer that is no completion of the request; the message may end up in a call log and names no host."""

    def __init__(self, message: str, cure: str = "", tokens: tuple[int, int] | None = None) -> None:
        super().__init__(message)
        self.cure = cure  # what would mend the server, where its every reply is likely to be so
        self.tokens = tokens  # of prompt and completion, where the server made one and may charge for it


class SilentError(UserError):
    """A server does not answer."""


class Server:
    """The connection to one server, and what is known of its load and health."""

    def __init__(self, url: str, endpoint: Endpoint, http: httpx2.AsyncClient) -> None:
        self.url = url
        self.capacity = endpoint.max_in_flight
        self.places = asyncio.Semaphore(self.capacity)
        self.in_flight = 0  # requests under way, and those that wait for a place here
        self.failed_at = float("-inf")  # when the last attempt ended, where it failed
        self.has_answered = False
        self.uncountable = 0  # replies in a row that can never count
        self._extended = endpoint.extended
        # By the model's own name what this server calls it: the name to ask by first, as it may answer by another.
        self._names: dict[str, tuple[str, ...]] = {}
        self._client = openai.AsyncOpenAI(
            api_key=endpoint.api_key,
            base_url=url,
            max_retries=0,
            timeout=httpx2.Timeout(endpoint.timeout_s, connect=_CONNECT_S),
            http_client=http,
        )

    async def complete(self, request: Request, *, within_s: float | None = None, tries: int = 1) -> Reply:
        """Return the reply, within the endpoint's ``timeout_s`` by default; APIError or MalformedReplyError without.

        Raises UserError where a simulation shows in its replies alone: by then nothing marks what is made of them.
        """
        names = self._names.get(request.model) or (request.model,)
        client = self._client
        if within_s is not None:
            client = client.with_options(max_retries=tries - 1, timeout=within_s)
        body = {**request.body(extended=self._extended), "model": names[0]}
        try:
            # What chat.completions.create does, but for its walk through the declared type of every field, which takes
            # a fifth of the processor time of a call.
            completion = await client.post("/chat/completions", body=body, cast_to=ChatCompletion)
            self._refuse_unmarked(completion, request)
            return _reply(completion, request, names)
        except (ValueError, RecursionError) as error:
            raise MalformedReplyError(f"not JSON: {error}") from error
        except openai.APITimeoutError as error:
            # The libraries call it a time-out, too, where a connection was refused.
            cause = error.__cause__ and error.__cause__.__cause__
            if isinstance(cause, aiohttp.ClientConnectorError):
                raise openai.APIConnectionError(request=error.request) from cause
            raise
        except (aiohttp.ClientError, httpx2.HTTPError, OSError) as error:
            # What comes through both libraries as it is, such as an answer that is no HTTP.
            raise openai.APIConnectionError(request=httpx2.Request("POST", client.base_url)) from error

    async def served(self, backbone: str, model: str, served_name: str | None) -> Served:
        """What it says of a model, under whatever names; SilentError without an answer, UserError for other weights."""
        name = served_name or model
        listed = await self._listed(backbone)
        if name not in listed:
            calls = "" if name == model else ", or what it calls this model, as served_name"
            what = f"{self.url} does not serve {name!r} (it serves {', '.join(listed) or 'nothing'})"
            cure = f"start it with --served-model-name {name}, or correct the entry of {backbone} in {endpoints_file()}"
            raise UserError(f"{what}; {cure}{calls}")
        found = Served.listed(model, dict(listed[name]))
        if found.root is not None and _ON_THE_HUB.fullmatch(found.root) and found.root not in (model, name):
            what = (
                f"{self.url} serves the weights of {found.root} under the name {name}; start it with those of {model}"
            )
            raise UserError(f"{what}, or correct the entry of {backbone} in config/backbones.yaml or weights.yaml")
        # A server with several names for one model may answer by any of them, whichever it was asked by.
        alike = [key for key, entry in listed.items() if dict(entry).get("root") == found.root is not None]
        self._names[model] = (name, *alike)
        return found

    async def close(self) -> None:
        """Give up all connections."""
        await self._client.close()

    def _refuse_unmarked(self, completion: ChatCompletion, request: Request) -> None:
        fingerprint = getattr(completion, "system_fingerprint", None)
        if is_simulated(fingerprint) and not is_simulated(request.revision):
            raise UserError(
                f"{self.url} simulates {request.model}, as its replies say (system_fingerprint {fingerprint}), but "
                "lists it without that revision, so that calls would not say what they are for, nor results that they "
                f"are simulated; name the server itself in {endpoints_file()}, not a gateway that leaves fields out"
            )

    async def _listed(self, backbone: str) -> dict[str, Model]:
        try:
            client = self._client.with_options(max_retries=TRIES - 1, timeout=_LISTING_S)
            return {entry.id: entry for entry in (await client.models.list()).data}
        except openai.APIError as error:
            raise unreachable(backbone, self.url, error) from error
        except (ValueError, AttributeError, TypeError, RecursionError) as error:
            what = f"{self.url} of {backbone} does not answer like an OpenAI-compatible server"
            raise UserError(f"{what}; does its url in {endpoints_file()} end in /v1?") from error


def _reply(completion: ChatCompletion, request: Request, names: Sequence[str]) -> Reply:
    """The package looks at no type that a server declares."""
    try:
        choice, usage = completion.choices[0], completion.usage
        # A lone surrogate cannot be stored; the server meant no more by it than a damaged character.
        text = (choice.message.content or "").encode("utf-8", "replace").decode()
        reason: Any = choice.finish_reason
        sent, written = (usage.prompt_tokens, usage.completion_tokens) if usage else (None, None)
        model = completion.model
    except (AttributeError, LookupError, TypeError) as error:
        raise MalformedReplyError(f"not a chat completion: {error!r}") from error
    if sent is None or written is None:
        raise MalformedReplyError("a chat completion that does not report its usage", _REPORT_USAGE, (0, 0))
    # No tokenizer makes more tokens than bytes of a text; True is no number, though Python calls it an int.
    most_sent = sum(len(message.content.encode()) for message in request.messages) + _UNSEEN_TOKENS
    most_written = request.max_tokens + _UNSEEN_TOKENS
    if not (
        (type(sent), type(written)) == (int, int) and 1 <= sent <= most_sent and bool(text) <= written <= most_written
    ):
        what = f"a chat completion with an impossible usage ({sent!r} and {written!r} tokens)"
        raise MalformedReplyError(what, _REPORT_USAGE, (0, 0))
    if reason not in _FINISHED:
        what = f"a completion that was not finished (finish_reason {reason!r})"
        raise MalformedReplyError(what, tokens=(sent, written))
    if model not in names:
        what = f"a completion of the model {model!r}, while {names[0]!r} was asked"
        cure = f"let it answer by this name (vLLM: --served-model-name), or correct served_name in {endpoints_file()}"
        raise MalformedReplyError(what, cure, (sent, written))
    return Reply(text, sent, written, reason, request.model)


async def find_served(
    servers: Sequence[Server], backbone: str, model: str, served_name: str | None = None
) -> tuple[Served, list[Server]]:
    """What all servers of a backbone that answer agree to serve, and which they are; UserError where they differ."""

    async def heard(server: Server) -> Served | SilentError:
        try:
            return await server.served(backbone, model, served_name)
        except SilentError as error:
            return error

    found = dict(zip(servers, await gather(map(heard, servers)), strict=True))
    answers = {server: one for server, one in found.items() if isinstance(one, Served)}
    for one in found.values():
        if isinstance(one, SilentError):
            if not answers:
                raise one
            logger.warning("%s; this job does without it", one)
    (here_at, first), *others = answers.items()
    for server, other in others:
        if other != first:
            here, there = ({"owned_by": one.owned_by, **one.details} for one in (first, other))
            name = min(key for key in here.keys() | there.keys() if here.get(key) != there.get(key))
            what = f"{name} is {here.get(name)!r} at {here_at.url} and {there.get(name)!r} at {server.url}"
            cure = "serve the same model and revision at all its urls"
            raise UserError(f"the servers of {backbone} are not alike: {what}; {cure}")
    return first, list(answers)


def http_client(connections: int) -> httpx2.AsyncClient:
    """The one HTTP client of a process; UserError where the system does not allow so many open files."""
    # The usual limit of 1,024 files is less than five full servers need.
    number = connections + _OTHER_FILES
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < number:
        what = f"{endpoints_file()} wants up to {connections} connections, but a process may open {hard} files here"
        raise UserError(f"{what}; lower max_in_flight, or raise the limit (ulimit -Hn)")
    if soft != resource.RLIM_INFINITY and soft < number:
        resource.setrlimit(resource.RLIMIT_NOFILE, (number, hard))
    return openai.DefaultAioHttpClient(
        limits=httpx2.Limits(max_connections=connections, max_keepalive_connections=connections)
    )


def unreachable(backbone: str, urls: str, error: BaseException) -> UserError:
    """Return what to tell of an endpoint that refuses every request, or does not answer."""
    if isinstance(error, (openai.AuthenticationError, openai.PermissionDeniedError)):
        return UserError(f"{urls} refuses the API key of {backbone}; check the variable named by key_env")
    if isinstance(error, openai.NotFoundError):
        return UserError(f"{urls} does not know what {backbone} asks for ({error}); check {endpoints_file()}")
    kind = SilentError if isinstance(error, openai.APIConnectionError) else UserError
    return kind(
        f"endpoint {urls} of {backbone} does not answer ({with_cause(error)}); start the server, correct "
        f"{endpoints_file()}, or name another file by {ENDPOINTS}; then give the same command again (finished calls "
        "are kept)"
    )


def with_cause(error: BaseException) -> str:
    """The message of an error, or of what it comes from where the library says no more than that it failed."""
    while isinstance(error, openai.APIConnectionError) and error.__cause__ is not None:
        error = error.__cause__
    return str(error) or type(error).__name__
