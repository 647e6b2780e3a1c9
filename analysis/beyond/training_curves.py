"""Utility of every learner by training epoch: one row of panels per method, one panel per benchmark."""

import functools
import itertools
import textwrap
from collections.abc import Mapping
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Picture

from analysis.figure import PAGE, SIZE, SMALL, Figure, looks
from analysis.finished_cells import TRAINING, updates
from analysis.frames import Results
from analysis.notes import describe_run
from analysis.registry import Source
from harness.errors import UserError
from harness.runner.layout import POOL

# Characters that fit along the height of a panel.
_LABEL = 20


def build(source: Source) -> Figure:
    """Raises UserError if no cell has a training log."""
    results = source.results()
    curves, titles = [], {}
    for cell in itertools.chain(*results.cells_by_row.values()):
        run = cell.run
        if (cell.folder / TRAINING).is_file() and len(log := updates(cell)):
            measure = "utility" if "utility" in log else "accuracy"
            names = ("method", "backbone", "benchmark", "seed")
            curve = by_epoch(log, measure).rename_axis("update").rename("value").reset_index()
            named = {name: getattr(run, name) for name in names}
            curves.append(curve.assign(measure=measure, **named, run_id=run.run_id))
            title = run.method_title if run.backbone == POOL else f"{run.method_title} ({run.backbone})"
            titles[run.method, run.backbone] = f"{title}{'' if measure == 'utility' else ', accuracy'}"
    if not curves:
        raise UserError("nothing was trained in these cells, so there is no curve; train them, with epochs above 0")
    frame = pd.concat(curves)
    return Figure(
        label="training-curves",
        **describe_run(results, source.caption, source.legend),
        draw=functools.partial(_draw, results, frame, titles),
        inches=(PAGE, 1.25 * len(titles) + 0.6),
        frame=frame,
    )


def by_epoch(log: pd.DataFrame, measure: str) -> pd.Series:
    """Return the mean of a measure per epoch, weighted by trajectories, indexed by the middle of its updates."""
    # The last update of an epoch may have fewer trajectories.
    totals = pd.DataFrame({"value": log[measure] * log["trajectories"], "attempts": log["trajectories"]})
    sums = totals.groupby(log["epoch"]).sum()
    middles = log.index.to_series().groupby(log["epoch"]).mean()
    return (sums["value"] / sums["attempts"]).set_axis(middles)


def _draw(results: Results, frame: pd.DataFrame, titles: Mapping[tuple[str, str], str], picture: Picture) -> None:
    grid = picture.subplots(len(titles), len(results.benchmarks), squeeze=False, sharex="row", sharey=True)
    picture.supylabel("own utility", fontsize=SIZE)
    styles = looks(list(dict.fromkeys(method for method, _ in titles)), results.own)
    curves = dict(list(frame.groupby(["method", "backbone", "benchmark"])))
    for panels, (row, title) in zip(grid, titles.items(), strict=True):
        for panel, benchmark in zip(panels, results.benchmarks, strict=True):
            if (*row, benchmark) in curves:
                _panel(panel, curves[*row, benchmark], styles[row[0]][0])
        panels[0].set_ylabel(textwrap.fill(title, _LABEL), fontsize=SMALL)
        panels[0].set_xlim(left=0)
        panels[0].locator_params(axis="x", integer=True, min_n_ticks=1)
    picture.align_ylabels(grid[:, 0])
    for top, bottom, title in zip(grid[0], grid[-1], results.benchmarks.values(), strict=True):
        top.set_title(title)
        bottom.set_xlabel("update")


def _panel(panel: Axes, curves: pd.DataFrame, color: str) -> None:
    """Draw one thin line per seed if there are several, and the mean where all seeds have a value."""
    seeds = curves.pivot(index="update", columns="seed", values="value")
    # A single epoch needs a marker: a line through one point is invisible.
    style: dict[str, Any] = {"marker": "o" if len(seeds) == 1 else "", "markersize": 4}
    if seeds.shape[1] > 1:
        panel.plot(seeds.index, seeds, color="0.6", linewidth=0.8, **style)
    mean = seeds.dropna().mean(axis=1)
    panel.plot(mean.index, mean, color=color, linewidth=1.5, **style)
