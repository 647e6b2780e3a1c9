"""The study of learning as Markdown: answers first, then the measures of each benchmark."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from statistics import fmean, stdev

from paper.learning.contrasts import Difference
from paper.learning.measures import MEASURES, SECTIONS, Measure
from paper.learning.notes import DOMINATED, INTERVALS, caption, reading
from paper.learning.report import Report
from paper.learning.results import Column, Learned, Values
from paper.learning.study import BEST_SINGLE, RANDOM
from paper.provenance import provenance
from paper.render.markdown import escape
from paper.tables import NOT_RUN, SIMULATED

_NEVER = "never"
_SINGLE = ("accuracy", "cost_total", "utility")


def render(report: Report) -> str:
    """The text of the file: warning, caption, how to read it, contrasts, one part a benchmark, provenance."""
    warning = [f"> **{escape(SIMULATED)}**", ""] if report.cells[0].run.simulated else []
    notes = [f"- {escape(note)}" for note in reading(report)]
    opening = [*warning, "# What training did to the router", "", escape(caption(report)), "", *notes, ""]
    parts = [line for column in report.columns.values() for line in _column(report, column)]
    origin = "; ".join(f"{name}: {value}" for name, value in provenance(report.cells))
    return "\n".join([*opening, *_contrasts(report), *parts, f"Provenance: {escape(origin)}", ""])


def _contrasts(report: Report) -> Iterator[str]:
    yield from ("## Contrasts", "", escape(INTERVALS), "")
    others = {BEST_SINGLE: "the best single backbone", RANDOM: "random routers of the same depth", **report.titles}
    for contrast, answers in groupby(report.differences, key=lambda one: one.contrast):
        sides = f"{others[contrast.a]} minus {others[contrast.b]}"
        yield from (f"**{escape(contrast.asks)}** {escape(sides)} ({escape(contrast.name)}).", "")
        rows = [_answer(report, one) for one in answers]
        yield from _table(["Benchmark", "Measure", "Difference and interval", "n", "By seed"], rows, left=2)


def _answer(report: Report, one: Difference) -> list[str]:
    measure = MEASURES[one.measure]
    by_seed = _listed([one.seeds.get(seed) for seed in report.seeds], measure, "+")
    title = report.columns[one.benchmark].title
    return [escape(title), escape(measure.title), _difference(one, measure), str(len(one.seeds)), by_seed]


def _difference(one: Difference, measure: Measure) -> str:
    mean = _number(one.mean, measure, "+")
    if one.reach is None:
        return f"{mean} (one seed, no interval)"
    return f"{mean} [{_number(one.mean - one.reach, measure, '+')}, {_number(one.mean + one.reach, measure, '+')}]"


def _column(report: Report, column: Column) -> Iterator[str]:
    yield from (f"## {escape(column.title)} (n = {column.n})", "")
    for title, measures in SECTIONS.items():
        yield from _section(report, column, title, measures)
    yield from _ends(report, column)
    yield from _backbones(report, column)


def _section(report: Report, column: Column, title: str, measures: Mapping[str, Measure]) -> Iterator[str]:
    rows = []
    for method, found in column.learned.items():
        fields = [_field(_by_seed(report, found, key), measure) for key, measure in measures.items()]
        if any(fields):
            rows.append([escape(report.titles[method]), *fields])
    if rows:
        heads = ["Method", *(escape(measure.title) for measure in measures.values())]
        yield from (f"### {title}", "", *_table(heads, rows))


def _ends(report: Report, column: Column) -> Iterator[str]:
    """Where each policy is: the backbone that it uses most, by seed."""
    rows = []
    for method, found in column.learned.items():
        used = {seed: next(iter(one.backbones)) for seed, one in found.items() if one.backbones}
        if used:
            dominated = sum(column.dominator(backbone) is not None for backbone in used.values())
            share = f"{dominated} of {len(used)}" if column.singles else NOT_RUN
            marked = [_marked(used.get(seed), column) for seed in report.seeds]
            rows.append([escape(report.titles[method]), *marked, share])
    if rows:
        heads = ["Method", *(f"seed {seed}" for seed in report.seeds), f"seeds on a dominated one ({DOMINATED})"]
        yield from ("### Most used backbone", "", *_table(heads, rows))


def _backbones(report: Report, column: Column) -> Iterator[str]:
    """Single backbones as references, and how often the router took each before and after its training."""
    routers = [method for method in (report.study.untrained, report.study.trained) if method in column.learned]
    used = {key for method in routers for one in column.learned[method].values() for key in one.backbones}
    rows = [
        [
            _marked(key, column),
            *_single(column.singles.get(key)),
            escape(column.dominator(key) or ""),
            *(_shares(report, column.learned[method], key) for method in routers),
        ]
        for key in sorted({*column.singles, *used}, key=lambda key: (_cost(key, column), key))
    ]
    heads = [MEASURES[key].title for key in _SINGLE]
    heads += ["dominated by", *(f"share in {report.titles[method]} (%)" for method in routers)]
    if rows:
        yield from ("### Single backbones, and their shares in the router", "")
        yield from _table(["Backbone", *map(escape, heads)], rows)


def _cost(backbone: str, column: Column) -> float:
    return column.singles[backbone]["cost_total"] if backbone in column.singles else math.inf


def _single(values: Values | None) -> list[str]:
    return [NOT_RUN if values is None else _number(values[key], MEASURES[key]) for key in _SINGLE]


def _shares(report: Report, found: Mapping[int, Learned], backbone: str) -> str:
    """A backbone that a policy never took has a share of zero."""
    learned = {seed: one.backbones for seed, one in found.items() if one.backbones}
    shares = [learned[seed].get(backbone, 0.0) if seed in learned else None for seed in report.seeds]
    return _field(shares, MEASURES["top_backbone"])


def _marked(backbone: str | None, column: Column) -> str:
    if backbone is None:
        return NOT_RUN
    return escape(backbone) + (f" {DOMINATED}" if column.dominator(backbone) else "")


def _by_seed(report: Report, found: Mapping[int, Learned], key: str) -> list[float | None]:
    return [found[seed].values.get(key) if seed in found else None for seed in report.seeds]


def _field(values: Sequence[float | None], measure: Measure) -> str:
    """Mean ± sd and the value of each seed; nothing where no seed has one."""
    present = [value for value in values if value is not None]
    if not present:
        return ""
    if not all(map(math.isfinite, present)):
        return _listed(values, measure)
    spread = f" ± {_number(stdev(present), measure)}" if len(present) > 1 else ""
    return f"{_number(fmean(present), measure)}{spread} {_listed(values, measure)}"


def _listed(values: Iterable[float | None], measure: Measure, sign: str = "") -> str:
    return f"({' '.join(NOT_RUN if value is None else _number(value, measure, sign) for value in values)})"


def _number(value: float, measure: Measure, sign: str = "") -> str:
    if math.isinf(value):
        return _NEVER
    text = f"{value * measure.factor:{sign}.{measure.digits}f}"
    # What prints as zero has no sign.
    return (text if float(text) else text.lstrip("+-")).replace("-", "−")


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]], left: int = 1) -> Iterator[str]:
    rule = ["---"] * left + ["--:"] * (len(heads) - left)
    yield from (f"| {' | '.join(line)} |" for line in (heads, rule, *rows))
    yield ""
