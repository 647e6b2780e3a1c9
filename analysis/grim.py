"""Granularity of printed percentages (the GRIM test): which counts ``k`` out of ``n`` a printed number can come from.

A percentage with two decimals takes one of 10 001 values, of which ``n`` items reach at most ``n + 1``. A column that
``n`` explains is therefore strong evidence for ``n``, and a cell that no plausible ``n`` explains is an average, a
slip, or of other items (docs/grim.md). All arithmetic is exact, and the number of decimals is the one printed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

from analysis.published import Count, Fit
from harness.errors import UserError

# Beyond chance: how often columns of random digits may be given a number of items that they do not have.
SURPRISE = 0.01
_FORM = re.compile(r"(\d{1,3})(?:\.(\d+))?\s*%?")


class Printed(NamedTuple):
    """A printed percentage as a whole number of its last decimal, such as 8450 and 2 for ``84.50``."""

    units: int
    places: int

    @property
    def steps(self) -> int:
        """One hundred percent in the same unit."""
        return int(100 * 10**self.places)


@dataclass(frozen=True, slots=True)
class Match:
    """A count that gives a printed percentage, and how it was shortened."""

    count: Count
    fit: Fit


@dataclass(frozen=True, slots=True)
class Explanation:
    """Where one printed percentage can come from.

    Attributes:
        text: As printed.
        fit: ``rounded`` where any candidate gives it so, else ``truncated``, else ``none``.
        counts: Every count behind it; empty where ``fit`` is ``none``.
        near: The closest count where none fits and there was any candidate.
    """

    text: str
    fit: Fit
    counts: tuple[Count, ...]
    near: Count | None


@dataclass(frozen=True, slots=True)
class Candidate:
    """How well one number of items explains a column.

    Attributes:
        rounded: Cells that some ``k/n`` rounds to.
        truncated: Cells that it only gives cut off.
        expected: Cells that would be explained, rounded, if digits were random.
        chance: Probability that random digits are explained as often as these.
    """

    n: int
    rounded: int
    truncated: int
    expected: float
    chance: float


@cache
def printed(text: str) -> Printed:
    """Read a percentage as it stands in print; a trailing ``%`` is allowed.

    Raises:
        UserError: It is no plain number from 0 to 100.
    """
    found = _FORM.fullmatch(text.strip())
    decimals = (found[2] or "") if found else ""
    read = Printed(int(found[1] + decimals), len(decimals)) if found else None
    if read is None or read.units > read.steps:
        raise UserError(f"{text!r} is no printed percentage; expected a number from 0 to 100 such as 84.50")
    return read


def fits(text: str, n: int) -> list[Match]:
    """Every count out of ``n`` that prints as this percentage, by rounding (half up or half to even) or cut off."""
    given = printed(text)
    low = max(0, (given.units - 1) * n // given.steps)
    high = min(n, (given.units + 1) * n // given.steps)
    found = [(k, _fit(given, k, n)) for k in range(low, high + 1)]
    return [Match(Count(k, n), fit) for k, fit in found if fit is not Fit.NONE]


def half_up(steps: int, k: int, n: int) -> int:
    """The share ``k/n`` in units of which ``steps`` are one hundred percent, rounded half up."""
    return (2 * steps * k + n) // (2 * n)


def explain(text: str, candidates: Sequence[int]) -> Explanation:
    """Every count behind one printed percentage, or the closest one.

    Args:
        text: As printed.
        candidates: Plausible numbers of items; counts come in their order.
    """
    matches = [match for n in candidates for match in fits(text, n)]
    for fit in (Fit.ROUNDED, Fit.TRUNCATED):
        counts = tuple(match.count for match in matches if match.fit is fit)
        if counts:
            return Explanation(text, fit, counts, None)
    return Explanation(text, Fit.NONE, (), _nearest(printed(text), candidates))


def best_n(column: Sequence[str], candidates: Iterable[int]) -> list[Candidate]:
    """How many cells of a column each number of items explains, the most telling first.

    A multiple of the true number explains at least as much as it, and a large one much by chance; so the order is by
    how improbable the rounded cells are if digits were random, not by their number alone.

    Args:
        column: Percentages as printed, at least one.
        candidates: Numbers of items, each positive.
    """
    from scipy.stats import binom

    tried = list(candidates)
    best = [[_best(text, n) for text in column] for n in tried]
    rounded = [found.count(Fit.ROUNDED) for found in best]
    shares = [_share(column, n) for n in tried]
    chances = binom.sf([count - 1 for count in rounded], len(column), shares)
    made = [
        Candidate(n, count, found.count(Fit.TRUNCATED), share * len(column), float(chance))
        for n, count, found, share, chance in zip(tried, rounded, best, shares, chances, strict=True)
    ]
    return sorted(made, key=lambda one: (one.chance, one.n))


def scan(column: Sequence[str], candidates: Sequence[int]) -> list[int]:
    """The numbers of items a column betrays: the most telling one, then that of the cells it leaves, and so on.

    It stops where a candidate does no better than the best of as many would by chance (:data:`SURPRISE`).
    """
    rest, found = list(column), []
    while rest:
        first = best_n(rest, candidates)[0]
        if first.chance * len(candidates) > SURPRISE:
            break
        found.append(first.n)
        rest = [text for text in rest if _best(text, first.n) is not Fit.ROUNDED]
    return found


def _fit(given: Printed, k: int, n: int) -> Fit:
    whole, rest = divmod(given.steps * k, n)
    half_even = whole + (2 * rest > n or (2 * rest == n and whole % 2))
    if given.units in (half_up(given.steps, k, n), half_even):
        return Fit.ROUNDED
    return Fit.TRUNCATED if given.units == whole else Fit.NONE


def _best(text: str, n: int) -> Fit:
    return explain(text, [n]).fit


def _nearest(given: Printed, candidates: Sequence[int]) -> Count | None:
    around = [
        Count(k, n)
        for n in candidates
        for k in (given.units * n // given.steps, min(n, given.units * n // given.steps + 1))
    ]
    return min(around, key=lambda count: abs(count.k / count.n - given.units / given.steps), default=None)


def _share(column: Sequence[str], n: int) -> float:
    """Share of all percentages with as many decimals that ``n`` items reach, over the cells of a column."""
    steps = [printed(text).steps for text in column]
    return sum(min(1.0, (n + 1) / (step + 1)) for step in steps) / len(steps)
