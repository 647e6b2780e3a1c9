"""Addresses of backbones, read from ``config/endpoints.yaml`` or the file that the environment names."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, PositiveFloat, PositiveInt, model_validator

from harness.errors import UserError, unknown
from harness.files import ROOT, Declaration, Distinct, Word, read
from harness.llm.backbones import Price

SIMULATED_URL = "GMR_SIMULATED_URL"
ENDPOINTS = "GMR_ENDPOINTS"
_FILE = "config/endpoints.yaml"
# As many as five servers of the size in config/endpoints.yaml: behind this one URL are all backbones.
_AT_URL = 1280
_URL = r"^https?://[^\s/:]+(:[0-9]{1,5})?(/\S*)?$"

Url = Annotated[str, Field(pattern=_URL)]


class Endpoint(Declaration):
    """One or more OpenAI-compatible servers of one backbone; ``config/endpoints.yaml`` says what each field means."""

    url: Url | None = None
    urls: Distinct[Url] = ()  # in any case, also of one
    key_env: str | None = None
    max_in_flight: PositiveInt = 64
    timeout_s: PositiveFloat = 600.0
    served_name: Word | None = None
    extended: bool = True
    price: Price | None = None
    currency: Word | None = None

    @model_validator(mode="before")
    @classmethod
    def _several(cls, given: Any) -> Any:
        if not isinstance(given, dict):
            return given
        if ("url" in given) == ("urls" in given):
            raise ValueError("needs either url, for one server, or urls, for several of the same model")
        if ("price" in given) != ("currency" in given):
            raise ValueError("needs both price and currency, or neither")
        return {"urls": [given["url"]], **given} if "url" in given else given

    @property
    def api_key(self) -> str:
        """The key from the environment, a UserError where it is not set; servers that check none get a placeholder."""
        if self.key_env is None:
            return "none"
        key = os.environ.get(self.key_env)
        if not key:
            raise UserError(f"endpoint {self.urls[0]} needs an API key: set the environment variable {self.key_env}")
        return key


# Of backbones that this process answers for.
IN_PROCESS = Endpoint.model_construct(urls=("in-process",))


def endpoints_file() -> str:
    """The file that says where backbones are served, as a message names it."""
    return os.environ.get(ENDPOINTS) or f"{_FILE} or `servers` of the preset"


def declared_in() -> Path:
    """The file of addresses."""
    return Path(os.environ.get(ENDPOINTS) or ROOT / _FILE)


def simulated_url() -> str | None:
    """The URL of simulated backbones in another process, with the same replies; a UserError where it is none."""
    url = os.environ.get(SIMULATED_URL) or None
    if url is not None and not re.search(_URL, url):
        raise UserError(f"{SIMULATED_URL} is {url!r}; expected the URL of a server, such as http://127.0.0.1:8000/v1")
    return url


def simulated() -> Endpoint:
    """The endpoint of all simulated backbones: in this process, or where the environment says."""
    url = simulated_url()
    return IN_PROCESS if url is None else Endpoint(url=url, max_in_flight=_AT_URL)


def is_named() -> bool:
    """Return whether the environment names the file of addresses."""
    return bool(os.environ.get(ENDPOINTS))


def load(path: Path, backbones: Iterable[str], where: str = "") -> dict[str, Endpoint]:
    """The endpoints of backbones; UserError where one has none, is wrong, or shares a server on other terms."""
    return choose(read(path, dict[str, Endpoint]), backbones, where or str(path))


def choose(entries: Mapping[str, Endpoint], backbones: Iterable[str], where: str) -> dict[str, Endpoint]:
    """Return those of entries from anywhere that backbones need; UserError as :func:`load`."""
    endpoints: dict[str, Endpoint] = {}
    first: dict[str, str] = {}
    for backbone in backbones:
        if backbone not in entries:
            raise unknown("endpoint for backbone", backbone, entries, where)
        endpoint = endpoints[backbone] = entries[backbone]
        for url in endpoint.urls:
            other = first.setdefault(url, backbone)
            for name in ("max_in_flight", "key_env", "timeout_s", "extended"):
                if getattr(endpoints[other], name) != getattr(endpoint, name):
                    raise UserError(f"{where}: {other} and {backbone} share {url}; give them the same {name}")
    return endpoints
