"""The settings of a preset as keys that hold instead of those of its file."""

from __future__ import annotations

import dataclasses
from typing import Any

from harness.config import Preset

# The name is given beside them, and a change of a simulated world is part of it. How fast and how far a run may go
# decides about no result.
_NOT_KEYS = ("name", "simulator", "in_flight", "budget")


def settings(preset: Preset) -> dict[str, Any]:
    """Every key of a preset that has a value and may show in a result, as ``harness.config.preset`` takes overrides."""
    found: dict[str, Any] = _plain(dataclasses.asdict(preset))
    return {key: value for key, value in found.items() if key not in _NOT_KEYS}


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(part) for key, part in value.items() if part is not None}
    return list(value) if isinstance(value, tuple) else value
