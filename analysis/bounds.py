"""Bounds that a pool of backbones sets to a router, from cells that ask one backbone once; all of the test questions.

The oracle takes the cheapest backbone that is right, or the cheapest where none is. The best single backbone has the
most right answers, of equals it is the cheapest: chosen on the questions that it is judged by, it is an optimistic
bound of a choice made beforehand. The random backbone is uniform; its values are expectations.

Headroom is (row - best single) / (oracle - best single) in accuracy: 0 for the best single backbone, 1 for the oracle,
at most 1 for what gives every question an answer of the pool. It is above 1 only where a row is right and no backbone.

Regret is over all questions, against the oracle's answer: in accuracy that answer's less the row's, in cost the row's
less that answer's. A question that the row alone has right counts -1 in accuracy.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from analysis.finished_cells import FinishedCell
from analysis.frames import Results
from analysis.statistics import TAIL, Array
from harness.agents import rng
from harness.runner.config import SINGLE

ORACLE, BEST, RANDOM = "oracle", "best_single", "random_backbone"
TITLES = {ORACLE: "Oracle over the pool", BEST: "Best single backbone", RANDOM: "Random backbone"}
RESAMPLES = 9999


class Answers(NamedTuple):
    """Accuracy and compared cost by question, shape (n,), means over seeds; shares of each backbone."""

    correct: Array  # between 0 and 1
    cost: Array  # in the paper's unit
    shares: pd.DataFrame  # in ``calls`` and in ``cost`` of the calls whose cost is compared, by backbone


class Bounds(NamedTuple):
    """Bounds of a pool on one benchmark."""

    correct: Array  # of every backbone asked once, shape (backbones, n)
    best: str  # the best single backbone
    rows: Mapping[str, Answers]  # by the keys of :data:`TITLES`


def of_method(cells: Sequence[FinishedCell]) -> Answers:
    """Return the answers of a row; raises UserError where a table of calls is missing or damaged."""
    correct, cost = (np.mean([cell.items[name] for cell in cells], axis=0, dtype=float) for name in ("correct", "cost"))
    columns = ("backbone", "cost", "is_step")
    calls = pd.concat([cell.rows("calls", columns) for cell in cells])
    compared = calls[calls["is_step"].eq(True) | (cells[0].run.compared_cost == "total")]
    totals = compared.groupby("backbone")["cost"].agg(calls="size", cost="sum")
    return Answers(correct, cost, totals / totals.sum())


def of_pool(results: Results, benchmark: str) -> Bounds | None:
    """Return the bounds on a benchmark; None unless every backbone of the pool was asked once.

    The pool is what all cells of the pool may ask; without such a cell, every backbone asked once.
    """
    rows = {key[:2]: cells for key, cells in results.cells_by_row.items() if key[2] == benchmark}
    asked = {backbone: cells[0].items for (method, backbone), cells in rows.items() if method == SINGLE}
    # Of equals the first is taken.
    names = sorted(results.pool or asked, key=lambda name: (asked[name]["cost"].mean() if name in asked else 0, name))
    if not names or not asked.keys() >= set(names):
        return None
    correct, cost = (np.array([asked[name][column] for name in names], float) for column in ("correct", "cost"))
    pool, n = correct.shape
    best = int(correct.mean(axis=1).argmax())
    # The probability that each backbone is asked a question, shape (backbones, n).
    oracle = np.eye(pool)[:, np.lexsort((cost, -correct), axis=0)[0]]
    single_best = np.repeat(np.eye(pool)[:, [best]], n, axis=1)
    chosen = {ORACLE: oracle, BEST: single_best, RANDOM: np.full((pool, n), 1 / pool)}

    def answers(weights: Array) -> Answers:
        shares = pd.DataFrame({"calls": weights.sum(axis=1), "cost": (weights * cost).sum(axis=1)}, names)
        return Answers((weights * correct).sum(axis=0), (weights * cost).sum(axis=0), shares / shares.sum())

    return Bounds(correct, names[best], {name: answers(weights) for name, weights in chosen.items()})


def resamples(n: int, *key: str) -> Array:
    """Return how often each of ``n`` questions is in each bootstrap sample, shape (:data:`RESAMPLES`, n)."""
    generator = np.random.default_rng(rng.index(1 << 31, "bootstrap over questions", *key))
    return generator.multinomial(n, np.full(n, 1 / n), size=RESAMPLES).astype(float)


def headroom(row: Answers, bounds: Bounds, counts: Array) -> tuple[float, float, float]:
    """Return the headroom of a row and its 95 % interval, that of the percentile bootstrap over questions.

    It is paired: a sample has the same questions of the row and of every backbone, and a best single backbone of its
    own. NaN is a value where no question tells the oracle from the best single backbone. A sample where none does
    counts beyond either end, so the interval is NaN where more than 2.5 % of the samples are such.
    """

    def of_samples(counts: Array) -> Array:
        best, oracle = (counts @ bounds.correct.T).max(axis=1), counts @ bounds.correct.max(axis=0)
        gap = np.where(oracle > best, oracle - best, np.nan)
        return (counts @ row.correct - best) / gap

    [value] = of_samples(np.ones((1, len(row.correct))))
    samples = of_samples(counts)
    low = float(np.quantile(np.nan_to_num(samples, nan=-math.inf), TAIL, method="lower"))
    high = float(np.quantile(np.nan_to_num(samples, nan=math.inf), 1 - TAIL, method="higher"))
    ends = (low, high) if math.isfinite(high - low) else (math.nan, math.nan)
    return float(value), *ends
