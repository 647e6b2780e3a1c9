"""Schema of the paper's statements (``statements.yaml``): a quantity, and the region in which it must be."""

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


#: A value, a mapping from the first argument of a part to a value, or the name of a function like the quantity.
OfPart = Annotated[Any, BeforeValidator(_of_part)]


class Claim(Declaration):
    """One statement of the paper."""

    key: str
    section: str  # section of the paper; reports group statements by it
    place: Text  # all places of the statement in the paper
    says: Text  # paraphrase of the statement
    note: str = ""  # shown with the verdict
    unit: Literal["points", "%", "ratio", "margin", "price", "steps", "nats", "roles", "cosine", "correlation"]
    quantity: Callable[..., Any]  # function of a :class:`Numbers` and the arguments of a part
    published: OfPart = None  # the quantity for the paper's numbers, if it differs
    # The values of each argument; the claim has a part for each combination.
    over: Annotated[Mapping[str, Many[Any]], BeforeValidator(_arguments)] = {}
    stated: OfPart = None  # the value of the quantity that the paper states, if any
    # Allowed distance of the tables' value from it; ``rounding``: as far as rounding of the inputs explains.
    tolerance: Annotated[float | Literal["rounding"], AsWritten] = 0.0
    # Region in which a run's value must be: one value if nothing is sampled, None for arithmetic of the paper.
    holds: Annotated[Region | Mapping[str, Region] | None, BeforeValidator(_region)] = Region(low=0)
    is_share: bool = False  # a percentage of questions or of events in them, 0 to 100
    implied: bool = False  # our inference or a second reading; no sentence of the paper says it
    primary: bool = False  # a primary endpoint (docs/report.md); all others are secondary

    def parts(self) -> Iterator[tuple[Any, ...]]:
        """Iterate over the arguments of each part; a claim without arguments has one."""
        return product(*self.over.values())


def _quantity(name: str, given: Sequence[Any], names: Sequence[str]) -> Callable[..., Value]:
    """Return a quantity. Each of its arguments is a value, or the name of an argument of the part."""

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
