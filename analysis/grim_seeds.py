"""Which three runs a printed mean and standard deviation can come from, given the number of items (docs/grim.md)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations_with_replacement

from analysis.grim import Printed, half_up, printed
from harness.errors import UserError

# No value lies further from the mean of three than this many sample deviations (2 / √3, where the others are equal).
_REACH = 1.155


def triples(mean: str, sd: str, n: int, containing: str | None = None) -> list[tuple[str, str, str]]:
    """Three printed percentages with a printed mean and sample standard deviation, each from a count out of ``n``.

    Mean and deviation are taken from the percentages as rounded (half up), not from the counts.

    Args:
        mean: As printed; the percentages have as many decimals.
        sd: As printed, with as many decimals.
        n: Number of items.
        containing: A percentage that must be one of the three; it need not come from a count.

    Returns:
        Every triple, ascending.

    Raises:
        UserError: Unequal numbers of decimals.
    """
    centre, spread = printed(mean), printed(sd)
    given = [] if containing is None else [printed(containing)]
    if any(one.places != centre.places for one in (spread, *given)):
        raise UserError(f"{mean}, {sd}, {containing or mean}: expected the same number of decimals in each")
    reachable = {half_up(centre.steps, k, n) for k in range(n + 1)} | {one.units for one in given}
    reach = _REACH * (spread.units + 1) + 1
    values = sorted(value for value in reachable if abs(value - centre.units) <= reach)
    found = [one for one in _with_mean(values, centre) if all(own.units in one for own in given) and _has(one, spread)]
    return [_texts(one, centre.places) for one in found]


def _with_mean(values: Sequence[int], mean: Printed) -> Iterator[tuple[int, int, int]]:
    """Ascending triples of the values whose mean rounds to a printed one: given two, the third is one of three."""
    known = set(values)
    for first, second in combinations_with_replacement(values, 2):
        last = 3 * mean.units - first - second
        for third in (last - 1, last, last + 1):
            if third in known and third >= second:
                yield first, second, third


def _has(values: tuple[int, int, int], sd: Printed) -> bool:
    """Whether whole numbers have a sample deviation that rounds to a printed one, in exact arithmetic."""
    six_variances = 3 * sum(value * value for value in values) - sum(values) ** 2
    return 6 * max(2 * sd.units - 1, 0) ** 2 <= 4 * six_variances <= 6 * (2 * sd.units + 1) ** 2


def _texts(values: tuple[int, int, int], places: int) -> tuple[str, str, str]:
    first, second, third = (f"{value / 10**places:.{places}f}" for value in values)
    return first, second, third
