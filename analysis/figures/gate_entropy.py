"""How sure the gates and the two choices of the router become in training: their entropies, update by update."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Picture

from analysis import notes, traces
from analysis.figure import SMALL, Figure
from analysis.frames import IDENTITY
from analysis.provenance import identity
from analysis.source import Source
from analysis.training_log import updates
from harness.errors import UserError

# By band and measure: what a reader calls the decision, and how its line looks, in colour and in grey.
_BANDS: Mapping[str, Mapping[str, tuple[str, str, str]]] = {
    "gates (nats)": {
        "entropy_write": ("write", "#000000", "-"),
        "entropy_retrieval": ("retrieve", "#0072B2", "--"),
        "entropy_halt": ("halt", "#D55E00", ":"),
    },
    "choices (nats)": {
        "entropy_role": ("role", "#000000", "-"),
        "entropy_backbone": ("backbone", "#0072B2", "--"),
    },
}
_COLUMNS = ["method", "benchmark", "measure", "epoch", "update", "value", *IDENTITY]
_MEASURES = [name for policies in _BANDS.values() for name in policies]
_CAPTION = (
    "Mean entropy per decision in training, by update: the gates above (ln 2 = 0.69 at most), the choices of role and "
    "backbone below. Thin: one seed; thick: mean over several. Rings, min: the lowest value of any seed. A gap: the "
    "gate had nothing to decide. The paper prints no values; it says that the gates stay well above zero."
)


def build(source: Source) -> Figure:
    """Return a column of panels a benchmark; raises UserError for several methods, or where nothing was trained."""
    results = source.results()
    logs, frames = {}, []
    for benchmark, cells in traces.by_benchmark(results).items():
        logs[benchmark] = [updates(cell) for cell in cells]
        for cell, log in zip(cells, logs[benchmark], strict=True):
            # An update without a decision has no row.
            tidy = log.reset_index().melt(["update", "epoch"], [name for name in _MEASURES if name in log], "measure")
            columns = {"method": cell.run.method, "benchmark": benchmark, **identity([cell])}
            frames.append(tidy.dropna().assign(**columns)[_COLUMNS])
    frame = pd.concat(frames)
    if frame.empty:
        raise UserError("nothing was trained in these cells, so there is no entropy; train them, with epochs above 0")
    return Figure(
        label="gate-entropy",
        **notes.describe_run(results, _CAPTION),
        draw=functools.partial(_draw, results.benchmarks, logs),
        inches=(2.8 * max(2, len(logs)), 1.7 * len(_BANDS) + 1.1),
        frame=frame,
    )


def _draw(titles: Mapping[str, str], logs: Mapping[str, Sequence[pd.DataFrame]], picture: Picture) -> None:
    grid = picture.subplots(len(_BANDS), len(logs), squeeze=False, sharex="col")
    for panels, (name, policies) in zip(grid, _BANDS.items(), strict=True):
        for panel, of_seeds in zip(panels, logs.values(), strict=True):
            _panel(panel, of_seeds, policies)
        panels[0].set_ylabel(name)
    for top, bottom, benchmark in zip(grid[0], grid[-1], logs, strict=True):
        top.set_title(titles[benchmark])
        bottom.set_xlabel("update")
        bottom.locator_params(axis="x", integer=True, min_n_ticks=1)


def _panel(panel: Axes, logs: Sequence[pd.DataFrame], policies: Mapping[str, tuple[str, str, str]]) -> None:
    """Draw entropies from zero up, since how far above it they stay is what the panel is about."""
    highest = 0.0
    for name, (title, color, linestyle) in policies.items():
        seeds = pd.DataFrame({place: log[name] for place, log in enumerate(logs) if name in log})
        if seeds.empty:
            continue
        several = seeds.shape[1] > 1
        style: dict[str, Any] = {"color": color, "linestyle": linestyle}
        # Dots, because an update between two gaps has no line to be seen by.
        dots: dict[str, Any] = {"marker": ".", "markersize": 1 if several else 2, "linewidth": 0.6 if several else 1.3}
        lines = panel.plot(seeds.index, seeds, **style, **dots)
        if several:
            # Wherever all seeds decided anything.
            common = seeds.dropna() if len(seeds.dropna()) else seeds
            lines = panel.plot(common.index, common.mean(axis=1), **style, linewidth=2.0)
        at, lowest = seeds.min(axis=1).idxmin(), seeds.min().min()
        lines[0].set_label(f"{title}, min {lowest:.2f}")
        panel.plot([at], [lowest], marker="o", markersize=5, fillstyle="none", color=color, clip_on=False)
        highest = max(highest, seeds.max().max())
    panel.set_ylim(0, 1.08 * (highest or 1.0))
    if highest:
        look: dict[str, Any] = {"frameon": False, "labelcolor": "linecolor", "fontsize": SMALL}
        panel.legend(loc="center left", bbox_to_anchor=(1, 0.5), handlelength=1.5, borderaxespad=0.2, **look)
