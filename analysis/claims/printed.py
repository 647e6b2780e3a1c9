"""The side of the paper: numbers of the paper's tables, each with the half unit that its rounding leaves open."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import product
from typing import NamedTuple

import numpy as np

from analysis.claims.numbers import AVERAGE, MEASURES, AbsentError, Numbers, Row, Value
from analysis.published import Published

# Half a unit of the last digit that the paper prints.
_ACCURACY, _COST, _FINE_COST = 0.005, 0.0005, 0.00005
# By measure: the table that prints it, its name there, and half a unit.
_TABLES: Mapping[str, tuple[str, str, float]] = {
    "depth": ("gate_behaviour", "depth", 0.005),
    "write_rate": ("gate_behaviour", "write_rate", 0.05),
    **{name: ("gate_behaviour", name, 0.5) for name in MEASURES if name.startswith("retrieved_")},
    "training_depth": ("halting_training", "depth", 0.05),
    "training_steps": ("halting_training", "steps", 50.0),
    "flops": ("hw_cost", "pflops", 0.0005),
    "seconds": ("hw_cost", "seconds", 0.05),
    **{f"seed_{name}": ("seed_variance", name, 0.005) for name in ("mean", "lowest", "highest")},
}
# A quantity of more numbers than these is not followed into every corner of their rounding.
_MOST_INPUTS = 12
# What has accuracies and costs besides the main table and the cost tables.
_ELSEWHERE = ("ablation", "paradigm", "roles13")


class Computed(NamedTuple):
    """A quantity over the numbers as printed, and what those before rounding allow, itself if they are too many."""

    value: float
    low: float
    high: float


def compute(published: Published, quantity: Callable[[Numbers], Value]) -> Computed:
    """A quantity over the paper's numbers.

    It takes its extremes in the corners of the box of its rounded inputs as long as it is monotone in each of them,
    which differences, ratios, means and the least of them are.

    Raises:
        AbsentError: The paper does not print a number that is needed.
        UserError: The quantity names what does not exist.
    """
    plain = Printed(published)
    value = float(quantity(plain))
    if not 0 < len(plain.read) <= _MOST_INPUTS:
        return Computed(value, value, value)
    corners = np.array(list(product((-1, 1), repeat=len(plain.read)))).T
    shifted = {name: one + half * signs for (name, (one, half)), signs in zip(plain.read.items(), corners, strict=True)}
    values = np.asarray(quantity(Printed(published, shifted)))
    return Computed(value, float(values.min()), float(values.max()))


class Printed(Numbers):
    """The functions over ``published.yaml``; ``read`` has every number that was asked for, and half its unit."""

    def __init__(self, published: Published, instead: Mapping[str, Value] | None = None) -> None:
        """Take some numbers not as printed but as given, by their name in :attr:`read`."""
        super().__init__(published)
        self._instead = instead or {}
        self.read: dict[str, tuple[float, float]] = {}

    def seed_lead(self, row: Row, other: Row) -> Value:
        """The paper prints no value of a single seed but the worst and the best."""
        raise AbsentError(f"the lead of {row[0]} over {other[0]} seed by seed")

    def _at(self, place: int, rows: Sequence[Row], benchmark: str) -> Value:
        values = np.broadcast_arrays(*[self.accuracy(row, benchmark) for row in rows])
        found: Value = np.sort(np.stack(values), axis=0)[-place]
        return found

    def _row_at(self, place: int, rows: Sequence[Row], benchmark: str) -> Row:
        ranked = sorted(rows, key=lambda row: self._main("accuracy", row, benchmark, "") or 0.0, reverse=True)
        return ranked[place - 1]

    def _value(self, measure: str, row: Row, benchmark: str, table: str) -> Value:
        name, value, half = f"{measure} of {' '.join(row)} on {benchmark}", None, _ACCURACY
        if measure in _TABLES:
            table, printed, half = _TABLES[measure]
            name = f"{printed} of {row[0]} on {benchmark}"
            value = self.paper.at(table, row[0], benchmark, printed)
        elif measure in ("accuracy", "cost"):
            value = self._main(measure, row, benchmark, table)
            if measure == "cost":
                half = _COST if value is None or round(value, 3) == value else _FINE_COST
        else:
            name = f"{MEASURES[measure]}, of {row[0]} on {benchmark}"
        name = f"{name} in {table}" if table else name
        if value is None:
            raise AbsentError(name)
        self.read[name] = (value, half)
        return self._instead.get(name, value)

    def _main(self, measure: str, row: Row, benchmark: str, table: str) -> float | None:
        """Accuracy or cost, from the main table or the cost tables unless ``table`` names another."""
        main = next((one for one in self.paper.rows if (one.method, one.backbone) == row), None)
        if main and measure == "accuracy" and not table:
            return main.average if benchmark == AVERAGE else main.accuracies[benchmark].percent
        costs = (one for one in self.paper.costs.get(benchmark, ()) if (one.method, one.backbone) == row)
        if (table == "costs" or (measure == "cost" and not table)) and (found := next(costs, None)):
            return found.accuracy if measure == "accuracy" else found.cost
        others = [table] if table else _ELSEWHERE
        values = (self.paper.at(one, row[0], benchmark, measure) for one in others)
        return next((value for value in values if value is not None), None)
