"""Comparisons in a run: values of its cells, with intervals over questions and trainings."""

import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from analysis.finished_cells import TRAINING, FinishedCell, identity, updates
from analysis.frames import Key
from analysis.paper import gate_behaviour as gates
from analysis.paper.claims.statements import LARGE, MEASURES, PAPER, POINTS, ROWS, SHARE, Comparison, Row
from analysis.paper.costs import pflops, seconds
from analysis.statistics import Array, Jackknife, Ratio, leave_one_out, mean_of
from harness.llm import backbones
from harness.llm.request import Served
from harness.runner import config, run

#: The rows of the main table that answer with a single call.
SINGLE_CALLS = tuple(row for row in ROWS if not PAPER.methods[row[0]].multi_agent)
#: Columns of both intervals of a comparison.
ENDS = ("low", "high", "corrected_low", "corrected_high")
# Seeds of statements about training seeds.
_SEEDS = (0, 1, 2)
_ENTROPIES = ["entropy_write", "entropy_retrieval"]
_OF_CELLS = ("seconds", "training_steps", *_ENTROPIES)
_BY_DIFFICULTY = ("depth_hard", "depth_easy", "accuracy_hard")
# Measures that are ratios, by the function that reads them.
_RATIOS: Mapping[Callable[[FinishedCell], Mapping[str, Ratio]], tuple[str, ...]] = {
    cache(gates.of_calls): ("later_prompt", f"calls_{LARGE}"),
    cache(gates.redundancy): ("redundancy_stored", "redundancy_refused"),
    cache(gates.of_gates): ("write_rate", *(f"retrieved_{step}" for step in gates.STEPS)),
}
# Measures with a value per question, in addition to accuracies. Those not listed are columns of the items.
_VALUES: Mapping[str, Callable[[FinishedCell], ArrayLike]] = {
    **dict.fromkeys(_BY_DIFFICULTY, lambda cell: cell.items["depth"]),
    "six_steps": lambda cell: 100.0 * (cell.items["depth"] == 6),
    "flops": pflops,
}

#: The cells of one row on one benchmark, in order of seed.
Group: TypeAlias = tuple[FinishedCell, ...]
#: A comparison: its non-empty columns.
Record: TypeAlias = dict[str, Any]


@dataclass(frozen=True, eq=False)
class Run:
    """Finished cells that statements are compared with."""

    cells: Mapping[Key, Group] = field(default_factory=dict)
    seeds: Mapping[Row, Sequence[int]] = field(default_factory=dict)  # of each row; one if it does not learn


def seeds_of(preset: run.Run) -> dict[Row, Sequence[int]]:
    """Return the seeds of each row of a preset."""
    rows = ((entry, row) for entry in preset.entries.values() for row in preset.rows(entry))
    return {(entry.key, row): preset.seeds_of(entry) for entry, row in rows}


class Measurement(NamedTuple):
    """A measure of a row on a benchmark."""

    benchmark: str = ""
    whole: Array = np.empty(0)  # one value per training
    without: Array = np.empty((0, 0))  # without each question, shape (trainings, questions)
    groups: Sequence[Group] = ()  # groups that were read, starting with that of the row
    missing: Sequence[str] = ()  # descriptions of cells that were not run


def compare(run: Run, comparison: Comparison, tails: Sequence[float] = (), stated: float | None = None) -> Record:
    """Return columns of the report: the measured value with its interval and its cells, or what is missing.

    Args:
        run: The cells.
        comparison: Rows, benchmark and measure.
        tails: Error probabilities on either side of the interval, and of that by which a statement is contradicted.
        stated: The paper's value. Whether it agrees is judged as for a value of another sample.
    """
    sides = [[_measure(run, *side, key) for key in comparison.benchmarks] for side in comparison.sides]
    known = [each for side in sides for each in side]
    if missing := list(dict.fromkeys(text for each in known for text in each.missing)):
        return {"missing": missing}
    runs = [cell.run for group in dict.fromkeys(group for each in known for group in each.groups) for cell in group]
    record: Record = {**identity(runs), "cells": " ".join(run.cell for run in runs)}
    if any(np.isnan(each.whole).all() for each in known):
        return record | {"reason": "no value: nothing was drawn or logged for it"}
    trainings: dict[Hashable, int] = {each.groups[0]: len(each.whole) for each in known}
    jackknife = Jackknife({each.benchmark: each.without.shape[-1] for each in sides[0]}, trainings)

    def average(side: Sequence[Measurement]) -> Array:
        each_mean = [jackknife.mean(each.whole, each.without, each.benchmark, each.groups[0]) for each in side]
        return np.mean(each_mean, axis=0)

    values = comparison.value(*map(average, sides))
    record["measured"] = float(values[0])
    is_share = comparison.unit == SHARE and len(sides) == 1
    # Counts of questions give an interval in points, even if no question moves the value.
    spread_of = partial(jackknife.spread, values, is_share=is_share, are_points=is_share or comparison.unit == POINTS)
    spread = spread_of()
    if not (0 < spread.variance < math.inf or spread.counts or spread.share_of):
        return record | {"reason": "no interval: no question moves the value"}
    ends = [end for tail in tails for end in spread.ends(tail)]
    record |= zip(ENDS, ends, strict=False)
    if stated is not None:
        published: dict[Hashable, int] = {key: _published_questions(comparison, key) for key in comparison.benchmarks}
        published |= dict.fromkeys(trainings, len(_SEEDS) if comparison.sides[0].measure == "seed_mean" else 1)
        low, high = spread_of(published=published).ends()
        record["agrees_with_published"] = low <= stated <= high
    return record


def _published_questions(comparison: Comparison, benchmark: str) -> int:
    """Return the smallest number of questions that the published accuracies allow."""
    rows = {side.row for side in comparison.sides}
    printed = [row for row in PAPER.rows if (row.method, row.backbone) in rows] or PAPER.rows
    accuracies = [row.accuracies[benchmark] for row in printed]
    return min(count.n for accuracy in accuracies for count in (*accuracy.counts, accuracy.near) if count)


@cache
def _measure(run: Run, row: Row, measure: str, benchmark: str) -> Measurement:
    """Return a measure of a row on a benchmark. A missing seed is never averaged away."""
    missing, groups = [], []
    for each in (row, *(SINGLE_CALLS if measure in _BY_DIFFICULTY else ())):
        cells, seeds = run.cells.get((*each, benchmark), ()), run.seeds.get(each, ())
        if seeds and measure.startswith("seed_"):
            seeds = [int(measure[-1])] if measure[-1].isdigit() else _SEEDS
        absent = [seed for seed in seeds if all(cell.run.seed != seed for cell in cells)]
        if absent or not seeds:
            lost = f"seed {'/'.join(map(str, absent))}" if absent else "which the preset does not have"
            missing.append(f"{' '.join(each)} on {benchmark}, {lost}")
        elif measure in ("seed_lowest", "seed_highest"):
            seeds = [_extreme_seed(run, row, max if measure == "seed_highest" else min)]
        groups.append(tuple(cell for cell in cells if cell.run.seed in seeds))
    if missing:
        return Measurement(missing=missing)
    group, *singles = groups
    if measure in _OF_CELLS:
        # No question moves it. NaN if any seed lacks it.
        value = (np.min if measure in _ENTROPIES else np.mean)([_of_cell(cell, measure) for cell in group])
        return Measurement(benchmark, np.array([value]), np.full((1, len(group[0].items)), value), groups)
    ratios = [_of_questions(cell, measure) for cell in group]
    tops, bottoms = (np.array([ratio[side] for ratio in ratios]) for side in (0, 1))
    if singles:
        right = np.mean([np.mean([cell.items["correct"] for cell in single], axis=0) for single in singles], axis=0)
        counts = (right <= 0.5) == measure.endswith("hard")
        tops, bottoms = tops * counts, bottoms * counts
    return Measurement(benchmark, *leave_one_out(tops, bottoms), groups)


def _extreme_seed(run: Run, row: Row, choose: Callable[..., int]) -> int:
    """Return the seed with the lowest or highest average over the benchmarks."""
    cells = [cell for key in PAPER.benchmarks for cell in run.cells.get((*row, key), ())]
    return choose(_SEEDS, key=lambda seed: sum(cell.items["correct"].mean() for cell in cells if cell.run.seed == seed))


def _of_questions(cell: FinishedCell, measure: str) -> Ratio:
    """Return a measure by question, shares in percent. Denominators are 0 if nothing was drawn for it."""
    if MEASURES[measure].unit == POINTS:
        return mean_of(100.0 * cell.items["correct"])
    for read_ratios, names in _RATIOS.items():
        if measure in names:
            nothing = np.zeros(len(cell.items))
            ratio = read_ratios(cell).get(measure, Ratio(nothing, nothing))
            return Ratio((100 if ratio.is_share else 1) * ratio.numerators, ratio.denominators)
    return mean_of(_VALUES[measure](cell) if measure in _VALUES else cell.items[measure])


def _of_cell(cell: FinishedCell, measure: str) -> float:
    """Return seconds, or from the training log its steps or lowest entropy; NaN without them."""
    if measure == "seconds":
        return seconds(cell)
    log = updates(cell) if (cell.folder / TRAINING).is_file() else pd.DataFrame()
    values = log.get(measure.removeprefix("training_"), pd.Series(dtype=float))
    return float(values.min() if measure in _ENTROPIES else values.sum(min_count=1))


def other_models(cells: Iterable[FinishedCell]) -> list[str]:
    """Describe the backbones of some cells that are not the paper's: other models, or weights of fewer bits."""
    declared, others = backbones.load(config.FOLDER / "backbones.yaml"), set()
    for key, backbone in (pair for cell in cells for pair in cell.run.backbones.items() if pair[0] in PAPER.prices):
        form = backbone.get("weights") or Served("", None, backbone).quantisation
        if form or backbone["model"] != declared[key].model:
            others.add(f"{key} is {backbone['model']}{f' with weights {form}' if form else ''}")
    return sorted(others)
