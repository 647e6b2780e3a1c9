"""How a statement of the paper is declared: a function of the numbers of one side, and what the paper says of it."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any, Literal, TypeAlias

from analysis.claims.numbers import Numbers, Value
from analysis.published import load

ROUNDING: Literal["rounding"] = "rounding"
Variables: TypeAlias = Mapping[str, Any]
Quantity: TypeAlias = Callable[..., Value]

LARGE = "qwen-2.5-32B"
ROWS: Sequence[Variables] = [{"method": row.method, "backbone": row.backbone} for row in load().rows]
#: The benchmarks of the ablations and of the cost tables, and those of the tables of gates.
TWO = ("gsm_hard", "humaneval")
GATED = ("gsm_hard", "mbpp", "humaneval")


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


def Above(low: float) -> Region:  # noqa: N802 - reads as the kind of region that it makes
    """More than a threshold."""
    return Region(low=low)


def Below(high: float) -> Region:  # noqa: N802
    """Less than a threshold."""
    return Region(high=high)


def Between(low: float, high: float) -> Region:  # noqa: N802
    """Within two ends, which belong to it."""
    return Region(low, high, closed=True)


@dataclass(frozen=True, kw_only=True)
class claim:  # noqa: N801 - a decorator
    """Makes a function of :class:`Numbers` the quantity of a :class:`Claim`, which is named after the function.

    The docstring of the function is the statement in our own words.

    The function has the numbers of one side as ``n`` and its variables as further arguments. Wherever a function can
    stand below, it takes those of these arguments that it names.

    Attributes:
        section: Section of the paper under which a report lists it.
        place: Where exactly it stands, other places included.
        unit: Of the quantity.
        stated: What the paper says the quantity is, if it says so: a number, or a function over the print.
        tolerance: How far the print may be from it, or :data:`ROUNDING`: as far as the rounding of its inputs allows.
        holds: What a run must show; ``None`` for arithmetic of the print, which no run can bear out.
        published: Another function over the print, where that must differ.
        exact: No sampling stands behind the quantity, so that a single value decides.
        over: Variables and their values: the claim has a part for each combination. A value that is a mapping sets
            all the variables it names.
        note: What a reader of a verdict must know.
    """

    section: str
    place: str
    unit: Literal["points", "%", "ratio", "margin", "price", "steps", "nats", "roles", "correlation"]
    stated: float | Quantity | None = None
    tolerance: float | Literal["rounding"] = 0.0
    holds: Region | Callable[..., Region] | None = None
    published: Quantity | None = None
    exact: bool = False
    over: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    note: str = ""

    def __post_init__(self) -> None:
        if self.stated is None and self.holds is None:
            raise ValueError("a claim needs `stated` or `holds`: say what must be true of it")

    def __call__(self, quantity: Quantity) -> Claim:
        """The claim about a quantity."""
        return Claim(**vars(self), quantity=quantity)


@dataclass(frozen=True, kw_only=True)
class Claim(claim):
    """One statement of the paper."""

    quantity: Quantity

    @property
    def key(self) -> str:
        """Its short name."""
        return self.quantity.__name__

    @property
    def says(self) -> str:
        """The statement in our own words."""
        return " ".join((self.quantity.__doc__ or "").split())

    @property
    def printed(self) -> Quantity:
        """The quantity over the print."""
        return self.published or self.quantity

    def parts(self) -> Iterator[Variables]:
        """The variables of each part; one part without any where there is no ``over``."""
        for values in product(*self.over.values()):
            found: dict[str, Any] = {}
            for name, value in zip(self.over, values, strict=True):
                found |= value if isinstance(value, Mapping) else {name: value}
            yield found


def call(function: Callable[..., Any], n: Numbers, variables: Variables) -> Any:
    """The value of a function of a claim, given those arguments that it names."""
    given = {"n": n, **variables}
    return function(**{name: given[name] for name in inspect.signature(function).parameters})
