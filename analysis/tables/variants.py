"""GMR and its variants: what each scored and spent, also against one of them, published and measured.

Paper, Ablation Study (a module switched off at a time and trained anew), Routing-Paradigm Comparison, Role Pool.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd

from analysis import columns, notes
from analysis.frames import COST, IDENTITY, KEY, MEASURED, QUESTIONS, Results, with_costs
from analysis.paired import Comparison, compare
from analysis.source import Source
from analysis.table import NOT_RUN, Entry, Table, shown, signed
from harness.runner.config import POOL

_SMALL_P = 0.001
_COLUMNS = [
    *(*KEY, "benchmark_title", "reference", "published_gain", "published_cost_factor", "published", *COST, *MEASURED),
    *("difference", *IDENTITY, "only_this", "only_reference", "gain", "gain_low", "gain_high", "p", "odds_ratio"),
    *("cohens_g", "detectable", "cost_factor", "cost_factor_low", "cost_factor_high"),
]


def _factor(ratio: float) -> str:
    """A cost as a multiple of the reference's."""
    return f"×{ratio:.2f}"


def _saving(ratio: float) -> str:
    """What the reference spends less, in percent, from a cost as a multiple of the reference's."""
    return signed(100 * (1 - 1 / ratio)).removeprefix("+")


@dataclass(frozen=True, slots=True)
class Design:
    """What a table of variants shows.

    Attributes:
        caption: What the rows are.
        printed: Names of the paper's tables in :attr:`analysis.published.Published.further`; the first that has a
            number counts.
        change: How a cost relative to that of the reference is shown.
        change_title: What its columns are called.
        change_note: What they say.
        note: What else a reader must know.
        twins: Two methods that are one configuration trained twice; a note has the difference between them.
    """

    caption: str
    printed: tuple[str, ...]
    note: str
    change: Callable[[float], str] = _factor
    change_title: str = "Cost against"
    change_note: str = "Cost: that of a question as a multiple of the full system's."
    twins: tuple[str, str] | None = None


REFERENCE = "gmr"
DESIGNS: Mapping[str, Design] = {
    "ablation": Design(
        caption="GMR with one of its modules switched off: accuracy and cost, published beside measured.",
        printed=("ablation",),
        note=(
            "Each row is trained anew, with the data and seeds of the full system. A random choice takes the place of "
            "the role allocator or the LLM router; without a gate everything is stored or shown; without halting every "
            "trajectory has all steps."
        ),
    ),
    "paradigm": Design(
        caption="Routing by the question alone (MASRouter), by the full history, and by a gated memory (GMR).",
        printed=("paradigm", "ablation"),
        change=_saving,
        change_title="Saved (%) by",
        change_note=(
            "Saved: how much less GMR spends on a question than the row, in percent; below zero it spends more."
        ),
        note=(
            "Full-History and GMR without both memory gates are one configuration: by the paper's descriptions nothing "
            "separates them, although it prints different numbers for them. Here they differ in the seeds of training "
            "alone, so that the pair tells how far apart two trainings of one method end (D-GMR-8)."
        ),
        twins=("full_history", "gmr_no_memory_gates"),
    ),
    "roles": Design(
        caption="GMR with all 26 roles and with fewer of them: accuracy and cost, published beside measured.",
        printed=("roles13", "ablation"),
        change_note="Cost: that of a question as a multiple of the cost with all roles.",
        note=(
            "13 of 26 roles: drawn once, 6 of mathematics, 4 of code, 3 of knowledge; the paper prints its accuracy "
            "and no cost. Roles of the domain: 12 for GSM-Hard, 7 for HumanEval; the paper has no such run (D-GMR-6)."
        ),
    ),
}


def build(source: Source) -> Table:
    """Build the table of the design that ``options`` name; its rows are the methods among the cells by benchmark.

    Raises:
        UserError: When a cell cannot be read or the cells do not belong in one table.
    """
    name = str(source.options["design"])
    design, results = DESIGNS[name], source.results()
    titles = {cell.run.method: cell.run.method_title for cell in results.cells}
    comparisons = _comparisons(results)
    frame = _frame(design, results, comparisons)
    parts = [_groups(design, results, frame, own, titles) for *_, own in columns.by_benchmark(results, frame)]
    groups = {
        group: {title: [entry for part in parts for entry in part[group][title]] for title in of}
        for group, of in parts[0].items()
    }
    variants = sorted(set(titles) - {REFERENCE})
    return Table(
        # A table of a single variant may stand in one document with the table of all of them.
        label="-".join([name, *variants]).replace("_", "-") if len(variants) == 1 else name,
        caption=f"{design.caption}{notes.conditions(results)}",
        simulated=results.simulated,
        shown=shown(_labels(results, frame, titles), ("Benchmark", "Configuration", "Seeds"), groups),
        notes=tuple(_notes(design, results, frame, comparisons, titles)),
        provenance=results.provenance,
        frame=frame.reset_index()[_COLUMNS],
    )


def _comparisons(results: Results) -> dict[tuple[str, str], Comparison]:
    """Each variant against the reference, by method and benchmark, where both were run."""
    return {
        (method, key): compare(cells, results.trainings[REFERENCE, POOL, key])
        for (method, _, key), cells in results.trainings.items()
        if method != REFERENCE and (REFERENCE, POOL, key) in results.trainings
    }


def _frame(design: Design, results: Results, comparisons: Mapping[tuple[str, str], Comparison]) -> pd.DataFrame:
    """Every place of the table: the methods among the cells, in the order of the paper, others by name."""
    run = {method for method, *_ in results.trainings}
    known = [method for name in design.printed for method in results.published.further[name] if method in run]
    index = pd.MultiIndex.from_tuples(
        [(method, POOL, key) for key in results.benchmarks for method in dict.fromkeys([*known, *sorted(run)])],
        names=KEY,
    )
    frame = pd.DataFrame([_printed(design, results, *key) for key in index], index=index)
    frame = with_costs(results.beside(frame), results)
    frame["benchmark_title"] = [results.benchmarks[key] for key in index.get_level_values("benchmark")]
    compared = {(method, POOL, key): _compared(found) for (method, key), found in comparisons.items()}
    names = _COLUMNS[_COLUMNS.index("only_this") :]
    found = pd.DataFrame.from_dict(compared, orient="index", columns=names) if compared else pd.DataFrame(columns=names)
    return frame.join(found.reindex(index)).assign(reference=REFERENCE)


def _printed(design: Design, results: Results, method: str, _: str, benchmark: str) -> dict[str, float | None]:
    def number(of: str, measure: str) -> float | None:
        found = (results.published.at(name, of, benchmark, measure) for name in design.printed)
        return next((value for value in found if value is not None), None)

    own, total = number(method, "accuracy"), number(method, "cost")
    base, other = (None, None) if method == REFERENCE else (number(REFERENCE, "accuracy"), number(REFERENCE, "cost"))
    return {
        "published": own,
        "published_total": total,
        "published_questions": QUESTIONS.get(benchmark),
        "published_gain": None if own is None or base is None else round(own - base, 2),
        "published_cost_factor": None if total is None or not other else total / other,
    }


def _compared(found: Comparison) -> dict[str, float]:
    return {
        "only_this": found.discordant.first,
        "only_reference": found.discordant.second,
        "gain": 100 * found.accuracy.mean,
        "gain_low": 100 * found.accuracy.low,
        "gain_high": 100 * found.accuracy.high,
        "p": found.discordant.p,
        "odds_ratio": found.discordant.odds_ratio,
        "cohens_g": found.discordant.cohens_g,
        "detectable": 100 * found.detectable,
        "cost_factor": found.cost_ratio.mean,
        "cost_factor_low": found.cost_ratio.low,
        "cost_factor_high": found.cost_ratio.high,
    }


def _labels(results: Results, frame: pd.DataFrame, titles: Mapping[str, str]) -> Iterator[tuple[str, ...]]:
    for row in frame.itertuples():
        method, _, key = row.Index
        seeds = row.seeds.replace(" ", ", ") if row.ran else ""
        yield key, f"{results.benchmarks[key]}, {results.questions(key)}", titles[method], seeds


def _groups(
    design: Design, results: Results, frame: pd.DataFrame, own: pd.DataFrame, titles: Mapping[str, str]
) -> dict[tuple[str, str], dict[str, list[Entry]]]:
    """The columns of one benchmark, whose best values are marked among themselves."""
    sizes = " or ".join(f"{QUESTIONS[key]:.0f}" for key in results.benchmarks if key in QUESTIONS)
    reference, rows = titles.get(REFERENCE, REFERENCE), list(own.itertuples())
    return {
        ("Accuracy (%)", ""): columns.accuracies(own),
        ("Cost of a question (1e-4)", ""): {**columns.costs(own), **columns.all_calls(own)},
        ("Total cost", f"scaled to n = {sizes}" if sizes else ""): columns.totals(own),
        (f"Accuracy against {reference}", "points, paired"): {
            "Publ.": [Entry("" if pd.isna(row.published_gain) else signed(row.published_gain)) for row in rows],
            "Meas.": [_gain(row) for row in rows],
            "p": [Entry("" if pd.isna(row.p) else _p(row.p)) for row in rows],
        },
        (f"{design.change_title} {reference}", "paired"): {
            "Publ.": [Entry(_optional(design, row.published_cost_factor)) for row in rows],
            "Meas.": [_relative(design, row) for row in rows],
        },
    }


def _optional(design: Design, ratio: float) -> str:
    return "" if pd.isna(ratio) else design.change(ratio)


def _gain(row: Any) -> Entry:
    if pd.isna(row.gain):
        return Entry("" if row.Index[0] == REFERENCE else NOT_RUN)
    return Entry(signed(row.gain), below=f"{signed(row.gain_low)} to {signed(row.gain_high)}")


def _p(value: float) -> str:
    return f"{value:.3f}" if value >= _SMALL_P else f"< {_SMALL_P}"


def _relative(design: Design, row: Any) -> Entry:
    """Blank where one of both cost nothing; without an interval where the questions leave it open."""
    if pd.isna(row.gain):
        return Entry("" if row.Index[0] == REFERENCE else NOT_RUN)
    if not 0 < row.cost_factor < math.inf:
        return Entry()
    is_bounded = row.cost_factor_low > 0 and row.cost_factor_high < math.inf
    interval = f"{design.change(row.cost_factor_low)} to {design.change(row.cost_factor_high)}" if is_bounded else ""
    return Entry(design.change(row.cost_factor), below=interval)


def _notes(
    design: Design,
    results: Results,
    frame: pd.DataFrame,
    comparisons: Mapping[tuple[str, str], Comparison],
    titles: Mapping[str, str],
) -> Iterator[str]:
    yield from notes.legend(results, frame)
    yield (
        f"Against {titles.get(REFERENCE, REFERENCE)}: the row minus it on the same questions, with the "
        f"95 % bootstrap interval over questions{' and seeds' if frame['several'].eq(True).any() else ''}; p of the "
        f"exact McNemar test on {notes.first_seeds(results)}, not adjusted for the number of rows. {design.change_note}"
    )
    yield from _power(frame["detectable"].dropna())
    other = [
        f"{titles[method]} on {results.benchmarks[key]}"
        for method, key in comparisons
        if frame.loc[(method, POOL, key), "seeds"] != frame.loc[(REFERENCE, POOL, key), "seeds"]
    ]
    if other:
        yield f"Run with other seeds than the row they are compared with: {', '.join(other)}."
    yield design.note
    if design.twins:
        yield from _twins(design.twins, results, frame, titles)


def _power(detectable: pd.Series) -> Iterator[str]:
    """What the comparisons could have shown: without it, a large p would read as no difference."""
    smallest = sorted(one for one in detectable if one < 100)
    ends = list(dict.fromkeys(f"{end:.1f}" for end in (smallest[:1] + smallest[-1:])))
    if ends:
        yield (
            f"The smallest difference that so many questions show with 80 % power: {' to '.join(ends)} points, by row "
            "and benchmark (the CSV has each)."
        )
    if len(smallest) < len(detectable):
        yield (
            f"In {len(detectable) - len(smallest)} of {len(detectable)} comparisons too few questions had different "
            "verdicts to show any difference."
        )


def _twins(twins: tuple[str, str], results: Results, frame: pd.DataFrame, titles: Mapping[str, str]) -> Iterator[str]:
    """How far apart two trainings of one configuration ended, where both were run."""
    parts = []
    for key, title in results.benchmarks.items():
        own, other = (results.trainings.get((method, POOL, key)) for method in twins)
        if own and other:
            gain = compare(own, other).accuracy
            printed = [frame.loc[(method, POOL, key), "published"] for method in twins]
            told = "" if pd.isna(printed).any() else f"published {signed(printed[0] - printed[1])}, measured "
            low, high = signed(100 * gain.low), signed(100 * gain.high)
            parts.append(f"{title} {told}{signed(100 * gain.mean)} ({low} to {high})")
    if parts:
        names = " minus ".join(titles[method] for method in twins)
        yield f"{names}, points on the same questions with the same interval: {'; '.join(parts)}."
