"""Measures of every learned row, seed by seed, beside the single backbones of the same run."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from pydantic import NonNegativeFloat, PositiveFloat

from analysis import columns, exhibit, learning_measures
from analysis.exhibit import DAGGER, NOT_RUN, Entry
from analysis.figures.training_curves import row_title
from analysis.finished_cells import TRAINING
from analysis.frames import Results
from analysis.learning_measures import MEASURES, Measure
from analysis.provenance import table_run_id
from analysis.source import Source
from analysis.statistics import t_quantile
from analysis.table import Table
from harness.errors import UserError, making
from harness.files import Declaration, Distinct, Text, check

PLACE = ["benchmark", "method", "backbone", "seed"]
SINGLE = ["accuracy", "cost_total", "utility"]
_SHARE = "share_"


class Contrast(Declaration):
    """Comparison of methods, ``a`` minus ``b``, by some of :data:`MEASURES`; ``asks`` is the question it answers."""

    asks: Text
    a: str
    b: str  # a method, or ``best_single`` or ``random_same_depth`` (:mod:`analysis.tables.learning_contrasts`)
    measures: Distinct[str]


class LearningOptions(Declaration):
    """Options of both learning tables in ``config/artefacts.yaml``."""

    cost_weight: NonNegativeFloat  # λ_c of the utility in every row, so that rows can be compared
    own_utility: Text  # what the methods maximise, in words
    collapsed_entropy: PositiveFloat  # in nats; below it the choice of a backbone counts as settled
    single: str  # the method whose cells are the single backbones
    random: Distinct[str]  # routers that choose uniformly, each with a fixed depth
    contrasts: Mapping[str, Contrast]


#: Section and labels of a row, and its entries: first of all seeds together, then one a seed.
Line = tuple[tuple[str, ...], list[Entry]]


@dataclass(frozen=True)
class Study:
    """Measures of the learned rows and the single backbones of a run, one row of ``values`` a cell and measure."""

    options: LearningOptions
    results: Results
    values: pd.DataFrame

    @cached_property
    def learned(self) -> pd.DataFrame:
        """Return the measures of the learned rows by :data:`PLACE`, one column a measure."""
        rows = self.values[self.values["method"] != self.options.single]
        return rows.pivot(index=PLACE, columns="measure", values="value")

    @cached_property
    def singles(self) -> pd.DataFrame:
        """Return the single backbones by benchmark, best first; ``dominated`` names a cheaper one that is no worse."""
        rows = self.values[self.values["method"] == self.options.single]
        frame = rows.pivot(index=["benchmark", "backbone"], columns="measure", values="value").reindex(columns=SINGLE)
        frame = frame.sort_values(["accuracy", "cost_total", "backbone"], ascending=[False, True, True])
        pairs = frame.reset_index().merge(frame.reset_index(), on="benchmark", suffixes=("", "_other"))
        better = (pairs["accuracy_other"] >= pairs["accuracy"]) & (pairs["cost_total_other"] < pairs["cost_total"])
        best = pairs[better].groupby(["benchmark", "backbone"])["backbone_other"].first()
        return frame.assign(dominated=best.reindex(frame.index).fillna(""))

    @cached_property
    def titles(self) -> dict[tuple[str, str], str]:
        """Return the title of each method and backbone."""
        return {(cell.run.method, cell.run.backbone): row_title(cell.run) for cell in self.results.cells}

    @cached_property
    def seeds(self) -> list[int]:
        """Return every training seed of any learned cell, ascending."""
        return sorted(set(self.learned.index.get_level_values("seed")))

    def table(self, summary: Sequence[str], lines: Sequence[Line], frame: pd.DataFrame, **texts: Any) -> Table:
        """Return a table of ``lines`` (:func:`columns.table`), whose columns over all seeds are titled ``summary``."""
        labels, rows = zip(*lines, strict=True)
        entries = list(zip(*rows, strict=True))
        groups: columns.Groups = {
            ("Over seeds", ""): dict(zip(summary, entries, strict=False)),
            ("Seed", ""): dict(zip(map(str, self.seeds), entries[len(summary) :], strict=True)),
        }
        frame = frame.assign(run=table_run_id(cell.run.run_id for cell in self.results.cells))
        return columns.table(self.results, rows=labels, groups=groups, frame=frame, **texts)


def read_study(source: Source) -> Study:
    """Return the measures of finished cells; raises UserError for a slip in options, a damaged table or no learner."""
    options: LearningOptions = check(
        dict(source.options), LearningOptions, "the options of the learning tables, config/artefacts.yaml"
    )
    results = source.results()
    rows: list[tuple[object, ...]] = []
    for cell in sorted(results.cells, key=lambda cell: source.cells.index(cell.folder)):
        run = cell.run
        seed: int | str = run.seed
        if run.method == options.single:
            seed, measures = "", learning_measures.of_items(cell.items, options.cost_weight)
        elif (cell.folder / TRAINING).is_file():
            measures = learning_measures.of_learner(cell, options.cost_weight, options.collapsed_entropy)
        else:
            continue
        rows += [(run.benchmark, run.method, run.backbone, seed, *measure) for measure in measures.items()]
    values = pd.DataFrame(rows, columns=[*PLACE, "measure", "value"])
    values["is_single"] = values["method"] == options.single
    if values["is_single"].all():
        raise UserError(
            "no cell of a method that learns is finished; name such a method under `methods`, and "
            + making(f"reports/{results.cells[0].run.preset}/learning.md")
        )
    # By benchmark, the single backbones last.
    values = values.sort_values(["benchmark", "is_single"], kind="stable").drop(columns="is_single")
    return Study(options, results, values)


def build(source: Source) -> Table:
    """Return a row a measure, method and backbone, benchmark by benchmark; raises UserError where nothing learned."""
    study = read_study(source)
    single, dominated = study.options.single, study.singles["dominated"]
    names = [*MEASURES, *sorted(name for name in study.learned if name.startswith(_SHARE))]
    lines: list[Line] = []
    by_row = study.values.groupby(["benchmark", "measure", "method", "backbone"], sort=False)
    for row, frame in sorted(by_row, key=lambda group: (group[0][0], names.index(group[0][1]))):
        (benchmark, key, method, backbone), values = row, frame.set_index("seed")["value"]
        measure = MEASURES.get(key) or Measure(f"share of {key.removeprefix(_SHARE)} (%)")
        better = dominated.get((benchmark, backbone)) if method == single else ""
        title = study.titles[method, backbone] + (f", dominated by {better}" if better else "")
        seeds = [Entry() if method == single else seed_entry(values, seed, measure) for seed in study.seeds]
        labels = (benchmark, study.results.benchmarks[benchmark], measure.title, title)
        lines.append((labels, [Entry(_mean(values, measure)), *seeds]))
    # Of equals the first by name.
    used = study.learned.filter(regex=f"^{_SHARE}").dropna(how="all").idxmax(axis=1).str.removeprefix(_SHARE)
    for (benchmark, method, backbone), most_used in used.groupby(level=PLACE[:3], sort=False):
        by_seed = most_used.droplevel(PLACE[:3]).reindex(study.seeds, fill_value=NOT_RUN)
        seeds = [Entry(name, sign=DAGGER if dominated.get((benchmark, name)) else "") for name in by_seed]
        share = f"{sum(bool(entry.sign) for entry in seeds)} of {len(most_used)} dominated" if len(dominated) else ""
        benchmark_title, title = study.results.benchmarks[benchmark], study.titles[method, backbone]
        lines.append(((f"{benchmark}, used", benchmark_title, "most used backbone", title), [Entry(share), *seeds]))
    seeds_text = ", ".join(map(str, study.seeds))
    caption = f"Methods that learn, on test questions that no training saw, training seeds {seeds_text}."
    texts = {"label": "learning", "caption": caption, "heads": ("Benchmark", "Measure", "Method")}
    return study.table(("mean ± sd",), lines, study.values, **texts, legend=_notes(study))


def _notes(study: Study) -> Iterator[str]:
    options = study.options
    yield (
        "The standard deviation is that of the sample of seeds. Trainings tend to end at one of few places; then no "
        "run is near the mean, and only the values tell."
    )
    yield f"{NOT_RUN}: no such cell, or nothing to measure with this seed. Measures that no seed has are left out."
    yield (
        f"Utility is R − {options.cost_weight:g} · cost of the steps, in points, with this weight in every row, "
        "also where it was trained with another. Cost is that of all calls, aggregation included, in the paper's unit."
    )
    yield (
        "Own utility is what a method itself maximises, on the test questions or in training, in its own unit: compare "
        f"it with nothing but itself. {options.own_utility}"
    )
    yield (
        "Retrieved is Σ retrieved / Σ available over steps with stored records; steps are counted from 0. First "
        "updates: the first three. Last: the last quarter, over which entropies are averaged, too. Parts are fifths of "
        "the updates; last minus first has a 95 % t interval over seeds."
    )
    yield f"The choice of a backbone counts as settled when its entropy is below {options.collapsed_entropy:g} nats."
    if len(study.singles):
        yield f"Dominated, {DAGGER}: another single backbone is at least as accurate on these questions, and cheaper."


def t_interval(values: pd.Series) -> tuple[float, float, float]:
    """Return the mean and the ends of its 95 % t interval, which are not a number for fewer than two values."""
    mean = float(values.mean())
    margin = t_quantile(len(values) - 1) * float(values.sem()) if len(values) > 1 else math.nan
    return mean, mean - margin, mean + margin


def number(value: float, measure: Measure, sign: str = "") -> str:
    """Return a value in the unit and with the digits of its measure; "never" for an event that did not come."""
    return "never" if math.isinf(value) else exhibit.number(value * measure.factor, measure.digits, sign)


def seed_entry(values: pd.Series, seed: int, measure: Measure, sign: str = "") -> Entry:
    """Return the entry of one seed."""
    return Entry(number(values[seed], measure, sign) if seed in values else NOT_RUN)


def _mean(values: pd.Series, measure: Measure) -> str:
    if measure.is_difference:
        return mean_difference(values, measure)
    if np.isinf(values).any():
        return ""
    return number(values.mean(), measure) + (f" ± {number(values.std(), measure)}" if len(values) > 1 else "")


def mean_difference(differences: pd.Series, measure: Measure) -> str:
    """Return the mean of paired differences as text, with its t interval over seeds."""
    mean, low, high = (number(value, measure, "+") for value in t_interval(differences))
    return f"{mean} [{low}, {high}]" if len(differences) > 1 else f"{mean} (one seed, no interval)"
