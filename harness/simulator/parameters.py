"""Parameters of the stated world, read strictly from ``config/simulator.yaml``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.errors import unknown
from harness.files import ROOT
from harness.simulator.parameters_schema import FILE_SCHEMA, SCHEMA, STYLES, Kind, Style
from harness.yaml_files import check, parse

__all__ = [
    "STYLES",
    "EngineParameters",
    "Kind",
    "Parameters",
    "Settings",
    "Style",
    "load_settings",
    "settings_from",
]

DEFAULT_FILE = ROOT / "config" / "simulator.yaml"
PUBLISHED = ROOT / "config" / "published.yaml"


@dataclass(frozen=True)
class Parameters:
    """Numbers of the response model; what each means stands beside its value in the file."""

    slope: float
    disagreement_sd: float
    difficulty_weight: float
    role_fit: Mapping[str, Mapping[str, float]]
    role_jitter_sd: float
    evidence_strength: float
    aggregation_factor: float
    discernment_base: float
    discernment_per_accuracy: float
    feedback_discernment: float
    repeat_weight: float
    repeat_similarity: float
    notes_weight: float
    overload_per_1000_tokens: float
    wrong_weights: Sequence[float]
    copy_wrong_share: float
    unparsable_share: float
    visible_pass_share: float
    invalid_schema_share: float
    length_sd: float
    kind_length: Mapping[Kind, float]
    generic_tokens: float
    message_tokens: float
    prompt_tokens: float
    style_prompt_tokens: Mapping[Style, float]


@dataclass(frozen=True)
class EngineParameters:
    """Timing of a modelled inference server.

    Attributes:
        concurrent_sequences: Sequences in flight at once, K.
        prefill_tokens_per_s_1b: Prompt tokens a second of one sequence, times billions of parameters.
        decode_tokens_per_s_1b: Completion tokens a second of one sequence, times billions of parameters.
    """

    concurrent_sequences: int
    prefill_tokens_per_s_1b: float
    decode_tokens_per_s_1b: float


@dataclass(frozen=True)
class Settings:
    """The whole file.

    Attributes:
        parameters: The response model.
        engine: Timing of the optional server model.
        accuracy: Published or stated accuracy in percent by benchmark, style and backbone.
        cost: Published or stated total cost by benchmark, style and backbone, ``n`` questions each.
        borrowed_length: For a benchmark without published cost, whose lengths it takes and times what.
        assumed_length: Mean tokens by benchmark and style where nothing published helps.
        document: The file with the published numbers in it and overrides applied: what a world stores.
    """

    parameters: Parameters
    engine: EngineParameters
    accuracy: Mapping[str, Mapping[Style, Mapping[str, float]]]
    cost: Mapping[str, Mapping[str, Any]]
    borrowed_length: Mapping[str, Mapping[str, Any]]
    assumed_length: Mapping[str, Mapping[str, Any]]
    document: Mapping[str, Any]

    def ranges(self) -> dict[str, tuple[float, float]]:
        """Plausible range of every parameter of the response model: a factor where the value is a list or mapping."""
        return {name: tuple(entry["range"]) for name, entry in self.document["parameters"].items()}


def load_settings(path: Path = DEFAULT_FILE, overrides: Mapping[str, Any] | None = None) -> Settings:
    """Read the file, with some parameters replaced as a sensitivity run does.

    Args:
        path: A file in the form of ``config/simulator.yaml``.
        overrides: New values by name of parameter, such as ``{"slope": 4.0}``; a number given for a list or mapping
            is a factor on every entry.

    Raises:
        UserError: An entry is unknown, missing, ill-typed or outside what the model can use.
    """
    document = parse(path)
    check(document, FILE_SCHEMA, str(path))
    document = _with_published(document, parse(PUBLISHED))
    for name, value in (overrides or {}).items():
        if name not in document["parameters"]:
            raise unknown("parameter", name, document["parameters"], str(path))
        entry = document["parameters"][name]
        entry["value"] = _moved(entry["value"], value) if isinstance(value, int | float) else value
    return settings_from(document, str(path))


def _with_published(document: dict[str, Any], published: Mapping[str, Any]) -> dict[str, Any]:
    """The document with the tables that single calls are calibrated to in the place of their description."""
    stated_accuracy, stated_cost = document.pop("stated_accuracy"), document.pop("stated_cost")
    described = document.pop("calibration")
    accuracy: dict[str, Any] = {
        benchmark: {
            style: {
                row["backbone"]: row["accuracies"][benchmark]["accuracy"]
                for row in published["main"]
                if row["method"] == method
            }
            for style, method in described["methods"].items()
        }
        for benchmark in published["benchmarks"]
    }
    cost: dict[str, Any] = {
        benchmark: {
            style: {row["backbone"]: row["cost"] for row in published["costs"][benchmark] if row["method"] == method}
            for style, method in described["methods"].items()
        }
        for benchmark in described["cost_questions"]
    }
    for benchmark, questions in described["cost_questions"].items():
        cost[benchmark]["n"] = questions
    document["published_accuracy"] = {"source": described["accuracy"], **_merged(accuracy, stated_accuracy)}
    document["published_cost"] = {"source": described["cost"], **_merged(cost, stated_cost)}
    return document


def _merged(published: Any, stated: Any) -> Any:
    """Published entries, with those stated beside them where nothing is published."""
    if not isinstance(published, Mapping):
        return published
    return {**stated, **{key: _merged(part, stated.get(key, {})) for key, part in published.items()}}


def settings_from(document: Mapping[str, Any], where: str) -> Settings:
    """Settings from an already parsed document, as a world file stores it.

    Raises:
        UserError: The document does not have the form of the file; ``where`` names its origin.
    """
    check(document, SCHEMA, where)
    return Settings(
        parameters=Parameters(**_values(document["parameters"])),
        engine=EngineParameters(**_values(document["engine"])),
        accuracy=_tables(document["published_accuracy"]),
        cost=_tables(document["published_cost"]),
        borrowed_length=document["borrowed_length"],
        assumed_length=document["assumed_length"],
        document=document,
    )


def _moved(stated: Any, change: float) -> Any:
    """The change itself for a plain number, a factor for a list or mapping, as the ranges have it."""
    return _scaled(stated, change) if isinstance(stated, Mapping | list) else change


def _scaled(stated: Any, factor: float) -> Any:
    if isinstance(stated, Mapping):
        return {name: _scaled(part, factor) for name, part in stated.items()}
    if isinstance(stated, list):
        return [_scaled(part, factor) for part in stated]
    return stated * factor


def _values(entries: Mapping[str, Any]) -> dict[str, Any]:
    return {name: entry["value"] for name, entry in entries.items()}


def _tables(entries: Mapping[str, Any]) -> dict[str, Any]:
    return {name: table for name, table in entries.items() if name != "source"}
