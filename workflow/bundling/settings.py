"""The settings of a preset as keys that hold instead of those of its file."""

from __future__ import annotations

from typing import Any

from harness.runner import config
from harness.runner.config import Preset

# How fast and how far a run may go decides about no result.
_NOT_KEYS = ("in_flight", "budget")


def settings(preset: Preset) -> dict[str, Any]:
    """Every key of a preset that has a value and may show in a result, as ``config.preset`` takes overrides."""
    found: dict[str, Any] = _plain(config.settings(preset))
    return {key: value for key, value in found.items() if key not in _NOT_KEYS}


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(part) for key, part in value.items() if part is not None}
    return value
