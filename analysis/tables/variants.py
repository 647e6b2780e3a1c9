"""GMR and its variants (paper, Ablation Study, Routing-Paradigm Comparison, Role Pool)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

import pandas as pd

from analysis import columns, notes
from analysis.columns import by_benchmark, ends, entries, format_series, stack_benchmarks
from analysis.frames import COST, IDENTITY, KEY, MEASURED, QUESTIONS, Results, with_costs
from analysis.paired_tests import ENDS, comparisons
from analysis.source import Source
from analysis.table import NOT_RUN, Entry, Table, signed
from harness.runner.config import POOL

REFERENCE = "gmr"
_SMALL_P = 0.001
_NAMES = {
    "first_alone": "only_this",
    "second_alone": "only_reference",
    **{f"difference{end}": f"gain{end}" for end in ENDS},
    **{name: name for name in ("p", "odds_ratio", "cohens_g", "detectable")},
    **{f"cost_ratio{end}": f"cost_factor{end}" for end in ENDS},
}
_COLUMNS = [
    *(*KEY, "benchmark_title", "reference", "published_gain", "published_cost_factor", "published", *COST, *MEASURED),
    *("difference", *IDENTITY, *_NAMES.values()),
]


class Design(NamedTuple):
    """What a table of variants shows."""

    caption: str
    printed: tuple[str, ...]  # names of the paper's further tables, of which the first that has a number counts
    note: str
    base: str = "the full system's"  # what costs are multiples of
    saving: bool = False  # costs are shown as what the reference saves
    twins: tuple[str, str] | None = None  # one configuration trained twice


DESIGNS: Mapping[str, Design] = {
    "ablation": Design(
        caption="GMR with one of its modules switched off: accuracy and cost, published and measured.",
        printed=("ablation",),
        note=(
            "Each row is trained again, with the data and seeds of the full system. A random choice takes the place of "
            "the role allocator or the LLM router; without a gate everything is stored or shown; without halting every "
            "trajectory has all steps."
        ),
    ),
    "paradigm": Design(
        caption="Routing by the question alone (MASRouter), by the full history, and by a gated memory (GMR).",
        printed=("paradigm", "ablation"),
        note=(
            "Full-History and GMR without both memory gates are one configuration here, although the paper prints "
            "different numbers for them. They differ in the seeds of training alone, so that the pair tells how far "
            "apart two trainings of one method end. The paper's description of Full-History has no halting either; "
            "the row without it is that reading, to be held against the same published values (D-GMR-8)."
        ),
        saving=True,
        twins=("full_history", "gmr_no_memory_gates"),
    ),
    "roles": Design(
        caption="GMR with all 26 roles and with fewer of them: accuracy and cost, published and measured.",
        printed=("roles13", "ablation"),
        note=(
            "13 of 26 roles: drawn once, 6 of mathematics, 4 of code, 3 of knowledge; the paper prints its accuracy "
            "and no cost. Roles of the domain: 12 for GSM-Hard, 7 for HumanEval; the paper has no such run (D-GMR-6)."
        ),
        base="the cost with all roles",
    ),
    "readings": Design(
        caption="GMR in other readings of the paper: accuracy and cost beside the reading taken.",
        printed=("ablation",),
        note=(
            "Dot-product scores are those that the main text prints (D-GMR-1). Sampled replies are what MASRouter has "
            "(D-GEN-2). The standard deviation of a group is what the paper leaves out of its advantages. It prints no "
            "number for any of these rows."
        ),
        base="the cost of the reading taken",
    ),
}


def build(source: Source) -> Table:
    """Return the table of the design that ``options`` name, a row a method among the cells and benchmark."""
    name = str(source.options["design"])
    design, results = DESIGNS[name], source.results()
    titles = {REFERENCE: REFERENCE} | {cell.run.method: cell.run.method_title for cell in results.cells}
    frame = _frame(design, results)
    scaled = columns.scaled_to(frame)
    variants = sorted({cell.run.method for cell in results.cells} - {REFERENCE})
    return columns.table(
        results,
        # A table of a single variant may stand in one document with the table of all of them.
        label="-".join([name, *variants]).replace("_", "-") if len(variants) == 1 else name,
        caption=design.caption,
        rows=[
            (key, f"{results.benchmarks[key]}, {results.questions(key)}", titles[method], seeds.replace(" ", ", "))
            for (method, _, key), seeds in frame["seeds"].fillna("").items()
        ],
        heads=("Benchmark", "Configuration", "Seeds"),
        groups=stack_benchmarks(
            [_groups(design, rows, titles[REFERENCE], scaled) for *_, rows in by_benchmark(results, frame)]
        ),
        legend=_legend(design, results, frame, titles),
        frame=frame.reset_index()[_COLUMNS],
    )


def _frame(design: Design, results: Results) -> pd.DataFrame:
    printed = pd.concat([results.printed(name) for name in design.printed]).groupby(level=KEY, sort=False).first()
    run = {method for method, *_ in results.cells_by_row}
    methods = dict.fromkeys([*(one for one in printed.index.unique("method") if one in run), *sorted(run)])
    index = pd.MultiIndex.from_tuples([(one, POOL, key) for key in results.benchmarks for one in methods], names=KEY)
    frame = printed.reindex(index).rename(columns={"accuracy": "published", "cost": "published_total"})
    is_reference = index.get_level_values("method") == REFERENCE
    base = printed.xs((REFERENCE, POOL)).reindex(index.get_level_values("benchmark")).set_axis(index)
    base[is_reference] = float("nan")
    frame = frame.assign(
        reference=REFERENCE,
        published_questions=[QUESTIONS.get(key) for *_, key in index],
        published_gain=(frame["published"] - base["accuracy"]).round(2),
        published_cost_factor=frame["published_total"] / base["cost"],
    )
    pairs = {key: (key, (REFERENCE, POOL, key[2])) for key in index[~is_reference]}
    compared = comparisons(results, pairs)[list(_NAMES)].rename(columns=_NAMES)
    return with_costs(results.with_measured(frame), results).join(compared)


def _groups(
    design: Design, rows: pd.DataFrame, reference: str, scaled: str
) -> dict[tuple[str, str], dict[str, list[Entry]]]:
    change: str | Callable[[float], str] = _saving if design.saving else "×{:.2f}"
    # Blank where one of both cost nothing; without an interval where the questions leave it open.
    factors = rows[[f"cost_factor{end}" for end in ENDS]].astype(float)
    factors = factors.where((factors > 0) & (factors < math.inf))
    # The reference is compared with nothing, which is not the same as not run.
    absent = rows["gain"].isna() & (rows.index.get_level_values("method") != REFERENCE)
    gains, ratios = format_series(rows["gain"], signed), format_series(factors["cost_factor"], change)
    return {
        ("Accuracy (%)", ""): columns.accuracies(rows),
        ("Cost of a question (1e-4)", ""): {**columns.costs(rows), **columns.all_calls(rows)},
        ("Total cost", scaled): columns.totals(rows),
        (f"Accuracy against {reference}", "points, paired"): {
            "Publ.": entries(rows["published_gain"], signed),
            "Meas.": entries(gains.mask(absent, NOT_RUN), below=ends(rows, "gain", signed, " to ")),
            "p": entries(rows["p"], lambda p: f"{p:.3f}" if p >= _SMALL_P else f"< {_SMALL_P}"),
        },
        (f"{'Saved (%) by' if design.saving else 'Cost against'} {reference}", "paired"): {
            "Publ.": entries(rows["published_cost_factor"], change),
            "Meas.": entries(ratios.mask(absent, NOT_RUN), below=ends(factors, "cost_factor", change, " to ")),
        },
    }


def _saving(ratio: float) -> str:
    return signed(100 * (1 - 1 / ratio)).removeprefix("+")


def _legend(design: Design, results: Results, frame: pd.DataFrame, titles: Mapping[str, str]) -> Iterator[str]:
    yield from notes.legend(results, frame)
    saved = "Saved: how much less GMR spends on a question than the row, in percent; below zero it spends more."
    yield (
        f"Against {titles[REFERENCE]}: the row minus it on the same questions, with the "
        f"95 % interval and its p ({notes.paired_test(frame)}), not adjusted for the number of rows. "
        f"{saved if design.saving else f'Cost: that of a question as a multiple of {design.base}.'}"
    )
    yield from _power(frame["detectable"].dropna())
    seeds = frame["seeds"]
    other = [
        f"{titles[method]} on {results.benchmarks[key]}"
        for method, _, key in sorted(frame.index[frame["gain"].notna()])
        if seeds[method, POOL, key] != seeds[REFERENCE, POOL, key]
    ]
    if other:
        yield f"Run with other seeds than the row they are compared with: {', '.join(other)}."
    yield design.note
    if design.twins:
        yield from _twins(design.twins, results, frame, titles)


def _power(detectable: pd.Series) -> Iterator[str]:
    finite = detectable[detectable < 100]
    if len(finite):
        limits = dict.fromkeys(f"{end:.1f}" for end in (finite.min(), finite.max()))
        yield (
            f"The smallest difference that so many questions show with 80 % power: {' to '.join(limits)} points, by "
            "row and benchmark (the CSV has each)."
        )
    if len(finite) < len(detectable):
        yield (
            f"In {len(detectable) - len(finite)} of {len(detectable)} comparisons too few questions had different "
            "verdicts to show any difference."
        )


def _twins(twins: tuple[str, str], results: Results, frame: pd.DataFrame, titles: Mapping[str, str]) -> Iterator[str]:
    first, second = ([(one, POOL, key) for key in results.benchmarks] for one in twins)
    compared = comparisons(results, {key: (key, other) for key, other in zip(first, second, strict=True)})
    printed = frame["published"].reindex(first) - frame["published"].reindex(second).to_numpy()
    parts = []
    for (*_, key), gain in compared.assign(printed=printed).dropna(subset="n").iterrows():
        text = "" if pd.isna(gain["printed"]) else f"published {signed(gain['printed'])}, measured "
        mean, low, high = (signed(gain[f"difference{end}"]) for end in ENDS)
        parts.append(f"{results.benchmarks[key]} {text}{mean} ({low} to {high})")
    if parts:
        names = " minus ".join(titles[method] for method in twins)
        yield f"{names}, points on the same questions with the same interval: {'; '.join(parts)}."
