"""OpenAI-compatible servers: the connection to each, and what it says of the model it serves."""

from __future__ import annotations

import asyncio
import logging
import re
import resource
from collections.abc import Sequence

import httpx2
import openai
from openai.types import Model

from harness.concurrency import gather
from harness.errors import UserError
from harness.llm.endpoints import ENDPOINTS, Endpoint, their_file
from harness.llm.served import Served

logger = logging.getLogger(__name__)

CONNECT_S = 10.0
# What the openai package retries by itself: broken connections, time-outs, 408, 409, 429 and 5xx.
QUICK_RETRIES = 2
_LISTING_S = 60.0
# Beside the connections: tables, logs, pipes to workers.
_OTHER_FILES = 256
_ON_THE_HUB = re.compile(r"[A-Za-z0-9][\w.-]*/[\w.-]+")


class SilentError(UserError):
    """A server does not answer."""


class Server:
    """The connection to one server.

    Args:
        url: Its base URL.
        endpoint: The entry that names it.
        http: What carries requests.

    Attributes:
        places: As many requests as may be under way.
        names: By the model's own name, what this server calls it, the name to ask by first; it may answer by another.

    Raises:
        UserError: The API key is not set.
    """

    def __init__(self, url: str, endpoint: Endpoint, http: httpx2.AsyncClient) -> None:
        self.url = url
        self.client = openai.AsyncOpenAI(
            api_key=endpoint.api_key,
            base_url=url,
            max_retries=QUICK_RETRIES,
            timeout=httpx2.Timeout(endpoint.timeout_s, connect=CONNECT_S),
            http_client=http,
        )
        self.places = asyncio.Semaphore(endpoint.max_in_flight)
        self.names: dict[str, tuple[str, ...]] = {}

    async def served(self, backbone: str, model: str, served_name: str | None) -> Served:
        """Ask what it serves, and learn by which names it knows the model.

        Args:
            backbone: Key of the backbone.
            model: What it is.
            served_name: What the server calls it, where it does not call it that.

        Raises:
            SilentError: It does not answer.
            UserError: It refuses the key, serves another model, or is no server of this kind.
        """
        name = served_name or model
        listed = await self._listed(backbone)
        if name not in listed:
            calls = "" if name == model else ", or what it calls this model, as served_name"
            raise UserError(
                f"{self.url} does not serve {name!r} (it serves {', '.join(listed) or 'nothing'}); start it with "
                f"--served-model-name {name}, or correct the entry of {backbone} in {their_file()}{calls}"
            )
        # The library gives what the server said without a look at the types it declares.
        extra = {key: entry.model_extra or {} for key, entry in listed.items()}
        found = Served.listed(model, {**extra[name], "owned_by": getattr(listed[name], "owned_by", None)})
        if found.root is not None and _ON_THE_HUB.fullmatch(found.root) and found.root not in (model, name):
            raise UserError(
                f"{self.url} serves the weights of {found.root} under the name {name}; start it with those of {model}, "
                f"or correct the entry of {backbone} in config/backbones.yaml or weights.yaml"
            )
        # A server with several names for one model may answer by any of them, whichever it was asked by.
        alike = [other for other in listed if other != name and extra[other].get("root") == found.root is not None]
        self.names[model] = (name, *alike)
        return found

    async def _listed(self, backbone: str) -> dict[str, Model]:
        try:
            return {entry.id: entry for entry in (await self.client.models.list(timeout=_LISTING_S)).data}
        except openai.APIConnectionError as error:
            raise SilentError(*unreachable(backbone, self.url, error).args) from error
        except openai.APIError as error:
            raise unreachable(backbone, self.url, error) from error
        except (ValueError, AttributeError, TypeError, RecursionError) as error:
            raise UserError(
                f"{self.url} of {backbone} does not answer like an OpenAI-compatible server; "
                f"does its url in {their_file()} end in /v1?"
            ) from error


async def find_served(
    servers: Sequence[Server], backbone: str, model: str, served_name: str | None = None
) -> tuple[Served, list[Server]]:
    """Return what all servers of a backbone that answer agree to serve, and which they are.

    Args:
        servers: Of the backbone.
        backbone: Its key.
        model: What it is.
        served_name: What the servers call it, where they do not call it that.

    Raises:
        UserError: None can be reached; one refuses the key, or does not serve this model; or they do not all report the
            same.
    """

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
            raise UserError(
                f"the servers of {backbone} are not alike: {name} is {here.get(name)!r} at {here_at.url} and "
                f"{there.get(name)!r} at {server.url}; serve the same model and revision at all its urls"
            )
    return first, list(answers)


def http_client(connections: int) -> httpx2.AsyncClient:
    """Return the one HTTP client of a process, which keeps so many connections open.

    Raises:
        UserError: The system does not let a process have so many files open.
    """
    # The usual limit of 1,024 files is less than five full servers need.
    number = connections + _OTHER_FILES
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < number:
        raise UserError(
            f"{their_file()} wants up to {connections} connections, but a process may open {hard} files here; lower "
            "max_in_flight, or raise the limit (ulimit -Hn)"
        )
    if soft != resource.RLIM_INFINITY and soft < number:
        resource.setrlimit(resource.RLIMIT_NOFILE, (number, hard))
    limits = httpx2.Limits(max_connections=connections, max_keepalive_connections=connections)
    return openai.DefaultAioHttpClient(limits=limits)


def unreachable(backbone: str, urls: str, error: BaseException) -> UserError:
    """Return what to tell of an endpoint that refuses whatever it is asked, or does not answer.

    Args:
        backbone: Whose endpoint it is.
        urls: Where it is.
        error: What the last attempt ended in.
    """
    if isinstance(error, (openai.AuthenticationError, openai.PermissionDeniedError)):
        return UserError(f"{urls} refuses the API key of {backbone}; check the variable named by key_env")
    if isinstance(error, openai.NotFoundError):
        return UserError(f"{urls} does not know what {backbone} asks for ({error}); check {their_file()}")
    return UserError(
        f"endpoint {urls} of {backbone} does not answer ({with_cause(error)}); start the server, correct "
        f"{their_file()}, or name another file by {ENDPOINTS}; then give the same command again (finished calls are "
        "kept)"
    )


def with_cause(error: BaseException) -> str:
    """The message of an error, or of what it comes from where the library says no more than that it failed."""
    while isinstance(error, openai.APIConnectionError) and error.__cause__ is not None:
        error = error.__cause__
    return str(error) or type(error).__name__
