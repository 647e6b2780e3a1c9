"""The numbers printed in the paper, read from ``config/published.yaml``."""

from __future__ import annotations

import enum
import re
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Annotated, NamedTuple, Self

from annotated_types import MinLen
from pydantic import AfterValidator, Field, PlainValidator, PositiveFloat, Strict, model_validator

from harness.files import ROOT, Declaration, Many, Percentage, Text, read

PATH = ROOT / "config" / "published.yaml"


class Count(NamedTuple):
    """``k`` correct answers out of ``n``."""

    k: int
    n: int


class Fit(enum.StrEnum):
    """How a printed percentage relates to a whole number of correct answers."""

    ROUNDED = "rounded"
    TRUNCATED = "truncated"
    NONE = "none"


def _count(text: object) -> Count:
    found = re.fullmatch(r"([0-9]+)/([1-9][0-9]*)", text) if isinstance(text, str) else None
    if found is None:
        raise ValueError(f"{text!r} should be correct answers out of all, such as 43/50")
    return Count(int(found[1]), int(found[2]))


def _of_known_measures(values: Mapping[str, float]) -> Mapping[str, float]:
    for measure, value in values.items():
        if measure not in (*_PERCENTAGES, *_AMOUNTS):
            raise ValueError(f"unknown measure {measure!r}; known: {', '.join((*_PERCENTAGES, *_AMOUNTS))}")
        if not (0 <= value <= 100 if measure in _PERCENTAGES else value > 0):
            raise ValueError(
                f"{measure}: {value} should be {'from 0 to 100' if measure in _PERCENTAGES else 'above 0'}"
            )
    return values


_PERCENTAGES = ("accuracy", "mean", "highest", "lowest", "write_rate", *(f"retrieved_{n}" for n in range(1, 6)))
_AMOUNTS = ("cost", "pflops", "seconds", "sd", "depth", "steps")
_Count = Annotated[Count, PlainValidator(_count)]
_Measures = Annotated[Mapping[str, float], MinLen(1), AfterValidator(_of_known_measures)]


class PublishedAccuracy(Declaration):
    """One accuracy of the main table.

    Attributes:
        percent: As printed, with two decimals.
        fit: Whether a plausible number of test questions explains the value.
        counts: Every plausible ``k/n`` behind it; empty where ``fit`` is ``none``.
        near: The closest plausible ``k/n`` where none fits.
    """

    percent: Percentage = Field(alias="accuracy")
    fit: Annotated[Fit, Strict(False)]
    counts: Many[_Count] = ()
    near: _Count | None = None

    @model_validator(mode="after")
    def _explained(self) -> Self:
        if (self.fit is Fit.NONE, self.fit is Fit.NONE) != (self.near is not None, not self.counts):
            raise ValueError(f"fit {self.fit} goes with {'`near` alone' if self.fit is Fit.NONE else '`counts` alone'}")
        return self


class PublishedMethod(Declaration):
    """What the paper says of a method.

    Attributes:
        title: The name in print.
        family: Methods of one family stand between the same two rules of the table.
        multi_agent: Whether several agents take part (column "Mul.").
        routing: Whether it routes over the pool of backbones (column "Rout.").
    """

    title: Text
    family: Text
    multi_agent: bool
    routing: bool


class PublishedRow(Declaration):
    """One row of the main table: accuracies by benchmark key and their average, all in percent."""

    method: str
    backbone: str
    accuracies: Mapping[str, PublishedAccuracy]
    average: Percentage


class PublishedCost(Declaration):
    """One row of a cost table: accuracy in percent, cost as the total over the test set."""

    method: str
    backbone: str
    accuracy: Percentage
    cost: PositiveFloat


class Price(Declaration):
    """Size of a backbone in billions of parameters, and its prices for a million tokens in the paper's unit."""

    size: PositiveFloat
    input: PositiveFloat
    output: PositiveFloat


class Published(Declaration):
    """Everything this project takes from the paper's result tables.

    Attributes:
        benchmarks: Title by key, in the order of the columns.
        backbones: Title by key; ``"pool"`` stands for all of them.
        methods: By key, in the order of the rows.
        rows: The main table from top to bottom.
        costs: The rows of a cost table by benchmark key.
        further: The other tables: by table, method, benchmark (or ``overall``) and measure.
        prices: The price table, by backbone.
    """

    benchmarks: Mapping[str, Text]
    backbones: Mapping[str, Text]
    methods: Mapping[str, PublishedMethod]
    rows: Annotated[Many[PublishedRow], MinLen(1)] = Field(alias="main")
    costs: Mapping[str, Many[PublishedCost]]
    further: Mapping[str, Mapping[str, Mapping[str, _Measures]]]
    prices: Mapping[str, Price]

    def at(self, table: str, method: str, benchmark: str, measure: str) -> float | None:
        """A number of one of the further tables, ``None`` where it prints none.

        Raises:
            KeyError: There is no such table.
        """
        return self.further[table].get(method, {}).get(benchmark, {}).get(measure)

    @model_validator(mode="after")
    def _names_and_rows(self) -> Self:
        """Every name is declared, every row stands once and has every column."""
        for row in self.rows:
            if row.accuracies.keys() != self.benchmarks.keys():
                raise ValueError(
                    f"{row.method} with {row.backbone} has accuracies for {', '.join(row.accuracies)}; expected one "
                    f"for each of {', '.join(self.benchmarks)}; add or remove the difference"
                )
        self._check_rows("main", self.rows)
        for benchmark, rows in self.costs.items():
            if benchmark not in self.benchmarks:
                raise ValueError(f"costs of {benchmark!r}, which benchmarks does not list; add it there")
            self._check_rows(f"costs of {benchmark}", rows)
        return self

    def _check_rows(self, table: str, rows: Iterable[PublishedRow | PublishedCost]) -> None:
        seen: set[tuple[str, str]] = set()
        for row in rows:
            if row.method not in self.methods or row.backbone not in self.backbones:
                raise ValueError(
                    f"{table}: {row.method} with {row.backbone} names a method or backbone that is not declared; "
                    "declare it at the top of the file"
                )
            if (row.method, row.backbone) in seen:
                raise ValueError(f"{table}: {row.method} with {row.backbone} stands twice; keep one of them")
            seen.add((row.method, row.backbone))


@cache
def load(path: Path = PATH) -> Published:
    """Read the published numbers.

    Raises:
        UserError: On any slip of the file: an unknown key, a missing column, a name declared nowhere, a row twice.
    """
    published: Published = read(path, Published)
    return published
