"""How sure the gates and the two choices of the router become in training: their entropies, update by update."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import pandas as pd

from analysis import notes, traces
from analysis.figure import SMALL, Figure
from analysis.labels import apart
from analysis.provenance import identity
from analysis.results import Cell
from analysis.source import Source
from analysis.training import updates
from harness.errors import UserError

if TYPE_CHECKING:
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
    results = source.results()
    cells = traces.by_benchmark(results)
    logs = {key: [updates(cell) for cell in of] for key, of in cells.items()}
    frame = pd.concat([_tidy(cell, log) for key, of in cells.items() for cell, log in zip(of, logs[key], strict=True)])
    if frame.empty:
        raise UserError("nothing was trained in these cells, so there is no entropy; train them, with epochs above 0")
    width = max(2, len(logs)) * _PANEL_INCHES[0]
    return Figure(
        label="gate-entropy",
        caption=f"{_CAPTION}{notes.conditions(results)}",
        simulated=results.simulated,
        draw=functools.partial(_draw, results.benchmarks, logs),
        inches=(width, len(_BANDS) * _PANEL_INCHES[1] + _AROUND_INCHES),
        provenance=results.provenance,
        frame=frame,
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


def _tidy(cell: Cell, log: pd.DataFrame) -> pd.DataFrame:
    """One row an update and kind of decision; an update without a decision has none."""
    names = [name for name in {**_GATES, **_CHOICES} if name in log]
    if not names:
        return pd.DataFrame()
    rows = log.reset_index().melt(["update", "epoch"], names, "measure").dropna(subset="value")
    known = {"method": cell.run.method, "benchmark": cell.run.benchmark, **identity([cell])}
    order = ["method", "benchmark", "measure", "epoch", "update", "value", *identity([cell])]
    return rows.assign(**known)[order]
