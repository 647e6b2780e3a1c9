"""Measurements of a run that claims read: two frames, and values with each question and training left out."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pandas as pd
from scipy.stats import rankdata

from analysis import traces
from analysis.claims.declaration import Claim
from analysis.claims.numbers import (
    OVERALL,
    PAPER,
    SINGLE_CALLS,
    Array,
    Numbers,
    Ordered,
    Row,
    Value,
    least,
    mean,
    most,
)
from analysis.finished_cells import TRAINING, FinishedCell, short, updates
from analysis.frames import Key
from analysis.provenance import by_server
from analysis.published import AVERAGE, KEY
from analysis.registry import Selection, artefact
from analysis.statistics import Jackknife, Ratio, leave_one_out
from analysis.timings import Timing, pflops
from harness.runner import config

Seeds: TypeAlias = Mapping[Row, tuple[int, ...]]
#: Method, backbone, benchmark, measure.
Asked: TypeAlias = tuple[str, str, str, str]
#: The index of both frames.
CELL = [*KEY, "seed"]
#: Joined to the name of a ratio in the frame of questions: the column of its denominators.
OF = " of"
# Values of single seeds, each of the accuracies that ``seed_mean`` averages.
_OF_SEEDS: Mapping[str, Callable[..., Any]] = {
    "seeds": lambda *seeds: seeds,
    "seed_lowest": least,
    "seed_highest": most,
}
_OF_TRAININGS = ("training_", "entropy_")
_BY_DIFFICULTY = ("depth_by_difficulty", "hard_accuracy")
# A question is hard that so many percent of the single-call rows get wrong.
_HARD = 50
# Measures that are ratios, by the beginning of their names.
_RATIOS: Mapping[str, Callable[[FinishedCell], Mapping[str, Ratio]]] = {
    **dict.fromkeys(("later_prompt", "calls_"), traces.of_calls),
    "redundancy_": traces.redundancy,
    **dict.fromkeys(("write_rate", "retrieved_"), traces.of_gates),
}
# The columns of the frame of cells: what identifies a cell, what its training adds up to, and its timing.
_OF_CELLS = [
    *("cell", "simulated", "run_id", "config_hash", "code", "data_checksum", "backbones"),
    *("entropy_write", "entropy_retrieval", "training_steps", "trajectories", "seconds"),
]
_AS_MEASURED = Jackknife({}, {})
# Of these the paper prints a mean over some trainings, of everything else one training.
_SEVERAL, _PUBLISHED_SEEDS = {"seed_mean"}, 3
_NO_VALUES: Array = np.empty((0, 0))


def seeds_of(preset: config.Preset) -> tuple[Seeds, Seeds]:
    """Return the seeds of every row on any benchmark, by a preset and by the table of seeds."""
    every = Selection(methods=tuple(config.methods())).cells(preset), artefact("seed_variance").cells_of(preset)
    usual, several = (by_row(((cell.method, cell.backbone), cell.seed) for cell in cells) for cells in every)
    return usual, several


def by_row(seeds: Iterable[tuple[Row, int]]) -> Seeds:
    """Return the seeds of each row, ascending."""
    grouped: defaultdict[Row, set[int]] = defaultdict(set)
    for row, seed in seeds:
        grouped[row].add(seed)
    return {row: tuple(sorted(numbers)) for row, numbers in grouped.items()}


class Group(NamedTuple):
    """Some seeds of one method with one backbone on one benchmark, ascending, and the number of its questions."""

    method: str
    backbone: str
    benchmark: str
    seeds: tuple[int, ...]
    questions: int


class Measurement(NamedTuple):
    """A measure of a row on a benchmark, of a run or of each of many samples."""

    whole: Array = _NO_VALUES  # of each training, shape (..., trainings)
    without: Array = _NO_VALUES  # the same without each question, shape (..., trainings, questions); else empty
    groups: tuple[Group, ...] = ()  # that were read, that of the row first
    missing: tuple[str, ...] = ()  # what was not run, in words


Measurements: TypeAlias = Mapping[Asked, Measurement]


@dataclass(frozen=True, eq=False)
class Run:
    """Results that claims are compared with: two frames by method, backbone, benchmark and seed, and seeds by row."""

    cells: pd.DataFrame = field(default_factory=pd.DataFrame)  # a row a cell: what identifies it, and its training
    questions: pd.DataFrame = field(default_factory=pd.DataFrame)  # a row a question: a column a measure, and OF
    seeds: Seeds = field(default_factory=dict)  # of the preset, a single one of a row that learns nothing
    several: Seeds = field(default_factory=dict)  # of the table of seeds, for statements about trainings

    @classmethod
    def of(
        cls,
        claims: Iterable[Claim],
        rows: Mapping[Key, Sequence[FinishedCell]],
        timings: Mapping[Key, Timing] = MappingProxyType({}),
        *,
        seeds: Seeds,
        several: Seeds = MappingProxyType({}),
    ) -> Run:
        """Return what claims ask of finished cells and of timings."""
        asked: defaultdict[Key, set[str]] = defaultdict(set)
        for *row, measure in asked_by(claims):
            asked[row[0], row[1], row[2]].add(measure)
        cells = {(*row, cell.run.seed): cell for row, group in rows.items() for cell in group}
        if not cells:
            return cls(seeds=seeds, several=several)
        seconds = {(*row, timing.seed): timing.per_query for row, timing in timings.items()}
        records = [
            {**_identity(cell), **_training(cell), "seconds": seconds.get(place)} for place, cell in cells.items()
        ]
        questions = {place: _questions(cell, asked[place[:3]]) for place, cell in cells.items()}
        return cls(
            pd.DataFrame(records, pd.MultiIndex.from_tuples(cells, names=CELL), _OF_CELLS),
            pd.concat(questions, names=CELL).droplevel(-1),
            seeds,
            several,
        )

    @property
    def simulated(self) -> bool:
        """Return whether the backbones were simulated."""
        return not self.cells.empty and bool(self.cells["simulated"].any())

    @property
    def sizes(self) -> dict[str, int]:
        """Return the number of questions of each benchmark."""
        return {place[2]: len(questions) for place, questions in self._by_cell.items()}

    @cached_property
    def _by_cell(self) -> dict[tuple[Any, ...], pd.DataFrame]:
        return {} if self.questions.empty else dict(list(self.questions.groupby(level=CELL)))

    def measurements(self, claims: Iterable[Claim]) -> Measurements:
        """Return a measurement of every number that claims ask of a run; none of a run without a cell."""
        asked = [] if self.cells.empty else asked_by(claims)
        return {entry: self._measure(entry[-1], entry[:2], entry[2]) for entry in asked}

    def _measure(self, measure: str, row: Row, benchmark: str) -> Measurement:
        """Return the measurement of a row on a benchmark, or what is missing for it."""
        seeds = self.several if measure == "seed_mean" else self.seeds
        if measure == "seconds":
            timed = self.cells["seconds"].dropna().index
            if not (of_row := tuple(place[3] for place in timed if place[:3] == (*row, benchmark))):
                return Measurement(missing=(f"a timing job of {' '.join(row)} on {benchmark}",))
            seeds = {row: of_row}
        rows = [row, *(SINGLE_CALLS if measure in _BY_DIFFICULTY else ())]
        taken = [self._take(needed, benchmark, seeds) for needed in rows]
        if missing := tuple(words for words in taken if isinstance(words, str)):
            return Measurement(missing=missing)
        group, *singles = groups = tuple(each for each in taken if isinstance(each, Group))
        if measure == "seconds" or measure.startswith(_OF_TRAININGS):
            return Measurement(np.array([self._of_cells(group, measure)]), groups=groups)
        if measure == "depth_by_difficulty":
            return Measurement(*_correlation(self._sums(group, "depth")[0], self._wrong(singles)), groups)
        tops, bottoms = self._sums(group, "accuracy" if measure in ("seed_mean", "hard_accuracy") else measure)
        if measure == "hard_accuracy":
            bottoms = bottoms * (self._wrong(singles) >= _HARD)
            tops = tops * bottoms
        return Measurement(*leave_one_out(tops, bottoms), groups)

    def _take(self, row: Row, benchmark: str, seeds: Seeds) -> Group | str:
        """Return the group of a row with the wanted seeds; if any is missing, the missing ones in words."""
        wanted = seeds.get(row, ())
        absent = [str(seed) for seed in wanted if (*row, benchmark, seed) not in self._by_cell]
        if wanted and not absent:
            return Group(*row, benchmark, wanted, len(self._by_cell[*row, benchmark, wanted[0]]))
        lost = f"seed {'/'.join(absent)}" if absent else "which the preset does not have"
        return f"{' '.join(row)} on {benchmark}, {lost}"

    def _sums(self, group: Group, measure: str) -> tuple[Array, Array]:
        """Return numerators and denominators of a measure, shape (trainings, n); zeros for a training without."""
        frames = [self._by_cell[*group[:3], seed] for seed in group.seeds]
        tops = np.array([frame[measure] for frame in frames], dtype=float)
        if measure + OF not in self.questions:
            return tops, np.ones_like(tops)
        return tops, np.array([frame[measure + OF] for frame in frames], dtype=float)

    def _wrong(self, groups: Sequence[Group]) -> Array:
        """Return the percentage of the rows that answer wrong, by question."""
        return 100 - np.array([self._sums(group, "accuracy")[0].mean(axis=0) for group in groups]).mean(axis=0)

    def _of_cells(self, group: Group, measure: str) -> float:
        """Return a measure that has no questions behind it, over all seeds; not a number where one has none.

        Of an entropy the lowest; of the depth of trainings their steps over their trajectories; else the mean.
        """
        values = self.cells.loc[[(*group[:3], seed) for seed in group.seeds]]
        if measure == "training_depth":
            return float(values["training_steps"].sum(skipna=False) / values["trajectories"].sum(skipna=False))
        whole = values[measure].astype(float)
        return float(whole.min(skipna=False) if measure.startswith("entropy_") else whole.mean(skipna=False))


def _identity(cell: FinishedCell) -> dict[str, Any]:
    """Return what identifies a cell behind a verdict."""
    run = cell.run
    backbones = sorted(f"{key}={used['model']}{by_server(used)}" for key, used in run.backbones.items())
    return {
        "cell": run.cell,
        "simulated": run.simulated,
        "run_id": run.run_id,
        "config_hash": short(run.config_hash),
        "code": short(run.code),
        "data_checksum": short(run.data.checksum),
        "backbones": "; ".join(backbones),
    }


def _training(cell: FinishedCell) -> dict[str, float]:
    """Return what the training log of a cell adds up to; nothing without one."""
    if not (cell.folder / TRAINING).is_file():
        return {}
    log = updates(cell).reindex(columns=["entropy_write", "entropy_retrieval", "steps", "trajectories"])
    sums = log[["steps", "trajectories"]].sum(min_count=1)
    lowest = log[["entropy_write", "entropy_retrieval"]].min()
    return {**lowest, "training_steps": sums["steps"], "trajectories": sums["trajectories"]}


def _questions(cell: FinishedCell, asked: set[str]) -> pd.DataFrame:
    """Return a row a question with the measures that are asked of a cell, besides those that its items have."""
    items = cell.items
    depth = items["depth"].to_numpy(dtype=float)
    columns: dict[str, Any] = {
        "accuracy": 100.0 * items["correct"].to_numpy(),
        "cost": items["cost"].to_numpy(),
        "cost_total": items["cost_total"].to_numpy(),
        "depth": depth,
        "six_steps": 100.0 * (depth == 6),
    }
    if "flops" in asked:
        columns["flops"] = pflops(cell).to_numpy()
    readers = {
        measure: read_ratios
        for prefix, read_ratios in _RATIOS.items()
        for measure in sorted(asked)
        if measure.startswith(prefix)
    }
    ratios = {name: ratio for read_ratios in set(readers.values()) for name, ratio in read_ratios(cell).items()}
    nothing = np.zeros(len(items))
    for measure in readers:
        ratio = ratios.get(measure, Ratio(nothing, nothing))
        columns[measure] = (100 if ratio.is_share else 1) * ratio.numerators
        columns[measure + OF] = ratio.denominators
    return pd.DataFrame(columns)


class Measured(Numbers):
    """Numbers of a run; with a ``jackknife`` also those without each question and training (:class:`Jackknife`)."""

    def __init__(self, known: Measurements, jackknife: Jackknife = _AS_MEASURED, *, all_calls: bool = False) -> None:
        self._known, self._jackknife = known, jackknife
        self._cost = "cost_total" if all_calls else "cost"
        #: What was asked for and the entries read for it, in order; what was run and yet says nothing.
        self.measures: dict[str, None] = {}
        self.entries: list[Measurement] = []
        self.unknown: dict[str, None] = {}

    @property
    def groups(self) -> list[Group]:
        """Return the groups of cells that were read."""
        return list(dict.fromkeys(group for entry in self.entries for group in entry.groups))

    @property
    def missing(self) -> tuple[str, ...]:
        """Return what was not run, in words."""
        return tuple(dict.fromkeys(text for entry in self.entries for text in entry.missing))

    @property
    def of_items(self) -> bool:
        """Return whether all measures are computed from questions, so that the jackknife gives an interval."""
        return all(entry.without.size for entry in self.entries)

    @property
    def jackknife(self) -> Jackknife:
        """Return a jackknife over the questions and trainings that were read."""
        questions: dict[Hashable, int] = {group.benchmark: group.questions for group in self.groups}
        return Jackknife(questions, {group: len(group.seeds) for group in self.groups})

    @property
    def published_sizes(self) -> dict[Any, int]:
        """Return the sample sizes of the published values: questions by test set, trainings by group of cells."""
        rows = {(group.method, group.backbone) for group in self.groups}
        printed = [row for row in PAPER.rows if (row.method, row.backbone) in rows] or PAPER.rows
        trainings = 1 if _SEVERAL.isdisjoint(self.measures) else _PUBLISHED_SEEDS
        sizes: dict[Any, int] = dict.fromkeys(self.groups, trainings)
        for key in {group.benchmark for group in self.groups}:
            accuracies = [row.accuracies[key] for row in printed]
            counts = [count for accuracy in accuracies for count in (*accuracy.counts, accuracy.near) if count]
            sizes[key] = min(count.n for count in counts)
        return sizes

    def _value(self, measure: str, row: Row, benchmark: str, table: str) -> Any:
        """Return the value that the run measured; ``table``, which names one of the paper, makes no difference."""
        self.measures[measure] = None
        if measure in _OF_SEEDS:
            return _OF_SEEDS[measure](*self._by_seed(row))
        if benchmark in (AVERAGE, OVERALL):
            return mean(*[self._value(measure, row, key, table) for key in PAPER.benchmarks])
        entry = self._entry(self._cost if measure == "cost" else measure, row, benchmark)
        if entry.missing:
            return np.nan
        value = self._jackknife.mean(entry.whole, entry.without, benchmark, entry.groups[0])
        if np.isnan(value).all():
            of = "in the training of" if measure.startswith(_OF_TRAININGS) else "of"
            self.unknown[f"{measure} {of} {row[0]} on {benchmark}"] = None
        return value

    def seed_lead(self, row: Row, other: Row) -> Ordered:
        """Return the smallest lead of a row over another with the same seed, which both must have."""
        lead = super().seed_lead(row, other)
        sides = (self._entry("seed_mean", side, next(iter(PAPER.benchmarks))) for side in (row, other))
        if len({group.seeds for side in sides for group in side.groups}) > 1:
            self.entries.append(Measurement(missing=(f"the same seeds of {row[0]} and {other[0]}",)))
        return lead

    def _by_seed(self, row: Row) -> Iterator[Value]:
        """Iterate over the averages over the benchmarks of each seed."""
        entries = {key: self._entry("seed_mean", row, key) for key in PAPER.benchmarks}
        if any(entry.missing for entry in entries.values()):
            yield np.nan
            return
        for index in range(next(iter(entries.values())).whole.shape[-1]):
            alone = [(entry.whole[..., [index]], entry.without[..., [index], :], key) for key, entry in entries.items()]
            yield mean(*(self._jackknife.mean(*values) for values in alone))

    def _entry(self, measure: str, row: Row, benchmark: str) -> Measurement:
        entry = self._known[*row, benchmark, measure]
        self.entries.append(entry)
        return entry


def asked_by(claims: Iterable[Claim]) -> list[Asked]:
    """Return method, backbone, benchmark and measure of every number that claims ask of a run, each once."""
    asked: defaultdict[Asked, Measurement] = defaultdict(lambda: Measurement(missing=("not run",)))
    for claim in claims:
        for arguments in claim.parts() if claim.holds else ():
            for all_calls in (False, True):
                claim.quantity(Measured(asked, all_calls=all_calls), *arguments)
    return list(asked)


def _correlation(depths: Array, wrong: Array) -> tuple[Array, Array]:
    """Return Spearman's correlation of steps and difficulty by training, and again without each question."""
    n = len(wrong)
    whole = np.array([_rank_correlation(depth, wrong) for depth in depths])
    if n == 1:
        return whole, np.broadcast_to(whole[:, np.newaxis], depths.shape)
    left = np.nonzero(~np.eye(n, dtype=bool))[1].reshape(n, n - 1)
    return whole, np.array([_rank_correlation(depth[left], wrong[left]) for depth in depths])


def _rank_correlation(first: Array, second: Array) -> Array:
    ranks = [rankdata(side, axis=-1) for side in (first, second)]
    own_rank, other = (rank - rank.mean(axis=-1, keepdims=True) for rank in ranks)
    spread = np.sqrt((own_rank**2).sum(axis=-1) * (other**2).sum(axis=-1))
    return np.divide((own_rank * other).sum(axis=-1), spread, out=np.zeros_like(spread), where=spread > 0)
