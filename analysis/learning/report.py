"""The study of learning: cells measured seed by seed and contrasts between them, as two tables, and the curves."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pandas as pd

from analysis import table
from analysis.figure import Figure
from analysis.figures import training_curves
from analysis.figures.training_curves import row_title
from analysis.frames import Results
from analysis.learning import measures
from analysis.learning.measures import MEASURES, Measure
from analysis.learning.study import BEST_SINGLE, PATH, RANDOM, Study, load
from analysis.notes import settings
from analysis.provenance import table_run_id
from analysis.results import TRAINING, FinishedCell, read_all, read_table
from analysis.statistics import CONFIDENCE
from analysis.table import DAGGER, NOT_RUN, Entry, Table, shown
from analysis.training_log import updates
from harness.errors import UserError
from harness.runner.config import POOL

_DECISIONS = ("item_id", "step", "name", "choice", "options", "log_prob")
_PLACE = ["benchmark", "method", "backbone", "seed"]
_CONTRAST = ["contrast", "asks", "a", "b", "backbone", "benchmark", "measure"]
_SHARE = "share_"
_SINGLE = ["accuracy", "cost_total", "utility"]
_OTHERS = {BEST_SINGLE: "the best single backbone", RANDOM: "random routers of the same depth"}
# Section and labels of a line, what is said of all seeds together, and each seed.
_Line = tuple[tuple[str, ...], Sequence[str], Sequence[Entry]]
_LOGGED = ("accuracy", "utility", "cost_total", "depth", "entropy")


@dataclass(frozen=True)
class Report:
    """What was measured, one row of ``values`` a cell and measure."""

    study: Study
    results: Results
    values: pd.DataFrame
    trained: Sequence[tuple[FinishedCell, pd.DataFrame]]

    @cached_property
    def learned(self) -> pd.DataFrame:
        """What learned: one row a benchmark, method, backbone and seed, one column a measure."""
        own = self.values[self.values["method"] != self.study.single]
        return own.pivot(index=_PLACE, columns="measure", values="value")

    @cached_property
    def singles(self) -> pd.DataFrame:
        """The single backbones by benchmark, the best first; ``dominated`` is the best no worse and cheaper."""
        own = self.values[self.values["method"] == self.study.single]
        frame = own.pivot(index=["benchmark", "backbone"], columns="measure", values="value").reindex(columns=_SINGLE)
        frame = frame.sort_values(["accuracy", "cost_total", "backbone"], ascending=[False, True, True])
        pairs = frame.reset_index().merge(frame.reset_index(), on="benchmark", suffixes=("", "_other"))
        better = (pairs["accuracy_other"] >= pairs["accuracy"]) & (pairs["cost_total_other"] < pairs["cost_total"])
        best = pairs[better].groupby(["benchmark", "backbone"])["backbone_other"].first()
        return frame.assign(dominated=best.reindex(frame.index).fillna(""))

    @cached_property
    def titles(self) -> dict[tuple[str, str], str]:
        """Methods and backbones as a reader knows them."""
        return {(cell.run.method, cell.run.backbone): row_title(cell.run) for cell in self.results.cells}

    @property
    def seeds(self) -> list[int]:
        """Every training seed of any learned cell, ascending."""
        return sorted(set(self.learned.index.get_level_values("seed")))

    @cached_property
    def differences(self) -> pd.DataFrame:
        """The contrasts, one row a seed: both sides of it answered the same questions."""
        parts = []
        for name, asked in self.study.contrasts.items():
            own = self._of(asked.a)
            # An update that never came is no number to subtract.
            gaps = own.sub(self._other(asked.b, own)).replace([math.inf, -math.inf], math.nan)
            tidy = gaps.reindex(columns=asked.measures).melt(var_name="measure", ignore_index=False).dropna()
            tidy = tidy[tidy.index.get_level_values("benchmark").isin(asked.benchmarks)].reset_index()
            parts.append(tidy.assign(contrast=name, asks=asked.asks, a=asked.a, b=asked.b))
        found = pd.concat(parts)[[*_CONTRAST, "seed", "value"]]
        places = found.groupby(["contrast", "benchmark", "backbone"], sort=False).ngroup()
        return found.iloc[places.argsort(kind="stable")]

    def _of(self, method: str) -> pd.DataFrame:
        return self.learned[self.learned.index.get_level_values("method") == method].droplevel("method")

    def _other(self, side: str, own: pd.DataFrame) -> pd.DataFrame:
        if side == RANDOM:
            random = dict(list(pd.concat(map(self._of, self.study.random)).groupby(own.index.names)))
            rows = [at_depth(random.get(place, own.head(0)), depth) for place, depth in own["depth"].items()]
            return pd.DataFrame(rows, own.index)
        if side == BEST_SINGLE:
            best = self.singles[_SINGLE].groupby(level="benchmark").head(1).droplevel("backbone")
            return best.reindex(own.index.get_level_values("benchmark")).set_axis(own.index)
        if side == self.study.single:
            return self.singles[_SINGLE].reindex(own.index.droplevel("seed")).set_axis(own.index)
        return self._of(side).reindex(own.index)

    @property
    def unanswered(self) -> list[str]:
        """Contrasts for which these cells do not suffice, with benchmarks and backbones."""
        answered = set(self.differences[["contrast", "benchmark", "backbone"]].itertuples(index=False, name=None))
        found = []
        for name, asked in self.study.contrasts.items():
            # Where its first side was not run at all, the pool stands for what is missing.
            backbones = list(self._of(asked.a).index.unique("backbone")) or [POOL]
            places = [(key, one) for key in asked.benchmarks if key in self.results.benchmarks for one in backbones]
            lacking = [
                key if one == POOL else f"{key} {one}" for key, one in places if (name, key, one) not in answered
            ]
            if lacking:
                found.append(f"{name} ({', '.join(lacking)})")
        return found


def at_depth(routers: pd.DataFrame, depth: float) -> dict[str, float]:
    """Every measure of routers of several depths at another, on the straight line between neighbours; none outside."""
    found = {}
    for measure, values in routers.items():
        known = sorted(zip(routers["depth"][values.notna()], values.dropna(), strict=True))
        if known:
            depths, measured = zip(*known, strict=True)
            found[str(measure)] = float(np.interp(depth, depths, measured, left=math.nan, right=math.nan))
    return found


def build(folders: Iterable[Path], declaration: Path = PATH) -> Report:
    """Measure the finished cells of a preset for a study; raises UserError where none has learned anything."""
    study, whole = load(declaration), list(folders)
    missing = [folder for folder in whole if not (folder / "run.json").is_file()]
    cells = read_all(folder for folder in whole if folder not in missing)
    places = {folder: number for number, folder in enumerate(whole)}
    rows: list[tuple[object, ...]] = []
    trained = []
    # In the order of the preset, the single backbones last.
    for cell in sorted(cells, key=lambda one: (one.run.benchmark, one.run.method == study.single, places[one.folder])):
        run = cell.run
        if run.method == study.single:
            found = measures.of_items(cell.items, study.cost_weight)
            rows += [(run.benchmark, run.method, run.backbone, "", *value) for value in found.items()]
        elif (cell.folder / TRAINING).is_file():
            log, decisions = updates(cell), read_table(cell.folder / "decisions.parquet", _DECISIONS)
            found = measures.of_learner(cell, log, decisions, study.cost_weight, study.collapsed_entropy)
            rows += [(run.benchmark, run.method, run.backbone, run.seed, *value) for value in found.items()]
            if len(log):
                trained.append((cell, log))
    values = pd.DataFrame(rows, columns=[*_PLACE, "measure", "value"])
    if (values["method"] == study.single).all():
        raise UserError(
            "no cell of a method that learns among the finished ones; run `snakemake --cores all "
            f"reports/{cells[0].run.preset}/learning.md`, or name such a method under `methods` of the preset"
        )
    return Report(study, Results(cells, unfinished=missing), values, trained)


def write(report: Report, folder: Path) -> list[Path]:
    """Write the tables ``learning`` and ``learning_contrasts`` and the figure ``learning_curves``; return the files."""
    return [
        *table.write(_measured(report), folder, "learning"),
        *table.write(_contrasts(report), folder, "learning_contrasts"),
        *table.write(_curves(report), folder, "learning_curves"),
    ]


def _curves(report: Report) -> Figure:
    parts = [pd.DataFrame(columns=[*_PLACE, "update", "measure", "value"])]
    for cell, log in report.trained:
        names = [name for name in log.columns if name in _LOGGED or name.startswith("entropy_")]
        rows = log[names].melt(var_name="measure", ignore_index=False).dropna().reset_index()
        parts.append(rows.assign(**{name: getattr(cell.run, name) for name in _PLACE}))
    return training_curves.curves(report.results, report.trained, pd.concat(parts))


def _measured(report: Report) -> Table:
    single, dominated = report.study.single, report.singles["dominated"]
    names = [*MEASURES, *sorted(name for name in report.learned if name.startswith(_SHARE))]
    index = ["benchmark", "measure", "method", "backbone"]
    wide = report.values.pivot(index=index, columns="seed", values="value")
    places = report.values[index].drop_duplicates().itertuples(index=False, name=None)
    lines: list[_Line] = []
    for place in sorted(places, key=lambda one: (one[0], names.index(one[1]))):
        (benchmark, key, method, backbone), of = place, wide.loc[place]
        measure = MEASURES.get(key) or Measure(f"share of {key.removeprefix(_SHARE)} (%)")
        better = dominated.get((benchmark, backbone)) if method == single else ""
        title = report.titles[method, backbone] + (f", dominated by {better}" if better else "")
        seeds = [Entry() if method == single else _entry(of[seed], measure) for seed in report.seeds]
        labels = (benchmark, report.results.benchmarks[benchmark], measure.title, title)
        lines.append((labels, [_mean(of.dropna(), measure)], seeds))
    # Of equals the first by name.
    used = report.learned.filter(regex=f"^{_SHARE}").dropna(how="all").idxmax(axis=1).str.removeprefix(_SHARE)
    for (benchmark, method, backbone), of in used.groupby(level=_PLACE[:3], sort=False):
        taken = of.droplevel(_PLACE[:3]).reindex(report.seeds, fill_value=NOT_RUN)
        seeds = [Entry(one, sign=DAGGER if dominated.get((benchmark, one)) else "") for one in taken]
        share = f"{sum(bool(one.sign) for one in seeds)} of {len(of)} dominated" if len(dominated) else ""
        where, title = report.results.benchmarks[benchmark], report.titles[method, backbone]
        lines.append(((f"{benchmark}, used", where, "most used backbone", title), [share], seeds))
    caption = (
        "Methods that learn, on test questions that no training saw, training seeds "
        f"{', '.join(map(str, report.seeds))}."
    )
    heads = ("Benchmark", "Measure", "Method")
    return _table(report, "learning", caption, _reading(report), heads, ("mean ± sd",), lines, report.values)


def _reading(report: Report) -> Iterator[str]:
    study = report.study
    yield (
        "The standard deviation is that of the sample of seeds. Trainings tend to end at one of few places; then no "
        "run is near the mean, and only the values tell."
    )
    yield f"{NOT_RUN}: no such cell, or nothing to measure with this seed. Measures that no seed has are left out."
    yield (
        f"Utility is R − {study.cost_weight:g} · cost of the steps, in points, with this weight in every row, "
        "also where it was trained with another. Cost is that of all calls, aggregation included, in the paper's unit."
    )
    yield (
        "Own utility is what a method itself maximises, on the test questions or in training, in its own unit: compare "
        f"it with nothing but itself. {study.own_utility}"
    ).rstrip()
    yield (
        "Retrieved is Σ retrieved / Σ available over steps with stored records; steps are counted from 0. First "
        "updates: the first three. Last: the last quarter, over which entropies are averaged, too. Parts are fifths of "
        "the updates; last minus first has a 95 % t interval over seeds."
    )
    if study.collapsed_entropy:
        yield f"The choice of a backbone counts as settled when its entropy is below {study.collapsed_entropy:g} nats."
    if study.single:
        yield f"Dominated, {DAGGER}: another single backbone is at least as accurate on these questions, and cheaper."


def _contrasts(report: Report) -> Table:
    study, parts = report.study, [pd.DataFrame(columns=[*_CONTRAST, "statistic", "seed", "value"])]
    lines: list[_Line] = []
    for place, of in report.differences.groupby(_CONTRAST, sort=False):
        name, asks, a, b, backbone, benchmark, key = place
        values, measure = of.set_index("seed")["value"], MEASURES[key]
        mean, reach = values.mean(), interval(values)
        statistics = pd.Series({"mean": mean, "low": mean - reach, "high": mean + reach, "n": len(values)})
        tidy = statistics.dropna().rename_axis("statistic").reset_index(name="value")
        parts += [of.assign(statistic="difference"), tidy.assign(seed="", **dict(zip(_CONTRAST, place, strict=True)))]
        sides = f"{report.titles[a, backbone]} minus {_OTHERS.get(b) or report.titles[b, backbone]}"
        labels = (name, asks, sides, report.results.benchmarks[benchmark], measure.title)
        seeds = [_entry(values.get(seed, math.nan), measure, "+") for seed in report.seeds]
        lines.append((labels, [_difference(values, measure), str(len(values))], seeds))
    paired = (
        "Differences are paired: both sides answered the same questions with the same seed. The "
        f"{100 * CONFIDENCE:g} % t intervals are over training seeds of one calibration and one set of questions; they "
        "say nothing about other questions, other calibrations or real models, and are not corrected for the number of "
        "contrasts. An interval without width means that the seeds agree, not that the value is certain."
    )
    notes = [paired]
    if study.single:
        notes.append(
            "The best single backbone was chosen on the very test questions it is compared on, which favours it. A "
            "single backbone has no seed; its utility bears its only call, a router's does not bear the aggregation."
        )
    if study.random:
        notes.append("Random routers are interpolated linearly at the mean test depth of each seed.")
    if unanswered := report.unanswered:
        notes.append(f"Not answered, for want of cells: {', '.join(unanswered)}.")
    if not lines:
        lines.append((("", "none can be answered", "", "", ""), ["", ""], [Entry()] * len(report.seeds)))
    caption, heads = "Differences between rows.", ("Question", "Sides", "Benchmark", "Measure")
    over, frame = ("mean and interval", "n"), pd.concat(parts)
    return _table(report, "learning-contrasts", caption, notes, heads, over, lines, frame)


def _table(
    report: Report,
    label: str,
    caption: str,
    notes: Iterable[str],
    heads: Sequence[str],
    over: Sequence[str],
    lines: Sequence[_Line],
    frame: pd.DataFrame,
) -> Table:
    results = report.results
    labels, means, seeds = zip(*lines, strict=True)
    of_all = {title: list(map(Entry, column)) for title, column in zip(over, zip(*means, strict=True), strict=True)}
    by_seed = dict(zip(map(str, report.seeds), zip(*seeds, strict=True), strict=True))
    return Table(
        label=label,
        caption=f"{caption}{settings(results)}",
        simulated=results.simulated,
        shown=shown(labels, heads, {("Over seeds", ""): of_all, ("Seed", ""): by_seed}),
        notes=tuple(notes),
        provenance=results.provenance,
        frame=frame.assign(run=table_run_id(results.cells)),
    )


def interval(values: pd.Series) -> float:
    """Half the width of the 95 % t interval of the mean of some values; not a number for fewer than two."""
    from scipy.stats import t

    return float(t.ppf((1 + CONFIDENCE) / 2, len(values) - 1) * values.sem()) if len(values) > 1 else math.nan


def number(value: float, measure: Measure, sign: str = "") -> str:
    """A value in the unit and with the digits of its measure; what never came says so."""
    return "never" if math.isinf(value) else table.number(value * measure.factor, measure.digits, sign)


def _entry(value: float, measure: Measure, sign: str = "") -> Entry:
    return Entry(NOT_RUN if math.isnan(value) else number(value, measure, sign))


def _mean(values: pd.Series, measure: Measure) -> str:
    if measure.is_difference:
        return _difference(values, measure)
    if np.isinf(values.to_numpy(float)).any():
        return ""
    return number(values.mean(), measure) + (f" ± {number(values.std(), measure)}" if len(values) > 1 else "")


def _difference(gaps: pd.Series, measure: Measure) -> str:
    mean, reach = gaps.mean(), interval(gaps)
    text = number(mean, measure, "+")
    if math.isnan(reach):
        return f"{text} (one seed, no interval)"
    return f"{text} [{number(mean - reach, measure, '+')}, {number(mean + reach, measure, '+')}]"
