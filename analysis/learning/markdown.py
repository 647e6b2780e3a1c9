"""The study of learning as Markdown: how to read it, answers first, then the measures of each benchmark."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from statistics import fmean, stdev

import pandas as pd

from analysis.frames import Results
from analysis.learning.measures import IN_PARTS, MEASURES, PARTS, SECTIONS, Measure, parts
from analysis.learning.results import Column, Difference, Learned, Report, Row, interval
from analysis.learning.study import BEST_SINGLE, RANDOM, Study
from analysis.notes import settings
from analysis.provenance import SIMULATED, provenance
from analysis.statistics import CONFIDENCE
from analysis.table import NOT_RUN
from analysis.table import md_escape as escape

_SINGLE = ("accuracy", "cost_total", "utility")
_OTHERS = {BEST_SINGLE: "the best single backbone", RANDOM: "random routers of the same depth"}
_DOMINATED = "▽"
_CURVES = (
    "Own utility on training questions, one panel a method and benchmark; a thin line is one seed, the thick one their "
    "mean. Each point is the mean over one epoch, which tries every training question, so that points differ by the "
    "policy and its draws alone. The tables named Curves below hold means over seeds, for each fifth of the updates; "
    "learning_curves.csv has every update as logged. The first update tries the untrained policy: a curve that stays "
    "where it starts shows no learning."
)


def render(report: Report) -> str:
    """The text of the file: warning, caption, how to read it, contrasts, one part a benchmark, provenance."""
    warning = [f"> **{escape(SIMULATED)}**", ""] if report.cells[0].run.simulated else []
    notes = [f"- {escape(note)}" for note in _reading(report)]
    opening = [*warning, "# What training did", "", escape(_caption(report)), "", *notes, ""]
    picture = ["## Training curves", "", "![Training curves](learning_curves.png)", "", escape(_CURVES), ""]
    body = [line for column in report.columns.values() for line in _column(report, column)]
    origin = "; ".join(f"{name}: {value}" for name, value in provenance(report.cells).items())
    return "\n".join([*opening, *_contrasts(report), *picture, *body, f"Provenance: {escape(origin)}", ""])


def _caption(report: Report) -> str:
    """What the report shows, of which run, with which settings, and how many of its cells are not there yet."""
    run, missing = report.cells[0].run, report.unfinished
    kind = " (SIMULATED backbones)" if run.simulated else ""
    partial = f" INCOMPLETE: {missing} cells of the preset are not finished." if missing else ""
    return (
        f"Preset {run.preset}{kind}: methods that learn, on test questions that no training saw, training seeds "
        f"{', '.join(map(str, report.seeds))}.{settings(Results(report.cells))}{partial}"
    )


def _reading(report: Report) -> Iterator[str]:
    """How to read what is in the tables; the last note names contrasts for which there are no cells."""
    study, columns = report.study, report.columns.values()
    measured = {
        key for column in columns for of in column.learned.values() for one in of.values() for key in one.values
    }
    yield (
        "A field holds mean ± sample standard deviation over seeds and, in brackets, the values of seeds "
        f"{', '.join(map(str, report.seeds))}. Trainings tend to end at one of few places; then no run is near the "
        "mean, and only the values tell."
    )
    yield (
        f"{NOT_RUN}: no such cell, or nothing to measure with this seed. Blank: nothing to measure with any seed, such "
        "as the write rate of a router without a write gate."
    )
    yield (
        f"Utility is R − {study.cost_weight:g} · cost of the steps, in points, with this weight in every row, whatever "
        "the row was trained with. Cost is that of all calls, the aggregation included, in the paper's unit."
    )
    if "own_utility" in measured:
        yield (
            "Own utility is what a method itself maximises, here on the test questions, in its own unit: compare it "
            f"with nothing but itself. {study.own_utility}"
        ).rstrip()
    if "retrieved" in measured:
        yield "Retrieved is Σ retrieved / Σ available over steps with stored records; steps are counted from 0."
    if "updates" in measured:
        yield "First updates: the first three. Last: the last quarter, over which entropies are averaged, too."
    if "collapse" in measured:
        yield f"The choice of a backbone counts as settled when its entropy is below {study.collapsed_entropy:g} nats."
    if any(column.singles for column in columns):
        yield (
            f"{_DOMINATED}: dominated, that is, another single backbone is at least as accurate on these test "
            "questions, and cheaper."
        )
    if report.unanswered:
        yield f"Not answered, for want of cells: {', '.join(report.unanswered)}."


def _intervals(study: Study) -> str:
    """How differences and their intervals are to be taken, for the sides that the study compares."""
    base = (
        "Differences are paired: both sides answered the same questions with the same seed. The "
        f"{100 * CONFIDENCE:g} % t intervals are over training seeds of one simulated world and one set of questions; "
        "they say nothing of other questions, other worlds or real models, and they are not corrected for the number "
        "of contrasts. An interval without width means that the seeds agree, not that the value is certain."
    )
    single = (
        " The best single backbone was chosen on the very test questions it is compared on, which favours it. A single "
        "backbone has no seed; its utility bears its only call, a router's does not bear the aggregation."
    )
    random = " Random routers are interpolated linearly at the mean test depth of each seed."
    return base + (single if study.single else "") + (random if study.random else "")


def _contrasts(report: Report) -> Iterator[str]:
    yield from ("## Contrasts", "", escape(_intervals(report.study)), "")
    for (contrast, row), answers in groupby(report.differences, key=lambda one: (one.contrast, one.row)):
        other = _OTHERS.get(contrast.b) or report.titles[Row(contrast.b, row.backbone)]
        sides = f"{report.titles[row]} minus {other}"
        yield from (f"**{escape(contrast.asks)}** {escape(sides)} ({escape(contrast.name)}).", "")
        rows = [_answer(report, one) for one in answers]
        yield from _table(["Benchmark", "Measure", "Difference and interval", "n", "By seed"], rows, left=2)


def _answer(report: Report, one: Difference) -> list[str]:
    measure = MEASURES[one.measure]
    by_seed = _listed([one.seeds.get(seed) for seed in report.seeds], measure, "+")
    title = report.columns[one.benchmark].title
    return [title, measure.title, _difference(one.mean, one.reach, measure), str(len(one.seeds)), by_seed]


def _column(report: Report, column: Column) -> Iterator[str]:
    yield from (f"## {escape(column.title)} (n = {column.n})", "")
    for title, measures in SECTIONS.items():
        yield from _section(report, column, title, measures)
    yield from _curves(report, column)
    yield from _ends(report, column)
    yield from _backbones(report, column)


def _section(report: Report, column: Column, title: str, measures: Mapping[str, Measure]) -> Iterator[str]:
    """Rows and measures without any value are left out."""
    present = {key for found in column.learned.values() for one in found.values() for key in one.values}
    shown = {key: one for key, one in measures.items() if key in present}
    rows = []
    for row, found in column.learned.items():
        fields = [_field(_by_seed(report, found, key), measure) for key, measure in shown.items()]
        if any(fields):
            rows.append([report.titles[row], *fields])
    if rows:
        heads = ["Method", *(measure.title for measure in shown.values())]
        yield from (f"### {title}", "", *_table(heads, rows))


def _curves(report: Report, column: Column) -> Iterator[str]:
    """Means over seeds of what training saw, in fifths, and whether its end differs from its beginning."""
    rows = []
    for row, logs in column.trained.items():
        for key, measure in IN_PARTS.items():
            found = pd.DataFrame([parts(log, key) for log in logs.values() if key in log], columns=range(PARTS))
            if len(found):
                means = [NOT_RUN if math.isnan(mean) else number(mean, measure) for mean in found.mean()]
                gain = (found[PARTS - 1] - found[0]).dropna().tolist()
                change = _difference(fmean(gain), interval(gain), measure) if gain else NOT_RUN
                rows.append([report.titles[row], measure.title, *means, change])
    if rows:
        heads = ["Method", "Measure", *(f"part {part} of {PARTS}" for part in range(1, PARTS + 1)), "last minus first"]
        yield from ("### Curves", "", *_table(heads, rows, left=2))


def _ends(report: Report, column: Column) -> Iterator[str]:
    """Where each policy is: the backbone that it uses most, by seed."""
    rows = []
    for row, found in column.learned.items():
        used = {seed: next(iter(one.backbones)) for seed, one in found.items() if one.backbones}
        if used:
            dominated = sum(column.dominator(backbone) is not None for backbone in used.values())
            share = f"{dominated} of {len(used)}" if column.singles else NOT_RUN
            marked = [escape(_marked(used[seed], column)) if seed in used else NOT_RUN for seed in report.seeds]
            rows.append([report.titles[row], *marked, share])
    if rows:
        heads = ["Method", *(f"seed {seed}" for seed in report.seeds), f"seeds on a dominated one ({_DOMINATED})"]
        yield from ("### Most used backbone", "", *_table(heads, rows))


def _backbones(report: Report, column: Column) -> Iterator[str]:
    """Single backbones as references, and how often the router took each before and after its training."""
    wanted, singles = (report.study.untrained, report.study.trained), column.singles
    routers = [row for method in wanted for row in column.learned if row.method == method]
    used = {key for row in routers for one in column.learned[row].values() for key in one.backbones}
    rows = [
        [
            _marked(key, column),
            *(number(singles[key][one], MEASURES[one]) if key in singles else NOT_RUN for one in _SINGLE),
            escape(column.dominator(key) or ""),
            *(_shares(report, column.learned[row], key) for row in routers),
        ]
        for key in sorted(
            {*singles, *used}, key=lambda key: (singles.get(key, {"cost_total": math.inf})["cost_total"], key)
        )
    ]
    heads = ["Backbone", *(MEASURES[key].title for key in _SINGLE), "dominated by"]
    heads += [f"share in {report.titles[row]} (%)" for row in routers]
    if rows:
        yield from (f"### Single backbones{', and their shares in the router' if routers else ''}", "")
        yield from _table(heads, rows)


def _shares(report: Report, found: Mapping[int, Learned], backbone: str) -> str:
    """A backbone that a policy never took has a share of zero."""
    learned = {seed: one.backbones for seed, one in found.items() if one.backbones}
    shares = [learned[seed].get(backbone, 0.0) if seed in learned else None for seed in report.seeds]
    return _field(shares, MEASURES["top_backbone"])


def _marked(backbone: str, column: Column) -> str:
    return f"{backbone} {_DOMINATED}" if column.dominator(backbone) else backbone


def _by_seed(report: Report, found: Mapping[int, Learned], key: str) -> list[float | None]:
    return [found[seed].values.get(key) if seed in found else None for seed in report.seeds]


def number(value: float, measure: Measure, sign: str = "") -> str:
    """A value in the unit and with the digits of its measure; what never came says so; ``"+"`` shows every sign."""
    if math.isinf(value):
        return "never"
    text = f"{value * measure.factor:{sign}.{measure.digits}f}"
    # What prints as zero has no sign.
    return (text if float(text) else text.lstrip("+-")).replace("-", "−")


def _listed(values: Iterable[float | None], measure: Measure, sign: str = "") -> str:
    """The value of each seed, in brackets."""
    return f"({' '.join(NOT_RUN if value is None else number(value, measure, sign) for value in values)})"


def _field(values: Sequence[float | None], measure: Measure) -> str:
    """Mean ± sd and the value of each seed; nothing where no seed has one."""
    present = [value for value in values if value is not None]
    if not present:
        return ""
    if not all(map(math.isfinite, present)):
        return _listed(values, measure)
    spread = f" ± {number(stdev(present), measure)}" if len(present) > 1 else ""
    return f"{number(fmean(present), measure)}{spread} {_listed(values, measure)}"


def _difference(mean: float, reach: float | None, measure: Measure) -> str:
    """A mean difference and its interval, which one seed alone does not have."""
    text = number(mean, measure, "+")
    if reach is None:
        return f"{text} (one seed, no interval)"
    return f"{text} [{number(mean - reach, measure, '+')}, {number(mean + reach, measure, '+')}]"


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]], left: int = 1) -> Iterator[str]:
    """The lines of a pipe table and an empty one; the first columns are set flush left."""
    yield f"| {' | '.join(map(escape, heads))} |"
    yield f"| {' | '.join(['---'] * left + ['--:'] * (len(heads) - left))} |"
    yield from (f"| {' | '.join([*map(escape, row[:left]), *row[left:]])} |" for row in rows)
    yield ""
