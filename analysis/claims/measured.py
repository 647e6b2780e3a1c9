"""The side of a run: the same functions over cells, once as measured and once for every bootstrap replicate."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from types import MappingProxyType
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from analysis import traces
from analysis.claims.numbers import AVERAGE, OVERALL, AbsentError, Array, Numbers, Row, Value, mean
from analysis.flops import pflops
from analysis.frames import Key
from analysis.published import Published
from analysis.ratios import Ratio
from analysis.registry import Selection, artefact
from analysis.results import TRAINING, Cell
from analysis.timings import Timing
from analysis.training import updates
from harness.runner import config
from harness.runner.config import Preset

Draw: TypeAlias = NDArray[np.int64]
#: Some seeds of one method with one backbone on one benchmark, in order of seed.
Cells: TypeAlias = tuple[Cell, ...]
# By measure: one value a question.
_OF_ITEMS: Mapping[str, Callable[[Cell], Array]] = {
    "accuracy": lambda cell: 100.0 * cell.items["correct"].to_numpy(),
    "cost": lambda cell: cell.items["cost"].to_numpy(),
    "cost_total": lambda cell: cell.items["cost_total"].to_numpy(),
    "flops": lambda cell: pflops(cell).to_numpy(),
    "six_steps": lambda cell: 100.0 * (traces.read(cell).depth == 6),
}


@dataclass(frozen=True, slots=True)
class Seeds:
    """The seeds that every row ought to have.

    Without them a training that is missing would silently change a mean, and a method that the table of seeds trains
    more often would be compared with one that it does not.

    Attributes:
        own: Of a preset; a row that learns nothing has a single one.
        several: Of the table of seeds, for statements about trainings.
    """

    own: Mapping[Row, tuple[int, ...]] = field(default_factory=dict)
    several: Mapping[Row, tuple[int, ...]] = field(default_factory=dict)

    @classmethod
    def of(cls, preset: Preset) -> Seeds:
        """As a preset and the registry of artefacts declare them."""
        every = Selection(methods=tuple(config.methods()))
        return cls(_by_row(every.cells(preset)), _by_row(artefact("seed_variance").cells_of(preset)))

    def __str__(self) -> str:
        usual, least = (pick(self.own.values(), key=len) for pick in (max, min))
        unlearned = "" if usual == least else f", {_listed(least)} of methods that learn nothing"
        several = " or ".join(sorted({_listed(seeds) for seeds in self.several.values()}))
        return f"{_listed(usual)}{unlearned}; {several or 'none'} in statements about training seeds"


def _by_row(cells: Iterable[config.Cell]) -> dict[Row, tuple[int, ...]]:
    """A seed on any benchmark is one that all need: an average over benchmarks is one of trainings."""
    found: dict[Row, set[int]] = {}
    for cell in cells:
        found.setdefault((cell.method, cell.backbone), set()).add(cell.seed)
    return {row: tuple(sorted(seeds)) for row, seeds in found.items()}


def _listed(seeds: Iterable[int]) -> str:
    return "/".join(map(str, seeds))


@dataclass(frozen=True, slots=True)
class Run:
    """What a claim is compared with: finished cells and timings, maybe none, and the seeds there ought to be."""

    cells: Mapping[Key, Cells] = field(default_factory=dict)
    timings: Mapping[Key, Timing] = field(default_factory=dict)
    seeds: Seeds = field(default_factory=Seeds)

    @property
    def simulated(self) -> bool:
        """Whether the backbones were simulated."""
        return any(cell.run.simulated for cells in self.cells.values() for cell in cells)


class Measured(Numbers):
    """The functions over cells: as measured, or for the R replicates that a bootstrap drew.

    All methods share the drawn items, of shape (R, n) by benchmark, because they answered the same ones. Each training
    is independent of every other: its drawn seeds have shape (R, seeds), by its cells. A cost is that of the counted
    calls, or of ``all_calls``.

    Attributes:
        used: The cells that were read, in order.
        missing: What was not run, in words.
        unknown: What was run and yet says nothing, such as a gate at a step that no trajectory reaches.
        charged: Whether a cost was read.
        fixed: Whether a number was read of no item, so that a bootstrap cannot tell how sure it is.
    """

    def __init__(
        self,
        published: Published,
        run: Run,
        items: Mapping[str, Draw] = MappingProxyType({}),
        seeds: Mapping[Cells, Draw] = MappingProxyType({}),
        *,
        all_calls: bool = False,
    ) -> None:
        super().__init__(published)
        self._run, self._items, self._seeds = run, items, seeds
        self._cost = "cost_total" if all_calls else "cost"
        self.used: dict[Cells, None] = {}
        self.missing: dict[str, None] = {}
        self.unknown: dict[str, None] = {}
        self.charged = self.fixed = False

    def seed_lead(self, row: Row, other: Row) -> Value:
        """Under the seed with the smallest lead as measured, the same in every replicate."""
        return self._extreme(np.argmin, row, other)

    def _at(self, place: int, rows: Sequence[Row], benchmark: str) -> Value:
        return self.accuracy(self._row_at(place, rows, benchmark), benchmark)

    def _row_at(self, place: int, rows: Sequence[Row], benchmark: str) -> Row:
        """The row that was measured in a place by accuracy.

        It is the same row in every replicate. The best row of each replicate would be another one, and better than any
        row is: the interval of a lead over it would lean against the leading row.
        """
        plain = Measured(self.paper, self._run)
        values = np.array([float(plain.accuracy(row, benchmark)) for row in rows])
        self.missing |= plain.missing
        self.used |= plain.used
        return rows[int(np.argsort(-values, kind="stable")[place - 1])]

    def _value(self, measure: str, row: Row, benchmark: str, table: str) -> Value:
        """There is one run, whichever table of the paper is meant."""
        if measure == "accuracy" and benchmark == AVERAGE:
            return mean(*[self.accuracy(row, one) for one in self.paper.benchmarks])
        if measure == "seed_mean" and benchmark == OVERALL:
            return mean(*[self.of("seed_mean", row, one) for one in self.paper.benchmarks])
        if measure in ("seed_lowest", "seed_highest"):
            return self._extreme(np.argmin if measure == "seed_lowest" else np.argmax, row)
        if measure == "seconds":
            return self._seconds((*row, benchmark))
        found = self._several(row, benchmark) if measure == "seed_mean" else self._own(row, benchmark)
        if measure == "depth_by_difficulty":
            return self._by_difficulty(found, benchmark)
        if found is None:
            return np.nan
        self.charged |= measure == "cost"
        try:
            if measure.startswith(("training_", "entropy_")):
                self.fixed = True
                return _of_training(found, measure)
            factor = 100 if measure.startswith(("write_rate", "retrieved_")) else 1
            return factor * self._ratio(found, {"cost": self._cost, "seed_mean": "accuracy"}.get(measure, measure))
        except AbsentError as absent:
            self.unknown[str(absent)] = None
            return np.nan

    def _ratio(self, found: Cells, measure: str) -> Value:
        """Σ / Σ over the drawn items of each seed, then the mean over the drawn seeds.

        A seed without a case among the drawn items is left out, as :mod:`analysis.ratios` leaves it out.
        """
        tops, bottoms = _sums(found, measure)
        with np.errstate(invalid="ignore", divide="ignore"):
            by_seed = self._chosen(found, self._summed(found, tops) / self._summed(found, bottoms))
            present = ~np.isnan(by_seed)
            value: Value = np.where(present, by_seed, 0).sum(axis=-1) / present.sum(axis=-1)
        return value

    def _by_difficulty(self, found: Cells | None, benchmark: str) -> Value:
        """Spearman's, of the drawn items for each seed, then the mean over the drawn seeds.

        Difficulty is the share of the main table's single-call rows that answer a question wrong; they have no part in
        GMR's decisions. The value is 0 where all trajectories have as many steps, or all questions are as difficult.
        """
        singles = [self._own(row, benchmark) for row in self.single_calls]
        if found is None or None in singles:
            return np.nan
        wrong = 100 - np.mean([_sums(one, "accuracy")[0].mean(axis=0) for one in singles if one], axis=0)
        items = self._items.get(benchmark, np.arange(len(wrong)))
        depths, _ = _sums(found, "depth")
        by_seed = np.stack([_rank_correlation(depth[items], wrong[items]) for depth in depths], axis=-1)
        value: Value = self._chosen(found, by_seed).mean(axis=-1)
        return value

    def _extreme(self, choose: Callable[[Array], np.intp], *rows: Row) -> Value:
        """The average over the benchmarks of a row, or its lead over another, in the seed chosen as measured.

        Drawing seeds again would leave some of them out, and the worst seed of each replicate would be worse than any.
        """
        found = [[self._several(row, benchmark) for benchmark in self.paper.benchmarks] for row in rows]
        if any(None in columns for columns in found):
            return np.nan
        if len({self._run.seeds.several[row] for row in rows}) > 1:
            return self._none(f"the same seeds of {' and '.join(method for method, _ in rows)}")
        (measured, drawn), *others = [self._average([cells for cells in columns if cells]) for columns in found]
        for other in others:
            measured, drawn = measured - other[0], drawn - other[1]
        value: Value = drawn[..., int(choose(measured))]
        return value

    def _average(self, columns: Sequence[Cells]) -> tuple[Array, Array]:
        """Over the benchmarks, of each seed: as measured, shape (seeds,), and of the drawn items, (R, seeds)."""
        right = [_sums(cells, "accuracy")[0] for cells in columns]
        drawn = [self._summed(cells, values) / values.shape[-1] for cells, values in zip(columns, right, strict=True)]
        return np.mean([values.mean(axis=-1) for values in right], axis=0), np.mean(drawn, axis=0)

    def _seconds(self, key: Key) -> Value:
        self.fixed = True
        if key not in self._run.timings:
            return self._none(f"a timing job of {_named(key)}")
        timing = self._run.timings[key]
        self._take(key, (timing.seed,))
        return timing.per_query

    def _chosen(self, found: Cells, by_seed: Array) -> Array:
        """The values of the drawn seeds."""
        drawn = self._seeds.get(found)
        return by_seed if drawn is None else np.take_along_axis(by_seed, drawn, axis=-1)

    def _summed(self, found: Cells, values: Array) -> Array:
        """Sums over the drawn items, shape (R, seeds), or (seeds,) as measured."""
        drawn = self._items.get(found[0].run.benchmark)
        if drawn is None:
            return values.sum(axis=-1)
        return np.stack([one[drawn].sum(axis=-1) for one in values], axis=-1)

    def _own(self, row: Row, benchmark: str) -> Cells | None:
        """The seeds of the preset."""
        return self._take((*row, benchmark), self._run.seeds.own.get(row, ()))

    def _several(self, row: Row, benchmark: str) -> Cells | None:
        """The seeds of the table of seeds."""
        seeds = self._run.seeds.several.get(row, ())
        if len(seeds) < 2:
            self._none(f"several seeds of {' '.join(row)}")
            return None
        return self._take((*row, benchmark), seeds)

    def _take(self, key: Key, seeds: tuple[int, ...]) -> Cells | None:
        """Exactly these seeds, or none of them."""
        found = tuple(cell for cell in self._run.cells.get(key, ()) if cell.run.seed in seeds)
        absent = sorted(set(seeds) - {cell.run.seed for cell in found})
        if absent or not found:
            self._none(f"{_named(key)}, {f'seed {_listed(absent)}' if absent else 'which the preset does not have'}")
            return None
        self.used[found] = None
        return found

    def _none(self, what: str) -> float:
        self.missing[what] = None
        return np.nan


@cache
def _sums(cells: Cells, measure: str) -> tuple[Array, Array]:
    """What a measure is a ratio of: what is added up over the questions, each of shape (seeds, n).

    A seed that has no part in it, because memory never held a record at this step, has zeros.
    """
    if of := _OF_ITEMS.get(measure):
        values = np.array([of(cell) for cell in cells])
        return values, np.ones_like(values)
    found = [traces.ratios(traces.read(cell)).get(measure) for cell in cells]
    if not any(found):
        raise AbsentError(f"{measure} of {cells[0].run.method} on {cells[0].run.benchmark}")
    nothing = np.zeros(len(cells[0].items))
    each = [one or Ratio(nothing, nothing) for one in found]
    return np.array([one.numerators for one in each]), np.array([one.denominators for one in each])


def _of_training(cells: Cells, measure: str) -> float:
    """Lowest of any update and seed; steps of all updates, mean over seeds; steps over trajectories."""
    if measure.startswith("entropy_"):
        return float(min(log.min() for log in _logged(cells, measure)))
    steps = float(np.mean([log.sum() for log in _logged(cells, "steps")]))
    if measure == "training_steps":
        return steps
    return steps / float(np.mean([log.sum() for log in _logged(cells, "trajectories")]))


def _logged(cells: Cells, measure: str) -> list[Array]:
    """A measure of the training log by seed; an update without it, in which a gate was never asked, is left out."""
    logs = [updates(cell) if (cell.folder / TRAINING).is_file() else {} for cell in cells]
    found = [log[measure].dropna().to_numpy(dtype=float) if measure in log else np.empty(0) for log in logs]
    if not all(log.size for log in found):
        raise AbsentError(f"{measure} in the training of {cells[0].run.method} on {cells[0].run.benchmark}")
    return found


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
