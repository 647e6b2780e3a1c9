"""What servers say of the model they serve, asked before the first call."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import openai

from harness.errors import UserError
from harness.llm.servers import Server
from harness.llm.unreachable import unreachable
from harness.together import together

logger = logging.getLogger(__name__)

LIMIT_S = 60.0
# For the question whether a server is alive, which costs it nothing.
SOON_S = 10.0


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


class _SilentError(UserError):
    """A server does not answer."""


async def find_served(servers: Sequence[Server], backbone: str, model: str) -> tuple[Served, list[Server]]:
    """What all servers of a backbone that answer agree to serve, and those that do not answer.

    Raises:
        UserError: None can be reached; one refuses the key, or does not serve this model; or they do not all report the
            same.
    """
    found = await together(_heard(server, backbone, model) for server in servers)
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


async def is_there(servers: Sequence[Server]) -> bool:
    """Whether any of some servers answers at all."""

    async def answers(server: Server) -> bool:
        try:
            async with asyncio.timeout(SOON_S):
                await server.client.models.list()
        except (openai.APIConnectionError, TimeoutError):
            return False
        except (openai.APIError, ValueError):
            # An error is an answer too.
            return True
        return True

    return any(await together(map(answers, servers)))


async def _heard(server: Server, backbone: str, model: str) -> Served | _SilentError:
    try:
        return await _at(server, backbone, model)
    except _SilentError as error:
        return error


async def _at(server: Server, backbone: str, model: str) -> Served:
    try:
        async with asyncio.timeout(LIMIT_S):
            listed = {entry.id: entry for entry in (await server.client.models.list()).data}
    except (openai.APIConnectionError, TimeoutError) as error:
        raise _SilentError(*unreachable(backbone, server.url, error).args) from error
    except openai.APIError as error:
        raise unreachable(backbone, server.url, error) from error
    except (ValueError, AttributeError, TypeError) as error:
        raise UserError(
            f"{server.url} of {backbone} does not answer like an OpenAI-compatible server; "
            "does its url in config/endpoints.yaml end in /v1?"
        ) from error
    if model in listed:
        extra = listed[model].model_extra or {}
        details = {key: value for key, value in extra.items() if isinstance(value, (int, str))}
        return Served(model, listed[model].owned_by, details)
    raise UserError(
        f"{server.url} does not serve {model!r} (it serves {', '.join(listed) or 'nothing'}); "
        f"start it with --served-model-name {model}, or correct the entry of {backbone} in config/endpoints.yaml"
    )
