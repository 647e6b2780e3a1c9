"""The side of a run: the same functions over cells, once as measured and once for every bootstrap replicate."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from harness.config import POOL
from paper.claims.readings import Array, Readings
from paper.claims.vocabulary import AVERAGE, OVERALL, OWN, AbsentError, Value, Vocabulary
from paper.measures import Key
from paper.published import Published

Draw: TypeAlias = NDArray[np.int64]
Reading: TypeAlias = Callable[[Readings], Array]

# A spread between seeds needs at least as many.
_SEVERAL = 2


@dataclass(frozen=True, slots=True)
class Replicates:
    """Which items and seeds were drawn in each of R replicates; as they are where nothing is named.

    Attributes:
        items: By benchmark, shape (R, n). All methods share them, because they answered the same items.
        seeds: By what was measured, shape (R, seeds). Each training is independent of every other.
    """

    items: Mapping[str, Draw] = field(default_factory=dict)
    seeds: Mapping[Key, Draw] = field(default_factory=dict)


class Measured(Vocabulary):
    """The functions over cells.

    Attributes:
        used: Whatever was read, in order.
        missing: What was not run, in words.
        unknown: What was run and yet says nothing, such as a gate at a step that no trajectory reaches.
        fixed: Whether a number was read that no item stands behind, so that a bootstrap cannot tell how sure it is.
    """

    def __init__(
        self,
        published: Published,
        readings: Mapping[Key, Readings],
        timings: Mapping[Key, float],
        replicates: Replicates | None = None,
    ) -> None:
        """Read measured cells.

        Args:
            published: Tells the rows of the main table.
            readings: Of every key that was run.
            timings: Seconds of a question, where they were measured.
            replicates: What a bootstrap drew.
        """
        super().__init__(published)
        self._readings, self._timings = readings, timings
        self._drawn = replicates or Replicates()
        self.used: dict[Key, Readings] = {}
        self.missing: dict[str, None] = {}
        self.unknown: dict[str, None] = {}
        self.fixed = False

    def accuracy(self, method: str, benchmark: str, backbone: str = POOL, table: str = "") -> Value:
        """Mean over seeds and items; there is one run, whichever table of the paper is meant."""
        if benchmark == AVERAGE:
            self._same_seeds(method, backbone)
            return self.mean(*[self.accuracy(method, column, backbone) for column in self._paper.benchmarks])
        return self._mean(method, benchmark, backbone, lambda one: one.accuracy)

    def rival(self, method: str, benchmark: str, backbone: str = POOL) -> Value:
        """The accuracy of the row that was measured best among the others.

        It is the same row in every replicate. The best row of each replicate would be another one, and better than any
        row is: the interval of a lead would lean against whoever leads.
        """
        self._check_names(method, benchmark, backbone)
        rows = self._rows_but((method, backbone), (OWN, POOL))
        plain = Measured(self._paper, self._readings, self._timings)
        values = [float(plain.accuracy(other, benchmark, its)) for other, its in rows]
        self.missing |= plain.missing
        self.unknown |= plain.unknown
        self.used |= plain.used
        best, its = rows[int(np.argmax(values))]
        return self.accuracy(best, benchmark, its)

    def cost(self, method: str, benchmark: str, backbone: str = POOL, table: str = "") -> Value:
        """Mean of a test question over seeds and items."""
        return self._mean(method, benchmark, backbone, lambda one: one.cost)

    def flops(self, method: str, benchmark: str, backbone: str = POOL) -> Value:
        """Mean PFLOPs of a test question over seeds and items."""
        return self._mean(method, benchmark, backbone, lambda one: one.flops)

    def depth(self, method: str, benchmark: str) -> Value:
        """Mean steps of a test question over seeds and items."""
        return self._ratio(method, benchmark, "depth")

    def steps_share(self, method: str, benchmark: str, steps: int) -> Value:
        """Mean over seeds and items."""
        return self._mean(method, benchmark, POOL, lambda one: 100.0 * (one.depth == steps))

    def write_rate(self, benchmark: str) -> Value:
        """Written over executed steps of all test questions, in percent."""
        return 100 * self._ratio(OWN, benchmark, "write_rate")

    def retrieved(self, benchmark: str, step: int) -> Value:
        """Shown over available records of all test questions that reach the step, in percent."""
        return 100 * self._ratio(OWN, benchmark, f"retrieved_{step}")

    def lowest_entropy(self, benchmark: str, gate: str) -> Value:
        """The lowest of any update and seed."""
        return self._training(OWN, benchmark, f"entropy_{gate}", np.min, np.min)

    def training_steps(self, method: str, benchmark: str) -> Value:
        """Of all updates, mean over seeds."""
        return self._training(method, benchmark, "steps", np.sum, np.mean)

    def training_depth(self, method: str, benchmark: str) -> Value:
        """Steps over trajectories of all updates."""
        steps = self.training_steps(method, benchmark)
        return steps / self._training(method, benchmark, "trajectories", np.sum, np.mean)

    def seconds(self, method: str, benchmark: str, backbone: str = POOL) -> Value:
        """From the timing job."""
        self._check_names(method, benchmark, backbone)
        self.fixed = True
        key = Key(method, backbone, benchmark)
        if key not in self._timings:
            return self._none(f"a timing job of {_named(key)}")
        self._find(method, benchmark, backbone)
        return self._timings[key]

    def seed_mean(self, method: str, benchmark: str, backbone: str = POOL) -> Value:
        """As the accuracy, and only where there are several seeds."""
        self._several_seeds(method, backbone)
        return self.accuracy(method, AVERAGE if benchmark == OVERALL else benchmark, backbone)

    def seed_lowest(self, method: str, backbone: str = POOL) -> Value:
        """Over the same seeds on every benchmark, in any replicate."""
        return self._of_seeds(method, backbone, np.argmin)

    def seed_highest(self, method: str, backbone: str = POOL) -> Value:
        """Over the same seeds on every benchmark, in any replicate."""
        return self._of_seeds(method, backbone, np.argmax)

    def _mean(self, method: str, benchmark: str, backbone: str, of: Reading) -> Value:
        found = self._find(method, benchmark, backbone)
        return np.nan if found is None else self._over(found, of(found), np.ones((len(found.cells), found.n)))

    def _ratio(self, method: str, benchmark: str, name: str) -> Value:
        found = self._find(method, benchmark, POOL)
        if found is None:
            return np.nan
        try:
            return self._over(found, *found.gate(name))
        except AbsentError as absent:
            self.unknown[str(absent)] = None
            return np.nan

    def _over(self, found: Readings, tops: Array, bottoms: Array) -> Value:
        """Σ tops / Σ bottoms over the drawn items of each seed, then the mean over the drawn seeds."""
        with np.errstate(invalid="ignore", divide="ignore"):
            by_seed = self._sums(found, tops) / self._sums(found, bottoms)
        drawn = self._drawn.seeds.get(found.key)
        chosen = by_seed if drawn is None else np.take_along_axis(by_seed, drawn, axis=-1)
        value: Value = chosen.mean(axis=-1)
        return value

    def _sums(self, found: Readings, values: Array) -> Array:
        """Sums over the drawn items, shape (R, seeds), or (seeds,) as measured."""
        drawn = self._drawn.items.get(found.key.benchmark)
        if drawn is None:
            return values.sum(axis=-1)
        return np.stack([one[drawn].sum(axis=-1) for one in values], axis=-1)

    def _of_seeds(self, method: str, backbone: str, choose: Callable[[Array], np.intp]) -> Value:
        """The seed that was measured best or worst, the same in every replicate.

        Drawing seeds again would leave some of them out, and the worst seed of each replicate would be worse than any.
        """
        self._several_seeds(method, backbone)
        columns = [self._find(method, column, backbone) for column in self._paper.benchmarks]
        present = [found for found in columns if found is not None]
        if len(present) < len(columns) or not self._same_seeds(method, backbone):
            return np.nan
        measured = np.mean([found.accuracy.mean(axis=-1) for found in present], axis=0)
        drawn = np.mean([self._sums(found, found.accuracy) / found.n for found in present], axis=0)
        value: Value = drawn[..., int(choose(measured))]
        return value

    def _several_seeds(self, method: str, backbone: str) -> None:
        for benchmark in self._paper.benchmarks:
            found = self._readings.get(Key(method, backbone, benchmark))
            if found is not None and len(found.seeds) < _SEVERAL:
                self._none(f"another seed of {_named(found.key)}")

    def _same_seeds(self, method: str, backbone: str) -> bool:
        """An average over benchmarks is one of trainings only where every benchmark has the same ones."""
        found = [self._readings.get(Key(method, backbone, column)) for column in self._paper.benchmarks]
        seeds = {one.seeds for one in found if one is not None}
        if len(seeds) > 1:
            self._none(f"{method} {backbone}: the same seeds on every benchmark")
        return len(seeds) == 1

    def _training(
        self, method: str, benchmark: str, measure: str, over: Callable[..., Array], seeds: Callable[..., Array]
    ) -> Value:
        self.fixed = True
        found = self._find(method, benchmark, POOL)
        if found is None:
            return np.nan
        try:
            return float(seeds([over(log) for log in found.training(measure)]))
        except AbsentError as absent:
            self.unknown[str(absent)] = None
            return np.nan

    def _find(self, method: str, benchmark: str, backbone: str) -> Readings | None:
        self._check_names(method, benchmark, backbone)
        key = Key(method, backbone, benchmark)
        found = self._readings.get(key)
        if found is None:
            self._none(_named(key))
        else:
            self.used[key] = found
        return found

    def _none(self, what: str) -> float:
        self.missing[what] = None
        return np.nan


def _named(key: Key) -> str:
    return f"{key.method} {key.backbone} on {key.benchmark}"
