"""Backbones: the language models of a pool; prices and FLOPs follow the paper's appendix on open-weight backbones."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal

from annotated_types import MinLen
from pydantic import AfterValidator, Field, NonNegativeFloat, PositiveFloat, PositiveInt

from harness.errors import check_names
from harness.files import AsWritten, Declaration, Distinct, Line, Text, Word, read_entries
from harness.llm.request import REPLY_TOKENS, Message, Sampling

PRICE_IN_PER_B = 0.003
PRICE_OUT_PER_B = 0.010
#: Fields of an entry that change no reply.
ABOUT = ("licence", "attribution")


def forward_flops(parameters_b: Any, tokens: Any) -> Any:
    """Return the floating-point operations of tokens, without those of attention; numbers or series."""
    return 2e9 * parameters_b * tokens


class Price(Declaration):
    """Price of a million tokens, in one currency for all backbones of a pool."""

    input: NonNegativeFloat
    output: NonNegativeFloat


class Generation(Declaration):
    """Sampling parameters recommended by the publisher of a model; fields as in :class:`Sampling`."""

    temperature: PositiveFloat = 1.0
    top_p: Annotated[float, Field(gt=0, le=1)] = 1.0
    top_k: PositiveInt = -1
    repetition_penalty: PositiveFloat = 1.0


def _of_another_file(_: str | None) -> None:
    raise ValueError("other weights are declared in config/weights.yaml, for all backbones that have them")


class Backbone(Declaration):
    """Model of the pool."""

    key: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")]  # in configuration, results and tables
    model: Word  # on the hub and at the server
    revision: Word | None = None  # commit on the hub, None if none is pinned
    parameters_b: Annotated[PositiveFloat, AsWritten]  # nominal parameter count N, in billions
    context_length: PositiveInt | None = None  # most tokens of prompt and completion together, None if not known
    description: Line  # capabilities, in words
    generation: Generation = Generation()
    price: Price | None = None  # None for the paper's price by size
    max_tokens: PositiveInt = REPLY_TOKENS  # longest completion
    stop: Distinct[Text] | None = None  # texts at which the server ends a completion
    # ``merge`` puts the system message into the user's, for chat templates without a system role.
    system: Literal["separate", "merge"] = "separate"
    licence: Line | None = None  # of the weights
    attribution: Line | None = None  # of the weights
    # Weight set other than the original, in words.
    weights: Annotated[str | None, AfterValidator(_of_another_file)] = None
    stand_in: bool = False  # these weights only stand in for those of a trained model

    @property
    def sampling(self) -> Sampling:
        """Return the sampling for a method that sets none."""
        return Sampling(**dict(self.generation))

    @property
    def price_in(self) -> float:
        """Return the price of a million prompt tokens."""
        return PRICE_IN_PER_B * self.parameters_b if self.price is None else self.price.input

    @property
    def price_out(self) -> float:
        """Return the price of a million completion tokens."""
        return PRICE_OUT_PER_B * self.parameters_b if self.price is None else self.price.output

    def prompt(self, messages: tuple[Message, ...]) -> tuple[Message, ...]:
        """Return messages as the chat template of this backbone takes them."""
        if self.system == "separate" or [message.role for message in messages[:2]] != ["system", "user"]:
            return messages
        system, user, *others = messages
        return (Message("user", f"{system.content}\n\n{user.content}"), *others)

    def cost(self, prompt_tokens: int, completion_tokens: int) -> float:
        """Return the cost of calls with these token counts, in the unit of the prices."""
        return (prompt_tokens * self.price_in + completion_tokens * self.price_out) / 1e6

    @property
    def profile(self) -> str:
        """Return the text that represents the backbone in an embedding: name, size, strengths and both prices."""
        return (
            f"{self.key}: {self.parameters_b:g} billion parameters. {self.description} "
            f"Price per million tokens: {self.price_in:g} input, {self.price_out:g} output."
        )


class _Model(Declaration):
    model: Word
    revision: Word | None


class _Weights(Declaration):
    """Weight set other than the original, such as one of another precision, and the backbones that have it."""

    key: Annotated[str, Field(pattern="^[a-z0-9][a-z0-9_]*$")]
    description: Line
    stand_in: bool = False
    backbones: Annotated[Mapping[str, _Model], MinLen(1)]


@cache
def load(path: Path) -> Mapping[str, Backbone]:
    """Read backbones, by key in the order of the file; UserError if it is not valid."""
    return read_entries(path, Backbone)


@cache
def _weight_sets(path: Path) -> Mapping[str, _Weights]:
    return read_entries(path, _Weights)


def with_weights(backbones: Mapping[str, Backbone], path: Path, weights: str) -> dict[str, Backbone]:
    """Return the backbones that have a weight set, with it; UserError if the file at ``path`` does not declare it."""
    declared = _weight_sets(path)
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
