"""The numbers printed in the paper, read from ``config/published.yaml``."""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from analysis.schema import check
from harness.errors import UserError
from harness.files import ROOT

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


@dataclass(frozen=True, slots=True)
class PublishedAccuracy:
    """One accuracy of the main table.

    Attributes:
        percent: As printed, with two decimals.
        fit: Whether a plausible number of test questions explains the value.
        counts: Every plausible ``k/n`` behind it; empty where ``fit`` is ``none``.
        near: The closest plausible ``k/n`` where none fits.
    """

    percent: float
    fit: Fit
    counts: tuple[Count, ...]
    near: Count | None


@dataclass(frozen=True, slots=True)
class PublishedMethod:
    """What the paper says of a method.

    Attributes:
        title: The name in print.
        family: Methods of one family stand between the same two rules of the table.
        multi_agent: Whether several agents take part (column "Mul.").
        routing: Whether it routes over the pool of backbones (column "Rout.").
    """

    title: str
    family: str
    multi_agent: bool
    routing: bool


@dataclass(frozen=True, slots=True)
class PublishedRow:
    """One row of the main table: accuracies by benchmark key and their average, all in percent."""

    method: str
    backbone: str
    accuracies: Mapping[str, PublishedAccuracy]
    average: float


@dataclass(frozen=True, slots=True)
class PublishedCost:
    """One row of a cost table: accuracy in percent, cost as the total over the test set."""

    method: str
    backbone: str
    accuracy: float
    cost: float


@dataclass(frozen=True, slots=True)
class Price:
    """Size of a backbone in billions of parameters, and its prices for a million tokens in the paper's unit."""

    size: float
    input: float
    output: float


@dataclass(frozen=True, slots=True)
class Published:
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

    benchmarks: Mapping[str, str]
    backbones: Mapping[str, str]
    methods: Mapping[str, PublishedMethod]
    rows: tuple[PublishedRow, ...]
    costs: Mapping[str, tuple[PublishedCost, ...]]
    further: Mapping[str, Mapping[str, Mapping[str, Mapping[str, float]]]]
    prices: Mapping[str, Price]

    def at(self, table: str, method: str, benchmark: str, measure: str) -> float | None:
        """A number of one of the further tables, ``None`` where it prints none.

        Raises:
            KeyError: There is no such table.
        """
        return self.further[table].get(method, {}).get(benchmark, {}).get(measure)


def load(path: Path = PATH) -> Published:
    """Read the published numbers.

    Raises:
        UserError: On any slip of the file: an unknown key, a missing column, a name declared nowhere, a row twice.
    """
    document = yaml.safe_load(path.read_text(encoding="utf-8"))
    check(document, "published", path)
    published = Published(
        benchmarks=document["benchmarks"],
        backbones=document["backbones"],
        methods={key: PublishedMethod(**method) for key, method in document["methods"].items()},
        rows=tuple(_row(row) for row in document["main"]),
        costs={key: tuple(PublishedCost(**row) for row in rows) for key, rows in document["costs"].items()},
        further=document["further"],
        prices={key: Price(**price) for key, price in document["prices"].items()},
    )
    _check_names(published, path)
    return published


def _row(row: Mapping[str, Any]) -> PublishedRow:
    accuracies = {key: _accuracy(cell) for key, cell in row["accuracies"].items()}
    return PublishedRow(row["method"], row["backbone"], accuracies, row["average"])


def _accuracy(cell: Mapping[str, Any]) -> PublishedAccuracy:
    counts = tuple(_count(text) for text in cell.get("counts", ()))
    near = _count(cell["near"]) if "near" in cell else None
    return PublishedAccuracy(cell["accuracy"], Fit(cell["fit"]), counts, near)


def _count(text: str) -> Count:
    k, n = text.split("/")
    return Count(int(k), int(n))


def _check_names(published: Published, path: Path) -> None:
    """What a schema cannot say: every name is declared, every row stands once and has every column."""
    benchmarks = list(published.benchmarks)
    for row in published.rows:
        if sorted(row.accuracies) != sorted(benchmarks):
            raise UserError(
                f"{path}: {row.method} with {row.backbone} has accuracies for {', '.join(row.accuracies)}; "
                f"expected one for each of {', '.join(benchmarks)}; add or remove the difference"
            )
    _check_rows(published, path, "main", published.rows)
    for benchmark, rows in published.costs.items():
        if benchmark not in published.benchmarks:
            raise UserError(f"{path}: costs of {benchmark!r}, which benchmarks does not list; add it there")
        _check_rows(published, path, f"costs of {benchmark}", rows)


def _check_rows(published: Published, path: Path, table: str, rows: Iterable[PublishedRow | PublishedCost]) -> None:
    keys = [(row.method, row.backbone) for row in rows]
    for method, backbone in keys:
        if method not in published.methods or backbone not in published.backbones:
            raise UserError(
                f"{path}: {table}: {method} with {backbone} names a method or backbone that is not declared; "
                "declare it at the top of the file"
            )
    twice = [key for key, times in Counter(keys).items() if times > 1]
    if twice:
        raise UserError(f"{path}: {table}: {twice[0][0]} with {twice[0][1]} stands twice; keep one of them")
