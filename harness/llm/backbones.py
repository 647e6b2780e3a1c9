"""The language models that agents run on: identity, size, price and compute of a call.

Prices are a proxy for inference compute, proportional to the nominal parameter count, and FLOPs count two
operations per parameter and token; both follow the paper's appendix on the cost of open-weight backbones.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from harness.errors import UserError, unknown
from harness.llm.request import Sampling
from harness.yaml_files import changed_at, read_yaml

PRICE_IN_PER_B = 0.003
PRICE_OUT_PER_B = 0.010
_WEIGHTS = "weights.yaml"
# How servers sample where neither the request nor the model says anything.
UNSTATED = Sampling(temperature=1.0)


@dataclass(frozen=True, slots=True)
class Backbone:
    """One model of the pool.

    Attributes:
        key: Name in configuration, results and tables.
        model: Identifier on the hub and at the server.
        revision: Commit on the hub, ``None`` where none is pinned.
        parameters_b: Nominal parameter count N, in billions.
        context_length: Longest prompt plus completion, in tokens.
        description: Capabilities, in words.
        generation: How its publisher has it sample, for requests of a method that says nothing of it.
        weights: Which other weights than the original these are, in words; ``None`` for the original.
    """

    key: str
    model: str
    revision: str | None
    parameters_b: float
    context_length: int
    description: str
    generation: Sampling = UNSTATED
    weights: str | None = None

    @property
    def price_in(self) -> float:
        """Price of a million prompt tokens."""
        return PRICE_IN_PER_B * self.parameters_b

    @property
    def price_out(self) -> float:
        """Price of a million completion tokens."""
        return PRICE_OUT_PER_B * self.parameters_b

    def cost(self, prompt_tokens: int, completion_tokens: int) -> float:
        """Cost of calls with these token counts, in the unit of the prices."""
        return (prompt_tokens * self.price_in + completion_tokens * self.price_out) / 1e6

    def flops(self, prompt_tokens: int, completion_tokens: int) -> float:
        """Floating-point operations of calls with these token counts, without those of attention."""
        return 2 * self.parameters_b * 1e9 * (prompt_tokens + completion_tokens)

    @property
    def profile(self) -> str:
        """The text that stands for the backbone in an embedding: name, size, strengths and both prices."""
        return (
            f"{self.key}: {self.parameters_b:g} billion parameters. {self.description} "
            f"Price per million tokens: {self.price_in:g} input, {self.price_out:g} output."
        )


_FIELDS = {
    "model": {"type": "string", "pattern": r"\A\S+\Z"},
    "revision": {"anyOf": [{"type": "null"}, {"type": "string", "pattern": r"\A\S+\Z"}]},
    "parameters_b": {"type": "number", "exclusiveMinimum": 0},
    "context_length": {"type": "integer", "minimum": 1},
    "description": {"type": "string", "pattern": r"\A\S[^\n]*\S\Z"},
    "generation": {
        "type": "object",
        "properties": {
            "temperature": {"type": "number", "exclusiveMinimum": 0},
            "top_p": {"type": "number", "exclusiveMinimum": 0, "maximum": 1},
            "top_k": {"type": "integer", "minimum": 1},
            "repetition_penalty": {"type": "number", "exclusiveMinimum": 0},
        },
        "required": ["temperature"],
        "additionalProperties": False,
    },
}
_SCHEMA = {
    "type": "object",
    "minProperties": 1,
    "propertyNames": {"type": "string", "pattern": r"\A[A-Za-z0-9][A-Za-z0-9._-]*\Z"},
    "additionalProperties": {
        "type": "object",
        "properties": _FIELDS,
        "required": list(_FIELDS),
        "additionalProperties": False,
    },
}


@dataclass(frozen=True, slots=True)
class Weights:
    """Other weights of the backbones than the original, such as those of another precision.

    Attributes:
        key: Name in presets.
        description: What is different, in the words of captions.
        models: Model and revision of each backbone there is with such weights.
    """

    key: str
    description: str
    models: Mapping[str, Mapping[str, str | None]]

    def __str__(self) -> str:
        return f"{self.key} ({self.description})"

    def of(self, backbone: str) -> Mapping[str, str | None]:
        """Model and revision of a backbone.

        Raises:
            UserError: There are no such weights of it.
        """
        if backbone not in self.models:
            raise UserError(
                f"{backbone} has no weights {self.key!r}; add them to config/weights.yaml, leave the backbone out of "
                "the preset, or choose other weights"
            )
        return self.models[backbone]


_WEIGHTS_SCHEMA = {
    "type": "object",
    "propertyNames": {"type": "string", "pattern": r"\A[a-z0-9][a-z0-9_]*\Z"},
    "additionalProperties": {
        "type": "object",
        "properties": {
            "description": _FIELDS["description"],
            "backbones": {
                "type": "object",
                "minProperties": 1,
                "additionalProperties": {
                    "type": "object",
                    "properties": {name: _FIELDS[name] for name in ("model", "revision")},
                    "required": ["model", "revision"],
                    "additionalProperties": False,
                },
            },
        },
        "required": ["description", "backbones"],
        "additionalProperties": False,
    },
}


def load(path: Path, weights: str | None = None) -> dict[str, Backbone]:
    """The backbones declared in a file, by key and in the order of the file.

    The order is part of the declaration: it is the order of rows in tables and of indices in a policy.

    Args:
        path: The file.
        weights: Which weights, declared in ``weights.yaml`` beside it; ``None`` for the original. Backbones that have
            none of them are left out.

    Raises:
        UserError: A file is unreadable or repeats a key, or a field is missing, unknown or invalid; or there are no
            such weights.
    """
    return {key: _backbone(key, **fields) for key, fields in declared(path, weights).items()}


def _backbone(key: str, *, generation: Mapping[str, Any], **fields: Any) -> Backbone:
    return Backbone(key=key, generation=Sampling(**generation), **fields)


def declared(path: Path, weights: str | None = None) -> dict[str, dict[str, Any]]:
    """What :func:`load` makes backbones of: the fields of each, by key."""
    entries = _declared(path, weights, changed_at(path), changed_at(path.with_name(_WEIGHTS)))
    return {key: dict(fields) for key, fields in entries.items()}


@lru_cache
def _declared(path: Path, weights: str | None, *_changed_at: int) -> dict[str, dict[str, Any]]:
    """Read once for every state of the files: planning a DAG asks for each of thousands of cells."""
    entries: dict[str, dict[str, Any]] = read_yaml(path, _SCHEMA)
    if weights is None:
        return entries
    chosen = load_weights(path.with_name(_WEIGHTS), weights)
    return {
        key: {**entry, **chosen.of(key), "weights": str(chosen)}
        for key, entry in entries.items()
        if key in chosen.models
    }


def load_weights(path: Path, name: str) -> Weights:
    """The weights of a name.

    Raises:
        UserError: The file has a slip, or declares none of this name.
    """
    entries = read_yaml(path, _WEIGHTS_SCHEMA)
    if name not in entries:
        raise unknown("weight set", name, entries, str(path))
    entry = entries[name]
    return Weights(name, entry["description"], entry["backbones"])
