"""Utility of every policy by epoch of its training: a row of panels a method, a panel a benchmark."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Picture

from analysis.figure import PAGE, SIZE, SMALL, Figure, looks
from analysis.finished_cells import TRAINING, RunInfo, mean_of_updates, updates
from analysis.notes import describe_run
from analysis.source import Source
from harness.errors import UserError
from harness.runner.config import POOL

_MEASURE = "utility"


def build(source: Source) -> Figure:
    """Return the figure of the cells with a training log; raises UserError where nothing was trained."""
    results = source.results()
    cells = [cell for cells in results.cells_by_row.values() for cell in cells if (cell.folder / TRAINING).is_file()]
    trained = [(cell.run, log) for cell in cells if _MEASURE in (log := updates(cell))]
    if not trained:
        raise UserError("nothing was trained in these cells, so there is no curve; train them, with epochs above 0")
    frames = []
    for run, log in trained:
        place = {name: getattr(run, name) for name in ("method", "backbone", "benchmark", "seed")}
        curve = by_epoch(log).rename_axis("update").rename(_MEASURE).reset_index()
        frames.append(curve.assign(**place, run_id=run.run_id)[[*place, "update", _MEASURE, "run_id"]])
    rows = len({(run.method, run.backbone) for run, _ in trained})
    return Figure(
        label="training-curves",
        **describe_run(results, source.caption),
        draw=functools.partial(_draw, trained, results.benchmarks),
        inches=(PAGE, 1.25 * rows + 0.6),
        frame=pd.concat(frames),
    )


def row_title(run: RunInfo) -> str:
    """Return the titles of method and backbone of a cell; the pool is left out."""
    return run.method_title if run.backbone == POOL else f"{run.method_title} ({run.backbone})"


def by_epoch(log: pd.DataFrame) -> pd.Series:
    """Return the mean own utility over the attempts of each epoch, at the middle of its updates."""
    middles = log.index.to_series().groupby(log["epoch"]).mean()
    return mean_of_updates(log, _MEASURE, log["epoch"]).set_axis(middles)


def _draw(trained: Sequence[tuple[RunInfo, pd.DataFrame]], benchmarks: Mapping[str, str], picture: Picture) -> None:
    logs: dict[tuple[str, str, str], list[pd.DataFrame]] = {}
    for run, log in trained:
        logs.setdefault((run.benchmark, run.method, run.backbone), []).append(log)
    order = list(benchmarks)
    runs = sorted((run for run, _ in trained), key=lambda run: order.index(run.benchmark))
    titles = {(run.method, run.backbone): row_title(run) for run in runs}
    grid = picture.subplots(len(titles), len(benchmarks), squeeze=False, sharex="row", sharey="row")
    picture.supylabel("own utility", fontsize=SIZE)
    styles = looks(method for method, _ in titles)
    for panels, (row, title) in zip(grid, titles.items(), strict=True):
        for panel, benchmark in zip(panels, benchmarks, strict=True):
            _panel(panel, logs.get((benchmark, *row), []), styles[row[0]][0])
        panels[0].set_ylabel(title.replace(" (", "\n("), fontsize=SMALL)
        panels[0].set_xlim(left=0)
        panels[0].locator_params(axis="x", integer=True, min_n_ticks=1)
    picture.align_ylabels(grid[:, 0])
    for top, bottom, title in zip(grid[0], grid[-1], benchmarks.values(), strict=True):
        top.set_title(title)
        bottom.set_xlabel("update")


def _panel(panel: Axes, logs: Sequence[pd.DataFrame], color: str) -> None:
    lines = [by_epoch(log) for log in logs]
    if len(lines) > 1:
        for line in lines:
            _curve(panel, line, color="0.6", linewidth=0.8)
    if lines:
        # The mean is where all seeds have a value.
        _curve(panel, pd.concat(lines, axis=1).dropna().mean(axis=1), color=color, linewidth=1.5)


def _curve(panel: Axes, line: pd.Series, **style: Any) -> None:
    # A training of one epoch is a point, which a line would not show.
    panel.plot(line.index, line, **style, marker="o" if len(line) == 1 else "", markersize=4)
