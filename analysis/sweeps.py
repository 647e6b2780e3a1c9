"""The sweeps of the paper: methods that differ in one setting alone, and what each measured."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from analysis.figure import on_frontier
from analysis.frames import Results, with_costs
from harness.errors import UserError

COST_WEIGHTS = ("gmr_lambda_10", "gmr", "gmr_lambda_50")  # λ_c
#: The most steps φ of a trajectory.
DEPTHS = ("gmr_depth_2", "gmr_depth_4", "gmr", "gmr_depth_8", "gmr_depth_10")


def values(results: Results, setting: str) -> dict[str, float]:
    """Return the value of a setting (``lambda_c`` or ``max_depth``) by method of the sweep, ascending."""
    settings = {cell.run.method: cell.run.config[setting] for cell in results.cells}
    return dict(sorted(settings.items(), key=lambda pair: pair[1]))


def measured(results: Results, names: Sequence[str], setting: str) -> pd.DataFrame:
    """Return what a sweep measured by benchmark and rising setting; UserError for a method not in ``names``."""
    foreign = sorted({method for method, *_ in results.cells_by_row} - set(names))
    if foreign:
        raise UserError(f"the sweep of {setting} was given the method {foreign[0]}; expected only {', '.join(names)}")
    settings = values(results, setting)
    # The paper prints no number of a sweep.
    blank = dict.fromkeys(("published", "published_total", "published_questions"), float("nan"))
    frame = with_costs(results.with_measured(pd.DataFrame(blank, index=results.measured.index)), results)
    frame[setting] = [settings[method] for method, *_ in frame.index]
    frame = frame.sort_values(setting)
    return pd.concat([frame.xs(key, level="benchmark", drop_level=False) for key in results.benchmarks])


def by_weight(results: Results) -> pd.DataFrame:
    """Return the sweep of λ_c (:func:`measured`), and which of its weights are ``on_frontier`` of their benchmark."""
    frame = measured(results, COST_WEIGHTS, "lambda_c")
    best = [on_frontier(rows["cost_per_query"], rows["fraction"]) for _, rows in frame.groupby("benchmark")]
    return frame.assign(on_frontier=pd.concat(best))
