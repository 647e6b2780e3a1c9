"""GPU-hours, from tokens and the assumptions of ``config/throughput.yaml``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from harness.errors import unknown
from harness.files import ROOT
from harness.yaml_files import read_yaml
from workflow.forecasting.scaling import Amounts

if TYPE_CHECKING:
    import pandas as pd

PATH = ROOT / "config" / "throughput.yaml"
_RANGE = {"type": "array", "items": {"type": "number", "exclusiveMinimum": 0}, "minItems": 2, "maxItems": 2}
_RATES = {
    "type": "object",
    "additionalProperties": False,
    "required": ["prefill", "decode"],
    "properties": {"prefill": _RANGE, "decode": _RANGE},
}
_SCHEMA = {
    "type": "object",
    "minProperties": 1,
    "additionalProperties": {"type": "object", "minProperties": 1, "additionalProperties": _RATES},
}


class Hours(NamedTuple):
    """GPU-hours at the least and at the most."""

    low: float
    high: float


def gpus(path: Path = PATH) -> list[str]:
    """The GPUs that the table knows, the first of which is meant where none is named."""
    return list(_table(path))


def hours(amounts: Amounts, gpu: str, path: Path = PATH) -> dict[str, Hours]:
    """Hours of one GPU at full load, by backbone.

    Args:
        amounts: What is asked of the backbones.
        gpu: A name in the table.
        path: The table.

    Raises:
        UserError: The table has a slip, or no such GPU or backbone.
    """
    table = _table(path)
    if gpu not in table:
        raise unknown("GPU", gpu, table, str(path))
    for backbone in amounts.point.index:
        if backbone not in table[gpu]:
            raise unknown("backbone", backbone, table[gpu], f"{path}, below {gpu}")
    return {
        backbone: Hours(
            _hours(amounts.low.loc[backbone], table[gpu][backbone], max),
            _hours(amounts.high.loc[backbone], table[gpu][backbone], min),
        )
        for backbone in amounts.point.index
    }


def _hours(row: pd.Series[float], rates: Mapping[str, list[float]], of: Callable[[list[float]], float]) -> float:
    return float(row["prompt"] / of(rates["prefill"]) + row["completion"] / of(rates["decode"])) / 3600


def _table(path: Path) -> dict[str, dict[str, dict[str, list[float]]]]:
    table: dict[str, dict[str, dict[str, list[float]]]] = read_yaml(path, _SCHEMA)
    return table
