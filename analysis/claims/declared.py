"""The statements of the paper, read from ``analysis/claims.yaml``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypeAlias

from annotated_types import Len, MinLen
from pydantic import Field, PlainValidator, model_validator

from analysis.claims.language import check as check_expression
from analysis.claims.vocabulary import FUNCTIONS
from harness.declarations import Declaration, Many, read_entries
from harness.errors import UserError

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


def _number(given: Any) -> Number:
    """A number as it was written, or an expression for one."""
    if isinstance(given, bool) or not isinstance(given, int | float | str):
        raise ValueError(f"{given!r} should be a number or an expression")
    return given


def _tolerance(given: Any) -> Number:
    if given != ROUNDING and (isinstance(given, str) or _number(given) < 0):  # type: ignore[operator]
        raise ValueError(f"{given!r} should be a number of at least 0, or {ROUNDING}")
    return _number(given)


def _value(given: Any) -> Any:
    """Of a variable, or of several."""
    if isinstance(given, Mapping) and given:
        return {name: _number(value) for name, value in given.items()}
    return _number(given)


_Number = Annotated[Number, PlainValidator(_number)]
_Words = Annotated[str, Field(pattern=r"\S")]


class _Holds(Declaration):
    above: _Number | None = None
    below: _Number | None = None
    between: Annotated[Many[_Number], Len(2, 2)] | None = None


def _bounds(given: Any) -> Bounds:
    holds = _Holds.model_validate(given)
    if len(holds.model_fields_set) != 1:
        raise ValueError(f"{given!r} should be one of above, below, between")
    low, high = holds.between or (holds.above, holds.below)
    return Bounds(low, high, closed=holds.between is not None)


class Claim(Declaration):
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

    key: Annotated[str, Field(pattern="^[a-z][a-z0-9_]*$")]
    section: _Words
    place: _Words
    says: _Words
    quantity: _Words
    published: _Words = Field(default_factory=lambda data: data["quantity"])
    unit: Literal["points", "%", "ratio", "margin", "price", "steps", "nats", "roles", "correlation"]
    stated: _Number | None = None
    tolerance: Annotated[Number, PlainValidator(_tolerance)] = 0.0
    holds: Annotated[Bounds, PlainValidator(_bounds)] | None = None
    exact: bool = False
    over: Mapping[
        Annotated[str, Field(pattern="^[a-z][a-z_]*$")],
        Annotated[Many[Annotated[Any, PlainValidator(_value)]], MinLen(1)],
    ] = {}
    note: _Words = ""

    @model_validator(mode="after")
    def _is_whole(self) -> Self:
        if self.stated is None and self.holds is None:
            raise ValueError("neither `stated` nor `holds`; say what must be true of it")
        if "tolerance" in self.model_fields_set and self.stated is None:
            raise ValueError("`tolerance` is of `stated`, which is missing; add it")
        if "exact" in self.model_fields_set and not (self.exact and self.holds):
            raise ValueError("`exact` can only be true, and only beside `holds`; leave it out")
        return self

    def parts(self) -> Iterator[Variables]:
        """The variables of each part; one part without any where there is no ``over``."""
        for values in product(*self.over.values()):
            yield _bound(dict(zip(self.over, values, strict=True)))


def load(path: Path = PATH) -> tuple[Claim, ...]:
    """Read every claim, in the order of the file.

    Raises:
        UserError: The file has a slip, names a claim twice, or has an expression that cannot be evaluated.
    """
    claims = tuple(read_entries(path, Claim).values())
    for claim in claims:
        for variables in claim.parts():
            _check(claim, variables, path)
    return claims


def _bound(variables: Variables) -> Variables:
    """Of a value that is a mapping, the variables it names take its place."""
    found: dict[str, Any] = {}
    for name, value in variables.items():
        found |= value if isinstance(value, Mapping) else {name: value}
    return found


def _check(claim: Claim, variables: Variables, path: Path) -> None:
    ends = (claim.holds.low, claim.holds.high) if claim.holds else ()
    for text in (claim.quantity, claim.published, claim.stated, *ends):
        if isinstance(text, str):
            try:
                check_expression(text, FUNCTIONS, variables)
            except UserError as error:
                raise UserError(f"{path}: claim {claim.key}: {error}") from error
