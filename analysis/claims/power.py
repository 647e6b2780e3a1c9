"""What a run can decide: how probable each verdict on a claim is if the paper is exactly true.

Samples of runs are drawn in which every number of the paper is the truth, and judged as a run is.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from statistics import mode
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import ndtr, ndtri

from analysis.claims.declaration import Claim
from analysis.claims.joint import spreads
from analysis.claims.judge import FAILS, HOLDS, Evidence, of_part, outcome_of
from analysis.claims.measured import Asked, Cells, Measured, Measurement, Measurements, Seeds, asked_by, seeds_of
from analysis.claims.numbers import PAPER, AbsentError, Array, Ordered, Printed, Row, Value
from analysis.finished_cells import FinishedCell, RunInfo
from analysis.frames import Key
from analysis.statistics import TAIL, leave_one_out
from harness.runner.config import Preset

SAMPLES = 200
# Samples that are judged at a time, so that their arrays fit into a cache.
_BLOCK = 50
# A joint statement of more comparisons than these would take longer than all others together.
_MOST_COMPARISONS = 1000
#: Numbers of training seeds that are compared.
SEEDS = (1, 3, 5, 10)
#: A claim that is not reproduced more often than this, although it is true, cannot be decided by such a run.
HOPELESS = 0.2
#: The measures whose spread is modelled; of all others the paper prints a mean at most.
SAMPLED = frozenset({"accuracy", "seed_mean", "cost", "cost_total"})
# Quadrature of a standard normal variable, for the probability that two rows are both right.
_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(60)
_WEIGHTS = _WEIGHTS / _WEIGHTS.sum()
_HIGHEST = 0.99
# An accuracy that a training moves beyond these ends stays there.
_EXTREMES = (1e-4, 1 - 1e-4)


class Variation(NamedTuple):
    """How questions, methods and trainings vary in samples; the defaults are stated, not measured.

    A method answers a question right where a latent normal variable is below a threshold; log costs are normal.
    """

    methods: float = 0.8  # correlation of the latent variable between two methods on a question
    trainings: float = 0.8  # the same between two trainings of a method
    cost_deviation: float = 0.8  # standard deviation of the log of the cost of a question
    cost_methods: float = 0.5  # correlation of log costs between two methods
    cost_trainings: float = 0.1  # standard deviation of the log of a method's mean cost between trainings
    source: str = "stated, since no finished cells show them"


@dataclass(frozen=True)
class Design:
    """Questions of each benchmark, and the seeds of each row (:func:`analysis.claims.measured.seeds_of`)."""

    questions: Mapping[str, int]
    seeds: Seeds
    several: Seeds
    trained: frozenset[Row]  # rows whose trainings differ


@cache
def published_questions() -> Mapping[str, int]:
    """Return the number of questions of each benchmark that most accuracies of the paper's main table imply."""
    return {
        key: mode(sorted(count.n for row in PAPER.rows for count in row.accuracies[key].counts[:1]))
        for key in PAPER.benchmarks
    }


@cache
def training_variances() -> Mapping[str, float]:
    """Return the variance of the accuracy in points² over seeds, by benchmark, pooled over the rows of the paper."""
    deviations = PAPER.table("seed_variance")["sd"].drop("overall", level="benchmark")
    return dict((deviations**2).groupby(level="benchmark").mean())


def measure_variation(cells_by_row: Mapping[Key, Sequence[FinishedCell]]) -> Variation:
    """Return the variation that the questions of finished cells show; what they do not show is as stated."""
    variation = Variation()
    rows: dict[str, list[Sequence[FinishedCell]]] = {}
    for (_, _, benchmark), cells in cells_by_row.items():
        rows.setdefault(benchmark, []).append(cells)
    several = [group for group in rows.values() if len(group) > 1]
    if not several:
        return variation
    repeated = [cells for group in rows.values() for cells in group if len(cells) > 1]
    methods = latent_correlation([[cells[0].items["correct"] for cells in group] for group in several])
    trainings = latent_correlation([[cell.items["correct"] for cell in cells] for cells in repeated])
    variation = variation._replace(
        methods=methods,
        trainings=max(methods, trainings) if repeated else methods,
        source=f"as the questions of {sum(map(len, rows.values()))} rows of this run show",
    )
    logs = [log for group in several if (log := _log_costs(cells[0] for cells in group)).size]
    if not logs:
        return variation  # Models without a price cost nothing.
    return variation._replace(
        cost_deviation=float(np.mean([log.std(axis=1).mean() for log in logs])),
        cost_methods=float(np.clip(np.mean([_mean_correlation(log) for log in logs]), 0, _HIGHEST)),
    )


def latent_correlation(groups: Sequence[Sequence[Sequence[bool]]]) -> float:
    """Return the tetrachoric correlation between rows that explains how often two are right about the same question.

    ``groups`` are verdicts of several rows, shape (rows, questions) each; pairs are formed within a group.
    """
    tables = [np.array(group, dtype=float) for group in groups]

    def excess(correlation: float) -> float:
        return sum(
            _pairs(verdicts @ verdicts.T / verdicts.shape[1]) - _pairs(_both_right(verdicts.mean(axis=1), correlation))
            for verdicts in tables
        )

    ends = (0.0, _HIGHEST)
    if not tables or excess(0.0) <= 0:
        return 0.0
    return float(brentq(excess, *ends)) if excess(_HIGHEST) < 0 else _HIGHEST


def _both_right(accuracies: Array, correlation: float) -> Array:
    """Return the probability that two rows are right, shape (rows, rows), for a latent correlation."""
    thresholds = ndtri(np.clip(accuracies, *_EXTREMES))[:, np.newaxis]
    given = ndtr((thresholds - math.sqrt(correlation) * _NODES) / math.sqrt(1 - correlation))
    joint: Array = (given * _WEIGHTS) @ given.T
    return joint


def _pairs(matrix: Array) -> float:
    """Return the mean of a matrix above its diagonal."""
    return float(matrix[np.triu_indices(len(matrix), 1)].mean())


def _log_costs(cells: Iterable[FinishedCell]) -> Array:
    """Return log costs, shape (rows, questions), of questions that cost something in every row."""
    costs = np.array([cell.items["cost_total"] for cell in cells], dtype=float)
    logs: Array = np.log(costs[:, (costs > 0).all(axis=0)])
    return logs


def _mean_correlation(logs: Array) -> float:
    varying = logs[logs.std(axis=1) > 0]
    return _pairs(np.corrcoef(varying)) if len(varying) > 1 else 0.0


def draw(claims: Iterable[Claim], design: Design, variation: Variation, samples: int, block: int) -> Measurements:
    """Return a measurement of every number that claims ask, as :meth:`Run.measurements`, of many samples.

    Every entry is drawn by a key of its own, so that a claim has the same samples whatever else is asked; ``block``
    tells draws of the same numbers apart. Raises AbsentError where the paper does not print one of the numbers.
    """
    return {
        entry: _Entry(entry, design, variation, samples, block).draw()
        for entry in asked_by(claims)
        if entry[-1] != "cost_total"
    }


class _Entry:
    """One measure of a row on a benchmark."""

    def __init__(self, asked: Asked, design: Design, variation: Variation, samples: int, block: int) -> None:
        row, (*_, self._benchmark, self._measure) = asked[:2], asked
        self._place, self._variation, self._block = asked[:3], variation, str(block)
        self._truth = float(Printed().of(self._measure, row, self._benchmark))
        self._is_trained = row in design.trained
        self._seeds = (design.several if self._measure == "seed_mean" else design.seeds)[row]
        self._shape = samples, len(self._seeds), design.questions[self._benchmark]

    def draw(self) -> Measurement:
        """Return the value of each training and, without each question, of each or where that is enough their mean."""
        values: Array = self._costs() if self._measure == "cost" else np.where(self._right(), 100.0, 0.0)
        kept = values if self._measure == "seed_mean" else values.mean(axis=1, keepdims=True)
        group = _group(*self._place, self._seeds, self._shape[-1])
        return Measurement(values.mean(axis=2), leave_one_out(kept)[1], (group,))

    def _right(self) -> NDArray[np.bool_]:
        """Return the verdicts, shape (samples, trainings, questions)."""
        truth, within = self._truth / 100, max(self._variation.trainings, self._variation.methods)
        latent = self._latent("right", self._variation.methods, within)
        # Of the published variance over seeds, what the questions of a test set do not explain already.
        explained = (truth - _both_right(np.array([truth]), within)[0, 0]) / published_questions()[self._benchmark]
        excess = max(0.0, training_variances()[self._benchmark] / 100**2 - explained) * self._is_trained
        moves = math.sqrt(excess) * self._random("training").standard_normal((*self._shape[:2], 1))
        right: NDArray[np.bool_] = latent < ndtri(np.clip(truth + moves, *_EXTREMES))
        return right

    def _costs(self) -> Array:
        """Return the cost of each question, shape (samples, trainings, questions); its mean is the published one."""
        deviation, correlation = self._variation.cost_deviation, self._variation.cost_methods
        between = self._variation.cost_trainings * self._is_trained
        moves = between * self._random("training cost").standard_normal((*self._shape[:2], 1))
        logs = deviation * self._latent("cost", correlation, correlation) + moves - (deviation**2 + between**2) / 2
        costs: Array = self._truth / published_questions()[self._benchmark] * np.exp(logs)
        return costs

    def _latent(self, kind: str, between: float, within: float) -> Array:
        """Return normal variables, shape (samples, trainings, questions), correlated between methods and trainings."""
        samples, _, questions = self._shape
        common = _random(kind, self._benchmark, self._block).standard_normal((samples, 1, questions))
        of_row = self._random(kind, "row").standard_normal((samples, 1, questions))
        alone = self._random(kind, "alone").standard_normal(self._shape)
        return math.sqrt(between) * common + math.sqrt(within - between) * of_row + math.sqrt(1 - within) * alone

    def _random(self, *key: str) -> np.random.Generator:
        # Not of the measure: the accuracy of a row and its mean over the table of seeds are about the same questions.
        return _random(*key, *self._place, self._block)


def _random(*key: str) -> np.random.Generator:
    return np.random.default_rng(zlib.crc32("\0".join(key).encode()))


@cache
def _group(method: str, backbone: str, benchmark: str, seeds: tuple[int, ...], questions: int) -> Cells:
    """Return cells without a file, which name a row and its number of questions."""
    items = pd.DataFrame(index=range(questions))
    runs = [RunInfo.model_construct(method=method, backbone=backbone, benchmark=benchmark, seed=seed) for seed in seeds]
    return tuple(FinishedCell(Path(), run, items) for run in runs)


class Chance(NamedTuple):
    """The shares of samples in which a claim is reproduced, and contradicted."""

    reproduced: float
    contradicted: float


def design_of(preset: Preset, seeds: Sequence[int], questions: Mapping[str, int] | None = None) -> Design:
    """Return the design of a preset with other seeds; numbers of questions are the paper's unless given."""

    def with_seeds(numbers: Sequence[int]) -> Preset:
        return preset.model_copy(update={"seeds": tuple(numbers)})

    rows = seeds_of(with_seeds((0, 1)))[0]
    trained = frozenset(row for row, numbers in rows.items() if len(numbers) > 1)
    return Design(questions or published_questions(), *seeds_of(with_seeds(seeds)), trained)


def why_unknown(claim: Claim) -> str:
    """Return why nothing is known of the chances of a claim; empty if something is."""
    measures = {measure for *_, measure in asked_by([claim])}
    if not measures:
        return "no result of a run" if claim.holds is None else "nothing is sampled"
    try:
        comparisons = max(_comparisons(claim.quantity(Printed(), *arguments)) for arguments in claim.parts())
    except AbsentError as absent:
        return f"not printed: {absent}"
    if strange := sorted(measures - SAMPLED):
        return f"no spread printed: {', '.join(strange)}"
    return f"not sampled: {comparisons} comparisons" if comparisons > _MOST_COMPARISONS else ""


def _comparisons(value: Value) -> int:
    return sum(map(_comparisons, value.values)) if isinstance(value, Ordered) else 1


def chances(
    claims: Iterable[Claim], design: Design, variation: Variation, *, primary_tail: float, samples: int = SAMPLES
) -> dict[str, Chance]:
    """Return the chances by claim, of those of which something is known, for one run of a design.

    A primary endpoint is decided at ``primary_tail``, every other claim by itself at 5 %.
    """
    known = [claim for claim in claims if not why_unknown(claim)]
    outcomes: dict[str, list[str]] = {claim.key: [] for claim in known}
    for start in range(0, samples, _BLOCK):
        drawn = draw(known, design, variation, min(_BLOCK, samples - start), block=start)
        for claim in known:
            tail = primary_tail if claim.primary else TAIL
            outcomes[claim.key] += outcome_of(list(_evidence(claim, drawn)), tail).tolist()
    return {key: Chance(*(each.count(name) / samples for name in (HOLDS, FAILS))) for key, each in outcomes.items()}


def _evidence(claim: Claim, drawn: Measurements) -> Iterator[Evidence]:
    """Yield what each part of a claim requires, with the spread of its value in every sample."""
    for arguments in claim.parts():
        plain = Measured(drawn)
        claim.quantity(plain, *arguments)
        jackknife = plain.jackknife
        value = claim.quantity(Measured(drawn, jackknife), *arguments)
        yield of_part(claim.holds, arguments), spreads(value, partial(jackknife.spread, are_points=True))
