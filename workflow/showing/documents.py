"""Trajectories for scripts."""

from __future__ import annotations

from typing import Any

import orjson


def to_json(document: Any) -> str:
    """One document with nothing left out; tuples with names become objects, and numbers as keys text."""
    return orjson.dumps(document, default=_object, option=orjson.OPT_INDENT_2 | orjson.OPT_NON_STR_KEYS).decode()


def _object(value: Any) -> Any:
    if hasattr(value, "_asdict"):
        return value._asdict()
    raise TypeError(f"{type(value).__name__} has no form in JSON")
