"""Backbones (language models of the pool) and the endpoints that serve them.

Prices and FLOPs follow the paper's appendix on cost calculation.
"""

import os
import re
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal

from annotated_types import MinLen
from pydantic import AfterValidator, BeforeValidator, Field, JsonValue, NonNegativeFloat, PositiveFloat, PositiveInt

from harness.errors import UserError, check_names, keep_secret
from harness.files import AsWritten, Declaration, Distinct, Line, Text, Word, check, read_entries
from harness.llm.request import EXTENDED, REPLY_TOKENS, Message, Request, Sampling, Served

PRICE_IN_PER_B = 0.003
PRICE_OUT_PER_B = 0.010
#: Metadata fields of an entry, which do not affect replies.
ABOUT = ("licence", "attribution")
#: Environment variable that names another file of endpoints than ``config/endpoints.yaml``.
ENDPOINTS = "GMR_ENDPOINTS"
# The host is a name, an IPv4 or an IPv6 address.
_URL = r"(?i)^https?://(\[[0-9a-f:.]+\]|[^\s/:\[\]]+)(:[0-9]{1,5})?(/[^\s?#]*)?$"

# Parameters that some servers refuse. No other parameter can be left out without changing the request.
Omitted = Literal["temperature", "top_p", "seed", "n", "frequency_penalty", "presence_penalty"]


def forward_flops(parameters_b: Any, tokens: Any) -> Any:
    """Compute 2 · N · tokens, without attention. Takes numbers or pandas series; N is in billions."""
    return 2e9 * parameters_b * tokens


class Price(Declaration):
    """Price per million tokens, in one currency for the whole pool."""

    input: NonNegativeFloat
    output: NonNegativeFloat
    cached: NonNegativeFloat | None = None  # of prompt tokens that the server had in its cache; None: as ``input``


class Generation(Declaration):
    """Sampling parameters that the model's publisher recommends. Fields as in :class:`Sampling`."""

    temperature: PositiveFloat = 1.0
    top_p: Annotated[float, Field(gt=0, le=1)] = 1.0
    top_k: PositiveInt = -1
    repetition_penalty: PositiveFloat = 1.0


def _only_further(fields: Mapping[str, Any]) -> Mapping[str, Any]:
    usual = Request("", None, ()).body().keys() | {"stream", "stop", "response_format", "max_completion_tokens"}
    if taken := sorted(usual & fields.keys()):
        raise ValueError(f"holds {taken[0]}, which is sent anyway or never")
    return fields


class Backbone(Declaration):
    """One model of the pool (an entry of ``config/backbones.yaml``)."""

    key: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")]  # name in configuration, results and tables
    model: Word  # name on the hub and at the server
    revision: Word | None = None  # commit on the hub; None: not pinned
    # Nominal parameter count N, in billions. 0: unknown, of a model with a price.
    parameters_b: Annotated[NonNegativeFloat, AsWritten]
    context_length: PositiveInt | None = None  # maximum tokens of prompt plus completion; None: unknown
    description: Line  # capabilities; part of the embedded profile
    generation: Generation = Generation()
    price: Price | None = None  # None: the paper's price by size
    max_tokens: PositiveInt = REPLY_TOKENS  # maximum completion length
    stop: Distinct[Text] | None = None  # stop sequences
    extra_body: Annotated[Mapping[str, JsonValue], AfterValidator(_only_further)] = {}  # further fields of each call
    system: Literal["separate", "merge"] = "separate"
    licence: Line | None = None  # of the weights
    attribution: Line | None = None  # of the weights
    weights: str | None = None  # description of a weight set other than the original
    stand_in: bool = False  # random weights in place of a trained model's

    @property
    def sampling(self) -> Sampling:
        """Default for methods that set no sampling parameters."""
        return Sampling(**dict(self.generation))

    @property
    def price_in(self) -> float:
        return PRICE_IN_PER_B * self.parameters_b if self.price is None else self.price.input

    @property
    def price_out(self) -> float:
        return PRICE_OUT_PER_B * self.parameters_b if self.price is None else self.price.output

    def request(self, messages: tuple[Message, ...], sampling: Sampling, **more: Any) -> Request:
        """Build a call of this backbone. ``more`` are fields of :class:`Request`, which replace those of the entry."""
        if self.system == "merge" and [message.role for message in messages[:2]] == ["system", "user"]:
            system, user, *others = messages
            messages = (Message("user", f"{system.content}\n\n{user.content}"), *others)
        fields = {"max_tokens": self.max_tokens, "stop": self.stop, "extra_body": self.extra_body, **sampling._asdict()}
        return Request(self.model, self.revision, messages, **{**fields, **more})

    def cost(self, prompt_tokens: int, completion_tokens: int) -> float:
        return (prompt_tokens * self.price_in + completion_tokens * self.price_out) / 1e6

    @property
    def profile(self) -> str:
        """Text to embed: name, size, description and both prices."""
        return (
            f"{self.key}: {self.parameters_b:g} billion parameters. {self.description} "
            f"Price per million tokens: {self.price_in:g} input, {self.price_out:g} output."
        )


class _Model(Declaration):
    model: Word
    revision: Word | None


class _Weights(Declaration):
    """Alternative weights (such as a quantisation), with the backbones that have them."""

    key: Annotated[str, Field(pattern="^[a-z0-9][a-z0-9_]*$")]
    description: Line
    stand_in: bool = False
    backbones: Annotated[Mapping[str, _Model], MinLen(1)]


@cache
def load(path: Path) -> Mapping[str, Backbone]:
    return read_entries(path, Backbone)


def with_weights(backbones: Mapping[str, Backbone], path: Path, weights: str) -> dict[str, Backbone]:
    """Select the backbones that have a weight set, and apply it. Raises UserError if ``path`` does not declare it."""
    declared = read_entries(path, _Weights)
    check_names("weight set", [weights], declared, str(path))
    weight_set = declared[weights]
    changes: dict[str, Any] = {"weights": f"{weight_set.key} ({weight_set.description})"}
    if weight_set.stand_in:
        changes["stand_in"] = True
    return {
        key: backbone.model_copy(update={**dict(weight_set.backbones[key]), **changes})
        for key, backbone in backbones.items()
        if key in weight_set.backbones
    }


def as_served(backbone: Backbone, served: Served) -> Backbone:
    """Set the revision that the server reports, and mark simulated stand-ins.

    Raises UserError if the configuration pins another revision.
    """
    pinned = backbone.revision if not served.simulated else None
    if pinned and served.revision and pinned != served.revision:
        raise UserError(
            f"{backbone.key} is pinned to revision {pinned} but its server has {served.revision}; "
            "serve the pinned revision, or correct config/backbones.yaml"
        )
    is_stand_in = backbone.stand_in or served.simulated
    return backbone.model_copy(update={"revision": served.revision or backbone.revision, "stand_in": is_stand_in})


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
