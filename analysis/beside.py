"""A published number and the measured one beside it, as entries of a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from analysis import tables
from analysis.costs import UNIT, Cost
from analysis.measures import Measurement
from analysis.statistics import Estimate
from analysis.tables import Entry, Mark

PAIR = ("Publ.", "Meas.")
_SMALL = 0.01


def accuracies(
    printed: Sequence[float | None],
    estimates: Sequence[Estimate | None],
    calibrated: Sequence[bool],
    seed_0: Sequence[float | None] | None = None,
) -> list[tuple[Entry, Entry]]:
    """A column of accuracies: published and measured, each side with its own best and second best.

    Args:
        printed: Percentages, ``None`` where the paper prints none.
        estimates: Fractions, ``None`` where nothing was run.
        calibrated: Whether a value was fitted to the paper, so that its difference would be no finding.
        seed_0: Fractions of seed 0 alone, to stand beside means over several seeds (:func:`seed_0_of`).
    """
    alone = seed_0 or [None] * len(estimates)
    measured = [tables.percent(estimate.mean) if estimate else None for estimate in estimates]
    left = [
        Entry(f"{value:.2f}" if value is not None else "", mark)
        for value, mark in zip(printed, tables.marks(printed), strict=True)
    ]
    places = zip(printed, estimates, calibrated, tables.marks(measured), alone, strict=True)
    right = [_measured(*place) for place in places]
    return list(zip(left, right, strict=True))


def seed_0_of(measurement: Measurement | None) -> float | None:
    """Accuracy of seed 0 where there are others to average it with; elsewhere it is no other number."""
    return measurement.seed_0 if measurement is not None and len(measurement.seeds) > 1 else None


def _measured(
    printed: float | None, estimate: Estimate | None, calibrated: bool, mark: Mark, seed_0: float | None
) -> Entry:
    """A calibrated value carries its sign instead of a difference: agreeing with the paper is how it was made."""
    if estimate is None:
        return Entry(tables.NOT_RUN)
    value = tables.percent(estimate.mean)
    return Entry(
        text=f"{value:.2f}",
        mark=mark,
        sign=tables.DAGGER if calibrated else "",
        beside="" if calibrated or printed is None else tables.difference(value, printed),
        below=_below(estimate, seed_0),
    )


def _below(estimate: Estimate, seed_0: float | None) -> str:
    interval = f"{tables.percent(estimate.low):.1f}–{tables.percent(estimate.high):.1f}"
    return interval if seed_0 is None else f"{interval}; seed 0: {tables.percent(seed_0):.2f}"


def of_measurements(
    printed: Sequence[float | None], measured: Sequence[Measurement | None]
) -> list[tuple[Entry, Entry]]:
    """The same column from what was measured, ``None`` where nothing was run; each number knows its cell."""
    pairs = accuracies(
        printed,
        [one.accuracy if one else None for one in measured],
        [one is not None and one.calibrated for one in measured],
        [seed_0_of(one) for one in measured],
    )
    return [
        (left, replace(right, cell=one.cells[0].run.cell) if one else right)
        for (left, right), one in zip(pairs, measured, strict=True)
    ]


def costs(found: Sequence[Cost]) -> list[tuple[Entry, Entry]]:
    """A column of costs of one question, published and measured, in :data:`analysis.costs.UNIT`; no place is marked.

    A cost that was fitted to the paper carries its sign instead of a ratio.
    """
    return [(Entry("" if cost.printed is None else of_question(cost.printed)), _measured_cost(cost)) for cost in found]


def all_calls(found: Sequence[Cost]) -> list[Entry]:
    """A column of measured costs of one question, of all its calls."""
    return [Entry(tables.NOT_RUN if cost.all_calls is None else of_question(cost.all_calls)) for cost in found]


def totals(found: Sequence[Cost]) -> list[tuple[Entry, Entry]]:
    """A column of costs of the paper's test set: as printed, and the measured mean times its number of questions."""
    return [(Entry(_printed_total(cost.total)), Entry(_scaled_total(cost))) for cost in found]


def of_question(cost: float) -> str:
    """The cost of one question as tables print it."""
    return f"{UNIT * cost:.2f}"


def _measured_cost(cost: Cost) -> Entry:
    if cost.measured is None:
        return Entry(tables.NOT_RUN)
    interval = f"{of_question(cost.measured.low)}–{of_question(cost.measured.high)}"
    return Entry(
        text=of_question(cost.measured.mean),
        sign=tables.DAGGER if cost.calibrated else "",
        beside="" if cost.ratio is None else f"×{cost.ratio:.2f}",
        below=interval if cost.seed_0 is None else f"{interval}; seed 0: {of_question(cost.seed_0)}",
    )


def _printed_total(total: float | None) -> str:
    """With three decimals like the paper, or as many more as it once prints."""
    if total is None:
        return ""
    return f"{total:.3f}" if round(total, 3) == total else f"{total:g}"


def _scaled_total(cost: Cost) -> str:
    """With the same decimals, and one more where they would say little."""
    if cost.scaled is None:
        return tables.NOT_RUN if cost.measured is None else ""
    return f"{cost.scaled:.3f}" if cost.scaled >= _SMALL else f"{cost.scaled:.4f}"
