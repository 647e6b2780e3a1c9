"""GMR and its variants: what each scored and spent, also against one of them, published and measured.

Paper, Ablation Study (a module switched off at a time and trained again), Routing-Paradigm Comparison, Role Pool.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import pandas as pd

from analysis import columns, notes
from analysis.columns import below_one_another, by_benchmark, entries, say
from analysis.frames import COST, IDENTITY, KEY, MEASURED, QUESTIONS, Key, Results, with_costs
from analysis.paired import ENDS, comparisons
from analysis.source import Source
from analysis.table import NOT_RUN, Entry, Table, signed
from harness.runner.config import POOL

_SMALL_P = 0.001
_NAMES = {
    "first_alone": "only_this",
    "second_alone": "only_reference",
    **{f"difference{end}": f"gain{end}" for end in ENDS},
    "p_exact": "p",
    "odds_ratio": "odds_ratio",
    "cohens_g": "cohens_g",
    "detectable": "detectable",
    **{f"cost_ratio{end}": f"cost_factor{end}" for end in ENDS},
}
_COLUMNS = [
    *(*KEY, "benchmark_title", "reference", "published_gain", "published_cost_factor", "published", *COST, *MEASURED),
    *("difference", *IDENTITY, *_NAMES.values()),
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
        caption="GMR with all 26 roles and with fewer of them: accuracy and cost, published and measured.",
        printed=("roles13", "ablation"),
        change_note="Cost: that of a question as a multiple of the cost with all roles.",
        note=(
            "13 of 26 roles: drawn once, 6 of mathematics, 4 of code, 3 of knowledge; the paper prints its accuracy "
            "and no cost. Roles of the domain: 12 for GSM-Hard, 7 for HumanEval; the paper has no such run (D-GMR-6)."
        ),
    ),
}


def build(source: Source) -> Table:
    """The design that ``options`` name; the rows are the methods among the cells by benchmark."""
    name = str(source.options["design"])
    design, results = DESIGNS[name], source.results()
    titles = {REFERENCE: REFERENCE} | {cell.run.method: cell.run.method_title for cell in results.cells}
    frame = _frame(design, results)
    parts = [_groups(design, own, titles[REFERENCE]) for *_, own in by_benchmark(results, frame)]
    sizes = " or ".join(f"{QUESTIONS[key]:.0f}" for key in results.benchmarks if key in QUESTIONS)
    details = {"Total cost": f"scaled to n = {sizes}" if sizes else "", **_details(design, titles[REFERENCE])}
    variants = sorted({cell.run.method for cell in results.cells} - {REFERENCE})
    rows = [
        (key, f"{results.benchmarks[key]}, {results.questions(key)}", titles[method], seeds.replace(" ", ", "))
        for (method, _, key), seeds in frame["seeds"].fillna("").items()
    ]
    return columns.table(
        results,
        # A table of a single variant may stand in one document with the table of all of them.
        label="-".join([name, *variants]).replace("_", "-") if len(variants) == 1 else name,
        caption=design.caption,
        rows=rows,
        heads=("Benchmark", "Configuration", "Seeds"),
        groups={
            (group, details.get(group, "")): below_one_another([part[group] for part in parts]) for group in parts[0]
        },
        legend=_legend(design, results, frame, titles),
        frame=frame.reset_index()[_COLUMNS],
    )


def _frame(design: Design, results: Results) -> pd.DataFrame:
    """Every place of the table: the methods among the cells, in the order of the paper, others by name."""
    run = {method for method, *_ in results.trainings}
    known = [method for name in design.printed for method in results.published.further[name] if method in run]
    methods = dict.fromkeys([*known, *sorted(run)])
    index = pd.MultiIndex.from_tuples([(one, POOL, key) for key in results.benchmarks for one in methods], names=KEY)
    frame = pd.DataFrame([_printed(design, results, *key) for key in index], index=index)
    frame = with_costs(results.with_measured(frame), results)
    pairs = {key: (key, (REFERENCE, POOL, key[2]) if key[0] != REFERENCE else ("", "", "")) for key in index}
    compared = comparisons(results, pairs)[list(_NAMES)].rename(columns=_NAMES)
    return frame.join(compared).assign(reference=REFERENCE)


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


def _groups(design: Design, own: pd.DataFrame, reference: str) -> dict[str, dict[str, list[Entry]]]:
    """The columns of one benchmark, whose best values are marked among themselves."""
    against, change = _details(design, reference)
    # Blank where one of both cost nothing; without an interval where the questions leave it open.
    factors = own[[f"cost_factor{end}" for end in ENDS]].astype(float)
    factors = factors.where((factors > 0) & (factors < math.inf))
    ratios = say(factors["cost_factor"], design.change)
    low, high = (say(factors.dropna()[f"cost_factor{end}"].reindex(own.index), design.change) for end in ENDS[1:])
    # The reference is compared with nothing, which is not the same as not run.
    absent = pd.Series("", own.index, dtype=object).where(own.index.get_level_values("method") == REFERENCE, NOT_RUN)
    missing = absent.where(own["gain"].isna(), "")
    gains = say(own["gain"], signed)
    return {
        "Accuracy (%)": columns.accuracies(own),
        "Cost of a question (1e-4)": {**columns.costs(own), **columns.all_calls(own)},
        "Total cost": columns.totals(own),
        against: {
            "Publ.": entries(say(own["published_gain"], signed)),
            "Meas.": entries(gains + missing, below=_ends(say(own["gain_low"], signed), say(own["gain_high"], signed))),
            "p": entries(say(own["p"], _p)),
        },
        change: {
            "Publ.": entries(say(own["published_cost_factor"], design.change)),
            "Meas.": entries(ratios + missing, below=_ends(low, high)),
        },
    }


def _details(design: Design, reference: str) -> dict[str, str]:
    """The headings of the comparison, and the smaller lines below them."""
    return {f"Accuracy against {reference}": "points, paired", f"{design.change_title} {reference}": "paired"}


def _ends(low: pd.Series, high: pd.Series) -> pd.Series:
    return low.where(low == "", low + " to " + high)


def _p(value: float) -> str:
    return f"{value:.3f}" if value >= _SMALL_P else f"< {_SMALL_P}"


def _legend(design: Design, results: Results, frame: pd.DataFrame, titles: Mapping[str, str]) -> Iterator[str]:
    yield from notes.legend(results, frame)
    yield (
        f"Against {titles[REFERENCE]}: the row minus it on the same questions, with the "
        f"95 % bootstrap interval over questions{' and seeds' if frame['several'].eq(True).any() else ''}; p of the "
        f"exact McNemar test on {notes.first_seeds(results)}, not adjusted for the number of rows. {design.change_note}"
    )
    yield from _power(frame["detectable"].dropna())
    other = [
        f"{titles[method]} on {results.benchmarks[key]}"
        for method, _, key in sorted(frame.index[frame["gain"].notna()])
        if frame.loc[(method, POOL, key), "seeds"] != frame.loc[(REFERENCE, POOL, key), "seeds"]
    ]
    if other:
        yield f"Run with other seeds than the row they are compared with: {', '.join(other)}."
    yield design.note
    if design.twins:
        yield from _twins(design.twins, results, frame, titles)


def _power(detectable: pd.Series) -> Iterator[str]:
    """What the comparisons could have shown: without it, a large p would read as no difference."""
    finite = detectable[detectable < 100]
    if len(finite):
        ends = dict.fromkeys(f"{end:.1f}" for end in (finite.min(), finite.max()))
        yield (
            f"The smallest difference that so many questions show with 80 % power: {' to '.join(ends)} points, by row "
            "and benchmark (the CSV has each)."
        )
    if len(finite) < len(detectable):
        yield (
            f"In {len(detectable) - len(finite)} of {len(detectable)} comparisons too few questions had different "
            "verdicts to show any difference."
        )


def _twins(twins: tuple[str, str], results: Results, frame: pd.DataFrame, titles: Mapping[str, str]) -> Iterator[str]:
    """How far apart two trainings of one configuration ended, where both were run."""
    pairs: dict[Key, tuple[Key, Key]] = {
        ("", "", key): ((twins[0], POOL, key), (twins[1], POOL, key)) for key in results.benchmarks
    }
    parts = []
    for (*_, key), gain in comparisons(results, pairs).dropna(subset="n").iterrows():
        printed = [frame.loc[(method, POOL, key), "published"] for method in twins]
        told = "" if pd.isna(printed).any() else f"published {signed(printed[0] - printed[1])}, measured "
        mean, low, high = (signed(gain[f"difference{end}"]) for end in ("", "_low", "_high"))
        parts.append(f"{results.benchmarks[key]} {told}{mean} ({low} to {high})")
    if parts:
        names = " minus ".join(titles[method] for method in twins)
        yield f"{names}, points on the same questions with the same interval: {'; '.join(parts)}."
