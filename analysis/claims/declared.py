"""Declaration of a statement of the paper: a function of the numbers of one side, and the paper's value."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any, Literal, TypeAlias

from analysis.claims.numbers import Value

ROUNDING: Literal["rounding"] = "rounding"
Variables: TypeAlias = Mapping[str, Any]
Quantity: TypeAlias = Callable[..., Value]


@dataclass(frozen=True, slots=True)
class Region:
    """The values for which a claim holds; the ends belong to it only if ``closed``."""

    low: float = -math.inf
    high: float = math.inf
    closed: bool = False

    def __contains__(self, value: float) -> bool:
        return self.low <= value <= self.high if self.closed else self.low < value < self.high

    def __str__(self) -> str:
        if math.isinf(self.low) or math.isinf(self.high):
            return f"> {self.low:g}" if math.isinf(self.high) else f"< {self.high:g}"
        return f"{self.low:g}" if self.low == self.high else f"{self.low:g} to {self.high:g}"


def above(low: float) -> Region:
    """More than a threshold."""
    return Region(low=low)


def below(high: float) -> Region:
    """Less than a threshold."""
    return Region(high=high)


def between(low: float, high: float) -> Region:
    """Within two ends, which belong to it."""
    return Region(low, high, closed=True)


@dataclass(frozen=True, kw_only=True)
class Claim:
    """One statement of the paper.

    A function has the numbers of one side as ``n`` and the variables of the claim as further arguments; it takes those
    of them that it names.

    Attributes:
        section: Section of the paper under which a report lists it.
        place: Where exactly it stands, other places included.
        unit: Of the quantity.
        quantity: What it is about. The first paragraph of the function's docstring is the statement in our own words,
            the others are the note: what a reader of a verdict must know.
        stated: What the paper says the quantity is, if it says so: a number, or a function over the paper's numbers.
        tolerance: How far the tables may be from it, or :data:`ROUNDING`: as far as the rounding of its inputs allows.
        holds: What a run must show, or a function; ``None`` for arithmetic of the paper, which no run can support.
        published: Another function over the paper's numbers, where that must differ.
        exact: The quantity is not sampled, so that a single value decides.
        over: Variables and their values: the claim has a part for each combination. A value that is a mapping sets
            all the variables it names.
    """

    section: str
    place: str
    unit: Literal["points", "%", "ratio", "margin", "price", "steps", "nats", "roles", "correlation"]
    quantity: Quantity
    stated: float | Quantity | None = None
    tolerance: float | Literal["rounding"] = 0.0
    holds: Region | Callable[..., Region] | None = Region(low=0)
    published: Quantity | None = None
    exact: bool = False
    over: Mapping[str, Sequence[Any]] = field(default_factory=dict)

    @property
    def key(self) -> str:
        """Its short name."""
        return self.quantity.__name__

    @property
    def says(self) -> str:
        """The statement in our own words."""
        return " ".join(self._doc[0].split())

    @property
    def note(self) -> str:
        """The note for readers of a verdict; may be empty."""
        return " ".join(" ".join(self._doc[1:]).split())

    @property
    def _doc(self) -> list[str]:
        return (inspect.getdoc(self.quantity) or "").split("\n\n")

    def parts(self) -> Iterator[Variables]:
        """The variables of each part; one part without any where there is no ``over``."""
        for values in product(*self.over.values()):
            found: dict[str, Any] = {}
            for name, value in zip(self.over, values, strict=True):
                found |= value if isinstance(value, Mapping) else {name: value}
            yield found


def claim(section: str, place: str, unit: str, **more: Any) -> Callable[[Quantity], Claim]:
    """Makes a function the quantity of a :class:`Claim`, whose other attributes are given."""
    return lambda quantity: Claim(section=section, place=place, unit=unit, quantity=quantity, **more)  # type: ignore[arg-type]


def call(function: Callable[..., Any], n: Any, variables: Variables) -> Any:
    """The value of a function of a claim, given those arguments that it names."""
    given = {"n": n, **variables}
    return function(**{name: given[name] for name in inspect.signature(function).parameters})
