"""The statements of the paper (``statements.yaml``): a quantity of the numbers of one side, and what must hold."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator

from analysis.paper.claims import quantities
from analysis.paper.claims.numbers import Numbers, Value
from harness.files import AsWritten, Declaration, Many, Text, check, check_entries, read_yaml

ROUNDING: Literal["rounding"] = "rounding"
FILE = Path(__file__).with_name("statements.yaml")


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


def _row(text: Any) -> Any:
    """Split ``method backbone``, as the file writes a row."""
    return tuple(text.split()) if isinstance(text, str) and " " in text else text


def _of_part(value: Any) -> Any:
    if isinstance(value, str):
        return getattr(quantities, value)
    return {_row(key): each for key, each in value.items()} if isinstance(value, Mapping) else value


def _arguments(over: Mapping[str, Any]) -> dict[str, Any]:
    named = {name: getattr(quantities, values) if isinstance(values, str) else values for name, values in over.items()}
    return {name: tuple(map(_listed, values)) for name, values in named.items()}


def _listed(value: Any) -> Any:
    return tuple(map(_row, value)) if isinstance(value, list) else _row(value)


def _region(value: Any) -> Any:
    if not isinstance(value, Mapping):
        return value
    return Region(**value) if value.keys() <= {"low", "high"} else {key: Region(**each) for key, each in value.items()}


#: A value, a mapping to one by the first argument of a part, or a function like the quantity, by name in the file.
OfPart = Annotated[Any, BeforeValidator(_of_part)]


class Claim(Declaration):
    """One statement of the paper."""

    key: str
    section: str  # of the paper, under which a report lists it
    place: Text  # where exactly it stands, other places included
    says: Text  # in our own words
    note: str = ""  # what a reader of a verdict must know
    unit: Literal["points", "%", "ratio", "margin", "price", "steps", "nats", "roles", "cosine", "correlation"]
    quantity: Callable[..., Any]  # of the numbers of one side and the arguments of a part
    published: OfPart = None  # another quantity for the paper's numbers, where that must differ
    # The values of each argument; the claim has a part for each combination.
    over: Annotated[Mapping[str, Many[Any]], BeforeValidator(_arguments)] = {}
    stated: OfPart = None  # what the paper says the quantity is, if it does
    # How far its tables may be from it; ``rounding``: as rounding of the inputs allows.
    tolerance: Annotated[float | Literal["rounding"], AsWritten] = 0.0
    # The region a run's value must be in: one value if nothing is sampled, None for arithmetic of the paper.
    holds: Annotated[Region | Mapping[str, Region] | None, BeforeValidator(_region)] = Region(low=0)
    is_share: bool = False  # a percentage of questions or of what happens in them, between 0 and 100
    implied: bool = False  # an inference of ours or a second reading, which no sentence of the paper says
    primary: bool = False  # an endpoint of the plan of analysis (docs/report.md); all others are secondary

    def parts(self) -> Iterator[tuple[Any, ...]]:
        """Iterate over the arguments of each part; a claim without arguments has one."""
        return product(*self.over.values())


def _quantity(name: str, given: Sequence[Any], names: Sequence[str]) -> Callable[..., Value]:
    """Return a quantity whose arguments are given, or stand by their names for those of a part."""

    def quantity(n: Numbers, *arguments: Any) -> Value:
        of_part = dict(zip(names, arguments, strict=True))
        values = [of_part.get(each, _row(each)) for each in given]
        value: Value = getattr(quantities, name)(n, *values) if hasattr(quantities, name) else getattr(n, name)(*values)
        return value

    return quantity


def _load() -> tuple[Claim, ...]:
    entries: dict[str, Any] = {}
    for section, shared in check(read_yaml(FILE), dict[str, dict[str, Any]], FILE).items():
        for key, entry in shared.pop("claims").items():
            whole = {"section": section, **shared, **entry}
            [(name, given)] = whole.get("quantity", {key: [*whole.get("over", ())]}).items()
            entries[key] = {**whole, "quantity": _quantity(name, given, [*whole.get("over", ())])}
    return tuple(check_entries(entries, Claim, FILE).values())


#: In the order of a report.
CLAIMS = _load()
