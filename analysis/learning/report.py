"""The study of learning as files: Markdown, answers first, then each benchmark; a picture; tables to compute with."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from pathlib import Path
from statistics import fmean, stdev

import pandas as pd

from analysis import figure
from analysis.figure import Figure
from analysis.figures import training_curves
from analysis.frames import Results
from analysis.learning.measures import IN_PARTS, MEASURES, PARTS, SECTIONS, Measure, is_curve, parts
from analysis.learning.results import Difference, Report, Row, interval
from analysis.learning.study import BEST_SINGLE, RANDOM, Study
from analysis.markdown import document, grid
from analysis.notes import settings
from analysis.provenance import table_run_id, warning
from analysis.results import short
from analysis.statistics import CONFIDENCE
from analysis.table import NOT_RUN, csv
from analysis.table import md_escape as escape
from harness.files import write_atomically

_AS_LOGGED = "as logged in training: accuracy is a fraction, utility in the unit of the method"
_SINGLE = ["accuracy", "cost_total", "utility"]
_OTHERS = {BEST_SINGLE: "the best single backbone", RANDOM: "random routers of the same depth"}
_DOMINATED = "▽"
_CURVES = (
    "Own utility on training questions, one panel a method and benchmark; a thin line is one seed, the thick one their "
    "mean. Each point is the mean over one epoch, which tries every training question, so that points differ by the "
    "policy and its draws alone. The tables named Curves below hold means over seeds, for each fifth of the updates; "
    "learning_curves.csv has every update as logged. The first update tries the untrained policy: a curve that stays "
    "where it starts shows no learning."
)


def write(report: Report, folder: Path) -> list[Path]:
    """Write ``learning.md``, two CSV files beside it, and ``learning_curves`` as csv, png, pdf and svg.

    Returns:
        The files written.
    """
    simulated, run = warning(report.cells[0].run.simulated), f"run {table_run_id(report.cells)}"
    said, logged = ("\n# ".join(filter(None, lines)) for lines in ((simulated, run), (simulated, _AS_LOGGED, run)))
    contents: dict[str, bytes | str] = {
        "learning.md": render(report),
        "learning.csv": csv(report.values, said),
        "learning_contrasts.csv": csv(contrasts(report), said),
        "learning_curves.csv": csv(curves(report), logged),
        **{f"learning_curves.{ending}": content for ending, content in figure.pictures(picture(report)).items()},
    }
    for name, content in contents.items():
        write_atomically(folder / name, content)
    return [folder / name for name in contents]


def contrasts(report: Report) -> pd.DataFrame:
    """One row a difference and statistic: ``difference`` of each seed, then ``mean``, ``low``, ``high`` and ``n``."""
    rows: list[tuple[object, ...]] = []
    for one in report.differences:
        asked = one.contrast
        statistics: list[tuple[str, object, float]] = [("difference", *of) for of in one.seeds.items()]
        statistics.append(("mean", "", one.mean))
        if one.reach is not None:
            statistics += [("low", "", one.mean - one.reach), ("high", "", one.mean + one.reach)]
        statistics.append(("n", "", float(len(one.seeds))))
        head = (asked.name, asked.asks, asked.a, asked.b, one.row.backbone, one.benchmark, one.measure)
        rows += [(*head, *of) for of in statistics]
    names = ["contrast", "asks", "a", "b", "backbone", "benchmark", "measure", "statistic", "seed", "value"]
    return pd.DataFrame(rows, columns=names)


def curves(report: Report) -> pd.DataFrame:
    """One row a benchmark, method, backbone, seed, update and measure, with the names and units of the training log."""
    rows = [
        (benchmark, *row, seed, update, measure, value)
        for benchmark, trained in report.logs.items()
        for row, logs in trained.items()
        for seed, log in logs.items()
        for measure in filter(is_curve, log.columns)
        for update, value in log[measure].dropna().items()
    ]
    return pd.DataFrame(rows, columns=["benchmark", "method", "backbone", "seed", "update", "measure", "value"])


def picture(report: Report) -> Figure:
    """The training curves; where nothing was trained, without panels. Its numbers are :func:`curves`."""
    return Figure(
        label="training-curves",
        caption=training_curves.CAPTION if any(report.logs.values()) else "Nothing was trained in the finished cells.",
        simulated=report.cells[0].run.simulated,
        draw=functools.partial(training_curves.draw, report.logs, report.benchmarks, report.titles),
        inches=training_curves.inches(report.logs),
        provenance={"preset": report.cells[0].run.preset, "run": short(table_run_id(report.cells))},
        frame=pd.DataFrame(),
    )


def render(report: Report) -> str:
    """The text of the file: warning, caption, how to read it, contrasts, one part a benchmark, provenance."""
    picture = ["## Training curves", "", "![Training curves](learning_curves.png)", "", escape(_CURVES), ""]
    columns = [line for key in report.benchmarks for line in _column(report, key)]
    body = [*_contrasts(report), *picture, *columns]
    return document(report.cells, "What training did", _caption(report), _reading(report), body)


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
    study, measured = report.study, report.learned
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
        f"Utility is R − {study.cost_weight:g} · cost of the steps, in points, with this weight in every row, "
        "also where it was trained with another. Cost is that of all calls, aggregation included, in the paper's unit."
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
    if len(report.singles):
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
        f"{100 * CONFIDENCE:g} % t intervals are over training seeds of one calibration and one set of questions; they "
        "say nothing about other questions, other calibrations or real models, and are not corrected for the number of "
        "contrasts. An interval without width means that the seeds agree, not that the value is certain."
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
        rows = [[escape(report.benchmarks[one.benchmark]), *_answer(report, one)] for one in answers]
        yield from grid(["Benchmark", "Measure", "Difference and interval", "n", "By seed"], rows, left=2)


def _answer(report: Report, one: Difference) -> list[str]:
    measure = MEASURES[one.measure]
    by_seed = _listed([one.seeds.get(seed, math.nan) for seed in report.seeds], measure, "+")
    return [escape(measure.title), _difference(one.mean, one.reach, measure), str(len(one.seeds)), by_seed]


def _column(report: Report, benchmark: str) -> Iterator[str]:
    n = next(cell.run.data.n_test for cell in report.cells if cell.run.benchmark == benchmark)
    yield from (f"## {escape(report.benchmarks[benchmark])} (n = {n})", "")
    for title, measures in SECTIONS.items():
        yield from _section(report, benchmark, title, measures)
    yield from _curves(report, benchmark)
    yield from _ends(report, benchmark)
    yield from _backbones(report, benchmark)


def _section(report: Report, benchmark: str, title: str, measures: Mapping[str, Measure]) -> Iterator[str]:
    """Rows and measures without any value are left out."""
    rows = report.rows(benchmark)
    shown = {
        key: one for key, one in measures.items() if any(key in of and of[key].notna().any() for of in rows.values())
    }
    fields = {row: [_field(of[key], measure) for key, measure in shown.items()] for row, of in rows.items()}
    lines = [[escape(report.titles[row]), *of] for row, of in fields.items() if any(of)]
    if lines:
        yield from (f"### {title}", "", *grid(["Method", *(measure.title for measure in shown.values())], lines))


def _curves(report: Report, benchmark: str) -> Iterator[str]:
    """Means over seeds of what training saw, in fifths, and whether its end differs from its beginning."""
    rows = []
    for row, logs in report.logs[benchmark].items():
        for key, measure in IN_PARTS.items():
            found = pd.DataFrame([parts(log, key) for log in logs.values() if key in log], columns=range(PARTS))
            if len(found):
                means = [NOT_RUN if math.isnan(mean) else number(mean, measure) for mean in found.mean()]
                gain = (found[PARTS - 1] - found[0]).dropna().tolist()
                change = _difference(fmean(gain), interval(gain), measure) if gain else NOT_RUN
                rows.append([escape(report.titles[row]), escape(measure.title), *means, change])
    if rows:
        heads = ["Method", "Measure", *(f"part {part} of {PARTS}" for part in range(1, PARTS + 1)), "last minus first"]
        yield from ("### Curves", "", *grid(heads, rows, left=2))


def _ends(report: Report, benchmark: str) -> Iterator[str]:
    """Where each policy is: the backbone that it uses most, by seed."""
    rows = []
    for row in report.rows(benchmark):
        used = {seed: of.index[0] for seed, of in report.shares(benchmark, row.method).items()}
        if used:
            dominated = sum(report.dominator(benchmark, backbone) is not None for backbone in used.values())
            share = f"{dominated} of {len(used)}" if len(report.singles_of(benchmark)) else NOT_RUN
            marked = [_marked(report, benchmark, used[seed]) if seed in used else NOT_RUN for seed in report.seeds]
            rows.append([escape(report.titles[row]), *marked, share])
    if rows:
        heads = ["Method", *(f"seed {seed}" for seed in report.seeds), f"seeds on a dominated one ({_DOMINATED})"]
        yield from ("### Most used backbone", "", *grid(heads, rows))


def _backbones(report: Report, benchmark: str) -> Iterator[str]:
    """Single backbones as references, and how often the router took each before and after its training."""
    wanted, singles = (report.study.untrained, report.study.trained), report.singles_of(benchmark)
    routers = [row for method in wanted for row in report.rows(benchmark) if row.method == method]
    shares = {row: pd.DataFrame(report.shares(benchmark, row.method)) for row in routers}
    used = sorted({*singles.index, *(backbone for of in shares.values() for backbone in of.index)})
    # A backbone that a policy never took has a share of zero.
    taken = {row: of.reindex(used).fillna(0.0).reindex(columns=report.seeds) for row, of in shares.items()}
    rows = [
        [
            _marked(report, benchmark, key),
            *(NOT_RUN if math.isnan(one[name]) else number(one[name], MEASURES[name]) for name in _SINGLE),
            escape(report.dominator(benchmark, key) or ""),
            *(_field(taken[row].loc[key], MEASURES["top_backbone"]) for row in routers),
        ]
        for key, one in singles.reindex(used, columns=_SINGLE).sort_values("cost_total", kind="stable").iterrows()
    ]
    heads = ["Backbone", *(MEASURES[key].title for key in _SINGLE), "dominated by"]
    heads += [f"share in {report.titles[row]} (%)" for row in routers]
    if rows:
        yield from (f"### Single backbones{', and their shares in the router' if routers else ''}", "")
        yield from grid(heads, rows)


def _marked(report: Report, benchmark: str, backbone: str) -> str:
    return escape(f"{backbone} {_DOMINATED}" if report.dominator(benchmark, backbone) else backbone)


def number(value: float, measure: Measure, sign: str = "") -> str:
    """A value in the unit and with the digits of its measure; what never came says so; ``"+"`` shows every sign."""
    if math.isinf(value):
        return "never"
    text = f"{value * measure.factor:{sign}.{measure.digits}f}"
    # What prints as zero has no sign.
    return (text if float(text) else text.lstrip("+-")).replace("-", "−")


def _listed(values: Iterable[float], measure: Measure, sign: str = "") -> str:
    """The value of each seed, in brackets."""
    return f"({' '.join(NOT_RUN if math.isnan(value) else number(value, measure, sign) for value in values)})"


def _field(values: pd.Series, measure: Measure) -> str:
    """Mean ± sd and the value of each seed; nothing where no seed has one."""
    present = values.dropna().tolist()
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
