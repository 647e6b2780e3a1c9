"""Bounds for a router over a pool of backbones, and the mix of its models that costs as much as a row.

Both come from cells in which one backbone answers each test question once. The oracle takes the cheapest backbone that
is right, or the cheapest if none is. The best single backbone has the highest accuracy, and among equals the lowest
cost. It is chosen on the test questions, so it is an optimistic bound for a choice made beforehand. The random backbone
is uniform; its values are expectations. A mix is a coin between two models that costs as much as all calls of a row.
"""

from collections.abc import Mapping
from functools import partial
from typing import NamedTuple

import numpy as np
import pandas as pd

from analysis.exhibit import ABOVE, Entry, entries, signed
from analysis.frames import KEY, Results
from analysis.paired_tests import ALPHA, ENDS, holm, values_of
from analysis.statistics import Array, Jackknife
from analysis.table import interval_of
from harness.runner.layout import POOL, SINGLE

ORACLE, BEST, RANDOM = "oracle", "best_single", "random_backbone"
TITLES = {ORACLE: "Oracle over the pool", BEST: "Best single backbone", RANDOM: "Random backbone"}
_COLUMNS = ["mix", *(f"above_mix{end}" for end in ENDS), "p_above_mix"]


class Answers(NamedTuple):
    """Accuracy and compared cost by question, shape (n,), as means over seeds; and each backbone's shares."""

    correct: Array  # between 0 and 1
    cost: Array  # in the paper's unit
    shares: pd.DataFrame  # by backbone: share in ``calls``, and in ``cost`` over the calls that count for cost


class Bounds(NamedTuple):
    """Bounds of a pool on one benchmark."""

    correct: Array  # of each backbone's single calls, shape (backbones, n)
    best: str  # the best single backbone
    rows: Mapping[str, Answers]  # by the keys of :data:`TITLES`
    cost: Array  # as ``correct``


def of_pool(results: Results, benchmark: str) -> Bounds | None:
    """Return the bounds on a benchmark, or None if a backbone of the pool has no single-call row.

    The pool is the set of backbones that every pool cell may ask; without such a cell, all with a single-call row.
    """
    rows = {key[:2]: cells for key, cells in results.cells_by_row.items() if key[2] == benchmark}
    asked = {backbone: cells[0].items for (method, backbone), cells in rows.items() if method == SINGLE}
    names = results.pool or asked.keys()
    return of_options({name: asked[name] for name in names}) if names and asked.keys() >= names else None


def of_options(options: Mapping[str, pd.DataFrame]) -> Bounds:
    """Compute the bounds of a choice between options, given by ``correct`` and ``cost`` of each question."""
    # Cheapest first, since argmax takes the first of equals.
    names = sorted(options, key=lambda name: (options[name]["cost"].mean(), name))
    correct, cost = (np.array([options[name][column] for name in names], float) for column in ("correct", "cost"))
    size, n = correct.shape
    best = int(correct.mean(axis=1).argmax())
    # The probability that each option is taken for a question, shape (options, n).
    oracle = np.eye(size)[:, np.lexsort((cost, -correct), axis=0)[0]]
    single_best = np.repeat(np.eye(size)[:, [best]], n, axis=1)
    chosen = {ORACLE: oracle, BEST: single_best, RANDOM: np.full((size, n), 1 / size)}

    def answers(weights: Array) -> Answers:
        shares = pd.DataFrame({"calls": weights.sum(axis=1), "cost": (weights * cost).sum(axis=1)}, names)
        return Answers((weights * correct).sum(axis=0), (weights * cost).sum(axis=0), shares / shares.sum())

    return Bounds(correct, names[best], {name: answers(weights) for name, weights in chosen.items()}, cost)


def mixes(cost: Array, costs: Array, points: Array) -> Array:
    """Return the accuracy of every mix of two models at an expected cost, and of every model that costs no more.

    The largest is on the upper hull. Below the cheapest model it is that one; minus infinity: no such mix.

    Args:
        cost: Of the mix, shape (samples,).
        costs: Of each model, shape (models, samples) or (models, 1).
        points: Accuracy of each model, shaped as ``costs``.
    """
    cost = np.maximum(cost, costs.min(axis=0))
    cheap, dear = costs[:, np.newaxis], costs[np.newaxis]
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.where(cheap == dear, 0.0, (cost - cheap) / (dear - cheap))
    mixed = points[:, np.newaxis] + share * (points[np.newaxis] - points[:, np.newaxis])
    return np.where((cheap <= cost) & ((cost < dear) | (cheap == dear)), mixed, -np.inf).reshape(-1, cost.size)


@np.errstate(invalid="ignore")  # where a jackknife sample lacks a mix
def compare_with_mix(row: Array, models: Array) -> tuple[float, ...]:
    """Compare a row with the best mix at its cost, both computed again in each jackknife sample.

    Args:
        row: Points (0 or 100) and cost of each question, shape (2, seeds, n).
        models: The same for single calls, shape (models, 2, 1, n).

    Returns:
        Values of :data:`_COLUMNS`: the mix in percent, the row's lead in points with its interval, one-sided p.
    """
    jackknife = Jackknife({None: row.shape[-1]}, {"row": row.shape[1]})
    own, cost = jackknife.ratio(row, None, None, "row")
    points, costs = np.moveaxis(jackknife.ratio(models, None, None), 1, 0)
    every, spread = mixes(cost, costs, points), partial(jackknife.spread, are_points=True)
    # An interval against the best mix alone is too narrow if models are about equally accurate (docs/report.md).
    hull, best = every.max(axis=0), every[every[:, 0].argmax()]
    possible = [mix for mix in every if np.isfinite(mix[0]) and spread(best - mix).ends()[0] <= 0]
    spreads = [spread(own - mix) for mix in (hull, *possible)]
    low, high = min(each.ends()[0] for each in spreads), max(each.ends()[1] for each in spreads)
    return hull[0], own[0] - hull[0], max(-100.0, low), min(100.0, high), max(each.p_above(0.0) for each in spreads)


def against_mix(results: Results) -> pd.DataFrame:
    """Compare every row of several models or calls with its mix, where single calls of the whole pool have costs."""
    known = {key: of_pool(results, key) for key in results.benchmarks}
    pools = {key: pool for key, pool in known.items() if pool and pool.cost.any()}
    frame = pd.DataFrame(columns=[*KEY, *_COLUMNS, "p_above_mix_holm"]).set_index(KEY).astype(float)
    for key, cells in results.cells_by_row.items():
        if key[2] in pools and key[0] != SINGLE and (key[1] == POOL or cells[0].items["calls"].max() > 1):
            models = np.stack([100 * pools[key[2]].correct, pools[key[2]].cost], axis=1)[:, :, np.newaxis]
            frame.loc[key, _COLUMNS] = compare_with_mix(values_of(cells)[[0, 2]], models)
    return frame.assign(p_above_mix_holm=frame["p_above_mix"].groupby(level="benchmark").transform(holm))


def mix_column(frame: pd.DataFrame) -> dict[str, list[Entry]]:
    """Return the column *vs. mix*; none if no row of the frame has a mix."""
    below = interval_of(frame, "above_mix", partial(signed, digits=1), ", ")
    sign = frame["p_above_mix_holm"].lt(ALPHA / 2).map({True: ABOVE, False: ""})
    lead = frame["above_mix"]
    return {"vs. mix": entries(lead, signed, sign=sign, below=below)} if lead.notna().any() else {}
