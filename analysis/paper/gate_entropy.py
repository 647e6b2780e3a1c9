"""Entropies of the gates and of the router's two choices during training, by update."""

import functools
from collections.abc import Mapping
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Picture

from analysis import notes
from analysis.figure import BLACK, BLUE, PAGE, SMALL, VERMILION, Figure
from analysis.finished_cells import updates
from analysis.paper import traces
from analysis.provenance import identity
from analysis.registry import Source
from harness.errors import UserError

# By panel and measure: name of the decision, colour and style of its line.
_BANDS: Mapping[str, Mapping[str, tuple[str, str, str]]] = {
    "gates (nats)": {
        "entropy_write": ("write", BLACK, "-"),
        "entropy_retrieval": ("retrieve", BLUE, "--"),
        "entropy_halt": ("halt", VERMILION, ":"),
    },
    "choices (nats)": {
        "entropy_role": ("role", BLACK, "-"),
        "entropy_backbone": ("backbone", BLUE, "--"),
    },
}
_MEASURES = [name for policies in _BANDS.values() for name in policies]


def build(source: Source) -> Figure:
    """Raises UserError for several methods, or if nothing was trained."""
    results = source.results()
    frames = []
    for benchmark, cells in traces.by_benchmark(results).items():
        for cell in cells:
            log = updates(cell)
            # An update without a decision has no row.
            tidy = log.reset_index().melt(["update", "epoch"], [name for name in _MEASURES if name in log], "measure")
            columns = {"method": cell.run.method, "benchmark": benchmark, "seed": cell.run.seed}
            frames.append(tidy.dropna().assign(**columns, **identity([cell.run])))
    frame = pd.concat(frames)
    if frame.empty:
        raise UserError("nothing was trained in these cells, so there is no entropy; train them, with epochs above 0")
    return Figure(
        label="gate-entropy",
        **notes.describe_run(results, source.caption, source.legend),
        draw=functools.partial(_draw, results.benchmarks, frame),
        inches=(PAGE, 2.0 * len(_BANDS) + 0.3),
        frame=frame,
    )


def _draw(titles: Mapping[str, str], frame: pd.DataFrame, picture: Picture) -> None:
    grid = picture.subplots(len(_BANDS), len(titles), squeeze=False, sharex="col", sharey="row")
    for panels, (name, policies) in zip(grid, _BANDS.items(), strict=True):
        for panel, benchmark in zip(panels, titles, strict=True):
            _panel(panel, frame[frame["benchmark"] == benchmark], policies)
        # The axis starts at zero: the distance from zero is the point.
        highest = max(frame.loc[frame["measure"].isin(policies), "value"], default=0)
        panels[0].set_ylim(0, 1.08 * (highest or 1.0))
        panels[0].set_ylabel(name)
    for top, bottom, title in zip(grid[0], grid[-1], titles.values(), strict=True):
        top.legend_.set_title(title)
        bottom.set_xlabel("update")
        bottom.locator_params(axis="x", integer=True, min_n_ticks=1)


def _panel(panel: Axes, rows: pd.DataFrame, policies: Mapping[str, tuple[str, str, str]]) -> None:
    for name, (title, color, linestyle) in policies.items():
        values = rows[rows["measure"] == name].pivot(index="update", columns="seed", values="value")
        if values.empty:
            continue
        seeds = values.reindex(range(1, rows["update"].max() + 1))
        several = seeds.shape[1] > 1
        style: dict[str, Any] = {"color": color, "linestyle": linestyle}
        # Markers, since an update between two gaps has no line.
        dots: dict[str, Any] = {"marker": ".", "markersize": 1 if several else 2, "linewidth": 0.6 if several else 1.3}
        lines = panel.plot(seeds.index, seeds, **style, **dots)
        if several:
            # Updates at which every seed made a decision.
            common = seeds.dropna() if len(seeds.dropna()) else seeds
            lines = panel.plot(common.index, common.mean(axis=1), **style, linewidth=2.0)
        at, lowest = seeds.min(axis=1).idxmin(), seeds.min().min()
        lines[0].set_label(f"{title}, min {lowest:.2f}")
        panel.plot([at], [lowest], marker="o", markersize=5, fillstyle="none", color=color, clip_on=False)
    look: dict[str, Any] = {"frameon": False, "labelcolor": "linecolor", "fontsize": SMALL, "alignment": "left"}
    handles, _ = panel.get_legend_handles_labels()
    panel.legend(handles=handles, loc="lower left", bbox_to_anchor=(0, 1), handlelength=2.5, **look)
