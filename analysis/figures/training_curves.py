"""What every policy gained in training: its own utility by epoch, a row of panels a benchmark, a panel a method."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Picture

from analysis.figure import Figure
from analysis.finished_cells import TRAINING, RunInfo
from analysis.notes import describe_run
from analysis.source import Source
from analysis.training_log import mean_of_updates, updates
from harness.errors import UserError
from harness.runner.config import POOL

_MEASURE = "utility"
# Told apart by lightness and width alone, so that nothing depends on colour.
_SEED: Mapping[str, Any] = {"color": "0.6", "linewidth": 0.8}
_MEAN: Mapping[str, Any] = {"color": "0.0", "linewidth": 2.2}
_CAPTION = (
    "Own utility in training; each point is the mean over one epoch. Thin: one seed. Thick: mean over seeds. The "
    "scales of the panels differ."
)


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
    columns = len({(run.method, run.backbone) for run, _ in trained})
    return Figure(
        label="training-curves",
        **describe_run(results, _CAPTION),
        draw=functools.partial(_draw, trained, results.benchmarks),
        inches=(max(2.3 * columns, 7.0), 1.9 * len(results.benchmarks) + 1.0),
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
    grid = picture.subplots(len(benchmarks), len(titles), squeeze=False)
    for panels, (benchmark, title) in zip(grid, benchmarks.items(), strict=True):
        for panel, row in zip(panels, titles, strict=True):
            if (benchmark, *row) in logs:
                _panel(panel, logs[benchmark, *row])
            else:
                panel.set_axis_off()
        # A panel that stays empty shows no label either.
        first = next((panel for panel in panels if panel.axison), panels[0])
        first.set_ylabel(f"{title}\nown utility")
    for panel, title in zip(grid[0], titles.values(), strict=True):
        panel.set_title(title)


def _panel(panel: Axes, logs: Sequence[pd.DataFrame]) -> None:
    lines = [by_epoch(log) for log in logs]
    # The mean is where all seeds have a value.
    mean = pd.concat(lines, axis=1).dropna().mean(axis=1)
    for line, style in [*((line, _SEED) for line in lines), (mean, _MEAN)]:
        # A training of one epoch is a point, which a line would not show.
        panel.plot(line.index, line, **style, marker="o" if len(line) == 1 else "")
    panel.set_xlim(0, max(log.index.max() for log in logs) + 1)
    panel.locator_params(axis="x", integer=True, min_n_ticks=1)
    panel.set_xlabel("update")
