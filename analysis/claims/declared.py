"""The statements of the paper, read from ``analysis/claims.yaml``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any, TypeAlias

from analysis.claims.language import check as check_expression
from analysis.claims.vocabulary import FUNCTIONS
from analysis.schema import check
from harness.errors import UserError
from harness.yaml_files import parse

PATH = Path(__file__).parents[1] / "claims.yaml"
ROUNDING = "rounding"
Number: TypeAlias = float | str
Variables: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Bounds:
    """Where a quantity must lie; an end that is ``None`` is open, and the ends belong to it only if ``closed``."""

    low: Number | None = None
    high: Number | None = None
    closed: bool = False


@dataclass(frozen=True, slots=True)
class Claim:
    """One statement; every expression is in the language of :mod:`analysis.claims.language`.

    Attributes:
        key: Short name.
        section: Section of the paper under which a report lists it.
        place: Where exactly it stands, other places included.
        says: The statement in our own words.
        quantity: The number it is about.
        published: Another expression for it over the print, where that must differ.
        unit: Of the number: ``points``, ``%`` or a word.
        stated: What the paper says the number is, if it says so.
        tolerance: How far the print may be from it, or :data:`ROUNDING`: as far as the rounding of its inputs allows.
        holds: What a run must show; ``None`` for arithmetic of the print, which no run can bear out.
        exact: No sampling stands behind the number, so that a single value decides.
        over: Variables and their values: the claim has a part for each combination. A value that is a mapping sets
            all the variables it names.
        note: What a reader of a verdict must know.
    """

    key: str
    section: str
    place: str
    says: str
    quantity: str
    published: str
    unit: str
    stated: Number | None = None
    tolerance: Number = 0.0
    holds: Bounds | None = None
    exact: bool = False
    over: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    note: str = ""

    def parts(self) -> Iterator[Variables]:
        """The variables of each part; one part without any where there is no ``over``."""
        for values in product(*self.over.values()):
            yield _bound(dict(zip(self.over, values, strict=True)))


def load(path: Path = PATH) -> tuple[Claim, ...]:
    """Read every claim, in the order of the file.

    Raises:
        UserError: The file breaks its schema, names a claim twice, or has an expression that cannot be evaluated.
    """
    document = parse(path)
    check(document, "claims", path)
    claims = tuple(_claim(key, entry) for key, entry in document.items())
    for claim in claims:
        for variables in claim.parts():
            _check(claim, variables, path)
    return claims


def _claim(key: str, entry: Mapping[str, Any]) -> Claim:
    rest = {name: value for name, value in entry.items() if name != "holds"}
    bounds = _bounds(entry["holds"]) if "holds" in entry else None
    return Claim(key=key, holds=bounds, **{"published": entry["quantity"], **rest})


def _bounds(entry: Mapping[str, Any]) -> Bounds:
    if "between" in entry:
        low, high = entry["between"]
        return Bounds(low, high, closed=True)
    return Bounds(low=entry.get("above"), high=entry.get("below"))


def _bound(variables: Variables) -> Variables:
    """Of a value that is a mapping, the variables it names take its place."""
    found: dict[str, Any] = {}
    for name, value in variables.items():
        found |= value if isinstance(value, Mapping) else {name: value}
    return found


def _check(claim: Claim, variables: Variables, path: Path) -> None:
    if claim.stated is None and claim.holds is None:
        raise UserError(f"{path}: claim {claim.key} has neither `stated` nor `holds`; say what must be true of it")
    ends = (claim.holds.low, claim.holds.high) if claim.holds else ()
    for text in (claim.quantity, claim.published, claim.stated, *ends):
        if isinstance(text, str):
            try:
                check_expression(text, FUNCTIONS, variables)
            except UserError as error:
                raise UserError(f"{path}: claim {claim.key}: {error}") from error
