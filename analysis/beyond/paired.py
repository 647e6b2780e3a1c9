"""Paired comparison of one row with every other row of the main table: accuracy, cost, and power of the test."""

from collections.abc import Iterator
from dataclasses import replace

import pandas as pd

from analysis import bounds
from analysis.exhibit import BEST, NOT_RUN, Entry, signed
from analysis.finished_cells import read
from analysis.frames import AVERAGE, IDENTITY, KEY, Results, with_costs
from analysis.paired_tests import ALPHA, against, compare, detectable_note, p_value
from analysis.table import Table, by_benchmark, entries, factors, labels_of, points, results_table, row_labels

_SIDE = ["published", "published_cost_per_query", "measured", *IDENTITY]
_NAMES = {
    "first_alone": "reference_right_alone",
    "second_alone": "row_right_alone",
    "detectable": "detectable_difference",
}


def build(results: Results) -> Table:
    """Compare the reference with every other row of the main table."""
    margin, heads = results.run.margin, ("Against", "LLM")
    if len(results.rows) == 1:
        nothing, caption = {("", ""): {"Diff.": [Entry()]}}, "One row, with no other to compare it with."
        rows, frame = labels_of([("", "no other row", "")], heads), pd.DataFrame(columns=KEY)
        return replace(results_table(results, rows, nothing, frame, caption=caption), notes=())
    reference = results.reference
    frame = _frame(results, reference, margin).join(bounds.against_mix(results))
    name = results.rows.loc[reference, "name"]
    groups = {(title, n): _group(rows, margin) for _, title, n, rows in by_benchmark(results, frame)}
    if results.has_average:
        rows = frame.xs(AVERAGE, level="benchmark")
        test = entries(rows["p"], p_value, NOT_RUN, mark=_bold(rows["p"]))
        groups["Avg.", ""] = {**_differences(rows), "p": test, **_not_worse(rows, margin)}
    caption = f"{name} against every other row, on the same questions."
    rows = row_labels(results.rows.drop(index=[reference]), heads=heads)
    also = (*_legend(results, frame, margin), *_noise_floor(results))
    return results_table(results, rows, groups, frame, also, caption)


def _frame(results: Results, reference: tuple[str, str], margin: float | None) -> pd.DataFrame:
    """Return every other row, on each benchmark and on average, with the reference and the paired tests."""
    table, keys = with_costs(results.frame, results), [*results.benchmarks]
    if results.has_average:
        table, keys = pd.concat([table, results.averages]), [*keys, AVERAGE]
    others = results.rows.index.drop(reference)
    index = pd.MultiIndex.from_tuples([(*row, key) for row in others for key in keys], names=KEY)
    rows = table.loc[index, _SIDE]
    other = table.loc[[(*reference, key) for *_, key in index], _SIDE].set_axis(index)
    sides = rows.join(other.add_prefix("reference_"))
    sides = sides.where(rows["measured"].notna() & other["measured"].notna())
    return sides.rename(columns={"measured": "accuracy", "reference_measured": "reference_accuracy"}).assign(
        reference=reference[0],
        published_difference=(other["published"] - rows["published"]).round(2),
        published_cost_ratio=other["published_cost_per_query"] / rows["published_cost_per_query"],
        **against(results, reference, margin).rename(columns=_NAMES).reindex(index),
    )


def _group(rows: pd.DataFrame, margin: float | None) -> dict[str, list[Entry]]:
    return {
        **_differences(rows),
        "p": entries(rows["p_holm"], p_value, NOT_RUN, mark=_bold(rows["p_holm"])),
        **_not_worse(rows, margin),
        **bounds.mix_column(rows),
        "Publ. cost ×": entries(rows["published_cost_ratio"], _ratio),
        **{
            title: factors(rows, name, _ratio, rows["n"].isna())
            for title, name in (("Cost ×", "cost_ratio"), ("All calls ×", "cost_ratio_all_calls"))
        },
    }


def _differences(rows: pd.DataFrame) -> dict[str, list[Entry]]:
    published = entries(rows["published_difference"], signed)
    return {"Publ. diff.": published, "Diff.": points(rows, "difference", NOT_RUN)}


def _not_worse(rows: pd.DataFrame, margin: float | None) -> dict[str, list[Entry]]:
    """Return the column of the non-inferiority test; empty if the preset has no ``margin``."""
    if margin is None:
        return {}
    p = rows["p_not_worse"].astype(float)
    return {f"≤ {margin:g} worse: p": entries(p, p_value, NOT_RUN, mark=_bold(p, ALPHA / 2))}


def _bold(p_values: pd.Series, level: float = ALPHA) -> pd.Series:
    return p_values.lt(level).map({True: BEST, False: ""})


def _ratio(value: float) -> str:
    return f"{value:.{1 if value >= 10 else 2 if value >= 0.1 else 3}f}"


def _noise_floor(results: Results) -> Iterator[str]:
    """Yield how often repeated single calls get another verdict, if any were repeated."""
    found = []
    for folder in results.again:
        run = (cell := read(folder)).run
        first = results.cells_by_row.get((run.method, run.backbone, run.benchmark))
        if first is not None:
            pair = compare(first, [cell])
            alone, others = pair["first_alone"], pair["second_alone"]
            found.append(
                f"{run.backbone} on {run.benchmark_title}: {alone + others:g} of {pair['n']} verdicts ({alone:g} right "
                f"only the first time, {others:g} only the second), {signed(pair['difference'])} points"
            )
    if found:
        yield f"Noise floor, from repeated single calls: {'; '.join(found)}."


def _legend(results: Results, frame: pd.DataFrame, margin: float | None) -> Iterator[str]:
    rows = frame.drop(index=AVERAGE, level="benchmark", errors="ignore")
    if margin is not None:
        yield f"≤ {margin:g} worse: one-sided p that it is less accurate than the row by {margin:g} points or more."
        yield f"Bold in ≤ {margin:g} worse: under 0.025, that is, the interval of Diff. lies above −{margin:g}."
    yield from detectable_note(rows["detectable_difference"], results.benchmarks)
