"""GMR against every other row of the main table, question by question: accuracy, cost, and what could be shown."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd

from analysis import notes
from analysis.columns import by_benchmark
from analysis.frames import AVERAGE, IDENTITY, KEY, Results, percent, with_costs
from analysis.paired import ALPHA, Comparison, compare, holm
from analysis.source import Source
from analysis.statistics import Estimate, macro_average
from analysis.table import BEST, DAGGER, NOT_RUN, Entry, Table, shown, signed
from harness.errors import UserError

REFERENCE = "gmr"
_COST, _WHOLE = "Cost ×", "All calls ×"
_ENDS = ("", "_low", "_high")
_COLUMNS = [
    *("reference", *KEY, "published_difference", "published_cost_ratio", "n", "reference_accuracy", "accuracy"),
    *("reference_without_verdict", "without_verdict", *(f"difference{end}" for end in _ENDS)),
    *("difference_first_seed", "reference_right_alone", "row_right_alone", "p_exact", "p_holm", "odds_ratio"),
    *("cohens_g", "detectable_difference", *(f"cost_difference{end}" for end in _ENDS)),
    *(f"{name}{end}" for name in ("cost_ratio", "cost_ratio_all_calls") for end in _ENDS),
    *("calibrated", *IDENTITY, *(f"reference_{name}" for name in IDENTITY)),
]


def build(source: Source) -> Table:
    """Build the table; its rows are those of the main table but the reference.

    Raises:
        UserError: When a cell cannot be read, the cells do not belong in one table, or there is no such reference.
    """
    results = source.results()
    reference = _reference(results, source.options.get("reference", REFERENCE))
    others = results.rows.drop(index=[reference])
    frame = _against(results, reference)
    name = results.rows.loc[reference, "name"]
    groups = {(title, n): _group(results, own) for _, title, n, own in by_benchmark(results, frame)}
    if results.has_average:
        groups["Avg.", ""] = _average_group(frame.xs(AVERAGE, level="benchmark"))
    rows = [(row.family, row.method_title, row.backbone_title) for row in others.itertuples()]
    return Table(
        label="paired",
        caption=f"{name} against every other row, on the same questions.{notes.conditions(results)}",
        simulated=results.simulated,
        shown=shown(rows, ("Against", "LLM"), groups),
        notes=tuple(_notes(results, frame, name)),
        provenance=results.provenance,
        frame=frame.reset_index()[_COLUMNS],
    )


def _reference(results: Results, method: str) -> tuple[str, str]:
    """The row of a method: the first that was run, else its first, of which only printed values are known."""
    found = [row for row in results.rows.index if row[0] == method]
    if not found:
        known = ", ".join(dict.fromkeys(results.rows.index.get_level_values("method")))
        raise UserError(f"reference {method!r} is no row of this table; expected one of {known}; name one of them")
    return next((row for row in found if row in results.ran.index), found[0])


def _against(results: Results, reference: tuple[str, str]) -> pd.DataFrame:
    """Every other row on every benchmark and on average, run or not.

    Accuracies, their differences and the ends of their intervals are in percent or points, reference minus row; ratios
    of costs are reference over row. p values are adjusted after Holm over the benchmarks of a row.
    """
    frame = with_costs(results.frame, results)
    records: dict[tuple[str, str, str], dict[str, Any]] = {}
    for row in results.rows.index.drop(reference):
        found = {
            key: compare(results.trainings[*reference, key], results.trainings[*row, key])
            for key in results.benchmarks
            if (*row, key) in results.trainings and (*reference, key) in results.trainings
        }
        adjusted = dict(zip(found, holm([one.discordant.p for one in found.values()]), strict=True))
        for key in results.benchmarks:
            own, other = frame.loc[(*row, key)], frame.loc[(*reference, key)]
            records[*row, key] = {
                "published_difference": round(other["published"] - own["published"], 2),
                "published_cost_ratio": other["published_cost_per_query"] / own["published_cost_per_query"],
                **(_compared(found[key], adjusted[key], own, other) if key in found else {}),
            }
        if results.has_average:
            records[*row, AVERAGE] = _average(results, row, reference, found)
    index = pd.MultiIndex.from_tuples(records, names=KEY)
    return pd.DataFrame(list(records.values()), index=index, columns=_COLUMNS[4:]).assign(reference=reference[0])


def _compared(found: Comparison, adjusted: float, own: pd.Series, other: pd.Series) -> dict[str, Any]:
    return {
        "n": found.n,
        "reference_accuracy": other["measured"],
        "accuracy": own["measured"],
        "reference_without_verdict": round(100 - other["graded"], 2),
        "without_verdict": round(100 - own["graded"], 2),
        **_estimate("difference", found.accuracy, 100),
        "difference_first_seed": 100 * found.first_seed,
        "reference_right_alone": found.discordant.first,
        "row_right_alone": found.discordant.second,
        "p_exact": found.discordant.p,
        "p_holm": adjusted,
        "odds_ratio": found.discordant.odds_ratio,
        "cohens_g": found.discordant.cohens_g,
        "detectable_difference": 100 * found.detectable,
        **_estimate("cost_difference", found.cost),
        **_estimate("cost_ratio", found.cost_ratio),
        **_estimate("cost_ratio_all_calls", found.cost_ratio_all_calls),
        "calibrated": bool(own["calibrated"] or other["calibrated"]),
        **{name: own[name] for name in IDENTITY},
        **{f"reference_{name}": other[name] for name in IDENTITY},
    }


def _average(
    results: Results, row: tuple[str, str], reference: tuple[str, str], found: dict[str, Comparison]
) -> dict[str, Any]:
    """The benchmarks share no question and no training, so the variances of their differences add."""
    own, other = (results.averages.loc[(*one, AVERAGE)] for one in (row, reference))
    record = {"published_difference": round(other["published"] - own["published"], 2)}
    if not (own["ran"] and other["ran"]):
        return record
    estimate = macro_average([found[key].accuracy for key in results.published.benchmarks], lowest=-1)
    return {
        **record,
        "reference_accuracy": percent(other["fraction"]),
        "accuracy": percent(own["fraction"]),
        **_estimate("difference", estimate, 100),
        "calibrated": bool(own["calibrated"] or other["calibrated"]),
        **{name: own[name] for name in IDENTITY},
        **{f"reference_{name}": other[name] for name in IDENTITY},
    }


def _estimate(name: str, estimate: Estimate, unit: float = 1) -> dict[str, float]:
    return {f"{name}{end}": unit * value for end, value in zip(_ENDS, estimate[:3], strict=True)}


def _group(results: Results, own: pd.DataFrame) -> dict[str, list[Entry]]:
    """P is of the first seeds alone, so it and not the difference is marked."""
    rows = list(own.itertuples())
    printed = own.index.get_level_values("benchmark")[0] in results.published.costs
    return {
        "Publ.": [_difference_in_print(row) for row in rows],
        "Diff.": [_difference(row) for row in rows],
        "p": [_p(row) for row in rows],
        **({f"Publ. {_COST}": [Entry(_ratio(row.published_cost_ratio)) for row in rows]} if printed else {}),
        _COST: [_cost(row, "cost_ratio") for row in rows],
        _WHOLE: [_cost(row, "cost_ratio_all_calls") for row in rows],
    }


def _average_group(own: pd.DataFrame) -> dict[str, list[Entry]]:
    rows = list(own.itertuples())
    return {"Publ.": [_difference_in_print(row) for row in rows], "Diff.": [_difference(row) for row in rows]}


def _difference_in_print(row: Any) -> Entry:
    return Entry("" if pd.isna(row.published_difference) else signed(row.published_difference))


def _difference(row: Any) -> Entry:
    if pd.isna(row.difference):
        return Entry(NOT_RUN)
    ends = f"{signed(row.difference_low, 1)}, {signed(row.difference_high, 1)}"
    return Entry(signed(row.difference), sign=DAGGER if row.calibrated else "", below=ends)


def _p(row: Any) -> Entry:
    if pd.isna(row.p_holm):
        return Entry(NOT_RUN)
    return Entry(_probability(row.p_holm), BEST if row.p_holm < ALPHA else "", below=_probability(row.p_exact))


def _probability(p: float) -> str:
    return "<0.001" if p < 0.001 else f"{p:.3f}"


def _cost(row: Any, name: str) -> Entry:
    value, low, high = (getattr(row, f"{name}{end}") for end in _ENDS)
    if pd.isna(row.n):
        return Entry(NOT_RUN)
    return Entry(_ratio(value), sign=DAGGER if row.calibrated else "", below=f"{_ratio(low)}–{_ratio(high)}")


def _ratio(value: float) -> str:
    """Two digits at least, whatever the order of magnitude."""
    return "" if pd.isna(value) else f"{value:.{1 if value >= 10 else 2 if value >= 0.1 else 3}f}"


def _notes(results: Results, frame: pd.DataFrame, name: str) -> Iterator[str]:
    """Legend first; what was not run or fitted is explained where it occurs."""
    places = frame.drop(index=AVERAGE, level="benchmark", errors="ignore")
    several = results.measured["several"].any()
    yield (
        f"Diff.: accuracy of {name} minus that of the row in points, below it the 95 % interval (bootstrap over "
        f"questions{' and, of rows with several, over seeds' if several else ''}"
        f"{'; of the average normal, as their variances add' if results.has_average else ''})."
    )
    yield (
        f"p: exact McNemar test on {notes.first_seeds(results)} (the CSV has the difference there), adjusted after "
        f"Holm over the benchmarks of a row, below it unadjusted; under {ALPHA} it is bold."
    )
    yield (
        f"{_COST}: cost of a question over that of the row, below it the 95 % interval (the same bootstrap). "
        f"{notes.COUNTED}"
    )
    yield "Publ.: the same of the values that the paper prints, costs by question."
    ranges = [
        f"{title} {_range(of)}"
        for key, title in results.benchmarks.items()
        if len(of := places.xs(key, level="benchmark")["detectable_difference"].dropna())
    ]
    if ranges:
        yield (
            "Smallest true difference, in points, that these questions show with 80 % power at an unadjusted 5 %, by "
            f"row (the CSV has each): {'; '.join(ranges)}."
        )
    if places["n"].isna().any():
        yield f"{NOT_RUN}: not both were run."
    if places["calibrated"].eq(True).any():
        yield (
            f"{DAGGER}: the simulation fitted one side to its published accuracy and cost, so only the other is "
            "a result of it."
        )
    yield from notes.seeds(results)


def _range(points: Sequence[float]) -> str:
    """Where both methods agree on all but a few questions, not even all of these on one side would do."""
    finite = [one for one in points if math.isfinite(one)]
    few = f"none at all for {len(points) - len(finite)} of {len(points)} rows"
    ends = f"{np.min(finite):.1f}–{np.max(finite):.1f}" if finite else ""
    return ", ".join(part for part in (ends, few if len(finite) < len(points) else "") if part)
