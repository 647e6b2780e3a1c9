"""Parameters of the stated world, read strictly from ``config/simulator.yaml``."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, get_args

from annotated_types import Len, MinLen
from pydantic import AfterValidator, Field, NonNegativeFloat, PositiveFloat, PositiveInt, Strict

from harness.errors import unknown
from harness.files import ROOT, Declaration, Many, Share, check, read_yaml
from harness.llm.request import Kind, Style

DEFAULT_FILE = ROOT / "config" / "simulator.yaml"
PUBLISHED = ROOT / "config" / "published.yaml"

STYLES: tuple[Style, ...] = get_args(Style)

T = TypeVar("T")


def _keys(names: Collection[str]) -> AfterValidator:
    def complete(values: Mapping[str, T]) -> Mapping[str, T]:
        for name in sorted(set(values) ^ set(names)):
            raise ValueError(f"{name!r} is {'not allowed' if name in values else 'missing'}; keys: {', '.join(names)}")
        return values

    return AfterValidator(complete)


_PerStyle = Annotated[Mapping[Style, T], _keys(get_args(Style))]
_Table = Annotated[Mapping[str, T], MinLen(1)]
_Percent = Annotated[float, Field(gt=0, lt=100)]
_Calibrated = Annotated[str, Field(pattern="^calibrated: ")]


class Parameters(Declaration):
    """Numbers of the response model; what each means stands beside its value in the file."""

    slope: PositiveFloat
    disagreement_sd: NonNegativeFloat
    difficulty_weight: Share
    role_fit: _Table[_Table[float]]
    role_jitter_sd: NonNegativeFloat
    evidence_strength: NonNegativeFloat
    aggregation_factor: PositiveFloat
    discernment_base: NonNegativeFloat
    discernment_per_accuracy: NonNegativeFloat
    feedback_discernment: NonNegativeFloat
    repeat_weight: Share
    repeat_similarity: Share
    notes_weight: NonNegativeFloat
    overload_per_1000_tokens: NonNegativeFloat
    wrong_weights: Annotated[Many[PositiveFloat], Len(4, 4)]
    copy_wrong_share: Share
    unparsable_share: Annotated[float, Field(ge=0, le=0.2)]
    visible_pass_share: Share
    invalid_schema_share: Share
    length_sd: PositiveFloat
    kind_length: Annotated[Mapping[Kind, PositiveFloat], _keys(get_args(Kind))]
    generic_tokens: PositiveFloat
    message_tokens: NonNegativeFloat
    prompt_tokens: NonNegativeFloat
    style_prompt_tokens: _PerStyle[PositiveFloat]


class EngineParameters(Declaration):
    """Timing of a modelled inference server.

    Attributes:
        concurrent_sequences: Sequences in flight at once, K.
        prefill_tokens_per_s_1b: Prompt tokens a second of one sequence, times billions of parameters.
        decode_tokens_per_s_1b: Completion tokens a second of one sequence, times billions of parameters.
    """

    concurrent_sequences: PositiveInt
    prefill_tokens_per_s_1b: PositiveFloat
    decode_tokens_per_s_1b: PositiveFloat


class _Assumption(Declaration):
    source: Literal["assumed"]
    range: Annotated[tuple[float, float], Strict(False)]


class _Assumed(_Assumption):
    value: Any
    why: str


class _Loan(_Assumption):
    lender: str
    factor: PositiveFloat
    question_tokens: PositiveFloat


class _Lengths(_Assumption):
    direct: PositiveFloat
    step_by_step: PositiveFloat
    complex: PositiveFloat


class _Calibration(Declaration):
    accuracy: _Calibrated
    cost: _Calibrated
    methods: _PerStyle[str]
    cost_questions: _Table[PositiveInt]


class _StatedCost(Declaration):
    n: PositiveInt | None = None
    direct: _Table[PositiveFloat] | None = None
    step_by_step: _Table[PositiveFloat] | None = None
    complex: _Table[PositiveFloat] | None = None


class _Cost(Declaration):
    n: PositiveInt
    direct: _Table[PositiveFloat]
    step_by_step: _Table[PositiveFloat]
    complex: _Table[PositiveFloat]


class _Accuracies(Declaration, extra="allow"):
    __pydantic_extra__: dict[str, _PerStyle[_Table[_Percent]]]
    source: _Calibrated


class _Costs(Declaration, extra="allow"):
    __pydantic_extra__: dict[str, _Cost]
    source: _Calibrated


class _Common(Declaration):
    parameters: Mapping[str, _Assumed]
    borrowed_length: _Table[_Loan]
    assumed_length: _Table[_Lengths]
    engine: Mapping[str, _Assumed]


class _File(_Common):
    """``config/simulator.yaml``."""

    calibration: _Calibration
    stated_accuracy: Mapping[str, Mapping[Style, _Table[_Percent]]]
    stated_cost: Mapping[str, _StatedCost]


class _Document(_Common):
    """What a world keeps of it, which holds the published numbers too."""

    published_accuracy: _Accuracies
    published_cost: _Costs


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
    document = _document(path)
    parameters = dict(document["parameters"])
    for name, value in (overrides or {}).items():
        if name not in parameters:
            raise unknown("parameter", name, parameters, str(path))
        stated = parameters[name]["value"]
        parameters[name] = {
            **parameters[name],
            "value": _moved(stated, value) if isinstance(value, int | float) else value,
        }
    return settings_from({**document, "parameters": parameters}, str(path))


@cache
def _document(path: Path) -> Mapping[str, Any]:
    document = read_yaml(path)
    check(document, _File, path)
    return _with_published(document, read_yaml(PUBLISHED))


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
    found: _Document = check(document, _Document, where)
    parameters = {name: one.value for name, one in found.parameters.items()}
    engine = {name: one.value for name, one in found.engine.items()}
    return Settings(
        parameters=check(parameters, Parameters, f"{where}: parameters"),
        engine=check(engine, EngineParameters, f"{where}: engine"),
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


def _tables(entries: Mapping[str, Any]) -> dict[str, Any]:
    return {name: table for name, table in entries.items() if name != "source"}
