"""Numbers and tables of the report on learning, as Markdown."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from statistics import fmean, stdev

from analysis.learning.measures import Measure
from analysis.table import NOT_RUN

_NEVER = "never"


def number(value: float, measure: Measure, sign: str = "") -> str:
    """A value in the unit and with the digits of its measure; what never came says so.

    Args:
        value: In the unit of the data.
        measure: How it is printed.
        sign: ``"+"`` to show the sign of positive values.
    """
    if math.isinf(value):
        return _NEVER
    text = f"{value * measure.factor:{sign}.{measure.digits}f}"
    # What prints as zero has no sign.
    return (text if float(text) else text.lstrip("+-")).replace("-", "−")


def listed(values: Iterable[float | None], measure: Measure, sign: str = "") -> str:
    """The value of each seed, in brackets."""
    return f"({' '.join(NOT_RUN if value is None else number(value, measure, sign) for value in values)})"


def field(values: Sequence[float | None], measure: Measure) -> str:
    """Mean ± sd and the value of each seed; nothing where no seed has one."""
    present = [value for value in values if value is not None]
    if not present:
        return ""
    if not all(map(math.isfinite, present)):
        return listed(values, measure)
    spread = f" ± {number(stdev(present), measure)}" if len(present) > 1 else ""
    return f"{number(fmean(present), measure)}{spread} {listed(values, measure)}"


def difference(mean: float, reach: float | None, measure: Measure) -> str:
    """A mean difference and its interval, which one seed alone does not have."""
    text = number(mean, measure, "+")
    if reach is None:
        return f"{text} (one seed, no interval)"
    return f"{text} [{number(mean - reach, measure, '+')}, {number(mean + reach, measure, '+')}]"


def table(heads: Sequence[str], rows: Sequence[Sequence[str]], left: int = 1) -> Iterator[str]:
    """The lines of a pipe table and an empty one; the first columns are set flush left."""
    rule = ["---"] * left + ["--:"] * (len(heads) - left)
    yield from (f"| {' | '.join(line)} |" for line in (heads, rule, *rows))
    yield ""
