"""A forecast in words and columns for a terminal, and as JSON for scripts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from workflow.forecasting.forecast import Forecast, by_method
from workflow.forecasting.scaling import Amounts, total
from workflow.forecasting.throughput import Hours

if TYPE_CHECKING:
    import pandas as pd

TIMINGS = "timing jobs"
_UNITS = ((1e9, "G"), (1e6, "M"), (1e3, "k"))
_SIMULATED = (
    "SIMULATED BACKBONES were measured: calls and tokens follow from the methods and from assumed lengths of replies, "
    "not from real models."
)


def lines(found: Forecast, hours: Mapping[str, Hours] | None, gpu: str, done: Forecast | None) -> Iterator[str]:
    """What a forecast says.

    Args:
        found: The forecast.
        hours: GPU-hours by backbone; ``None`` where the run is simulated and takes none.
        gpu: The GPU they are of.
        done: What the finished cells of the run took, for comparison; ``None`` for none.
    """
    if found.simulated:
        yield _SIMULATED
    yield f"Forecast for preset {found.preset}: {len(found.cells)} cells, from {found.source} ({_sources(found)})."
    if found.unknown:
        shown = ", ".join(sorted({one.method for one in found.unknown}))
        yield f"{len(found.unknown)} further cells cannot be reckoned, nothing like them is finished: {shown}."
    yield ""
    yield from _table("method", {**_titled(found), "all": found.amounts})
    yield ""
    yield from _backbones(found.amounts, hours, gpu)
    yield ""
    yield _storage(found)
    if hours is None:
        seconds = sum(one.seconds for one in found.cells)
        yield f"Time: {_number(seconds / 3600)} hours of cells one after the other, at the pace of those measured."
    if done is not None:
        yield ""
        yield from _beside(found, done)
    yield ""
    yield (
        "used: calls as charged, whoever answers; asked: those no log answers; tokens: of calls asked; cost: in the "
        "paper's unit, of calls used. In brackets what is likely, all cells erring to the same side."
    )


def as_json(found: Forecast, hours: Mapping[str, Hours] | None, gpu: str, done: Forecast | None) -> dict[str, Any]:
    """The same as data; every amount has a ``point``, a ``low`` and a ``high``."""
    return {
        "preset": found.preset,
        "from": found.source,
        "simulated": found.simulated,
        "cells": dict(found.by_likeness),
        "unknown": [str(cell) for cell in found.unknown],
        "all": _sums(found.amounts),
        "methods": {key: _sums(amounts) for key, amounts in _titled(found).items()},
        "backbones": {key: _sums(_only(found.amounts, key)) for key in found.amounts.point.index},
        "gpu": None if hours is None else gpu,
        "gpu_hours": None if hours is None else {key: one._asdict() for key, one in hours.items()},
        "bytes": _bytes(found),
        "seconds": sum(one.seconds for one in found.cells),
        "actual": None if done is None else {"cells": len(done.cells), "all": _sums(done.amounts)},
    }


def _sources(found: Forecast) -> str:
    words = {"itself": "measured themselves"}
    return ", ".join(f"{count} {words.get(how, f'from {how}')}" for how, count in found.by_likeness.items())


def _titled(found: Forecast) -> dict[str, Amounts]:
    extra = {} if found.timings is None else {TIMINGS: found.timings}
    return {**by_method(found.cells), **extra}


def _table(title: str, rows: Mapping[str, Amounts]) -> Iterator[str]:
    width = max(map(len, (title, *rows)))
    yield f"{title:<{width}}  {'used':>7}  {'asked':<20}  {'prompt':<20}  {'completion':<20}  cost"
    for name, amounts in rows.items():
        cells = [f"{_range(amounts, column):<20}" for column in ("asked", "prompt", "completion")]
        used = _number(float(amounts.point["uses"].sum()))
        yield f"{name:<{width}}  {used:>7}  {'  '.join(cells)}  {_range(amounts, 'cost')}"


def _backbones(amounts: Amounts, hours: Mapping[str, Hours] | None, gpu: str) -> Iterator[str]:
    yield from _table("backbone", {key: _only(amounts, key) for key in amounts.point.index})
    if hours is None:
        return
    yield ""
    each = ", ".join(f"{key} {_number(one.low)} to {_number(one.high)}" for key, one in hours.items())
    low, high = (sum(getattr(one, end) for one in hours.values()) for end in ("low", "high"))
    yield f"GPU-hours of one {gpu}, kept full: {each}; all {_number(low)} to {_number(high)}."
    yield "They rest on config/throughput.yaml, which holds assumptions; replace them by your own figures."


def _storage(found: Forecast) -> str:
    parts = ", ".join(f"{name} {_number(size)}B" for name, size in _bytes(found).items())
    return f"Storage: {parts}, by the bytes a call took where it was measured."


def _bytes(found: Forecast) -> dict[str, float]:
    kinds = ("logs", "tables", "embeddings", "checkpoints")
    return {kind: sum(getattr(one.disk, kind) for one in found.cells) for kind in kinds}


def _beside(found: Forecast, done: Forecast) -> Iterator[str]:
    """Forecast and actual of the cells that are finished, by method."""
    finished = {one.cell for one in done.cells}
    same = [one for one in found.cells if one.cell in finished]
    yield f"Forecast beside actual, of the {len(same)} of these cells that are finished:"
    forecast, actual = by_method(same), by_method([one for one in done.cells if one.cell in {s.cell for s in same}])
    width = max(map(len, ("method", "all", *forecast)))
    yield f"{'method':<{width}}  {'asked':<32}  {'tokens asked':<32}  cost"
    both = {key: (forecast[key], actual[key]) for key in forecast}
    everything = (total([one for one, _ in both.values()]), total([one for _, one in both.values()]))
    for key, (reckoned, real) in {**both, "all": everything}.items():
        pairs = [_pair(reckoned, real, columns) for columns in (["asked"], ["prompt", "completion"], ["cost"])]
        yield f"{key:<{width}}  " + "  ".join(f"{pair:<32}" for pair in pairs).rstrip()


def _pair(reckoned: Amounts, real: Amounts, columns: list[str]) -> str:
    expected = float(reckoned.point[columns].to_numpy().sum())
    came = float(real.point[columns].to_numpy().sum())
    ratio = f" (x{came / expected:.2f})" if expected else ""
    return f"{_number(expected)} -> {_number(came)}{ratio}"


def _only(amounts: Amounts, backbone: str) -> Amounts:
    return Amounts(*(getattr(amounts, end).loc[[backbone]] for end in ("point", "low", "high")))


def _sums(amounts: Amounts) -> dict[str, dict[str, float]]:
    def of(frame: pd.DataFrame) -> dict[str, float]:
        return {str(name): float(value) for name, value in frame.sum().items()}

    ends = {end: of(getattr(amounts, end)) for end in ("point", "low", "high")}
    return {name: {end: sums[name] for end, sums in ends.items()} for name in ends["point"]}


def _range(amounts: Amounts, column: str) -> str:
    point, low, high = (float(getattr(amounts, end)[column].sum()) for end in ("point", "low", "high"))
    if f"{low:.2g}" == f"{high:.2g}":
        return _number(point)
    return f"{_number(point)} [{_number(low)}, {_number(high)}]"


def _number(value: float) -> str:
    """Two digits that count, or three from 100 of a unit on; more would be false precision."""
    for unit, letter in _UNITS:
        if value >= 0.9995 * unit:
            return f"{_digits(value / unit)}{letter}"
    return _digits(value)


def _digits(value: float) -> str:
    return f"{value:.0f}" if value >= 99.5 else f"{value:.2g}"
