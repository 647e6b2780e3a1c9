"""Addresses of backbones, read from ``config/endpoints.yaml`` or the file that the environment names."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, PositiveFloat, PositiveInt, model_validator

from harness.errors import UserError, unknown
from harness.files import ROOT, Declaration, Distinct, Word, read

SIMULATED_URL = "GMR_SIMULATED_URL"
ENDPOINTS = "GMR_ENDPOINTS"
_FILE = "config/endpoints.yaml"
# As many as five servers of the size in config/endpoints.yaml: behind this one URL are all backbones.
_AT_URL = 1280
_URL = r"^https?://[^\s/:]+(:[0-9]{1,5})?(/\S*)?$"

Url = Annotated[str, Field(pattern=_URL)]


class Endpoint(Declaration):
    """The address of one backbone: one or more OpenAI-compatible servers that serve the same model.

    Attributes:
        url: Base URL ending in ``/v1``.
        urls: Of several servers, or the same one.
        key_env: Environment variable that holds the API key; the key itself is in no file.
        max_in_flight: Requests that a cell has under way at a server at the same time.
        timeout_s: Seconds without a byte after which an attempt counts as failed.
        served_name: What the servers call the model, where that is not its name in ``config/backbones.yaml``.
        extended: Whether they take sampling parameters that OpenAI's interface does not have.
    """

    url: Url | None = None
    urls: Distinct[Url] = ()
    key_env: str | None = None
    max_in_flight: PositiveInt = 64
    timeout_s: PositiveFloat = 600.0
    served_name: Word | None = None
    extended: bool = True

    @model_validator(mode="before")
    @classmethod
    def _several(cls, given: Any) -> Any:
        if not isinstance(given, dict):
            return given
        if ("url" in given) == ("urls" in given):
            raise ValueError("needs either url, for one server, or urls, for several of the same model")
        return {"urls": [given["url"]], **given} if "url" in given else given

    @property
    def api_key(self) -> str:
        """The key from the environment; servers that check none get a placeholder.

        Raises:
            UserError: The variable is named but not set.
        """
        if self.key_env is None:
            return "none"
        key = os.environ.get(self.key_env)
        if not key:
            raise UserError(f"endpoint {self.urls[0]} needs an API key: set the environment variable {self.key_env}")
        return key


# Of backbones that this process answers for.
IN_PROCESS = Endpoint.model_construct(urls=("in-process",))


def their_file() -> str:
    """The file that says where backbones are served, as a message names it."""
    return os.environ.get(ENDPOINTS) or _FILE


def declared_in() -> Path:
    """The file of addresses."""
    return Path(os.environ.get(ENDPOINTS) or ROOT / _FILE)


def simulated_url() -> str | None:
    """The URL of simulated backbones in another process, with the same replies.

    Raises:
        UserError: The variable holds no URL.
    """
    url = os.environ.get(SIMULATED_URL) or None
    if url is not None and not re.search(_URL, url):
        raise UserError(f"{SIMULATED_URL} is {url!r}; expected the URL of a server, such as http://127.0.0.1:8000/v1")
    return url


def simulated() -> Endpoint:
    """The endpoint of all simulated backbones: in this process, or where the environment says.

    Raises:
        UserError: The environment variable is not a URL.
    """
    url = simulated_url()
    return IN_PROCESS if url is None else Endpoint(url=url, max_in_flight=_AT_URL)


def load(path: Path, backbones: Iterable[str]) -> dict[str, Endpoint]:
    """Read the endpoint of every backbone asked for.

    Raises:
        UserError: A backbone without endpoint, an entry with an unknown or ill-typed field or without its one ``url``
            or ``urls``, or one server with two different limits or keys.
    """
    entries: dict[str, Endpoint] = read(path, dict[str, Endpoint])
    endpoints: dict[str, Endpoint] = {}
    first: dict[str, str] = {}
    for backbone in backbones:
        if backbone not in entries:
            raise unknown("endpoint for backbone", backbone, entries, str(path))
        endpoint = endpoints[backbone] = entries[backbone]
        for url in endpoint.urls:
            other = first.setdefault(url, backbone)
            for name in ("max_in_flight", "key_env"):
                if getattr(endpoints[other], name) != getattr(endpoint, name):
                    raise UserError(f"{path}: {other} and {backbone} share {url}; give them the same {name}")
    return endpoints
