"""The main table: accuracy of every method on every benchmark, the paper's number beside the measured one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pandas as pd

from analysis import notes, training
from analysis.columns import accuracies, by_benchmark
from analysis.frames import IDENTITY, KEY, MEASURED, Results
from analysis.source import Source
from analysis.table import DAGGER, NO, NOT_RUN, YES, Table, shown

_COLUMNS = [
    *(*KEY, "benchmark_title", "published", "published_fit", "published_counts"),
    *(*MEASURED, "difference", *IDENTITY),
]


def build(source: Source) -> Table:
    """Build the table.

    All published rows stand in it, in the paper's order; a place where nothing was run says so. Rows the paper does
    not have follow at the end. In its tidy form, costs and tokens are totals over the test set, as means over the
    seeds; where there is an average, it follows the benchmarks of a row under their key.

    Raises:
        UserError: When a cell cannot be read or the cells do not belong in one table.
    """
    results = source.results()
    groups = {(title, n): accuracies(own) for _, title, n, own in by_benchmark(results, results.frame)}
    parts = [results.frame]
    if results.has_average:
        groups["Avg.", ""] = accuracies(results.averages)
        parts.append(results.averages)
    rows = [
        (row.family, row.method_title, row.backbone_title, _flag(row.multi_agent), _flag(row.routing))
        for row in results.rows.itertuples()
    ]
    tidy = pd.concat([part.reset_index() for part in parts])
    order = {row: place for place, row in enumerate(results.rows.index)}
    tidy["order"] = [order[row] for row in zip(tidy["method"], tidy["backbone"], strict=True)]
    return Table(
        label="main-table",
        caption=(
            "Test accuracy (%): the value printed in the paper beside the value measured in this run."
            f"{notes.conditions(results)}"
        ),
        simulated=results.simulated,
        shown=shown(rows, ("Method", "LLM", "Mul.", "Rout."), groups),
        notes=tuple(_notes(results)),
        provenance=results.provenance,
        frame=tidy.sort_values("order", kind="stable")[_COLUMNS],
    )


def _flag(value: bool | None) -> str:
    return "" if value is None else YES if value else NO


def _notes(results: Results) -> Iterator[str]:
    frame, averages = results.frame, results.averages
    several = results.measured["several"].any()
    means = "; of a mean over several seeds, bootstrap over items and seeds, with seed 0 alone beside it"
    interval = f"Wilson{means if several else ''}{'; averages: normal' if results.has_average else ''}"
    yield (
        "Publ.: printed in the paper. Meas.: this run on n items, beside it measured minus published in points, "
        f"below it the 95 % interval ({interval})."
    )
    yield (
        "Bold is the best value of a column and underlined the second best, published and measured apart; "
        "equal values share a mark."
    )
    yield f"Mul.: several agents; Rout.: routes over the pool of models ({YES} yes, {NO} no)."
    if not frame["ran"].all():
        yield f"{NOT_RUN}: not run."
    if frame["calibrated"].eq(True).any():
        yield (
            f"{DAGGER}: the simulation was fitted to the paper's value over all test questions; agreement is no "
            "finding, so no difference is shown."
        )
    if frame["published"].isna().any():
        yield "A blank published column: the paper prints no such value."
    yield from notes.protocol(results)
    yield from notes.seeds(results)
    uneven = list(averages.loc[averages["uneven"].eq(True), "name"]) if results.has_average else []
    if uneven:
        yield f"No average over benchmarks with different seeds: {', '.join(uneven)}."
    yield from notes.without_verdict(results)
    yield from notes.math_verify(results)
    yield from _learned(results)


def _learned(results: Results) -> Iterator[str]:
    """What was learned behind each row that learns, for a training is part of what a row is."""
    found: dict[str, list[pd.Series]] = {}
    for key, row in training.learned(results).iterrows():
        found.setdefault(results.rows.loc[key[:2], "name"], []).append(row)
    if found:
        yield (
            "What the learned rows learned, as ranges over the benchmarks; the table training_budget has each. "
            f"{training.ENTROPY} Trajectories: graded attempts of a training. Cost: of all its calls, in the paper's "
            "unit."
        )
    order = [name for name in results.rows["name"] if name in found]
    yield from (f"{name}: {_of_training(pd.DataFrame(found[name]))}." for name in order)


def _of_training(rows: pd.DataFrame) -> str:
    if not rows["trajectories"].any():
        return "left as initialised"
    used = f"{_range(rows['trajectories'])} trajectories, cost {_range(rows['cost'], 3)}"
    made = [name for name in training.CHOICES if rows[f"top_{name}_share"].notna().any()]
    if not made:
        return f"a search, which leaves no policy; {used}"
    drawn = {name: rows[f"entropy_{name}"].dropna() for name in made}
    entropies = ", ".join(f"{name} {_range(values)} %" for name, values in drawn.items() if len(values))
    share = f"most frequent {made[0]} {_range(rows[f'top_{made[0]}_share'].dropna())} %"
    return "; ".join(part for part in (entropies and f"entropy of {entropies}", share, used) if part)


def _range(values: Sequence[float], digits: int = 0) -> str:
    return "–".join(dict.fromkeys(f"{end:.{digits}f}" for end in (min(values), max(values))))
