"""Declaration of a statement of the paper: a function of the numbers of one side, its place, and what must hold."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, Literal

ROUNDING: Literal["rounding"] = "rounding"


@dataclass(frozen=True)
class Region:
    """The values for which a claim holds: an open half-line, or a closed interval."""

    low: float = -math.inf
    high: float = math.inf

    def __contains__(self, value: float) -> bool:
        if math.isinf(self.high - self.low):
            return self.low < value < self.high
        return self.low <= value <= self.high

    def __str__(self) -> str:
        if math.isinf(self.high - self.low):
            return f"> {self.low:g}" if math.isinf(self.high) else f"< {self.high:g}"
        return f"{self.low:g}" if self.low == self.high else f"{self.low:g} to {self.high:g}"


@dataclass(frozen=True)
class Claim:
    """One statement of the paper. ``stated`` and ``holds`` may be mappings by its only argument."""

    key: str
    section: str  # of the paper, under which a report lists it
    place: str  # where exactly it stands, other places included
    says: str  # in our own words
    note: str  # what a reader of a verdict must know
    unit: str  # points, %, ratio, margin, price, steps, nats, roles, cosine or correlation
    quantity: Callable[..., Any]  # of the numbers of one side and the arguments of a part
    published: Callable[..., Any] | None = None  # another one for the paper's numbers, where that must differ
    over: Sequence[Sequence[Any]] = ()  # the values of each argument; the claim has a part for each combination
    stated: Any = None  # what the paper says it is, if it does: a number, or a function like the quantity
    tolerance: float | Literal["rounding"] = 0.0  # how far its tables may be from it; as rounding of the inputs allows
    # The region a run's value must be in: one value if nothing is sampled, None for arithmetic of the paper.
    holds: Region | Mapping[Any, Region] | None = Region(low=0)
    is_share: bool = False  # a percentage of questions or of what happens in them, between 0 and 100
    implied: bool = False  # an inference of ours or a second reading, which no sentence of the paper says
    primary: bool = False  # an endpoint of the plan of analysis (docs/report.md); all others are secondary

    def parts(self) -> Iterator[tuple[Any, ...]]:
        """Iterate over the arguments of each part; a claim without parts has one, without arguments."""
        keys = [list(mapping) for mapping in (self.stated, self.holds) if isinstance(mapping, Mapping)]
        return product(*(self.over or keys[:1]))


def claim(section: str, place: str, unit: str, **more: Any) -> Callable[[Callable[..., Any]], Claim]:
    """Make a function the quantity of a claim. Its docstring is the statement, then the note."""

    def declare(quantity: Callable[..., Any]) -> Claim:
        says, _, note = (" ".join(text.split()) for text in (inspect.getdoc(quantity) or "").partition("\n\n"))
        return Claim(quantity.__name__, section, place, says, note, unit, quantity, **more)

    return declare
