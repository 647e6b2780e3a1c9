"""Endpoints of backbones, from ``config/endpoints.yaml`` or the file in ``GMR_ENDPOINTS``."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, PositiveFloat, PositiveInt

from harness.errors import UserError, check_names, keep_secret
from harness.files import Declaration, Distinct, Word, check
from harness.llm.request import EXTENDED

ENDPOINTS = "GMR_ENDPOINTS"
# The host is a name, an IPv4 or an IPv6 address.
_URL = r"(?i)^https?://(\[[0-9a-f:.]+\]|[^\s/:\[\]]+)(:[0-9]{1,5})?(/[^\s?#]*)?$"

# Parameters that some servers refuse. No other parameter can be left out without changing the request.
Omitted = Literal["temperature", "top_p", "seed", "n", "frequency_penalty", "presence_penalty"]


def _without_password(url: Any) -> Any:
    """Refuse URLs with a password or a query, before a message or file repeats it."""
    if isinstance(url, str) and re.search("[@?]", url):
        raise ValueError("has a user or password, or a query; take it out, and name the variable of a key by key_env")
    return url


class Endpoint(Declaration):
    """OpenAI-compatible server of one backbone. ``config/endpoints.yaml`` explains the fields."""

    url: Annotated[str, Field(pattern=_URL), BeforeValidator(_without_password)]
    key_env: str | None = None
    max_in_flight: PositiveInt = 64
    timeout_s: PositiveFloat = 600.0
    served_name: Word | None = None
    reply_name: Word | None = None
    lists_models: bool = True
    extended: bool = True
    omit: Distinct[Omitted] = ()
    max_completion_tokens: bool = False

    @property
    def api_key(self) -> str:
        """API key from the environment, or a placeholder if ``key_env`` is None. Raises UserError if it is not set."""
        if self.key_env is None:
            return "none"
        key = os.environ.get(self.key_env)
        if not key:
            raise UserError(f"endpoint {self.url} needs an API key: set the environment variable {self.key_env}")
        if odd := re.search("[^!-~]", key):
            what = f"the API key in the environment variable {self.key_env} has the character {odd[0]!r}"
            raise UserError(f"{what} (number {odd.start() + 1} of {len(key)}), which no key has; set it again without")
        keep_secret(key)
        return key

    @property
    def not_sent(self) -> tuple[str, ...]:
        return self.omit if self.extended else (*self.omit, *EXTENDED)

    def accepted(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Drop and rename parameters of a request body as the server requires."""
        names = {"max_tokens": "max_completion_tokens"} if self.max_completion_tokens else {}
        return {names.get(name, name): value for name, value in body.items() if name not in self.not_sent}


def named_file() -> str | None:
    return os.environ.get(ENDPOINTS) or None


def endpoints_file() -> str:
    return named_file() or "config/endpoints.yaml or `servers` of the preset"


def choose(document: Any, backbones: Iterable[str], where: str) -> dict[str, Endpoint]:
    """Select endpoints by backbone. Raises UserError if one is missing or any entry is invalid."""
    entries, keys = check(document, dict[str, Endpoint], where), list(backbones)
    check_names("endpoint for backbone", keys, entries, where)
    return {key: entries[key] for key in keys}
