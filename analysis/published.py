"""The numbers printed in the paper, read from ``config/published.yaml``."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Annotated, Literal, NamedTuple

from annotated_types import MinLen
from pydantic import BeforeValidator, Field, PositiveFloat

from harness.files import ROOT, Declaration, Many, Percentage, Text, read

PATH = ROOT / "config" / "published.yaml"


class Count(NamedTuple):
    """``k`` correct answers out of ``n``."""

    k: int
    n: int


_Count = Annotated[Count, BeforeValidator(lambda text: Count(*map(int, text.split("/"))))]


class PublishedAccuracy(Declaration):
    """One accuracy of the main table, in percent as printed."""

    percent: Percentage = Field(alias="accuracy")
    fit: Literal["rounded", "truncated", "none"]  # how a plausible number of right answers explains it
    counts: Many[_Count] = ()  # all plausible k/n behind it
    near: _Count | None = None  # the closest where none fits


class PublishedMethod(Declaration):
    """What the paper says of a method: its name, the rules of the table that it stands between, "Mul." and "Rout."."""

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
    """Everything this project takes from the paper's result tables."""

    benchmarks: Mapping[str, Text]  # title by key, in the order of the columns
    backbones: Mapping[str, Text]  # title by key; "pool" stands for all of them
    methods: Mapping[str, PublishedMethod]  # by key, in the order of the rows
    variants: Mapping[str, Text]  # titles of the other rows of the further tables
    rows: Annotated[Many[PublishedRow], MinLen(1)] = Field(alias="main")  # the main table from top to bottom
    costs: Mapping[str, Many[PublishedCost]]  # the rows of a cost table by benchmark
    #: The other tables: by table, method, benchmark (or ``overall``) and measure.
    further: Mapping[str, Mapping[str, Mapping[str, Mapping[str, PositiveFloat]]]]
    prices: Mapping[str, Price]  # by backbone


@cache
def load(path: Path = PATH) -> Published:
    """The published numbers; raises UserError where the file breaks its schema."""
    published: Published = read(path, Published)
    return published
