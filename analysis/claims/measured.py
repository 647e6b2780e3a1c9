"""The side of a run: the same functions over cells, once as measured and once for every bootstrap replicate."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from analysis.claims.numbers import AVERAGE, OVERALL, OWN, AbsentError, Numbers, Rows, Value, mean
from analysis.claims.readings import Array, Readings, Run, Trainings, listed
from analysis.frames import Key
from analysis.published import Published
from harness.agents.roles import by_domain
from harness.runner.config import POOL

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
    seeds: Mapping[Trainings, Draw] = field(default_factory=dict)


class _Averages(NamedTuple):
    """The average over the benchmarks of each seed: as measured, shape (seeds,), and of the drawn items, (R, seeds)."""

    measured: Array
    drawn: Array


class Measured(Numbers):
    """The functions over cells.

    Attributes:
        used: Whatever was read, in order.
        missing: What was not run, in words.
        unknown: What was run and yet says nothing, such as a gate at a step that no trajectory reaches.
        charged: Whether a cost was read.
        fixed: Whether a number was read that no item stands behind, so that a bootstrap cannot tell how sure it is.
    """

    def __init__(
        self, published: Published, run: Run, replicates: Replicates | None = None, *, all_calls: bool = False
    ) -> None:
        """Read measured cells.

        Args:
            published: Tells the rows of the main table.
            run: The cells.
            replicates: What a bootstrap drew.
            all_calls: Whether a cost is that of all calls, whichever its published counterpart counts.
        """
        super().__init__(published)
        self._run = run
        self._drawn = replicates or Replicates()
        self._all_calls = all_calls
        self.used: dict[Trainings, Readings] = {}
        self.missing: dict[str, None] = {}
        self.unknown: dict[str, None] = {}
        self.charged = False
        self.fixed = False

    def accuracy(self, method: str, benchmark: str, backbone: str = POOL, table: str = "") -> Value:
        """Mean over seeds and items; there is one run, whichever table of the paper is meant."""
        if benchmark == AVERAGE:
            return mean(*[self.accuracy(method, column, backbone) for column in self._paper.benchmarks])
        return self._mean(method, benchmark, backbone, lambda one: one.accuracy)

    def rival(self, method: str, benchmark: str, backbone: str = POOL, other: str = "", its: str = POOL) -> Value:
        """The accuracy of the row that was measured best among the others."""
        best, runs = self._placed(self._rivals(method, benchmark, backbone, other, its), benchmark, 1)
        return self.accuracy(best, benchmark, runs)

    def runner_up(self, benchmark: str, *methods: str) -> Value:
        """The accuracy of the row that was measured second best."""
        second, its = self._placed(self._rows_of(*methods), benchmark, 2)
        return self.accuracy(second, benchmark, its)

    def cost(self, method: str, benchmark: str, backbone: str = POOL, table: str = "") -> Value:
        """Mean of a test question over seeds and items."""
        self.charged = True
        whole = self._all_calls
        return self._mean(method, benchmark, backbone, lambda one: one.cost_of_all_calls if whole else one.cost)

    def strongest_cost(self, benchmark: str) -> Value:
        """The cost of the row that was measured best."""
        best, its = self._placed(self._multi_agent(), benchmark, 1)
        return self.cost(best, benchmark, its)

    def flops(self, method: str, benchmark: str, backbone: str = POOL) -> Value:
        """Mean PFLOPs of a test question over seeds and items."""
        return self._mean(method, benchmark, backbone, lambda one: one.flops)

    def depth(self, method: str, benchmark: str) -> Value:
        """Mean steps of a test question over seeds and items."""
        return self._ratio(method, benchmark, "depth")

    def steps_share(self, method: str, benchmark: str, steps: int) -> Value:
        """Mean over seeds and items."""
        return self._mean(method, benchmark, POOL, lambda one: 100.0 * (one.depth == steps))

    def depth_by_difficulty(self, benchmark: str) -> Value:
        """Of the drawn items for each seed, then the mean over the drawn seeds."""
        found = self._find(OWN, benchmark, POOL)
        singles = [self._find(row, benchmark, its) for row, its in self._single_calls()]
        present = [one for one in singles if one is not None]
        if found is None or len(present) < len(singles):
            return np.nan
        wrong = 100 - np.mean([one.accuracy.mean(axis=0) for one in present], axis=0)
        items = self._drawn.items.get(benchmark, np.arange(found.n))
        by_seed = np.stack([_rank_correlation(depth[items], wrong[items]) for depth in found.depth], axis=-1)
        value: Value = self._chosen(found, by_seed).mean(axis=-1)
        return value

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
        key = (method, backbone, benchmark)
        if key not in self._run.timings:
            return self._none(f"a timing job of {_named(key)}")
        seconds, seed = self._run.timings[key]
        self._take(key, (seed,))
        return seconds

    def seed_mean(self, method: str, benchmark: str, backbone: str = POOL) -> Value:
        """As the accuracy, over the several seeds."""
        columns = self._paper.benchmarks if benchmark == OVERALL else [benchmark]
        found = [self._several(method, column, backbone) for column in columns]
        means = [np.nan if one is None else self._over(one, one.accuracy, np.ones_like(one.accuracy)) for one in found]
        return mean(*means)

    def seed_lowest(self, method: str, backbone: str = POOL) -> Value:
        """Over the same seeds on every benchmark, in any replicate."""
        return self._of_seeds(method, backbone, np.argmin)

    def seed_highest(self, method: str, backbone: str = POOL) -> Value:
        """Over the same seeds on every benchmark, in any replicate."""
        return self._of_seeds(method, backbone, np.argmax)

    def seed_lead(self, method: str, backbone: str, other: str, its: str) -> Value:
        """Under the seed with the smallest lead as measured, the same in every replicate."""
        ours, theirs = self._averages(method, backbone), self._averages(other, its)
        if ours is None or theirs is None:
            return np.nan
        if len({self._run.seeds.several[row] for row in ((method, backbone), (other, its))}) > 1:
            return self._none(f"the same seeds of {method} and {other}")
        lead: Value = (ours.drawn - theirs.drawn)[..., int(np.argmin(ours.measured - theirs.measured))]
        return lead

    def roles(self, domain: str) -> Value:
        """Of the catalogue, which every cell was run with."""
        self._check_domain(domain)
        return float(len(by_domain(domain))) if self._run.readings else self._none("any cell")

    def _placed(self, rows: Rows, benchmark: str, place: int) -> tuple[str, str]:
        """The row that was measured in a place by accuracy, from 1.

        It is the same row in every replicate. The best row of each replicate would be another one, and better than any
        row is: the interval of a lead over it would lean against whoever leads.
        """
        plain = Measured(self._paper, self._run)
        values = np.array([float(plain.accuracy(method, benchmark, its)) for method, its in rows])
        self.missing |= plain.missing
        self.used |= plain.used
        return rows[int(np.argsort(-values, kind="stable")[place - 1])]

    def _mean(self, method: str, benchmark: str, backbone: str, of: Reading) -> Value:
        found = self._find(method, benchmark, backbone)
        return np.nan if found is None else self._over(found, of(found), np.ones((len(found.cells), found.n)))

    def _ratio(self, method: str, benchmark: str, name: str) -> Value:
        return self._unless_absent(method, benchmark, lambda found: self._over(found, *found.gate(name)))

    def _over(self, found: Readings, tops: Array, bottoms: Array) -> Value:
        """Σ tops / Σ bottoms over the drawn items of each seed, then the mean over the drawn seeds.

        A seed without a case among the drawn items is left out, as :mod:`analysis.ratios` leaves it out.
        """
        with np.errstate(invalid="ignore", divide="ignore"):
            by_seed = self._sums(found, tops) / self._sums(found, bottoms)
        chosen = self._chosen(found, by_seed)
        present = ~np.isnan(chosen)
        with np.errstate(invalid="ignore"):
            value: Value = np.where(present, chosen, 0).sum(axis=-1) / present.sum(axis=-1)
        return value

    def _chosen(self, found: Readings, by_seed: Array) -> Array:
        """The values of the drawn seeds."""
        drawn = self._drawn.seeds.get(found.trainings)
        return by_seed if drawn is None else np.take_along_axis(by_seed, drawn, axis=-1)

    def _sums(self, found: Readings, values: Array) -> Array:
        """Sums over the drawn items, shape (R, seeds), or (seeds,) as measured."""
        drawn = self._drawn.items.get(found.key[2])
        if drawn is None:
            return values.sum(axis=-1)
        return np.stack([one[drawn].sum(axis=-1) for one in values], axis=-1)

    def _of_seeds(self, method: str, backbone: str, choose: Callable[[Array], np.intp]) -> Value:
        """The seed that was measured best or worst, the same in every replicate.

        Drawing seeds again would leave some of them out, and the worst seed of each replicate would be worse than any.
        """
        found = self._averages(method, backbone)
        return np.nan if found is None else found.drawn[..., int(choose(found.measured))]

    def _averages(self, method: str, backbone: str) -> _Averages | None:
        columns = [self._several(method, column, backbone) for column in self._paper.benchmarks]
        present = [found for found in columns if found is not None]
        if len(present) < len(columns):
            return None
        return _Averages(
            measured=np.mean([found.accuracy.mean(axis=-1) for found in present], axis=0),
            drawn=np.mean([self._sums(found, found.accuracy) / found.n for found in present], axis=0),
        )

    def _training(
        self, method: str, benchmark: str, measure: str, over: Callable[..., Array], seeds: Callable[..., Array]
    ) -> Value:
        self.fixed = True
        return self._unless_absent(
            method, benchmark, lambda found: float(seeds([over(log) for log in found.training(measure)]))
        )

    def _unless_absent(self, method: str, benchmark: str, of: Callable[[Readings], Value]) -> Value:
        found = self._find(method, benchmark, POOL)
        if found is None:
            return np.nan
        try:
            return of(found)
        except AbsentError as absent:
            self.unknown[str(absent)] = None
            return np.nan

    def _find(self, method: str, benchmark: str, backbone: str) -> Readings | None:
        """The seeds of the preset."""
        self._check_names(method, benchmark, backbone)
        return self._take((method, backbone, benchmark), self._run.seeds.own.get((method, backbone), ()))

    def _several(self, method: str, benchmark: str, backbone: str) -> Readings | None:
        """The seeds of the table of seeds."""
        self._check_names(method, benchmark, backbone)
        seeds = self._run.seeds.several.get((method, backbone), ())
        if len(seeds) < _SEVERAL:
            self._none(f"several seeds of {method} {backbone}")
            return None
        return self._take((method, backbone, benchmark), seeds)

    def _take(self, key: Key, seeds: tuple[int, ...]) -> Readings | None:
        """Exactly these seeds, or none of them."""
        found = self._run.readings.get(key)
        absent = seeds if found is None else tuple(seed for seed in seeds if seed not in found.seeds)
        if found is None or absent or not seeds:
            self._none(f"{_named(key)}, {f'seed {listed(absent)}' if absent else 'which the preset does not have'}")
            return None
        chosen = found.of(seeds)
        self.used[chosen.trainings] = chosen
        return chosen

    def _none(self, what: str) -> float:
        self.missing[what] = None
        return np.nan


def _rank_correlation(first: Array, second: Array) -> Array:
    """Spearman's, along the last axis; 0 where a side does not vary."""
    from scipy.stats import rankdata

    own, other = (
        ranks - ranks.mean(axis=-1, keepdims=True) for ranks in (rankdata(first, axis=-1), rankdata(second, axis=-1))
    )
    spread = np.sqrt((own**2).sum(axis=-1) * (other**2).sum(axis=-1))
    return np.divide((own * other).sum(axis=-1), spread, out=np.zeros_like(spread), where=spread > 0)


def _named(key: Key) -> str:
    return f"{key[0]} {key[1]} on {key[2]}"
