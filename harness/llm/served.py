"""What servers say of the model they serve, asked before the first call."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import openai

from harness.errors import UserError
from harness.llm.servers import Server
from harness.llm.unreachable import unreachable
from harness.together import together

LIMIT_S = 60.0


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


async def find_served(servers: Sequence[Server], backbone: str, model: str) -> Served:
    """What all servers of a backbone agree to serve.

    Raises:
        UserError: One cannot be reached, refuses the key, or does not serve this model; or they do not all report the
            same.
    """
    first, *others = await together(_at(server, backbone, model) for server in servers)
    for server, other in zip(servers[1:], others, strict=True):
        if other != first:
            here, there = ({"owned_by": one.owned_by, **one.details} for one in (first, other))
            name = min(key for key in here.keys() | there.keys() if here.get(key) != there.get(key))
            raise UserError(
                f"the servers of {backbone} are not alike: {name} is {here.get(name)!r} at {servers[0].url} and "
                f"{there.get(name)!r} at {server.url}; serve the same model and revision at all its urls"
            )
    return first


async def _at(server: Server, backbone: str, model: str) -> Served:
    try:
        async with asyncio.timeout(LIMIT_S):
            listed = {entry.id: entry for entry in (await server.client.models.list()).data}
    except (openai.APIError, TimeoutError) as error:
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
