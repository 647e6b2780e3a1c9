"""Power of a run: how probable each verdict on a claim is if the paper is exactly true.

Samples of runs are drawn in which every number of the paper is the truth, and judged as a run is. A method answers a
question right where a latent normal variable is below a threshold; log costs are normal (docs/report.md).
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from statistics import mode
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.special import ndtr, ndtri

from analysis.claims.declaration import Claim
from analysis.claims.judge import FAILS, HOLDS, Evidence, of_part, outcome_of
from analysis.claims.measured import Asked, Group, Measure, Measurement, Seeds, asked_by, evaluate, seeds_of
from analysis.claims.numbers import PAPER, AbsentError, Array, Ordered, Printed, Row, Value
from analysis.statistics import TAIL, leave_one_out
from harness.runner.config import Preset

SAMPLES = 200
# Samples that are judged at a time, so that their arrays fit into a cache.
_BLOCK = 50
# A joint statement of more comparisons than these would take longer than all others together.
_MOST_COMPARISONS = 1000
#: Numbers of training seeds that are compared.
SEEDS = (1, 3, 5, 10)
#: A claim that is not reproduced more often than this, although it is true, has little chance.
HOPELESS = 0.2
#: The measures whose spread is modelled; of all others the paper prints a mean at most.
SAMPLED = frozenset({"accuracy", "seed_mean", "cost"})
#: Stated, not measured: correlations between two methods, or trainings, on a question, of the latent variable of right
#: answers and of log costs; standard deviations of log costs between questions, and of their mean between trainings.
CORRELATION, COST_CORRELATION, COST_DEVIATION, COST_OF_TRAININGS = 0.8, 0.5, 0.8, 0.1
# Quadrature of a standard normal variable, for the probability that two trainings are both right.
_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(60)
_WEIGHTS = _WEIGHTS / _WEIGHTS.sum()
# An accuracy that a training moves beyond these ends stays there.
_EXTREMES = (1e-4, 1 - 1e-4)


class Design(NamedTuple):
    """Questions of each benchmark, and the seeds of each row (:func:`analysis.claims.measured.seeds_of`)."""

    questions: Mapping[str, int]
    seeds: Seeds
    trained: frozenset[Row]  # rows whose trainings differ

    def covers(self, claim: Claim) -> bool:
        """Return whether the design has every row and benchmark that a claim is about."""
        return all(asked[2] in self.questions and self.seeds.of(asked) for asked in asked_by([claim]))


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


def draw(asked: Asked, design: Design, samples: int, block: int) -> Measurement:
    """Return a measurement as :meth:`Run.measure`, of many samples; without each question, where enough, of their mean.

    Everything is drawn by a key of its own, so that a claim has the same samples whatever else is asked; ``block``
    tells draws of the same numbers apart. Raises AbsentError where the paper does not print the number.
    """
    method, backbone, benchmark, measure = asked
    row, is_cost = (method, backbone), measure == "cost"
    seeds = design.seeds.of(asked)
    shape = samples, len(seeds), design.questions[benchmark]
    # Not by measure: the accuracy of a row and its mean over the table of seeds are about the same questions.
    name, correlation = ("cost", COST_CORRELATION) if is_cost else ("right", CORRELATION)
    of_question = _normal((samples, 1, shape[-1]), name, benchmark, block)
    of_answer = _normal(shape, name, "alone", *asked[:3], block)
    latent = math.sqrt(correlation) * of_question + math.sqrt(1 - correlation) * of_answer
    differs = row in design.trained
    of_training = differs * _normal((*shape[:2], 1), "training cost" if is_cost else "training", *asked[:3], block)
    truth = float(Printed().of(measure, row, benchmark))
    if is_cost:
        variance = COST_DEVIATION**2 + COST_OF_TRAININGS**2 * differs
        logs = COST_DEVIATION * latent + COST_OF_TRAININGS * of_training - variance / 2
        values: Array = truth / published_questions()[benchmark] * np.exp(logs)
    else:
        shares = truth / 100 + _deviation(truth / 100, benchmark) * of_training
        values = np.where(latent < ndtri(np.clip(shares, *_EXTREMES)), 100.0, 0.0)
    kept = values if measure == "seed_mean" else values.mean(axis=1, keepdims=True)
    return Measurement(values.mean(axis=2), leave_one_out(kept)[1], (Group(*asked[:3], seeds),))


def _deviation(accuracy: float, benchmark: str) -> float:
    """Return the published deviation over seeds that the questions of a test set do not explain already."""
    given = ndtr((ndtri(np.clip(accuracy, *_EXTREMES)) - math.sqrt(CORRELATION) * _NODES) / math.sqrt(1 - CORRELATION))
    explained = (accuracy - (given * _WEIGHTS) @ given) / published_questions()[benchmark]
    return math.sqrt(max(0.0, training_variances()[benchmark] / 100**2 - explained))


def _normal(shape: tuple[int, ...], *key: object) -> Array:
    """Draw standard normal numbers that depend on a key and a shape alone."""
    return np.random.default_rng(zlib.crc32("\0".join(map(str, key)).encode())).standard_normal(shape)


def design_of(preset: Preset, seeds: Sequence[int], questions: Mapping[str, int] | None = None) -> Design:
    """Return the design of a preset with other seeds; numbers of questions are the paper's unless given."""
    twice, chosen = (seeds_of(preset.model_copy(update={"seeds": numbers})) for numbers in ((0, 1), tuple(seeds)))
    trained = frozenset(row for row, numbers in twice.usual.items() if len(numbers) > 1)
    return Design(questions or published_questions(), chosen, trained)


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


def chances(claims: Iterable[Claim], design: Design, *, primary_tail: float, samples: int = SAMPLES) -> pd.DataFrame:
    """Return the shares of samples in which a claim is ``reproduced`` and ``contradicted``, by its key, for one run.

    Only of claims whose rows the design has and of which something is known. A primary endpoint is decided at
    ``primary_tail``, every other claim by itself at 5 %.
    """
    known = [claim for claim in claims if design.covers(claim) and not why_unknown(claim)]
    outcomes: dict[str, list[str]] = {claim.key: [] for claim in known}
    for start in range(0, samples, _BLOCK):
        measure = cache(partial(draw, design=design, samples=min(_BLOCK, samples - start), block=start))
        for claim in known:
            tail = primary_tail if claim.primary else TAIL
            outcomes[claim.key] += outcome_of(list(_evidence(claim, measure)), tail).tolist()
    by_sample = pd.DataFrame(outcomes, dtype=object)
    return pd.DataFrame({"reproduced": by_sample.eq(HOLDS).mean(), "contradicted": by_sample.eq(FAILS).mean()})


def _evidence(claim: Claim, measure: Measure) -> Iterator[Evidence]:
    """Yield what each part of a claim requires, with the spread of its value in every sample."""
    for arguments in claim.parts():
        value, n = evaluate(claim, arguments, measure)
        yield of_part(claim.holds, arguments), n.spread(value, claim)
