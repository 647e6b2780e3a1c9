"""A table as a reader sees it, before any file format: what the renderers in ``analysis/render`` turn into files."""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

NOT_RUN = "–"
DAGGER = "†"
YES, NO = "●", "○"
SIMULATED = "SIMULATED BACKBONES: no language model was asked; the measured numbers say nothing about real models"


class Mark(enum.StrEnum):
    """The place of an entry in its column."""

    NONE = ""
    BEST = "best"
    SECOND = "second"


@dataclass(frozen=True, slots=True)
class Entry:
    """One number.

    Attributes:
        text: The number itself, or :data:`NOT_RUN`; empty where there is nothing to say.
        mark: Best in bold, second best underlined.
        sign: A footnote sign such as :data:`DAGGER`.
        beside: A smaller figure to its right, such as a difference.
        below: A smaller figure on a second line, such as an interval.
        cell: Of a number that was measured in one place, the cell it is of, as ``METHOD/BENCHMARK/BACKBONE/SEED``; of
            several seeds the first.
    """

    text: str = ""
    mark: Mark = Mark.NONE
    sign: str = ""
    beside: str = ""
    below: str = ""
    cell: str = ""


@dataclass(frozen=True, slots=True)
class Group:
    """Neighbouring columns under one heading.

    Attributes:
        title: The heading, such as a benchmark.
        detail: A smaller line below it, such as the number of items.
        columns: Titles of the columns.
    """

    title: str
    detail: str
    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Row:
    """One row.

    Attributes:
        section: Rows of one section stand between the same two rules.
        labels: The leading columns; equal neighbours in the first one are shown once.
        entries: One for every column of every group, from left to right.
    """

    section: str
    labels: tuple[str, ...]
    entries: tuple[Entry, ...]


@dataclass(frozen=True, slots=True)
class Table:
    """A table with everything that must stand around it.

    Attributes:
        label: Short ASCII name for cross references.
        caption: What the table shows, in one or two sentences; renderers add the warning of a simulated run.
        simulated: Whether any number comes from simulated backbones. Every renderer says so; no argument silences it.
        heads: Titles of the label columns.
        groups: The columns of numbers.
        rows: From top to bottom.
        notes: Legend and footnotes, one sentence or two each.
        provenance: Name and value of whatever identifies the run.
        records: The tidy form of the same numbers, one mapping a line, all with the same keys.
    """

    label: str
    caption: str
    simulated: bool
    heads: tuple[str, ...]
    groups: tuple[Group, ...]
    rows: tuple[Row, ...]
    notes: tuple[str, ...]
    provenance: tuple[tuple[str, str], ...]
    records: tuple[Mapping[str, str], ...]

    @property
    def warning(self) -> str:
        """The sentence about simulated backbones, or nothing for a run on real ones."""
        return warning(self.simulated)


def warning(simulated: bool) -> str:
    """The sentence about simulated backbones, or nothing for a run on real ones."""
    return SIMULATED if simulated else ""


def marks(values: Sequence[float | None]) -> list[Mark]:
    """Best and second best of a column; equal values share a mark.

    Args:
        values: As printed, so that what looks equal is equal; ``None`` takes no part. A single value is not ranked.
    """
    present = [value for value in values if value is not None]
    ranking = sorted(set(present), reverse=True)
    if len(present) < 2:
        return [Mark.NONE] * len(values)
    places = dict(zip(ranking, (Mark.BEST, Mark.SECOND), strict=False))
    return [Mark.NONE if value is None else places.get(value, Mark.NONE) for value in values]


def percent(fraction: float) -> float:
    """A fraction in percent, rounded as printed: what is compared must be what is read."""
    return round(100 * fraction, 2)


def signed(points: float) -> str:
    """Percentage points with their sign, such as ``"+1.20"``; no sign on what prints as zero."""
    text = f"{abs(points):.2f}"
    if float(text) == 0:
        return text
    return ("+" if points > 0 else "−") + text


def difference(measured: float, printed: float) -> str:
    """Measured minus printed, both in percent."""
    return signed(measured - printed)
