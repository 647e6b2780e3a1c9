"""The language models that agents run on; prices and FLOPs follow the paper's appendix on open-weight backbones."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal

from annotated_types import MinLen
from pydantic import AfterValidator, Field, NonNegativeFloat, PositiveFloat, PositiveInt

from harness.errors import unknown
from harness.files import AsWritten, Declaration, Distinct, Line, Text, Word, read_entries
from harness.llm.request import REPLY_TOKENS, Message, Sampling, merge_system

PRICE_IN_PER_B = 0.003
PRICE_OUT_PER_B = 0.010
#: What an entry says of a backbone that changes none of its replies.
ABOUT = ("licence", "attribution")


def forward_flops(parameters_b: Any, tokens: Any) -> Any:
    """Return the floating-point operations of so many tokens, without those of attention; numbers or series."""
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
    """One model of the pool."""

    key: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")]  # in configuration, results and tables
    model: Word  # on the hub and at the server
    revision: Word | None = None  # commit on the hub, None where none is pinned
    parameters_b: Annotated[PositiveFloat, AsWritten]  # nominal parameter count N, in billions
    context_length: PositiveInt | None = None  # longest prompt plus completion, in tokens; None where not known
    description: Line  # capabilities, in words
    generation: Generation = Generation()
    price: Price | None = None  # None for the paper's rule by size
    max_tokens: PositiveInt = REPLY_TOKENS  # longest completion
    stop: Distinct[Text] | None = None  # texts at which the server ends a completion
    # Whether prompts keep their system message, or have it merged into the user's, for templates without such a role.
    system: Literal["separate", "merge"] = "separate"
    licence: Line | None = None  # of the weights
    attribution: Line | None = None  # who made them
    # Which other weights than the original these are, in words.
    weights: Annotated[str | None, AfterValidator(_of_another_file)] = None
    stand_in: bool = False  # whether these weights only stand in for those of a trained model

    @property
    def sampling(self) -> Sampling:
        """Sampling for a method that sets none."""
        return Sampling(**dict(self.generation))

    @property
    def price_in(self) -> float:
        """Price of a million prompt tokens."""
        return PRICE_IN_PER_B * self.parameters_b if self.price is None else self.price.input

    @property
    def price_out(self) -> float:
        """Price of a million completion tokens."""
        return PRICE_OUT_PER_B * self.parameters_b if self.price is None else self.price.output

    def prompt(self, messages: tuple[Message, ...]) -> tuple[Message, ...]:
        """Return messages as this backbone takes them."""
        return merge_system(messages) if self.system == "merge" else messages

    def cost(self, prompt_tokens: int, completion_tokens: int) -> float:
        """Cost of calls with these token counts, in the unit of the prices."""
        return (prompt_tokens * self.price_in + completion_tokens * self.price_out) / 1e6

    @property
    def profile(self) -> str:
        """The text that stands for the backbone in an embedding: name, size, strengths and both prices."""
        return (
            f"{self.key}: {self.parameters_b:g} billion parameters. {self.description} "
            f"Price per million tokens: {self.price_in:g} input, {self.price_out:g} output."
        )


class _Model(Declaration):
    model: Word
    revision: Word | None


class _Weights(Declaration):
    """Other weights than the original, such as those of another precision, and the backbones that have them."""

    key: Annotated[str, Field(pattern="^[a-z0-9][a-z0-9_]*$")]
    description: Line
    stand_in: bool = False
    backbones: Annotated[Mapping[str, _Model], MinLen(1)]


@cache
def load(path: Path) -> Mapping[str, Backbone]:
    """Backbones by key in the file's order; raises UserError for a bad file."""
    return read_entries(path, Backbone)


@cache
def _weight_sets(path: Path) -> Mapping[str, _Weights]:
    return read_entries(path, _Weights)


def with_weights(backbones: Mapping[str, Backbone], path: Path, weights: str) -> dict[str, Backbone]:
    """Return the backbones that have the ``weights``, with them; UserError where the file at ``path`` has none such."""
    declared = _weight_sets(path)
    if weights not in declared:
        raise unknown("weight set", weights, declared, str(path))
    chosen = declared[weights]
    told = {"weights": f"{chosen.key} ({chosen.description})", **({"stand_in": True} if chosen.stand_in else {})}
    return {
        key: one.model_copy(update={**dict(chosen.backbones[key]), **told})
        for key, one in backbones.items()
        if key in chosen.backbones
    }
