"""Parameters of the simulator, read from ``config/simulator.yaml``."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, TypeVar, get_args

from annotated_types import Len, MinLen
from pydantic import Field, NonNegativeFloat, PositiveFloat, PositiveInt, Strict

from harness.errors import check_names
from harness.files import ROOT, Declaration, Many, Share, check, read_yaml
from harness.llm.request import Kind, Style

DEFAULT_FILE = ROOT / "config" / "simulator.yaml"
PUBLISHED = ROOT / "config" / "published.yaml"
STYLES: tuple[Style, ...] = get_args(Style)

T = TypeVar("T")
# As many entries as names, so that none is missing.
_PerStyle = Annotated[Mapping[Style, T], MinLen(len(STYLES))]
_Table = Annotated[Mapping[str, T], MinLen(1)]
_Percent = Annotated[float, Field(gt=0, lt=100)]
_Accuracies = Mapping[str, _PerStyle[_Table[_Percent]]]


class Parameters(Declaration):
    """Numbers of the response model, explained in the file."""

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
    kind_length: Annotated[Mapping[Kind, PositiveFloat], MinLen(len(get_args(Kind)))]
    generic_tokens: PositiveFloat
    message_tokens: NonNegativeFloat
    prompt_tokens: NonNegativeFloat
    style_prompt_tokens: _PerStyle[PositiveFloat]


class EngineParameters(Declaration):
    """Timing of a modelled inference server; speeds are those of one sequence, times billions of parameters."""

    concurrent_sequences: PositiveInt
    prefill_tokens_per_s_1b: PositiveFloat
    decode_tokens_per_s_1b: PositiveFloat


class _Assumption(Declaration):
    source: Literal["assumed"]
    range: Annotated[tuple[float, float], Strict(False)]


class Assumed(_Assumption):
    """Number of our choice and its plausible range: a range of factors for a list or a mapping."""

    value: Any
    why: str


class Loan(_Assumption):
    """Lengths of another benchmark times a factor; ``question_tokens`` is the mean of its original questions."""

    lender: str
    factor: PositiveFloat
    question_tokens: PositiveFloat


class Lengths(_Assumption):
    """Mean tokens of a reply by style."""

    direct: PositiveFloat
    step_by_step: PositiveFloat
    complex: PositiveFloat


class Cost(Declaration):
    """Total cost of ``n`` questions by style and backbone."""

    n: PositiveInt
    direct: _Table[PositiveFloat]
    step_by_step: _Table[PositiveFloat]
    complex: _Table[PositiveFloat]


class _Calibration(Declaration):
    accuracy: str
    cost: str
    methods: _PerStyle[str]
    cost_questions: _Table[PositiveInt]


class _File(Declaration):
    parameters: Mapping[str, Assumed]
    calibration: _Calibration
    stated_accuracy: Mapping[str, Mapping[Style, _Table[_Percent]]]
    stated_cost: Mapping[str, Mapping[str, Any]]
    borrowed_length: _Table[Loan]
    assumed_length: _Table[Lengths]
    engine: Mapping[str, Assumed]


class Settings(NamedTuple):
    """Content of the file, with the published numbers it refers to."""

    parameters: Parameters  # the response model
    engine: EngineParameters  # timing of the optional server model
    accuracy: Mapping[str, Mapping[Style, Mapping[str, float]]]  # percent by benchmark, style and backbone
    cost: Mapping[str, Cost]  # by benchmark
    borrowed_length: Mapping[str, Loan]  # by benchmark without published cost
    assumed_length: Mapping[str, Lengths]  # by benchmark without any published number


@cache
def load_settings(path: Path = DEFAULT_FILE) -> Settings:
    """Read the file of parameters; UserError if it is not valid."""
    file: _File = check(read_yaml(path), _File, path)
    values = {name: assumed.value for name, assumed in file.parameters.items()}
    accuracy, cost = _published(file.calibration, path)
    lenders = [loan.lender for loan in file.borrowed_length.values()]
    check_names("benchmark", lenders, {*cost, *file.stated_cost}, f"{path}; named by borrowed_length")
    engine = {name: assumed.value for name, assumed in file.engine.items()}
    return Settings(
        check(values, Parameters, f"{path}: parameters"),
        check(engine, EngineParameters, f"{path}: engine"),
        check(_merged(accuracy, file.stated_accuracy), _Accuracies, f"{path}: stated_accuracy"),
        check(_merged(cost, file.stated_cost), Mapping[str, Cost], f"{path}: stated_cost"),
        file.borrowed_length,
        file.assumed_length,
    )


def _published(described: _Calibration, path: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    published = read_yaml(PUBLISHED)
    where = f"config/published.yaml; named by calibration of {path}"
    check_names("benchmark", described.cost_questions, published["costs"], where)
    check_names("method", described.methods.values(), published["methods"], where)
    accuracy: dict[str, Any] = {benchmark: {} for benchmark in published["benchmarks"]}
    cost: dict[str, Any] = {benchmark: {"n": n} for benchmark, n in described.cost_questions.items()}
    for style, method in described.methods.items():
        rows = [row for row in published["main"] if row["method"] == method]
        for benchmark, styles in accuracy.items():
            styles[style] = {row["backbone"]: row["accuracies"][benchmark]["accuracy"] for row in rows}
        for benchmark, styles in cost.items():
            costs = published["costs"][benchmark]
            styles[style] = {row["backbone"]: row["cost"] for row in costs if row["method"] == method}
    return accuracy, cost


def _merged(published: Any, stated: Any) -> Any:
    if not isinstance(published, Mapping):
        return published
    if not isinstance(stated, Mapping):
        return stated
    return {**stated, **{key: _merged(part, stated.get(key, {})) for key, part in published.items()}}
