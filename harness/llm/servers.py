"""OpenAI-compatible server of a backbone: connection, served model, and validation of replies."""

from __future__ import annotations

import hashlib
import re
import resource
from collections.abc import Sequence
from dataclasses import replace
from typing import Any
from urllib.parse import urljoin

import aiohttp
import httpx2
import openai
from openai.types import Model
from openai.types.chat import ChatCompletion

from harness.errors import UserError
from harness.llm.endpoints import ENDPOINTS, Endpoint, endpoints_file
from harness.llm.request import Reply, Request, Served, is_simulated

# Of requests that no call waits for: the list of models, and the short completion of a health check.
TRIES = 3
_CONNECT_S = 10.0
_LISTING_S = 60.0
_PROPERTIES_S = 10.0
# Open files besides connections: tables, logs, pipes to workers.
_OTHER_FILES = 256
_ON_THE_HUB = re.compile(r"[A-Za-z0-9][\w.-]*/[\w.-]+")
# Reasons of a complete generation; for others engines have words of their own, such as `abort`, or none.
_FINISHED = ("stop", "length", "content_filter", "tool_calls")
_REPORT_USAGE = "nothing can be charged without counts of tokens: let it report `usage`, or serve by another engine"
# Tokens that no text accounts for, such as those of the system prompt of a chat template.
_UNSEEN_TOKENS = 4096


class MalformedReplyError(Exception):
    """Response that is no completion of the request; the message may end up in a call log and names no host."""

    def __init__(self, message: str, cure: str = "", tokens: tuple[int, int] | None = None) -> None:
        super().__init__(message)
        self.cure = cure  # for the server, if all its replies are likely to be so
        self.tokens = tokens  # of prompt and completion, if the server may charge for them


class Server:
    """Connection to the server of a backbone."""

    def __init__(self, backbone: str, endpoint: Endpoint, http: httpx2.AsyncClient) -> None:
        self.backbone = backbone
        self.endpoint = endpoint
        self._http = http
        # Names of the model at the server: first the one to request, then others by which it may reply.
        self._names: tuple[str, ...] = (endpoint.served_name,) if endpoint.served_name else ()
        self._client = openai.AsyncOpenAI(
            api_key=endpoint.api_key,
            base_url=endpoint.url,
            max_retries=0,
            timeout=httpx2.Timeout(endpoint.timeout_s, connect=_CONNECT_S),
            http_client=http,
        )

    def __str__(self) -> str:
        return f"{self.endpoint.url} of {self.backbone}"

    async def complete(self, request: Request, *, within_s: float | None = None, tries: int = 1) -> Reply:
        """Return the reply, within the endpoint's ``timeout_s`` by default.

        Raises APIError or MalformedReplyError without a reply, and UserError if only the reply tells that the server is
        simulated, because then nothing marks the results.
        """
        names = self._names or (request.model,)
        client = self._client
        if within_s is not None:
            client = client.with_options(max_retries=tries - 1, timeout=within_s)
        body = {**request.body(extended=self.endpoint.extended), "model": names[0]}
        try:
            # As chat.completions.create, but without its walk through the declared type of every field, which takes a
            # fifth of the processor time of a call.
            completion = await client.post("/chat/completions", body=body, cast_to=ChatCompletion)
            self._refuse_unmarked(completion, request)
            return _reply(completion, request, names)
        except (ValueError, RecursionError) as error:
            raise MalformedReplyError(f"not JSON: {error}") from error
        except openai.APITimeoutError as error:
            # The libraries raise it for a refused connection, too.
            cause = error.__cause__ and error.__cause__.__cause__
            if isinstance(cause, aiohttp.ClientConnectorError):
                raise openai.APIConnectionError(request=error.request) from cause
            raise
        except (aiohttp.ClientError, httpx2.HTTPError, OSError) as error:
            # Errors that both libraries pass through, such as a response that is no HTTP.
            raise openai.APIConnectionError(request=httpx2.Request("POST", client.base_url)) from error

    async def served(self, model: str) -> Served:
        """Return the server's description of the model; UserError if it does not reply or serves other weights."""
        name, url = self.endpoint.served_name or model, self.endpoint.url
        listed = await self._listed()
        if name not in listed:
            calls = "" if name == model else ", or what it calls this model, as served_name"
            what = f"{url} does not serve {name!r} (it serves {', '.join(listed) or 'nothing'})"
            start = f"start it with --served-model-name {name}"
            raise UserError(f"{what}; {start}, or correct the entry of {self.backbone} in {endpoints_file()}{calls}")
        served = Served.listed(model, dict(listed[name]))
        if served.root is not None and _ON_THE_HUB.fullmatch(served.root) and served.root not in (model, name):
            raise UserError(
                f"{url} serves the weights of {served.root} under the name {name}; start it with those of {model}"
                f", or correct the entry of {self.backbone} in config/backbones.yaml or weights.yaml"
            )
        if (template := await self._chat_template()) is not None:
            digest = hashlib.sha256(template.encode()).hexdigest()
            served = replace(served, details={**served.details, "chat_template": digest})
        # A server with several names for one model may reply by any of them.
        aliases = [key for key, entry in listed.items() if dict(entry).get("root") == served.root is not None]
        self._names = (name, *aliases)
        return served

    async def _chat_template(self) -> str | None:
        """Return the template that turns messages into a prompt, as llama.cpp reports it, or None.

        It may say more than the messages do: that of Qwen2.5 adds a system message where there is none.
        """
        try:
            answer = await self._http.get(urljoin(self.endpoint.url, "/props"), timeout=_PROPERTIES_S)
            template = answer.json()["chat_template"] if answer.is_success else None
        except (httpx2.HTTPError, aiohttp.ClientError, OSError, ValueError, LookupError, TypeError):
            return None
        return template if isinstance(template, str) else None

    def unreachable(self, error: BaseException) -> UserError:
        """Return the error for a server that refuses every request, or does not reply."""
        url, backbone = self.endpoint.url, self.backbone
        if isinstance(error, (openai.AuthenticationError, openai.PermissionDeniedError)):
            return UserError(f"{url} refuses the API key of {backbone}; check the variable named by key_env")
        if isinstance(error, openai.NotFoundError):
            return UserError(f"{url} does not know what {backbone} asks for ({error}); check {endpoints_file()}")
        return UserError(
            f"endpoint {self} does not answer ({with_cause(error)})",
            f"start the server, correct {endpoints_file()}, or name another file by {ENDPOINTS}; then give the same "
            "command again (finished calls are kept)",
        )

    async def close(self) -> None:
        """Close all connections."""
        await self._client.close()

    def _refuse_unmarked(self, completion: ChatCompletion, request: Request) -> None:
        fingerprint = getattr(completion, "system_fingerprint", None)
        if is_simulated(fingerprint) and not is_simulated(request.revision):
            raise UserError(
                f"{self.endpoint.url} simulates {request.model}, as its replies say (system_fingerprint {fingerprint})"
                ", but lists it without that revision, so that results could not be marked as simulated; name the "
                f"simulator itself in {endpoints_file()}, not a gateway that drops fields"
            )

    async def _listed(self) -> dict[str, Model]:
        try:
            client = self._client.with_options(max_retries=TRIES - 1, timeout=_LISTING_S)
            return {entry.id: entry for entry in (await client.models.list()).data}
        except openai.APIError as error:
            raise self.unreachable(error) from error
        except (ValueError, AttributeError, TypeError, RecursionError) as error:
            what = f"{self} does not answer like an OpenAI-compatible server"
            raise UserError(f"{what}; does its url in {endpoints_file()} end in /v1?") from error


def _reply(completion: ChatCompletion, request: Request, names: Sequence[str]) -> Reply:
    # The package checks no type.
    try:
        choice, usage = completion.choices[0], completion.usage
        # A lone surrogate, which stands for a damaged character, cannot be stored.
        text = (choice.message.content or "").encode("utf-8", "replace").decode()
        reason: Any = choice.finish_reason
        prompt_tokens, completion_tokens = (usage.prompt_tokens, usage.completion_tokens) if usage else (None, None)
        model = completion.model
    except (AttributeError, LookupError, TypeError) as error:
        raise MalformedReplyError(f"not a chat completion: {error!r}") from error
    if prompt_tokens is None or completion_tokens is None:
        raise MalformedReplyError("a chat completion that does not report its usage", _REPORT_USAGE, (0, 0))
    # No tokenizer makes more tokens than bytes of a text. In Python, True is an int.
    prompt_limit = sum(len(message.content.encode()) for message in request.messages) + _UNSEEN_TOKENS
    if not (
        (type(prompt_tokens), type(completion_tokens)) == (int, int)
        and 1 <= prompt_tokens <= prompt_limit
        and bool(text) <= completion_tokens <= request.max_tokens + _UNSEEN_TOKENS
    ):
        what = f"a chat completion with an impossible usage ({prompt_tokens!r} and {completion_tokens!r} tokens)"
        raise MalformedReplyError(what, _REPORT_USAGE, (0, 0))
    if reason not in _FINISHED:
        what = f"a completion that was not finished (finish_reason {reason!r})"
        raise MalformedReplyError(what, tokens=(prompt_tokens, completion_tokens))
    if model not in names:
        what = f"a completion of the model {model!r}, while {names[0]!r} was asked"
        cure = f"let it answer by this name (vLLM: --served-model-name), or correct served_name in {endpoints_file()}"
        raise MalformedReplyError(what, cure, (prompt_tokens, completion_tokens))
    return Reply(text, prompt_tokens, completion_tokens, reason, request.model)


def http_client(connections: int) -> httpx2.AsyncClient:
    """Return an HTTP client for so many connections; UserError if the system does not allow as many open files."""
    # Five full servers need more than the usual limit of 1,024 files.
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


def with_cause(error: BaseException) -> str:
    """Return the message of an error, or that of its cause where the library says no more than that it failed."""
    while isinstance(error, openai.APIConnectionError) and error.__cause__ is not None:
        error = error.__cause__
    return str(error) or type(error).__name__
