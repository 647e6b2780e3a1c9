"""What a reader of the study of learning must know before believing one of its numbers."""

from __future__ import annotations

from collections.abc import Iterator

from analysis.frames import Results
from analysis.learning.report import Report
from analysis.learning.study import Study
from analysis.notes import conditions
from analysis.statistics import CONFIDENCE
from analysis.table import NOT_RUN

DOMINATED = "▽"

CURVES = (
    "Own utility on training questions, one panel a method and benchmark; a thin line is one seed, the thick one their "
    "mean. Each point is the mean over one epoch, which tries every training question, so that points differ by the "
    "policy and its draws alone. The tables named Curves below hold means over seeds, for each fifth of the updates; "
    "learning_curves.csv has every update as logged. The first update tries the untrained policy: a curve that stays "
    "where it starts shows no learning."
)


def intervals(study: Study) -> str:
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


def caption(report: Report) -> str:
    """What the report shows, of which run, under which conditions, and how many of its cells are not there yet."""
    run, missing = report.cells[0].run, report.unfinished
    kind = " (SIMULATED backbones)" if run.simulated else ""
    partial = f" INCOMPLETE: {missing} cells of the preset are not finished." if missing else ""
    return (
        f"Preset {run.preset}{kind}: methods that learn, on test questions that no training saw, training seeds "
        f"{', '.join(map(str, report.seeds))}.{conditions(Results(report.cells))}{partial}"
    )


def reading(report: Report) -> tuple[str, ...]:
    """How to read what is in the tables; the last note names contrasts for which there are no cells."""
    study = report.study
    several = (
        "A field holds mean ± sample standard deviation over seeds and, in brackets, the values of seeds "
        f"{', '.join(map(str, report.seeds))}. Trainings tend to end at one of few places; then no run is near the "
        "mean, and only the values tell."
    )
    blank = (
        f"{NOT_RUN}: no such cell, or nothing to measure with this seed. Blank: nothing to measure with any seed, such "
        "as the write rate of a router without a write gate."
    )
    utility = (
        f"Utility is R − {study.cost_weight:g} · cost of the steps, in points, with this weight in every row, whatever "
        "the row was trained with. Cost is that of all calls, the aggregation included, in the paper's unit."
    )
    names = ", ".join(report.unanswered)
    missing = (f"Not answered, for want of cells: {names}.",) if names else ()
    return several, blank, utility, *_where_measured(report), *missing


def _where_measured(report: Report) -> Iterator[str]:
    study, columns = report.study, report.columns.values()
    cells = [one for column in columns for found in column.learned.values() for one in found.values()]
    measured = {key for one in cells for key in one.values}
    if "own_utility" in measured:
        own = (
            "Own utility is what a method itself maximises, here on the test questions, in its own unit: compare it "
            f"with nothing but itself. {study.own_utility}"
        )
        yield own.rstrip()
    if "retrieved" in measured:
        yield "Retrieved is Σ retrieved / Σ available over steps with stored records; steps are counted from 0."
    if "updates" in measured:
        yield "First updates: the first three. Last: the last quarter, over which entropies are averaged, too."
    if "collapse" in measured:
        yield f"The choice of a backbone counts as settled when its entropy is below {study.collapsed_entropy:g} nats."
    if any(column.singles for column in columns):
        yield (
            f"{DOMINATED}: dominated, that is, another single backbone is at least as accurate on these test "
            "questions, and cheaper."
        )
