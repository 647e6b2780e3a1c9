"""Connection to the OpenAI-compatible server of a backbone."""

import asyncio
import hashlib
import re
import resource
from dataclasses import replace
from typing import Any
from urllib.parse import urljoin

import aiohttp
import httpx2
import openai
from openai.types.chat import ChatCompletion

from harness.errors import UserError, keyless, quoted
from harness.llm.backbones import ENDPOINTS, Endpoint, endpoints_file
from harness.llm.completion import MalformedReplyError, explained_errors, is_filtered, is_spent, parse, status_of
from harness.llm.request import EXTENDED, NOT_SENT, REPLY_NAME, Reply, Request, Served

# Attempts at the model listing.
_TRIES = 5
# Statuses for a refused key (401, 403), missing credit (402), an unknown model or address (404), and a redirect (301 or
# 302) to an address that takes no POST (405).
_REFUSES_ALL = (401, 402, 403, 404, 405)
# The reason of a server that takes streamed calls alone.
_STREAMS = re.compile(
    r"only.{0,30}stream|stream\W+(?:to |= ?)?true|(?:enable|requires?) (?:the )?stream", re.IGNORECASE
)
_CONNECT_S = 10.0
_LISTING_S = 60.0
# Open files other than connections: tables, logs, pipes to workers.
_OTHER_FILES = 256
# Largest body of a response, unpacked.
_MOST_BYTES = 32 << 20
_ON_THE_HUB = re.compile(r"[A-Za-z0-9][\w.-]*/[\w.-]+")


class Server:
    """One backbone's server."""

    def __init__(self, backbone: str, endpoint: Endpoint, http: httpx2.AsyncClient) -> None:
        self.backbone = backbone
        self.endpoint = endpoint
        self._http = http
        # Names of the model at the server: the one to request, then aliases that may occur in replies.
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

    async def complete(self, request: Request, *, within_s: float | None = None) -> Reply:
        """Send one request. ``within_s`` replaces the endpoint's timeout. Raises APIError or MalformedReplyError."""
        names = [*(self._names or (request.model,)), *filter(None, [self.endpoint.reply_name])]
        client = self._client if within_s is None else self._client.with_options(timeout=within_s)
        body = {**self.endpoint.accepted(request.body()), "model": names[0]}
        try:
            with explained_errors():
                # Like chat.completions.create, but without its recursive type conversion, a fifth of a call's CPU time.
                completion = await client.post("/chat/completions", body=body, cast_to=ChatCompletion)
                return parse(completion, request, names)
        except openai.APIStatusError as error:
            if is_filtered(error):
                return Reply("", 0, 0, "content_filter", request.model)
            raise

    async def served(self, model: str) -> Served:
        """Read the server's description of the model. Raises UserError if it is gone or serves other weights."""
        name, url = self.endpoint.served_name or model, self.endpoint.url
        listed = await self._listed() if self.endpoint.lists_models else {name: {}}
        if name not in listed:
            raise UserError(
                f"{url} does not serve {name!r} (it serves {', '.join(listed) or 'nothing'})",
                f"start it with --served-model-name {name}, or correct the entry of {self.backbone} in "
                f"{endpoints_file()}: `served_name`, or `lists_models: false` if this is a page of its list",
            )
        served = Served.listed(model, listed[name])
        if served.root is not None and _ON_THE_HUB.fullmatch(served.root) and served.root not in (model, name):
            cure = f"start it with those of {model}, or correct `model` of {self.backbone}"
            raise UserError(f"{url} serves the weights of {served.root} under the name {name}", cure)
        # A server with several names for a model may reply with any of them, or with the path that it loaded.
        aliases = [key for key, entry in listed.items() if entry.get("root") == served.root is not None]
        self._names = (name, *aliases, *([served.root] if served.root else []))
        details = dict(served.details)
        if (template := await self._chat_template()) is not None:
            details["chat_template"] = hashlib.sha256(template.encode()).hexdigest()
        # EXTENDED[-1] is an alias of EXTENDED[-2].
        if not_sent := ", ".join(name for name in self.endpoint.not_sent if name != EXTENDED[-1]):
            details[NOT_SENT] = not_sent
        if self.endpoint.reply_name:
            details[REPLY_NAME] = self.endpoint.reply_name
        return replace(served, details=details)

    async def _chat_template(self) -> str | None:
        """Read the chat template from llama.cpp's ``/props``, or None. It can add text, as Qwen2.5's does."""
        try:
            headers = {"Authorization": f"Bearer {self.endpoint.api_key}"}
            answer = await self._http.get(urljoin(self.endpoint.url, "/props"), headers=headers, timeout=_LISTING_S)
        except (httpx2.HTTPError, aiohttp.ClientError, OSError) as error:
            # An error here must not count as "no template", which would change the run's identity.
            raise self.unreachable(error) from error
        if answer.status_code == 503:
            raise UserError(f"{self} is still loading its model", "give the same command again when it is ready")
        try:
            template = answer.json()["chat_template"] if answer.is_success else None
        except (ValueError, LookupError, TypeError):
            return None
        return template if isinstance(template, str) else None

    def unreachable(self, error: BaseException) -> UserError:
        """Build the error for a server that refuses every request or does not answer."""
        url, backbone, status = self.endpoint.url, self.backbone, status_of(error)
        if status in (401, 402, 403):
            cure = "check its credit and the variable named by key_env"
            return UserError(f"{url} refuses the API key of {backbone} ({error})", cure)
        if isinstance(error, openai.APIStatusError) and error.response.history:
            return UserError(f"{url} redirects {backbone} to {error.response.url} ({error})", "name that as its url")
        if is_spent(error):
            cure = "wait or add quota, then give the same command again (finished calls are kept)"
            return UserError(f"{url} has no quota left for {backbone} ({error})", cure)
        if status in (404, 405):
            return UserError(f"{url} does not know what {backbone} asks for ({error}); check {endpoints_file()}")
        cure = f"start the server, correct {endpoints_file()}, or name another file by {ENDPOINTS}; then give the same "
        cure += "command again (finished calls are kept)"
        return UserError(f"endpoint {self} does not answer ({with_cause(error)})", cure)

    def refused(self, error: openai.APIError) -> UserError:
        """Build the error for a server that does not complete a short prompt."""
        if refuses_all(error):
            return self.unreachable(error)
        if status_of(error) not in (400, 422):
            return UserError(f"{self} does not complete text ({with_cause(error)})", "see its log")
        if _STREAMS.search(str(error)):
            problem = f"{self} only streams its replies, which this suite cannot read ({error})"
            return UserError(problem, "use another server of the model, or one that also replies at once")
        return UserError(
            f"{self} refuses a short completion ({error})",
            f"list in {endpoints_file()} what it does not accept: `omit: [seed, ...]`, `extended: false` (top_k, "
            "min_p, repetition_penalty), `max_completion_tokens: true`; the entry of the backbone takes what it needs, "
            "`extra_body: {enable_thinking: false}`; a chat template without a system role needs `system: merge` there",
        )

    async def close(self) -> None:
        await self._client.close()

    async def _listed(self) -> dict[str, dict[str, Any]]:
        client = self._client.with_options(max_retries=_TRIES - 1, timeout=_LISTING_S)
        cure = f"if it completes all the same, say `lists_models: false` in its entry of {endpoints_file()}"
        try:
            with explained_errors():
                body: Any = await client.get("/models", cast_to=object)
            return {entry["id"]: entry for entry in (body if isinstance(body, list) else body["data"])}
        except openai.APIError as error:
            refusal = self.unreachable(error)
            # Some keys only allow completions, and some servers list no models.
            raise UserError(refusal.problem, cure if status_of(error) in (403, 404, 405) else refusal.cure) from error
        except (MalformedReplyError, LookupError, TypeError) as error:
            what = f"{self} does not list its models; does its url in {endpoints_file()} end in /v1?"
            raise UserError(what, cure) from error


def refuses_all(error: BaseException) -> bool:
    """Whether a server would refuse every call, now or for hours."""
    return status_of(error) in _REFUSES_ALL or is_spent(error)


class _BoundedClient(openai.DefaultAioHttpClient):
    """HTTP client whose responses are read whole, bounded in size and time, and have no API key that was read."""

    async def send(self, request: httpx2.Request, *, stream: bool = False, **options: Any) -> httpx2.Response:
        content, limit_s = bytearray(), request.extensions["timeout"]["read"]
        try:
            async with asyncio.timeout(limit_s):
                response = await super().send(request, stream=True, **options)
                async for piece in response.aiter_bytes():
                    content += piece
                    if len(content) > _MOST_BYTES:
                        await response.aclose()
                        raise httpx2.DecodingError(f"a body of more than {_MOST_BYTES >> 20} MB", request=request)
        except TimeoutError as error:
            raise httpx2.ReadTimeout(f"no whole response within {limit_s} s", request=request) from error
        text = keyless(content.decode("latin-1")).encode("latin-1")
        response.headers.pop("content-encoding", None)
        whole = httpx2.Response(response.status_code, headers=response.headers, content=text, request=response.request)
        whole.history = response.history
        return whole


def http_client(connections: int) -> httpx2.AsyncClient:
    """Create an HTTP client and raise the open-file limit if needed. Raises UserError if the hard limit is too low."""
    # Five servers at full load exceed the usual limit of 1,024 files.
    number = connections + _OTHER_FILES
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if 0 <= soft < number:  # -1: unlimited
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (number, hard))
        except ValueError as error:
            what = f"{endpoints_file()} wants up to {connections} connections, but a process may open {hard} files here"
            raise UserError(f"{what}; lower max_in_flight, or raise the limit (ulimit -Hn)") from error
    return _BoundedClient(limits=httpx2.Limits(max_connections=connections, max_keepalive_connections=connections))


def with_cause(error: BaseException) -> str:
    """Return the message of the root cause, since the library only says "Connection error."."""
    while isinstance(error, openai.APIConnectionError) and error.__cause__ is not None:
        error = error.__cause__
    return quoted(error) or type(error).__name__
