"""The study of learning as Markdown: answers first, then the measures of each benchmark."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from itertools import groupby
from statistics import fmean

from analysis.learning.contrasts import Difference, interval
from analysis.learning.curves import IN_PARTS, PARTS, gains, parts, trained
from analysis.learning.fields import difference, field, listed, number, table
from analysis.learning.measures import MEASURES, SECTIONS, Measure
from analysis.learning.notes import CURVES, DOMINATED, caption, intervals, reading
from analysis.learning.report import Report
from analysis.learning.results import Column, Learned, Row, Values
from analysis.learning.study import BEST_SINGLE, RANDOM
from analysis.provenance import SIMULATED, provenance
from analysis.table import NOT_RUN
from analysis.table import md_escape as escape

_SINGLE = ("accuracy", "cost_total", "utility")
_OTHERS = {BEST_SINGLE: "the best single backbone", RANDOM: "random routers of the same depth"}


def render(report: Report) -> str:
    """The text of the file: warning, caption, how to read it, contrasts, one part a benchmark, provenance."""
    warning = [f"> **{escape(SIMULATED)}**", ""] if report.cells[0].run.simulated else []
    notes = [f"- {escape(note)}" for note in reading(report)]
    opening = [*warning, "# What training did", "", escape(caption(report)), "", *notes, ""]
    picture = ["## Training curves", "", "![Training curves](learning_curves.png)", "", escape(CURVES), ""]
    body = [line for column in report.columns.values() for line in _column(report, column)]
    origin = "; ".join(f"{name}: {value}" for name, value in provenance(report.cells).items())
    return "\n".join([*opening, *_contrasts(report), *picture, *body, f"Provenance: {escape(origin)}", ""])


def _contrasts(report: Report) -> Iterator[str]:
    yield from ("## Contrasts", "", escape(intervals(report.study)), "")
    for (contrast, row), answers in groupby(report.differences, key=lambda one: (one.contrast, one.row)):
        other = _OTHERS.get(contrast.b) or report.titles[Row(contrast.b, row.backbone)]
        sides = f"{report.titles[row]} minus {other}"
        yield from (f"**{escape(contrast.asks)}** {escape(sides)} ({escape(contrast.name)}).", "")
        rows = [_answer(report, one) for one in answers]
        yield from table(["Benchmark", "Measure", "Difference and interval", "n", "By seed"], rows, left=2)


def _answer(report: Report, one: Difference) -> list[str]:
    measure = MEASURES[one.measure]
    by_seed = listed([one.seeds.get(seed) for seed in report.seeds], measure, "+")
    title = report.columns[one.benchmark].title
    found = difference(one.mean, one.reach, measure)
    return [escape(title), escape(measure.title), found, str(len(one.seeds)), by_seed]


def _column(report: Report, column: Column) -> Iterator[str]:
    yield from (f"## {escape(column.title)} (n = {column.n})", "")
    for title, measures in SECTIONS.items():
        yield from _section(report, column, title, measures)
    yield from _curves(report, column)
    yield from _ends(report, column)
    yield from _backbones(report, column)


def _section(report: Report, column: Column, title: str, measures: Mapping[str, Measure]) -> Iterator[str]:
    """Rows and measures without any value are left out."""
    shown = {key: one for key, one in measures.items() if any(_has(found, key) for found in column.learned.values())}
    rows = []
    for row, found in column.learned.items():
        fields = [field(_by_seed(report, found, key), measure) for key, measure in shown.items()]
        if any(fields):
            rows.append([escape(report.titles[row]), *fields])
    if rows:
        heads = ["Method", *(escape(measure.title) for measure in shown.values())]
        yield from (f"### {title}", "", *table(heads, rows))


def _curves(report: Report, column: Column) -> Iterator[str]:
    """Means over seeds of what training saw, in fifths, and whether its end differs from its beginning."""
    rows = []
    for row, by_seed in trained(column).items():
        for key, measure in IN_PARTS.items():
            logs = {seed: log for seed, log in by_seed.items() if key in log}
            if logs:
                found = [parts(log, key) for log in logs.values()]
                values = [[one[part] for one in found if part in one] for part in range(PARTS)]
                means = [number(fmean(of), measure) if of else NOT_RUN for of in values]
                gain = list(gains(logs, key).values())
                change = difference(fmean(gain), interval(gain), measure) if gain else NOT_RUN
                rows.append([escape(report.titles[row]), escape(measure.title), *means, change])
    if rows:
        heads = ["Method", "Measure", *(f"part {part} of {PARTS}" for part in range(1, PARTS + 1)), "last minus first"]
        yield from ("### Curves", "", *table(heads, rows, left=2))


def _ends(report: Report, column: Column) -> Iterator[str]:
    """Where each policy is: the backbone that it uses most, by seed."""
    rows = []
    for row, found in column.learned.items():
        used = {seed: next(iter(one.backbones)) for seed, one in found.items() if one.backbones}
        if used:
            dominated = sum(column.dominator(backbone) is not None for backbone in used.values())
            share = f"{dominated} of {len(used)}" if column.singles else NOT_RUN
            marked = [_marked(used.get(seed), column) for seed in report.seeds]
            rows.append([escape(report.titles[row]), *marked, share])
    if rows:
        heads = ["Method", *(f"seed {seed}" for seed in report.seeds), f"seeds on a dominated one ({DOMINATED})"]
        yield from ("### Most used backbone", "", *table(heads, rows))


def _backbones(report: Report, column: Column) -> Iterator[str]:
    """Single backbones as references, and how often the router took each before and after its training."""
    wanted = (report.study.untrained, report.study.trained)
    routers = [row for method in wanted for row in column.learned if row.method == method]
    used = {key for row in routers for one in column.learned[row].values() for key in one.backbones}
    rows = [
        [
            _marked(key, column),
            *_single(column.singles.get(key)),
            escape(column.dominator(key) or ""),
            *(_shares(report, column.learned[row], key) for row in routers),
        ]
        for key in sorted({*column.singles, *used}, key=lambda key: (_cost(key, column), key))
    ]
    heads = [MEASURES[key].title for key in _SINGLE]
    heads += ["dominated by", *(f"share in {report.titles[row]} (%)" for row in routers)]
    if rows:
        yield from (f"### Single backbones{', and their shares in the router' if routers else ''}", "")
        yield from table(["Backbone", *map(escape, heads)], rows)


def _cost(backbone: str, column: Column) -> float:
    return column.singles[backbone]["cost_total"] if backbone in column.singles else math.inf


def _single(values: Values | None) -> list[str]:
    return [NOT_RUN if values is None else number(values[key], MEASURES[key]) for key in _SINGLE]


def _shares(report: Report, found: Mapping[int, Learned], backbone: str) -> str:
    """A backbone that a policy never took has a share of zero."""
    learned = {seed: one.backbones for seed, one in found.items() if one.backbones}
    shares = [learned[seed].get(backbone, 0.0) if seed in learned else None for seed in report.seeds]
    return field(shares, MEASURES["top_backbone"])


def _marked(backbone: str | None, column: Column) -> str:
    if backbone is None:
        return NOT_RUN
    return escape(backbone) + (f" {DOMINATED}" if column.dominator(backbone) else "")


def _has(found: Mapping[int, Learned], key: str) -> bool:
    return any(key in one.values for one in found.values())


def _by_seed(report: Report, found: Mapping[int, Learned], key: str) -> list[float | None]:
    return [found[seed].values.get(key) if seed in found else None for seed in report.seeds]
