"""What a reader of the study of learning must know before believing one of its numbers."""

from __future__ import annotations

from paper.grid import build_grid
from paper.learning.report import Report
from paper.notes import conditions
from paper.published import load
from paper.statistics import CONFIDENCE
from paper.tables import NOT_RUN

DOMINATED = "▽"

INTERVALS = (
    f"Differences are paired: both sides answered the same questions with the same seed. The {100 * CONFIDENCE:g} % t "
    "intervals are over training seeds of one simulated world and one set of questions; they say nothing of other "
    "questions, other worlds or real models, and they are not corrected for the number of contrasts. An interval "
    "without width means that the seeds agree, not that the value is certain. The best single backbone was chosen on "
    "the very test questions it is compared on, which favours it, and has no seed; its utility bears "
    "its only call, a router's does not bear the aggregation. Random routers are interpolated "
    "linearly at the mean test depth of each seed."
)


def caption(report: Report) -> str:
    """What the report shows, of which run, under which conditions, and how many of its cells are not there yet."""
    run, missing = report.cells[0].run, report.unfinished
    kind = " (SIMULATED backbones)" if run.simulated else ""
    partial = f" INCOMPLETE: {missing} cells of the preset are not finished." if missing else ""
    return (
        f"Preset {run.preset}{kind}: learned routers on test questions that no training saw, training seeds "
        f"{', '.join(map(str, report.seeds))}.{conditions(build_grid(report.cells, load()))}{partial}"
    )


def reading(report: Report) -> tuple[str, ...]:
    """How to read the tables, one note each; the last one names contrasts for which there are no cells."""
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
    retrieved = "Retrieved is Σ retrieved / Σ available over steps with stored records; steps are counted from 0."
    entropies = (
        "Entropies are means over the last quarter of the updates. The choice of a backbone counts as settled when its "
        f"entropy is below {study.collapsed_entropy:g} nats. First updates: the first three. Last: the last quarter."
    )
    dominated = (
        f"{DOMINATED}: dominated, that is, another single backbone is at least as accurate on these test questions, "
        "and cheaper."
    )
    names = ", ".join(report.unanswered)
    missing = (f"Not answered, for want of cells: {names}.",) if names else ()
    return several, blank, utility, retrieved, entropies, dominated, *missing
