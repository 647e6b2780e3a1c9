"""Mean and deviation of the accuracy over training seeds, and the paper's (Variance across Training Seeds)."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd

from analysis import columns, notes
from analysis.columns import accuracies, entries, say
from analysis.frames import AVERAGE, IDENTITY, KEY, Key, Results
from analysis.source import Source
from analysis.table import NOT_RUN, Entry, Table, signed
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
    """A row of means and deviations for each method, and below it a row a seed.

    Raises:
        UserError: A seed is missing on one benchmark of a method.
    """
    results = source.results()
    keys = [key for key in (*_ORDER, *sorted(set(results.benchmarks) - set(_ORDER))) if key in results.benchmarks]
    seeds = _by_seed(results)
    frame = _frame(results, seeds, [*keys, OVERALL])
    groups = {(results.benchmarks[key], results.questions(key)): _group(frame, seeds, key) for key in keys}
    if results.has_average:
        groups["Overall", ""] = _group(frame, seeds, OVERALL)
    rows = []
    for row in frame.index.droplevel("benchmark").unique():
        title, where = results.rows.loc[row, ["method_title", "backbone_title"]]
        rows += [(row[0], title, "" if number else where, label) for number, label in enumerate(_labels(seeds, row))]
    return columns.table(
        results,
        label="seed-variance",
        caption="Mean and sample standard deviation of the accuracy (%) over training seeds.",
        rows=rows,
        heads=("Method", "LLM", ""),
        groups=groups,
        legend=_legend(results, frame, seeds),
        frame=frame.reset_index()[_COLUMNS],
    )


def _by_seed(results: Results) -> pd.DataFrame:
    """The accuracy of each training in percent: a row a method, backbone and seed, a column a benchmark and overall.

    Overall is the unweighted mean of the benchmarks, so that its deviation is that of whole trainings.
    """
    one = {
        (*key[:2], cell.run.seed, key[2]): 100 * float(cell.items["correct"].mean())
        for key, cells in results.trainings.items()
        for cell in cells
    }
    found = pd.Series(one).rename_axis([*KEY[:2], "seed", "benchmark"]).unstack("benchmark")
    for row, of in found.groupby(level=KEY[:2]):
        # A mean that weighs one training more than another is of no method.
        missing = of.dropna(axis=1, how="all").isna().stack()
        if missing.any():
            *_, seed, benchmark = missing.idxmax()
            seeds = ", ".join(str(seed) for *_, seed in of.index)
            raise UserError(
                f"no cell of {row[0]} on {benchmark} with {row[1]} and seed {seed}; its other benchmarks have "
                f"seeds {seeds}; run it, or leave that seed out everywhere"
            )
    paper = found.reindex(columns=list(results.published.benchmarks))
    return found.assign(**{OVERALL: paper.mean(axis=1, skipna=False)})


def _frame(results: Results, seeds: pd.DataFrame, columns: list[str]) -> pd.DataFrame:
    """The spread of each row, in the order of the paper's table, on each benchmark and overall, as far as run."""
    known = [(method, _BACKBONES.get(method, POOL)) for method in results.published.further[_TABLE]]
    run = {key[:2] for key in results.trainings}
    order = [row for row in known if row in run] + sorted(run - set(known))
    long = seeds.rename_axis(columns="benchmark").stack().dropna()
    spread = long.groupby(KEY).agg(mean="mean", sd="std", by_seed=lambda of: " ".join(f"{one:.10g}" for one in of))
    averages = results.averages.rename(index={AVERAGE: OVERALL}, level="benchmark")
    averages["n"] = results.measured["n"].groupby(KEY[:2]).sum()
    measured = pd.concat([results.measured, averages[averages["ran"]]])
    keys = [key for row in order for name in columns if (key := (*row, name)) in spread.index]
    frame = spread.join(measured).loc[keys]
    for name in ("mean", "sd"):
        frame[f"published_{name}"] = [_printed(results, key, name) for key in frame.index]
    difference = (frame["mean"] - frame["published_mean"]).where(~frame["calibrated"].eq(True))
    return frame.assign(difference=difference.astype(float).round(2))


def _printed(results: Results, key: Key, name: str) -> float | None:
    """A number of the paper's row, which has its mean and deviation or neither."""
    method, backbone, benchmark = key
    both = [results.published.at(_TABLE, method, benchmark, one) for one in ("mean", "sd", name)]
    return None if backbone != _BACKBONES.get(method, POOL) or None in both else both[-1]


def _labels(seeds: pd.DataFrame, row: tuple[str, str]) -> list[str]:
    """Mean, deviation, and each seed where there are several."""
    found = seeds.loc[row].index
    return ["mean", "sd", *(f"seed {seed}" for seed in found if len(found) > 1)]


def _group(frame: pd.DataFrame, seeds: pd.DataFrame, key: str) -> dict[str, list[Entry]]:
    places = frame.index.droplevel("benchmark").unique()
    own = frame.reindex([(*row, key) for row in places])
    own = own.assign(published=own["published_mean"], ran=own["mean"].notna(), several=False)
    means = accuracies(own)
    apart = say(own["sd"].round(2) - own["published_sd"], signed)
    deviations = {
        "Publ.": entries(say(own["published_sd"], "{:.2f}")),
        "Meas.": entries(say(own["sd"], "{:.2f}"), NOT_RUN, beside=apart),
    }
    each = {row: entries(say(seeds.loc[row, key], "{:.2f}")) for row in places}
    found: dict[str, list[Entry]] = {"Publ.": [], "Meas.": []}
    for place, row in enumerate(places):
        alone = each[row] if len(each[row]) > 1 else []
        for title, below in (("Publ.", [Entry()] * len(alone)), ("Meas.", alone)):
            found[title] += [means[title][place], deviations[title][place], *below]
    return found


def _legend(results: Results, frame: pd.DataFrame, seeds: pd.DataFrame) -> Iterator[str]:
    yield (
        "Publ.: from the paper, over three seeds. Meas.: this run, next to it measured minus published in points, "
        "below a mean its 95 % interval (over questions and seeds; Wilson for one seed; Overall: normal); sd: the "
        "sample standard deviation over the seeds."
    )
    yield "Overall: the mean of the five benchmarks, seed by seed; then mean and deviation over the seeds."
    yield "Bold is the best mean of a column and underlined the second best; equal values share a mark."
    counts = seeds.groupby(KEY[:2]).size()
    if counts.min() == 1:
        yield f"sd {NOT_RUN}: a single training has no deviation."
    if counts.nunique() > 1:
        yield "The methods were trained with different numbers of seeds, so their deviations are not alike."
    if frame["mean"].groupby(KEY[:2]).count().nunique() > 1:
        yield f"{NOT_RUN}: not run."
    # The paper also names the lowest or highest training of a method.
    told = [
        f"{results.published.methods[method].title} {name} {value:.2f}"
        for method, backbone in frame.index.droplevel("benchmark").unique()
        for name in ("lowest", "highest")
        if backbone == _BACKBONES.get(method, POOL)
        and (value := results.published.at(_TABLE, method, OVERALL, name)) is not None
    ]
    if told:
        yield f"Single trainings that the paper names, Overall: {', '.join(told)}."
    yield from notes.protocol(results)
