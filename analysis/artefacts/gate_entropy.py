"""How sure the gates and the two choices of the router become in training: their entropies, update by update."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from analysis import traces
from analysis.figures import SMALL, Figure
from analysis.grid import build_grid
from analysis.labels import apart
from analysis.measures import Measurement
from analysis.notes import conditions
from analysis.provenance import provenance
from analysis.published import load
from analysis.source import Source
from analysis.tidy import exact, identity
from harness.errors import UserError

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Picture


class Policy(NamedTuple):
    """One kind of decision: how a reader calls it, and how its line looks, in colour and in grey."""

    title: str
    color: str
    linestyle: str


_GATES = {
    "entropy_write": Policy("write", "#000000", "-"),
    "entropy_retrieval": Policy("retrieve", "#0072B2", "--"),
    "entropy_halt": Policy("halt", "#D55E00", ":"),
}
_CHOICES = {
    "entropy_role": Policy("role", "#000000", "-"),
    "entropy_backbone": Policy("backbone", "#0072B2", "--"),
}
_BANDS = {"gates (nats)": _GATES, "choices (nats)": _CHOICES}
_PANEL_INCHES = (2.5, 1.7)
_AROUND_INCHES = 1.1
# A label is about this share of the height of a panel.
_LABEL = 0.09
_ROOM = 1.08
_CAPTION = (
    "Mean entropy per decision in training, by update: the gates above (ln 2 = 0.69 at most), the choices of role and "
    "backbone below. Thin: one seed; thick: mean over several. Rings, min: the lowest value of any seed. A gap: the "
    "gate had nothing to decide. The paper prints no values; it says that the gates stay well above zero."
)


def build(source: Source) -> Figure:
    """Build the figure: a column of panels a benchmark.

    Raises:
        UserError: A cell cannot be read or has no training log, nothing was trained, or there are several methods.
    """
    grid = build_grid(source.read(), load())
    measurements = traces.by_benchmark(grid)
    logs = {key: [traces.updates(cell) for cell in of.cells] for key, of in measurements.items()}
    records = tuple(record for key, of in measurements.items() for record in _records(key, of, logs[key]))
    if not records:
        raise UserError("nothing was trained in these cells, so there is no entropy; train them, with epochs above 0")
    width = max(2, len(logs)) * _PANEL_INCHES[0]
    return Figure(
        label="gate-entropy",
        caption=f"{_CAPTION}{conditions(grid)}",
        simulated=grid.cells[0].run.simulated,
        draw=functools.partial(_draw, grid.benchmarks, logs),
        inches=(width, len(_BANDS) * _PANEL_INCHES[1] + _AROUND_INCHES),
        provenance=provenance(grid.cells),
        records=records,
    )


def _draw(titles: Mapping[str, str], logs: Mapping[str, Sequence[pd.DataFrame]], picture: Picture) -> None:
    panels = picture.subplots(len(_BANDS), len(logs), squeeze=False, sharex="col")
    for band, (name, policies) in zip(panels, _BANDS.items(), strict=True):
        for panel, of_seeds in zip(band, logs.values(), strict=True):
            _panel(panel, of_seeds, policies)
        band[0].set_ylabel(name)
    for top, bottom, key in zip(panels[0], panels[-1], logs, strict=True):
        top.set_title(titles[key])
        bottom.set_xlabel("update")
        bottom.locator_params(axis="x", integer=True)


def _panel(panel: Axes, logs: Sequence[pd.DataFrame], policies: Mapping[str, Policy]) -> None:
    """Every line begins at zero on its axis: how far above it the lines stay is what the panel is about."""
    shown = {name: found for name in policies if (found := [log[name] for log in logs if name in log])}
    for name, lines in shown.items():
        _lines(panel, lines, policies[name])
    highest = max((float(line.max()) for lines in shown.values() for line in lines), default=1.0)
    panel.set_ylim(0, _ROOM * highest)
    ends = apart([_mean(lines).dropna().iloc[-1] for lines in shown.values()], _LABEL * highest)
    for (name, lines), end in zip(shown.items(), ends, strict=True):
        lowest = min(float(line.min()) for line in lines)
        _label(panel, f"{policies[name].title}, min {lowest:.2f}", end, policies[name])


def _lines(panel: Axes, lines: Sequence[pd.Series], policy: Policy) -> None:
    style: dict[str, Any] = {"color": policy.color, "linestyle": policy.linestyle}
    several = len(lines) > 1
    # Dots, because an update between two gaps has no line to be seen by.
    thin: dict[str, Any] = {"marker": ".", "markersize": 1 if several else 2, "linewidth": 0.6 if several else 1.3}
    for line in lines:
        panel.plot(line.index, line, **style, **thin)
    if several:
        mean = _mean(lines)
        panel.plot(mean.index, mean, **style, linewidth=2.0)
    least = min(lines, key=lambda line: float(line.min()))
    panel.plot(
        [least.idxmin()], [least.min()], marker="o", markersize=5, fillstyle="none", color=policy.color, clip_on=False
    )


def _mean(lines: Sequence[pd.Series]) -> pd.Series:
    """The mean over the seeds, wherever all of them decided anything."""
    import pandas as pd

    whole = pd.concat(lines, axis=1)
    return whole.dropna().mean(axis=1) if len(whole.dropna()) else whole.mean(axis=1)


def _label(panel: Axes, text: str, height: float, policy: Policy) -> None:
    panel.annotate(
        text,
        (1, height),
        (3, 0),
        xycoords=("axes fraction", "data"),
        textcoords="offset points",
        color=policy.color,
        fontsize=SMALL,
        va="center",
    )


def _records(benchmark: str, measurement: Measurement, logs: Sequence[pd.DataFrame]) -> list[dict[str, str]]:
    """One an update, seed and kind of decision; an update without a decision has none."""
    found = []
    for cell, log in zip(measurement.cells, logs, strict=True):
        known = identity(replace(measurement, cells=(cell,)))
        for name in {**_GATES, **_CHOICES}:
            if name not in log:
                continue
            found += [
                {
                    "method": cell.run.method,
                    "benchmark": benchmark,
                    "measure": name,
                    "epoch": str(int(log.loc[update, "epoch"])),
                    "update": str(update),
                    "value": exact(value),
                    **known,
                }
                for update, value in log[name].dropna().items()
            ]
    return found
