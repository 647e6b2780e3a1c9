"""What servers say of the model they serve, asked before the first call."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import openai
from openai.types import Model

from harness.concurrency import gather
from harness.errors import UserError
from harness.llm.endpoints import their_file
from harness.llm.servers import Server
from harness.llm.unreachable import unreachable

logger = logging.getLogger(__name__)

LIMIT_S = 60.0
# Where the weights lie on the server's host is no property of the model.
_PLACES = frozenset({"root"})
_ON_THE_HUB = re.compile(r"[A-Za-z0-9][\w.-]*/[\w.-]+")


@dataclass(frozen=True, slots=True)
class Served:
    """What an endpoint says of the model it serves.

    Attributes:
        model: Its name on the hub, or where else it comes from.
        owned_by: Who serves it, such as ``vllm``; ``None`` where the server leaves it out, as many do.
        details: What else is said of it and may be part of a result's identity.
        root: What the server was told to load, a name on the hub or a folder; no part of any identity.
    """

    model: str
    owned_by: str | None
    details: Mapping[str, Any] = field(default_factory=dict)
    root: str | None = field(default=None, compare=False)

    @property
    def context_length(self) -> int | None:
        """The longest prompt and reply together, in tokens, where the server reports it."""
        length = self.details.get("max_model_len")
        return length if isinstance(length, int) else None

    @property
    def revision(self) -> str | None:
        """The revision of the weights, where the server reports one."""
        return self.details.get("revision")

    @property
    def simulated(self) -> bool:
        """Whether the server itself says that it simulates."""
        return self.owned_by == "simulated"


class _SilentError(UserError):
    """A server does not answer."""


async def find_served(
    servers: Sequence[Server], backbone: str, model: str, served_name: str | None = None
) -> tuple[Served, list[Server]]:
    """What all servers of a backbone that answer agree to serve, and those that do not answer.

    Each server learns by which names it knows the model.

    Args:
        servers: Of the backbone.
        backbone: Its key.
        model: What it is.
        served_name: What the servers call it, where they do not call it that.

    Raises:
        UserError: None can be reached; one refuses the key, or does not serve this model; or they do not all report the
            same.
    """
    found = await gather(_heard(server, backbone, model, served_name or model) for server in servers)
    silent = [server for server, one in zip(servers, found, strict=True) if isinstance(one, _SilentError)]
    for one in found:
        if isinstance(one, _SilentError):
            if len(silent) == len(servers):
                raise one
            logger.warning("%s; this job does without it", one)
    answers = [(server, one) for server, one in zip(servers, found, strict=True) if isinstance(one, Served)]
    here_at, first = answers[0]
    for server, other in answers[1:]:
        if other != first:
            here, there = ({"owned_by": one.owned_by, **one.details} for one in (first, other))
            name = min(key for key in here.keys() | there.keys() if here.get(key) != there.get(key))
            raise UserError(
                f"the servers of {backbone} are not alike: {name} is {here.get(name)!r} at {here_at.url} and "
                f"{there.get(name)!r} at {server.url}; serve the same model and revision at all its urls"
            )
    return first, silent


async def _heard(server: Server, backbone: str, model: str, name: str) -> Served | _SilentError:
    try:
        return await _at(server, backbone, model, name)
    except _SilentError as error:
        return error


async def _at(server: Server, backbone: str, model: str, name: str) -> Served:
    try:
        async with asyncio.timeout(LIMIT_S):
            listed = {entry.id: entry for entry in (await server.client.models.list()).data}
    except (openai.APIConnectionError, TimeoutError) as error:
        raise _SilentError(*unreachable(backbone, server.url, error).args) from error
    except openai.APIError as error:
        raise unreachable(backbone, server.url, error) from error
    except (ValueError, AttributeError, TypeError, RecursionError) as error:
        raise UserError(
            f"{server.url} of {backbone} does not answer like an OpenAI-compatible server; "
            f"does its url in {their_file()} end in /v1?"
        ) from error
    if name not in listed:
        calls = "" if name == model else ", or what it calls this model, as served_name"
        raise UserError(
            f"{server.url} does not serve {name!r} (it serves {', '.join(listed) or 'nothing'}); start it with "
            f"--served-model-name {name}, or correct the entry of {backbone} in {their_file()}{calls}"
        )
    served = _described(listed[name], model)
    if served.root is not None and _ON_THE_HUB.fullmatch(served.root) and served.root not in (model, name):
        raise UserError(
            f"{server.url} serves the weights of {served.root} under the name {name}; start it with those of {model}, "
            f"or correct the entry of {backbone} in config/backbones.yaml or weights.yaml"
        )
    # A server with several names for one model may answer by any of them, whichever it was asked by.
    roots = {other: (entry.model_extra or {}).get("root") for other, entry in listed.items()}
    alike = [other for other, root in roots.items() if other != name and root is not None and root == served.root]
    server.names[model] = (name, *alike)
    return served


def _described(entry: Model, model: str) -> Served:
    extra = entry.model_extra or {}
    # The library gives what the server said without a look at the types it declares.
    owner: object = getattr(entry, "owned_by", None)
    root = extra.get("root")
    details = {key: value for key, value in extra.items() if isinstance(value, (int, str)) and key not in _PLACES}
    return Served(model, owner if isinstance(owner, str) else None, details, root if isinstance(root, str) else None)
