"""JSON Schemas of ``config/simulator.yaml`` and of what a world keeps of it, which holds the published numbers too."""

from __future__ import annotations

from typing import Any, get_args

from harness.llm.request import Kind, Style

STYLES: tuple[Style, ...] = get_args(Style)
KINDS: tuple[Kind, ...] = get_args(Kind)

_NUMBER = {"type": "number"}
_NATURAL = {"type": "number", "minimum": 0}
_POSITIVE = {"type": "number", "exclusiveMinimum": 0}
_SHARE = {"type": "number", "minimum": 0, "maximum": 1}
_COUNT = {"type": "integer", "minimum": 1}
_CALIBRATED = {"type": "string", "pattern": "^calibrated: "}
_RANGE = {"type": "array", "items": _NUMBER, "minItems": 2, "maxItems": 2}


def _record(fields: dict[str, Any], optional: tuple[str, ...] = ()) -> dict[str, Any]:
    required = [name for name in fields if name not in optional]
    return {"type": "object", "properties": fields, "required": required, "additionalProperties": False}


def _table(values: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "minProperties": 1, "additionalProperties": values}


def _by_benchmark(values: dict[str, Any], **further: dict[str, Any]) -> dict[str, Any]:
    """A table that may be empty: by benchmark and style, both optional."""
    fields: dict[str, Any] = {**further, **dict.fromkeys(STYLES, values)}
    return {"type": "object", "additionalProperties": _record(fields, tuple(fields))}


def _parameter(value: dict[str, Any]) -> dict[str, Any]:
    fields = {"value": value, "source": {"const": "assumed"}, "range": _RANGE, "why": {"type": "string"}}
    return _record(fields)


_BY_STYLE = _record(dict.fromkeys(STYLES, _POSITIVE))
_PERCENT = {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 100}

_PARAMETERS = {
    "slope": _POSITIVE,
    "disagreement_sd": _NATURAL,
    "difficulty_weight": _SHARE,
    "role_fit": _table(_table(_NUMBER)),
    "role_jitter_sd": _NATURAL,
    "evidence_strength": _NATURAL,
    "aggregation_factor": _POSITIVE,
    "discernment_base": _NATURAL,
    "discernment_per_accuracy": _NATURAL,
    "feedback_discernment": _NATURAL,
    "repeat_weight": _SHARE,
    "repeat_similarity": _SHARE,
    "notes_weight": _NATURAL,
    "overload_per_1000_tokens": _NATURAL,
    "wrong_weights": {"type": "array", "items": _POSITIVE, "minItems": 4, "maxItems": 4},
    "copy_wrong_share": _SHARE,
    "unparsable_share": {"type": "number", "minimum": 0, "maximum": 0.2},
    "visible_pass_share": _SHARE,
    "invalid_schema_share": _SHARE,
    "length_sd": _POSITIVE,
    "kind_length": _record(dict.fromkeys(KINDS, _POSITIVE)),
    "generic_tokens": _POSITIVE,
    "message_tokens": _NATURAL,
    "prompt_tokens": _NATURAL,
    "style_prompt_tokens": _BY_STYLE,
}

_ENGINE = {
    "concurrent_sequences": _COUNT,
    "prefill_tokens_per_s_1b": _POSITIVE,
    "decode_tokens_per_s_1b": _POSITIVE,
}

_ACCURACY = _record(dict.fromkeys(STYLES, _table(_PERCENT)))
_COST = _record({"n": _COUNT, **dict.fromkeys(STYLES, _table(_POSITIVE))})
_ASSUMED = {"source": {"const": "assumed"}, "range": _RANGE}
_BORROWED = _record({"lender": {"type": "string"}, "factor": _POSITIVE, "question_tokens": _POSITIVE, **_ASSUMED})

_CALIBRATION = _record(
    {
        "accuracy": _CALIBRATED,
        "cost": _CALIBRATED,
        "methods": _record({key: {"type": "string"} for key in STYLES}),
        "cost_questions": _table(_COUNT),
    }
)
_COMMON = {
    "parameters": _record({name: _parameter(value) for name, value in _PARAMETERS.items()}),
    "borrowed_length": _table(_BORROWED),
    "assumed_length": _table(_record({**dict.fromkeys(STYLES, _POSITIVE), **_ASSUMED})),
    "engine": _record({name: _parameter(value) for name, value in _ENGINE.items()}),
}
FILE_SCHEMA: dict[str, Any] = _record(
    {
        **_COMMON,
        "calibration": _CALIBRATION,
        "stated_accuracy": _by_benchmark(_table(_PERCENT)),
        "stated_cost": _by_benchmark(_table(_POSITIVE), n=_COUNT),
    }
)
SCHEMA: dict[str, Any] = _record(
    {
        **_COMMON,
        "published_accuracy": {**_table(_ACCURACY), "properties": {"source": _CALIBRATED}, "required": ["source"]},
        "published_cost": {**_table(_COST), "properties": {"source": _CALIBRATED}, "required": ["source"]},
    }
)
