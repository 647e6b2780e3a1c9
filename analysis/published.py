"""The numbers printed in the paper, read from ``config/published.yaml``."""

from collections.abc import Mapping
from functools import cache
from typing import Annotated, Literal, NamedTuple

import pandas as pd
from annotated_types import MinLen
from pydantic import BeforeValidator, Field, PositiveFloat

from harness.files import ROOT, Declaration, Many, Percentage, Text, read
from harness.runner.layout import POOL

KEY = ["method", "backbone", "benchmark"]
#: Stands for the average in place of a benchmark.
AVERAGE = "average"


class Count(NamedTuple):
    """``k`` correct answers out of ``n``."""

    k: int
    n: int


_Count = Annotated[Count, BeforeValidator(lambda text: Count(*map(int, text.split("/"))))]


class PublishedAccuracy(Declaration):
    """One accuracy of the main table, in percent as printed."""

    percent: Percentage = Field(alias="accuracy")
    fit: Literal["rounded", "truncated", "none"]  # how a plausible k/n gives the printed value
    counts: Many[_Count] = ()  # all plausible k/n that give it
    near: _Count | None = None  # the closest k/n if none fits


class PublishedMethod(Declaration):
    """A method in the paper: title, section of the main table, columns "Mul." and "Rout."."""

    title: Text
    family: Text
    multi_agent: bool
    routing: bool


class PublishedRow(Declaration):
    """One row of the main table: accuracies by benchmark and their average, in percent."""

    method: str
    backbone: str
    accuracies: Mapping[str, PublishedAccuracy]
    average: Percentage


class PublishedPrice(Declaration):
    """Billions of parameters of a backbone, and prices per million tokens in the paper's unit."""

    size: PositiveFloat
    input: PositiveFloat
    output: PositiveFloat


class Published(Declaration):
    """Everything this project takes from the paper's result tables."""

    benchmarks: Mapping[str, Text]  # title by key, in the order of the columns
    backbones: Mapping[str, Text]  # title by key; "pool" stands for all of them
    methods: Mapping[str, PublishedMethod]  # by key, in the order of the rows
    variants: Mapping[str, Text]  # titles of rows that only the further tables have
    rows: Annotated[Many[PublishedRow], MinLen(1)] = Field(alias="main")  # the main table from top to bottom
    #: The other tables, by name, row (:func:`row_of`), benchmark (or ``overall``) and measure.
    further: Mapping[str, Mapping[str, Mapping[str, Mapping[str, PositiveFloat]]]]
    prices: Mapping[str, PublishedPrice]  # by backbone

    def table(self, name: str) -> pd.DataFrame:
        """Return ``main`` or a further table by :data:`KEY`, one column a measure."""
        numbers: dict[tuple[str, str, str], Mapping[str, float]] = {}
        if name == "main":
            for row in self.rows:
                values = {key: accuracy.percent for key, accuracy in row.accuracies.items()} | {AVERAGE: row.average}
                numbers |= {(row.method, row.backbone, key): {"accuracy": value} for key, value in values.items()}
        for row_name, by_benchmark in self.further.get(name, {}).items():
            numbers |= {(*row_of(row_name), key): dict(measures) for key, measures in by_benchmark.items()}
        index = pd.MultiIndex.from_tuples(numbers, names=KEY)
        return pd.DataFrame(list(numbers.values()), index, dtype=float)


def row_of(name: str) -> tuple[str, str]:
    """Return method and backbone of a row: ``method backbone``, or a method alone, as in most further tables."""
    method, _, backbone = name.partition(" ")
    return method, backbone or ("qwen-2.5-32B" if method == "puppeteer" else POOL)


@cache
def load() -> Published:
    """Load the published numbers. Raises UserError if the file breaks its schema."""
    published: Published = read(ROOT / "config" / "published.yaml", Published)
    return published
