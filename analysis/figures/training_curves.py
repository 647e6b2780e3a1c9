"""What every policy gained in training: its own utility by epoch, a row of panels a benchmark, a panel a method."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pandas as pd

from analysis.figure import Figure
from analysis.learning.measures import by_epoch, mean_of
from analysis.learning.results import Row
from analysis.notes import settings
from analysis.source import Source
from analysis.training import updates
from harness.errors import UserError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Picture

#: Training logs by benchmark, row and seed.
Logs = Mapping[str, Mapping[Row, Mapping[int, pd.DataFrame]]]

_MEASURE = "utility"
_PANEL_INCHES = (2.3, 1.9)
_LEAST_INCHES = 7.0
_HEAD_INCHES = 1.0
# Told apart by lightness and width alone, so that nothing depends on colour.
_SEED: Mapping[str, Any] = {"color": "0.6", "linewidth": 0.8}
_MEAN: Mapping[str, Any] = {"color": "0.0", "linewidth": 2.2}
CAPTION = (
    "Own utility in training; each point is the mean over one epoch. Thin: one seed. Thick: mean over seeds. The "
    "scales of the panels differ."
)


def build(source: Source) -> Figure:
    """Build the figure.

    Raises:
        UserError: A cell cannot be read or has no training log, or nothing was trained.
    """
    results = source.results()
    logs: dict[str, dict[Row, dict[int, pd.DataFrame]]] = {key: {} for key in results.benchmarks}
    frames, titles = [], {}
    for (method, backbone, benchmark), cells in results.trainings.items():
        row = Row(method, backbone)
        for cell in cells:
            log, run = updates(cell), cell.run
            if _MEASURE not in log:
                continue
            titles[row] = row.title(run.method_title)
            logs[benchmark].setdefault(row, {})[run.seed] = log
            told = {"method": method, "backbone": backbone, "benchmark": benchmark, "seed": run.seed}
            curve = by_epoch(log, _MEASURE).rename_axis("update").rename(_MEASURE).reset_index()
            frames.append(curve.assign(**told, run_id=run.run_id)[[*told, "update", _MEASURE, "run_id"]])
    if not frames:
        raise UserError("nothing was trained in these cells, so there is no curve; train them, with epochs above 0")
    return Figure(
        label="training-curves",
        caption=f"{CAPTION}{settings(results)}",
        simulated=results.simulated,
        draw=functools.partial(draw, logs, results.benchmarks, titles),
        inches=inches(logs),
        provenance=results.provenance,
        frame=pd.concat(frames),
    )


def inches(logs: Logs) -> tuple[float, float]:
    """Width and height that the panels need."""
    return max(_PANEL_INCHES[0] * len(_rows(logs)), _LEAST_INCHES), _PANEL_INCHES[1] * len(logs) + _HEAD_INCHES


def draw(logs: Logs, benchmarks: Mapping[str, str], titles: Mapping[Row, str], picture: Picture) -> None:
    """Put the panels into a picture; where a method was not trained on a benchmark, the place stays empty.

    Args:
        logs: One row an update.
        benchmarks: Titles of the benchmarks.
        titles: Titles of the rows.
        picture: An empty one.
    """
    rows = _rows(logs)
    if not rows:
        return
    grid = picture.subplots(len(logs), len(rows), squeeze=False)
    for panels, (key, of_benchmark) in zip(grid, logs.items(), strict=True):
        for panel, row in zip(panels, rows, strict=True):
            found = [log for log in of_benchmark.get(row, {}).values() if _MEASURE in log]
            if found:
                _curves(panel, found)
            else:
                panel.set_axis_off()
        # A panel that stays empty shows no label either.
        first = next((panel for panel in panels if panel.axison), panels[0])
        first.set_ylabel(f"{benchmarks[key]}\nown utility")
    for panel, row in zip(grid[0], rows, strict=True):
        panel.set_title(titles[row])


def _rows(logs: Logs) -> list[Row]:
    return list(dict.fromkeys(row for of_benchmark in logs.values() for row in of_benchmark))


def _curves(panel: Axes, logs: Sequence[pd.DataFrame]) -> None:
    lines = [by_epoch(log, _MEASURE) for log in logs]
    for line in lines:
        panel.plot(line.index, line, **_SEED, **_marked(line))
    mean = mean_of(lines)
    panel.plot(mean.index, mean, **_MEAN, **_marked(mean))
    last = max(log.index.max() for log in logs)
    panel.set_xlim(0, last + 1)
    panel.locator_params(axis="x", integer=True, min_n_ticks=1)
    panel.set_xlabel("update")


def _marked(line: pd.Series) -> dict[str, Any]:
    """A training of one epoch is a point, which a line would not show."""
    return {"marker": "o"} if len(line) == 1 else {}
