"""Bounds for a router over a pool of backbones, from cells in which one backbone answers each test question once.

The oracle takes the cheapest backbone that is right, or the cheapest if none is. The best single backbone has the
highest accuracy, and among equals the lowest cost. It is chosen on the test questions, so it is an
optimistic bound for a choice made beforehand. The random backbone is uniform; its values are expectations.
"""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import pandas as pd

from analysis.frames import Results
from analysis.statistics import Array
from harness.runner.layout import SINGLE

ORACLE, BEST, RANDOM = "oracle", "best_single", "random_backbone"
TITLES = {ORACLE: "Oracle over the pool", BEST: "Best single backbone", RANDOM: "Random backbone"}


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
