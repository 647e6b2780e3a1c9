"""Whether training changes a router: trained rows against untrained, random and single ones, seed by seed."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import pandas as pd
from pydantic import NonNegativeFloat

from analysis import columns, traces
from analysis.exhibit import NOT_RUN, Entry, number
from analysis.figures.training_curves import row_title
from analysis.finished_cells import TRAINING, FinishedCell, read_table, updates
from analysis.frames import KEY, Results
from analysis.provenance import table_run_id
from analysis.source import Source
from analysis.statistics import t_quantile
from analysis.table import Table
from harness.errors import UserError, making
from harness.files import Declaration, Distinct, Text, check

BEST_SINGLE = "best_single"  # the most accurate single backbone on the same test questions
_SIDES = ["value", "other", "difference"]
_CONTRAST = ["contrast", "asks", "method", "against", "backbone", "benchmark", "measure"]
#: The share of the updates, from the last one back, over which final values of a training are means.
LAST_SHARE = 0.25


class Measure(NamedTuple):
    """Title and unit of a measure, its decimals as printed, and the factor from the unit of the data to it."""

    title: str
    digits: int = 1
    factor: float = 1.0

    def text(self, value: float, sign: str = "") -> str:
        """Return a value as printed."""
        return number(value * self.factor, self.digits, sign)


#: What a contrast may be about; the CSV has further measures (:func:`measures_of`).
MEASURES: Mapping[str, Measure] = {
    "accuracy": Measure("accuracy (%)"),
    "utility": Measure("utility (points)"),
    "own_utility": Measure("own utility", 3),
    "cost_total": Measure("cost a question (1e-4)", 2, 1e4),
    "depth": Measure("depth", 2),
    "final_entropy_backbone": Measure("entropy: backbone (nats)", 2),
    "final_entropy_role": Measure("entropy: role (nats)", 2),
}


class Contrast(Declaration):
    """Comparison of methods, ``a`` minus ``b``, by some of :data:`MEASURES`; ``asks`` is the question it answers."""

    asks: Text
    a: str
    b: str  # a method or :data:`BEST_SINGLE`
    measures: Distinct[str]


class LearningOptions(Declaration):
    """Options of the table in ``config/artefacts.yaml``."""

    cost_weight: NonNegativeFloat  # λ_c of the utility in every row, so that rows can be compared
    single: str  # the method whose cells are the single backbones
    contrasts: Mapping[str, Contrast]


def build(source: Source) -> Table:
    """Return a row a contrast, backbone, benchmark and measure; raises UserError where nothing learned."""
    where = "the options of the table of learning, config/artefacts.yaml"
    options: LearningOptions = check(dict(source.options), LearningOptions, where)
    results = source.results()
    measured = measure_cells(results, options)
    pairs = differences(measured, options)
    seeds = measured.drop(index=options.single, level="method", errors="ignore").index.unique("seed").sort_values()
    titles = {(cell.run.method, cell.run.backbone): row_title(cell.run) for cell in results.cells}
    rows, lines = [], []
    for (name, asks, method, against, backbone, benchmark, key), part in pairs.groupby(_CONTRAST, sort=False):
        other = "the best single backbone" if against == BEST_SINGLE else titles[against, backbone]
        sides = f"{titles[method, backbone]} minus {other}"
        rows.append((name, asks, sides, results.benchmarks[benchmark], MEASURES[key].title))
        lines.append(_line(part.set_index("seed"), MEASURES[key], seeds))
    entries = iter(zip(*lines, strict=True) if lines else [[Entry()]] * (4 + len(seeds)))
    heads = {"Mean, sd": ["first", "second"], "Difference": ["mean", "n"], "Difference by seed": seeds.map(str)}
    groups = {(group, ""): {title: next(entries) for title in under} for group, under in heads.items()}
    tidy = measured.rename_axis(columns="measure").stack().rename("value").dropna().reset_index()
    return columns.table(
        results,
        label="learning",
        caption=source.caption,
        rows=rows or [("", "none can be answered", "", "", "")],
        heads=("Question", "Sides", "Benchmark", "Measure"),
        groups=groups,
        legend=[*source.legend, *_unanswered(measured, pairs, options)],
        frame=pd.concat([pairs, tidy]).assign(run=table_run_id(cell.run.run_id for cell in results.cells)),
    )


def measure_cells(results: Results, options: LearningOptions) -> pd.DataFrame:
    """Return :func:`measures_of` the single backbones and of whatever learns, by key and seed."""
    measured = {
        (*key, cell.run.seed): measures_of(cell, options.cost_weight)
        for key, cells in results.cells_by_row.items()
        for cell in cells
        if cell.run.method == options.single or (cell.folder / TRAINING).is_file()
    }
    if all(method == options.single for method, *_ in measured):
        raise UserError(
            "no cell of a method that learns is finished; name such a method under `methods`, and "
            + making(f"reports/{results.cells[0].run.preset}/learning.md")
        )
    return pd.DataFrame(list(measured.values()), pd.MultiIndex.from_tuples(measured, names=[*KEY, "seed"]))


def measures_of(cell: FinishedCell, cost_weight: float) -> dict[str, float]:
    """Return the measures of a cell by name; one that it does not have is absent, never zero.

    Accuracy and rates are in percent, utility, R - λ_c · cost of steps (paper, Optimization), is in points.
    Raises UserError for a damaged table.
    """
    accuracy, items = float(cell.items["correct"].mean()), cell.items
    measures = {
        "accuracy": 100 * accuracy,
        "utility": 100 * (accuracy - cost_weight * float(items["cost_steps"].mean())),
        "cost_total": float(items["cost_total"].mean()),
        # What the method itself maximises, in its own unit; null where that is nothing.
        "own_utility": float(read_table(cell.folder / "items.parquet", ("utility",))["utility"].mean(skipna=False)),
    }
    if (cell.folder / TRAINING).is_file():
        rates = {name: ratio.value for name, ratio in traces.of_gates(cell).items()}
        measures |= {name: value if name == "depth" else 100 * value for name, value in rates.items()}
        log = updates(cell)
        last = log.filter(regex="^entropy|_groups$").tail(math.ceil(LAST_SHARE * len(log))).mean()
        measures |= {f"final_{name}": value for name, value in last.items()}
    return {name: value for name, value in measures.items() if pd.notna(value)}


def differences(measured: pd.DataFrame, options: LearningOptions) -> pd.DataFrame:
    """Return the differences that answer the contrasts, one row a seed: both sides answered the same questions."""
    frames = []
    for name, contrast in options.contrasts.items():
        first = _rows_of(measured, contrast.a)
        second = _other_side(measured, contrast.b, first, options)
        sides = [side.reindex(columns=contrast.measures).stack(future_stack=True) for side in (first, second)]
        both = pd.concat(sides, axis=1, keys=["value", "other"]).rename_axis([*first.index.names, "measure"]).dropna()
        told = {"contrast": name, "asks": contrast.asks, "method": contrast.a, "against": contrast.b}
        frames.append(both.assign(**told, difference=both["value"] - both["other"]).reset_index())
    return pd.concat(frames)[[*_CONTRAST, "seed", *_SIDES]]


def _rows_of(measured: pd.DataFrame, method: str) -> pd.DataFrame:
    return measured[measured.index.get_level_values("method") == method].droplevel("method")


def _other_side(measured: pd.DataFrame, side: str, first: pd.DataFrame, options: LearningOptions) -> pd.DataFrame:
    """Return side ``b`` of a contrast in the rows of side ``a``."""
    if side != BEST_SINGLE:
        return _rows_of(measured, side).reindex(first.index)
    # Of equals the cheaper one.
    order = ["accuracy", "cost_total", "backbone"]
    ranked = _rows_of(measured, options.single).sort_values(order, ascending=[False, True, True])
    best = ranked.groupby(level="benchmark").head(1).droplevel(["backbone", "seed"])
    return best.reindex(first.index.get_level_values("benchmark")).set_axis(first.index)


def _line(part: pd.DataFrame, measure: Measure, seeds: pd.Index) -> list[Entry]:
    """Return the entries of a row: both sides, the mean difference with its t interval, and each seed."""
    values, count = part["difference"], len(part)
    mean, sd = part[_SIDES].mean(), part[_SIDES].std()
    below = {"difference": "one seed, no interval"}
    if count > 1:
        reach = t_quantile(count - 1) * sd["difference"] / math.sqrt(count)
        ends = (measure.text(end, "+") for end in (mean["difference"] - reach, mean["difference"] + reach))
        below = {name: f"± {measure.text(sd[name])}" for name in _SIDES} | {"difference": " to ".join(ends)}
    signs = {"difference": "+"}
    means = [Entry(measure.text(mean[name], signs.get(name, "")), below=below.get(name, "")) for name in _SIDES]
    by_seed = [Entry(measure.text(values[seed], "+") if seed in values else NOT_RUN) for seed in seeds]
    return [*means, Entry(str(count)), *by_seed]


def _unanswered(measured: pd.DataFrame, pairs: pd.DataFrame, options: LearningOptions) -> Iterator[str]:
    """Yield the contrasts of methods of the run that lack cells, if there are any."""
    run, answered = measured.index.unique("method"), set(pairs["contrast"])
    lacking = [name for name, contrast in options.contrasts.items() if contrast.a in run and name not in answered]
    if lacking:
        yield f"Not answered, for want of cells: {', '.join(lacking)}."
