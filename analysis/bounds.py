"""Bounds that a pool of backbones sets to a router, and where a method stands between them.

Everything is of the test questions. The bounds are made from the cells of the method that asks one backbone once, one
cell a backbone of the pool; each is a choice of one of these answers for every question:

* oracle: the cheapest backbone that is right, or the cheapest of all if none is;
* best single: the backbone with the most right answers, of equal ones the cheapest. It is chosen on the questions that
  it is judged by, so it is an optimistic bound of what a choice made in advance could be;
* random: each backbone with the same probability; the values are expectations, not draws.

No bound holds for a method that asks a question several times: it may be right where no backbone is alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from analysis.finished_cells import FinishedCell, read_table
from analysis.frames import Results
from analysis.statistics import TAIL, Array
from harness.agents import rng
from harness.files import Declaration, Many, Text
from harness.runner.config import POOL

ORACLE, BEST, RANDOM = "oracle", "best_single", "random_backbone"
TITLES = {ORACLE: "Oracle over the pool", BEST: "Best single backbone", RANDOM: "Random backbone"}
RESAMPLES = 9999


class BoundOptions(Declaration):
    """Options in ``config/artefacts.yaml`` of what shows bounds."""

    single: Text = "single"  # the method that asks one backbone once
    cheap: Many[str] = ()  # methods beside the paper's, such as a router without a network
    reference: Text = "gmr"  # the method whose cost and depth others are compared with


class Answers(NamedTuple):
    """Accuracy and cost of a row by question, shape (n,), as means over its seeds."""

    correct: Array  # between 0 and 1
    cost: Array  # of the calls that tables compare, in the paper's unit


class Bounds(NamedTuple):
    """Answers of every backbone of the pool, asked once, and the bounds that follow from them."""

    pool: Mapping[str, Answers]  # by backbone
    best: str  # the best single backbone
    rows: Mapping[str, Answers]  # by :data:`ORACLE`, :data:`BEST`, :data:`RANDOM`


def answers(cells: Sequence[FinishedCell]) -> Answers:
    """Return accuracy and cost of a row by question."""
    return Answers(
        *(np.mean([cell.items[name] for cell in cells], axis=0, dtype=float) for name in ("correct", "cost"))
    )


def of_pool(results: Results, benchmark: str, single: str) -> Bounds | None:
    """Return the bounds on a benchmark; None unless the method ``single`` was run with every backbone of the pool.

    The pool is what the cells of the pool may ask; without such a cell, every backbone that ``single`` was run with.
    """
    keys = [key for key in results.cells_by_row if key[2] == benchmark]
    routed = [set(cell.run.backbones) for key in keys if key[1] == POOL for cell in results.cells_by_row[key]]
    asked = {key[1]: answers(results.cells_by_row[key]) for key in keys if key[0] == single and key[1] != POOL}
    names = set.union(*routed) if routed else set(asked)
    if not names or not asked.keys() >= names:
        return None
    # Of equals the first is taken.
    pool = dict(sorted(((name, asked[name]) for name in names), key=lambda pair: (pair[1].cost.mean(), pair[0])))
    correct, cost = (np.stack([row[part] for row in pool.values()]) for part in (0, 1))
    # Right before wrong, then cheap before dear.
    chosen = np.lexsort((cost, -correct), axis=0)[0]
    best = [*pool][int(np.argmax(correct.mean(axis=1)))]
    each = np.arange(correct.shape[1])
    rows = {
        ORACLE: Answers(correct[chosen, each], cost[chosen, each]),
        BEST: pool[best],
        RANDOM: Answers(correct.mean(axis=0), cost.mean(axis=0)),
    }
    return Bounds(pool, best, rows)


def resamples(n: int, *key: str) -> NDArray[np.float64]:
    """Return how often each of ``n`` questions is in each bootstrap sample, shape (:data:`RESAMPLES`, n)."""
    generator = np.random.default_rng(rng.index(1 << 31, "bootstrap over questions", *key))
    return generator.multinomial(n, np.full(n, 1 / n), size=RESAMPLES).astype(float)


def headroom(row: Answers, bounds: Bounds, weights: NDArray[np.float64]) -> tuple[float, float, float]:
    """Return (method - best single) / (oracle - best single) in accuracy, and the ends of its 95 % interval.

    It is 0 for the best single backbone, 1 for the oracle, and at most 1 for what gives every question an answer of the
    pool; above 1 only where a method is right and no backbone is.

    The interval is that of the percentile bootstrap over questions, paired: a sample has the same questions of the
    method and of every backbone, and a best single backbone of its own. NaN stands for the value where no question
    tells the oracle from the best single backbone, and for the interval where that is so in any sample.
    """
    alone = np.stack([answer.correct for answer in bounds.pool.values()])

    def of_samples(counts: NDArray[np.float64]) -> Array:
        best, oracle = (counts @ alone.T).max(axis=1), counts @ alone.max(axis=0)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(oracle > best, (counts @ row.correct - best) / (oracle - best), np.nan)

    [value] = of_samples(np.ones((1, alone.shape[1])))
    low, high = np.quantile(of_samples(weights), [TAIL, 1 - TAIL])
    return float(value), float(low), float(high)


def regret(row: Answers, bounds: Bounds) -> tuple[float, float]:
    """Return the mean regret of a question in accuracy and in cost.

    In accuracy it is that of the oracle's answer (1 where any backbone is right) less that of the row, in cost that of
    the row less that of the oracle's answer, over all questions. A question that the row alone has right counts -1.
    """
    oracle = bounds.rows[ORACLE]
    return float((oracle.correct - row.correct).mean()), float((row.cost - oracle.cost).mean())


def beyond(row: Answers, bounds: Bounds) -> float:
    """Return the share of questions where the row is right and no backbone of the pool is alone."""
    return float(((1 - bounds.rows[ORACLE].correct) * row.correct).mean())


def shares(cells: Sequence[FinishedCell]) -> pd.DataFrame:
    """Return the share of each backbone in ``calls`` and in ``cost`` of a row over all seeds, of the compared calls.

    Raises UserError where a table of calls is missing or damaged.
    """
    columns = ("backbone", "cost", "is_step")
    calls = pd.concat([read_table(cell.folder / "calls.parquet", columns) for cell in cells])
    if cells[0].run.compared_cost == "steps":
        calls = calls[calls["is_step"].eq(True)]
    totals = calls.groupby("backbone")["cost"].agg(calls="size", cost="sum")
    return totals / totals.sum()
