"""Mean and deviation of the accuracy over training seeds, beside the paper's (Variance across Training Seeds)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import fmean, stdev
from typing import Any

import pandas as pd

from analysis import notes
from analysis.columns import accuracies
from analysis.frames import IDENTITY, KEY, Results, percent
from analysis.provenance import identity
from analysis.results import Cell
from analysis.source import Source
from analysis.statistics import Estimate, accuracy, macro_average
from analysis.table import NOT_RUN, Entry, Table, shown, signed
from harness.errors import UserError
from harness.runner.config import POOL

OVERALL = "overall"
_TABLE = "seed_variance"
# The benchmarks in the order of the paper's table, which is not that of its main table.
_ORDER = ("gsm_hard", "math", "mbpp", "humaneval", "mmlu_pro")
# The paper has its table of one row of each method: the pool, or this backbone.
_BACKBONES = {"puppeteer": "qwen-2.5-32B"}
_COLUMNS = [
    *(*KEY, "published_mean", "published_sd", "mean", "sd", "by_seed", "n", "low", "high", "difference", "calibrated"),
    *IDENTITY,
]


def build(source: Source) -> Table:
    """Build the table: a row of means and deviations for each method, and below it a row a seed.

    Raises:
        UserError: A seed is missing on one benchmark of a method, a cell cannot be read, or the cells do not belong in
            one table.
    """
    results = source.results()
    keys = [key for key in (*_ORDER, *sorted(set(results.benchmarks) - set(_ORDER))) if key in results.benchmarks]
    columns = [*keys, *([OVERALL] if results.has_average else [])]
    records = {(*row, key): record for row in _rows(results) for key, record in _spreads(results, row, columns).items()}
    frame = pd.DataFrame(list(records.values()), index=pd.MultiIndex.from_tuples(records, names=KEY))
    return Table(
        label="seed-variance",
        caption=(
            f"Mean and sample standard deviation of the accuracy (%) over training seeds.{notes.conditions(results)}"
        ),
        simulated=results.simulated,
        shown=_shown(results, frame, columns),
        notes=tuple(_notes(results, frame)),
        provenance=results.provenance,
        frame=frame.assign(by_seed=[" ".join(f"{one:.10g}" for one in values) for values in frame["by_seed"]])
        .reset_index()
        .reindex(columns=_COLUMNS),
    )


def _rows(results: Results) -> list[tuple[str, str]]:
    """Method and backbone of the rows among the cells, in the order of the paper's table."""
    known = [(method, _BACKBONES.get(method, POOL)) for method in results.published.further[_TABLE]]
    found = {key[:2] for key in results.trainings}
    return [row for row in known if row in found] + sorted(found - set(known))


def _spreads(results: Results, row: tuple[str, str], columns: Sequence[str]) -> dict[str, dict[str, Any]]:
    """The spread of a row on each benchmark, and over all where all of the paper's were run."""
    cells = {key: results.trainings[*row, key] for key in columns if (*row, key) in results.trainings}
    expected = sorted({cell.run.seed for of in cells.values() for cell in of})
    for benchmark, of in cells.items():
        # A mean that weighs one training more than another is of no method.
        missing = sorted(set(expected) - {cell.run.seed for cell in of})
        if missing:
            raise UserError(
                f"no cell of {row[0]} on {benchmark} with {row[1]} and seed {missing[0]}; its other benchmarks have "
                f"seeds {', '.join(map(str, expected))}; run it, or leave that seed out everywhere"
            )
    estimates = {key: accuracy([cell.items["correct"] for cell in of]) for key, of in cells.items()}
    by_seed = {key: [100 * float(cell.items["correct"].mean()) for cell in of] for key, of in cells.items()}
    found = {key: _spread(results, (*row, key), of, by_seed[key], estimates[key]) for key, of in cells.items()}
    paper = list(results.published.benchmarks)
    if OVERALL in columns and set(paper) <= set(found):
        # The unweighted mean of the benchmarks seed by seed, so that its deviation is that of whole trainings.
        means = [fmean(values) for values in zip(*(by_seed[key] for key in paper), strict=True)]
        every = [cell for key in paper for cell in cells[key]]
        found[OVERALL] = _spread(
            results, (*row, OVERALL), every, means, macro_average([estimates[key] for key in paper])
        )
        found[OVERALL]["n"] = sum(found[key]["n"] for key in paper)
        found[OVERALL]["calibrated"] = any(cell.run.calibrated for cell in every)
    return found


def _spread(
    results: Results, key: tuple[str, str, str], cells: Sequence[Cell], by_seed: list[float], estimate: Estimate
) -> dict[str, Any]:
    method, backbone, benchmark = key
    is_printed = backbone == _BACKBONES.get(method, POOL)
    printed = {name: results.published.at(_TABLE, method, benchmark, name) for name in ("mean", "sd")}
    mean, deviation = printed.values() if is_printed and None not in printed.values() else (None, None)
    calibrated = any(cell.run.calibrated for cell in cells)
    found = fmean(by_seed)
    return {
        "published_mean": mean,
        "published_sd": deviation,
        "mean": found,
        "sd": stdev(by_seed) if len(by_seed) > 1 else None,
        "by_seed": by_seed,
        "n": len(cells[0].items),
        "measured": percent(estimate.mean),
        "low": percent(estimate.low),
        "high": percent(estimate.high),
        "difference": None if mean is None or calibrated else round(found - mean, 2),
        "calibrated": calibrated,
        **identity(cells),
    }


def _shown(results: Results, frame: pd.DataFrame, columns: Sequence[str]) -> pd.DataFrame:
    """Mean, deviation, and each seed where there are several."""
    places = list(dict.fromkeys(frame.index.droplevel("benchmark")))
    means = {
        key: accuracies(
            frame.assign(published=frame["published_mean"], ran=True, several=False)
            .reindex([(*row, key) for row in places])
            .assign(ran=[(*row, key) in frame.index for row in places])
        )
        for key in columns
    }
    rows: list[tuple[str, ...]] = []
    entries: dict[str, dict[str, list[Entry]]] = {key: {"Publ.": [], "Meas.": []} for key in columns}
    for place, (method, backbone) in enumerate(places):
        title = results.rows.loc[(method, backbone), "method_title"]
        own = {key: frame.loc[(method, backbone, key)] for key in columns if (method, backbone, key) in frame.index}
        seeds = next(iter(own.values()))["seeds"].split()
        labels = ["mean", "sd", *(f"seed {seed}" for seed in seeds if len(seeds) > 1)]
        where = results.rows.loc[(method, backbone), "backbone_title"]
        rows += [(method, title, "" if number else where, label) for number, label in enumerate(labels)]
        for key in columns:
            entries[key]["Publ."] += [
                means[key]["Publ."][place],
                _sd_in_print(own.get(key)),
                *[Entry()] * (len(labels) - 2),
            ]
            each = [f"{value:.2f}" for value in own[key]["by_seed"]] if key in own else [""] * len(seeds)
            alone = [Entry(text) for text in each] if len(seeds) > 1 else []
            entries[key]["Meas."] += [means[key]["Meas."][place], _sd(own.get(key)), *alone]
    groups = {
        ("Overall", "") if key == OVERALL else (results.benchmarks[key], results.questions(key)): entries[key]
        for key in columns
    }
    return shown(rows, ("Method", "LLM", ""), groups)


def _sd_in_print(row: pd.Series | None) -> Entry:
    return Entry("" if row is None or pd.isna(row["published_sd"]) else f"{row['published_sd']:.2f}")


def _sd(row: pd.Series | None) -> Entry:
    if row is None or pd.isna(row["sd"]):
        return Entry(NOT_RUN)
    printed = row["published_sd"]
    return Entry(f"{row['sd']:.2f}", beside="" if pd.isna(printed) else signed(round(row["sd"], 2) - printed))


def _notes(results: Results, frame: pd.DataFrame) -> Iterator[str]:
    yield (
        "Publ.: printed in the paper, over three seeds. Meas.: this run, beside it measured minus published in points, "
        "below a mean its 95 % interval (over questions and seeds; Wilson for one seed; Overall: normal); sd: the "
        "sample standard deviation over the seeds."
    )
    yield "Overall: the mean of the five benchmarks, seed by seed; then mean and deviation over the seeds."
    yield "Bold is the best mean of a column and underlined the second best; equal values share a mark."
    counts = set(map(len, frame["by_seed"]))
    if 1 in counts:
        yield f"sd {NOT_RUN}: a single training has no deviation."
    if len(counts) > 1:
        yield "The methods were trained with different numbers of seeds, so their deviations are not alike."
    if frame["mean"].groupby(level=KEY[:2]).count().nunique() > 1:
        yield f"{NOT_RUN}: not run."
    yield from _extremes(results, frame)
    yield from notes.protocol(results)


def _extremes(results: Results, frame: pd.DataFrame) -> Iterator[str]:
    """The paper also names the lowest or highest training of a method."""
    told = [
        f"{results.published.methods[method].title} {name} {value:.2f}"
        for method, backbone in dict.fromkeys(frame.index.droplevel("benchmark"))
        for name in ("lowest", "highest")
        if backbone == _BACKBONES.get(method, POOL)
        and (value := results.published.at(_TABLE, method, OVERALL, name)) is not None
    ]
    if told:
        yield f"Single trainings that the paper names, Overall: {', '.join(told)}."
