"""GMR and its variants (paper, Ablation Study, Routing-Paradigm Comparison, Role Pool, weights of cost)."""

import math
from collections.abc import Iterator, Mapping, Sequence

import pandas as pd

from analysis import table
from analysis.exhibit import NO, NOT_RUN, YES, Form, signed
from analysis.figure import on_frontier
from analysis.frames import KEY, QUESTIONS, Results, mean_with_interval, with_costs
from analysis.paired_tests import ENDS, comparisons, detectable_note, p_value
from analysis.table import Table, by_benchmark, entries, factors, format_series, interval_of, labels_of
from harness.files import Declaration, Distinct, Many, check
from harness.runner.layout import POOL

REFERENCE = "gmr"
_NAMES = {
    "first_alone": "only_this",
    "second_alone": "only_reference",
    **{f"difference{end}": f"gain{end}" for end in ENDS},
    **{name: name for name in ("p", "detectable")},
    **{f"cost_ratio{end}": f"cost_factor{end}" for end in ENDS},
}


class VariantOptions(Declaration):
    """Options of a table of variants in ``config/artefacts.yaml``."""

    printed: Distinct[str] = ()  # further tables of the paper; the first that prints a number counts
    saved: bool = False  # costs are shown as GMR's savings, else as multiples of GMR's
    twins: Many[str] = ()  # one configuration trained twice
    is_sweep: bool = False  # a sweep of one setting, which also shows steps and the Pareto frontier


def build(results: Results) -> Table:
    """Return one row per method and benchmark. Raises UserError for a slip in the options."""
    where = "the options of a table of variants, config/artefacts.yaml"
    options: VariantOptions = check(dict(results.artefact.options), VariantOptions, where)
    titles = {REFERENCE: REFERENCE} | {cell.run.method: cell.run.method_title for cell in results.cells}
    frame = _frame(options, results)
    scaled = table.scaled_to(frame)
    parts = [_groups(options, rows, titles[REFERENCE], scaled) for *_, rows in by_benchmark(results, frame)]
    rows = [
        (key, f"{results.benchmarks[key]}, {results.questions(key)}", titles[method], seeds.replace(" ", ", "))
        for (method, _, key), seeds in frame["seeds"].fillna("").items()
    ]
    groups, also = table.stack_benchmarks(parts), detectable_note(frame["detectable"], results.benchmarks)
    labels = labels_of(rows, ("Benchmark", "Configuration", "Seeds"))
    return table.results_table(results, labels, groups, frame, [*also, *_twins(options.twins, results, frame, titles)])


def _frame(options: VariantOptions, results: Results) -> pd.DataFrame:
    tables = [results.printed(name) for name in options.printed] or [results.printed("ablation").head(0)]
    printed = pd.concat(tables).groupby(level=KEY, sort=False).first()
    methods = [method for method in printed.index.unique("method") if method in results.methods]
    methods = list(dict.fromkeys([*methods, *results.methods]))
    index = pd.MultiIndex.from_tuples([(name, POOL, key) for key in results.benchmarks for name in methods], names=KEY)
    frame = printed.reindex(index).rename(columns={"accuracy": "published", "cost": "published_total"})
    is_reference = index.get_level_values("method") == REFERENCE
    base = printed.reindex([(REFERENCE, POOL, key) for *_, key in index]).set_axis(index)
    base[is_reference] = math.nan
    frame = frame.assign(
        reference=REFERENCE,
        published_questions=[QUESTIONS.get(key) for *_, key in index],
        published_gain=(frame["published"] - base["accuracy"]).round(2),
        published_cost_factor=frame["published_total"] / base["cost"],
    )
    pairs = {key: (key, (REFERENCE, POOL, key[2])) for key in index[~is_reference]}
    compared = comparisons(results, pairs)[list(_NAMES)].rename(columns=_NAMES)
    steps = results.per_row(lambda cells: mean_with_interval(cells, "depth", lambda cell: cell.items["depth"]))
    frame = with_costs(results.with_measured(frame), results).join([compared, steps])
    best = [on_frontier(rows["cost_per_query"], rows["fraction"]) for _, rows in frame.groupby("benchmark")]
    return frame.assign(frontier=pd.concat(best))


def _groups(options: VariantOptions, rows: pd.DataFrame, reference: str, scaled: str) -> table.Groups:
    change: Form = _saving if options.saved else "×{:.2f}"
    # The reference has no comparison with itself; that does not mean "not run".
    is_lacking = rows["gain"].isna() & (rows.index.get_level_values("method") != REFERENCE)
    gains = format_series(rows["gain"], signed)
    steps = {
        "Steps": entries(rows["depth"], "{:.2f}", NOT_RUN, below=interval_of(rows, "depth", "{:.2f}")),
        "Frontier": entries(rows["frontier"].map({True: YES, False: NO}).fillna(""), missing=NOT_RUN),
    }
    return {
        ("Accuracy (%)", ""): table.accuracies(rows),
        ("Cost of a question (1e-4)", ""): {**table.costs(rows), **table.all_calls(rows)},
        **({("Test questions", ""): steps} if options.is_sweep else {}),
        ("Total cost", scaled): table.totals(rows),
        (f"Accuracy against {reference}", "points, paired"): {
            "Publ.": entries(rows["published_gain"], signed),
            "Meas.": entries(gains.mask(is_lacking, NOT_RUN), below=interval_of(rows, "gain", signed, " to ")),
            "p": entries(rows["p"], p_value),
        },
        (f"{'Saved (%) by' if options.saved else 'Cost against'} {reference}", "paired"): {
            "Publ.": entries(rows["published_cost_factor"], change),
            "Meas.": factors(rows, "cost_factor", change, is_lacking, " to "),
        },
    }


def _saving(ratio: float) -> str:
    """Return the percentage by which the reference is cheaper than a row at ``ratio`` times its cost."""
    return signed(100 * (1 - 1 / ratio)).removeprefix("+")


def _twins(twins: Sequence[str], results: Results, frame: pd.DataFrame, titles: Mapping[str, str]) -> Iterator[str]:
    pairs = {key: [(method, POOL, key) for method in twins] for key in results.benchmarks if twins}
    gains = comparisons(results, {first: (first, second) for first, second in pairs.values()}).dropna(subset="n")
    parts = []
    for first, gain in gains.iterrows():
        published, other = frame["published"].reindex(pairs[first[2]])
        lead = "" if pd.isna(published - other) else f"published {signed(published - other)}, measured "
        mean, low, high = (signed(gain[f"difference{end}"]) for end in ENDS)
        parts.append(f"{results.benchmarks[first[2]]} {lead}{mean} ({low} to {high})")
    if parts:
        names = " minus ".join(titles[method] for method in twins)
        yield f"{names}, in points on the same questions, with 95 % interval: {'; '.join(parts)}."
