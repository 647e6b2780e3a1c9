"""How sure the gates and the two choices of the router become in training: their entropies, update by update."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import pandas as pd

from analysis import notes, traces
from analysis.figure import SMALL, Figure
from analysis.provenance import identity
from analysis.results import Cell
from analysis.source import Source
from analysis.training import updates
from harness.errors import UserError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Picture


class _Policy(NamedTuple):
    """One kind of decision: how a reader calls it, and how its line looks, in colour and in grey."""

    title: str
    color: str
    linestyle: str


_BANDS: Mapping[str, Mapping[str, _Policy]] = {
    "gates (nats)": {
        "entropy_write": _Policy("write", "#000000", "-"),
        "entropy_retrieval": _Policy("retrieve", "#0072B2", "--"),
        "entropy_halt": _Policy("halt", "#D55E00", ":"),
    },
    "choices (nats)": {
        "entropy_role": _Policy("role", "#000000", "-"),
        "entropy_backbone": _Policy("backbone", "#0072B2", "--"),
    },
}
_MEASURES = [name for policies in _BANDS.values() for name in policies]
_PANEL_INCHES = (2.8, 1.7)
_AROUND_INCHES = 1.1
_ROOM = 1.08
_CAPTION = (
    "Mean entropy per decision in training, by update: the gates above (ln 2 = 0.69 at most), the choices of role and "
    "backbone below. Thin: one seed; thick: mean over several. Rings, min: the lowest value of any seed. A gap: the "
    "gate had nothing to decide. The paper prints no values; it says that the gates stay well above zero."
)


def build(source: Source) -> Figure:
    """A column of panels a benchmark; raises UserError where nothing was trained, or for cells of several methods."""
    results = source.results()
    cells = traces.by_benchmark(results)
    logs = {key: [updates(cell) for cell in of] for key, of in cells.items()}
    frame = pd.concat([_tidy(cell, log) for key, of in cells.items() for cell, log in zip(of, logs[key], strict=True)])
    if frame.empty:
        raise UserError("nothing was trained in these cells, so there is no entropy; train them, with epochs above 0")
    width = max(2, len(logs)) * _PANEL_INCHES[0]
    return Figure(
        label="gate-entropy",
        caption=f"{_CAPTION}{notes.settings(results)}",
        simulated=results.simulated,
        draw=functools.partial(_draw, results.benchmarks, logs),
        inches=(width, len(_BANDS) * _PANEL_INCHES[1] + _AROUND_INCHES),
        provenance=results.provenance,
        frame=frame,
    )


def _tidy(cell: Cell, log: pd.DataFrame) -> pd.DataFrame:
    """One row an update and kind of decision; an update without a decision has none."""
    known = {"method": cell.run.method, "benchmark": cell.run.benchmark, **identity([cell])}
    names = log.columns.intersection(_MEASURES)
    rows = log.reset_index().melt(["update", "epoch"], [name for name in _MEASURES if name in names], "measure")
    order = ["method", "benchmark", "measure", "epoch", "update", "value", *identity([cell])]
    return rows.dropna(subset="value").assign(**known)[order]


def _draw(titles: Mapping[str, str], logs: Mapping[str, Sequence[pd.DataFrame]], picture: Picture) -> None:
    panels = picture.subplots(len(_BANDS), len(logs), squeeze=False, sharex="col")
    for band, (name, policies) in zip(panels, _BANDS.items(), strict=True):
        for panel, of_seeds in zip(band, logs.values(), strict=True):
            _panel(panel, of_seeds, policies)
        band[0].set_ylabel(name)
    for top, bottom, key in zip(panels[0], panels[-1], logs, strict=True):
        top.set_title(titles[key])
        bottom.set_xlabel("update")
        bottom.locator_params(axis="x", integer=True, min_n_ticks=1)


def _panel(panel: Axes, logs: Sequence[pd.DataFrame], policies: Mapping[str, _Policy]) -> None:
    """Every line begins at zero on its axis: how far above it the lines stay is what the panel is about."""
    highest = 0.0
    for name, policy in policies.items():
        seeds = pd.DataFrame({place: log[name] for place, log in enumerate(logs) if name in log})
        if seeds.empty:
            continue
        lowest = seeds.min().min()
        style: dict[str, Any] = {"color": policy.color, "linestyle": policy.linestyle}
        several = seeds.shape[1] > 1
        # Dots, because an update between two gaps has no line to be seen by.
        dots: dict[str, Any] = {"marker": ".", "markersize": 1 if several else 2, "linewidth": 0.6 if several else 1.3}
        lines = panel.plot(seeds.index, seeds, **style, **dots)
        if several:
            mean = _mean(seeds)
            lines = panel.plot(mean.index, mean, **style, linewidth=2.0)
        lines[0].set_label(f"{policy.title}, min {lowest:.2f}")
        at = seeds[seeds.min().idxmin()].idxmin()
        panel.plot([at], [lowest], marker="o", markersize=5, fillstyle="none", color=policy.color, clip_on=False)
        highest = max(highest, seeds.max().max())
    panel.set_ylim(0, _ROOM * (highest or 1.0))
    look: dict[str, Any] = {
        "frameon": False,
        "labelcolor": "linecolor",
        "fontsize": SMALL,
        "handlelength": 1.5,
        "borderaxespad": 0.2,
    }
    if highest:
        panel.legend(loc="center left", bbox_to_anchor=(1, 0.5), **look)


def _mean(seeds: pd.DataFrame) -> pd.Series:
    """The mean over the seeds, wherever all of them decided anything."""
    common = seeds.dropna()
    return (common if len(common) else seeds).mean(axis=1)
