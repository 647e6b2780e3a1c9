"""The side of the print: numbers of the paper's tables, each with the half unit that its rounding leaves open."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import product
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from analysis.claims.numbers import AVERAGE, OVERALL, OWN, AbsentError, Numbers, Value
from analysis.published import Published, PublishedCost, PublishedRow
from harness.runner.config import POOL

# Half a unit of the last digit that the paper prints; what is not here is exact.
_ACCURACY, _COST, _FINE_COST = 0.005, 0.0005, 0.00005
_HALF = {
    "gate_behaviour": {"depth": 0.005, "write_rate": 0.05},
    "halting_training": {"depth": 0.05, "steps": 50.0},
    "hw_cost": {"pflops": 0.0005, "seconds": 0.05},
    "seed_variance": {"mean": 0.005, "lowest": 0.005, "highest": 0.005},
}
_RETRIEVED = 0.5
# A quantity of more numbers than these is not followed into every corner of their rounding.
_MOST_INPUTS = 12
_ELSEWHERE = ("ablation", "paradigm", "roles13")


class Computed(NamedTuple):
    """A quantity over printed numbers.

    Attributes:
        value: From the numbers as printed.
        low: The least that the numbers before rounding allow; the value itself where they are too many to tell.
        high: The most.
    """

    value: float
    low: float
    high: float


def compute(published: Published, quantity: Callable[[Numbers], Value]) -> Computed:
    """A quantity over the print.

    It takes its extremes in the corners of the box of its rounded inputs as long as it is monotone in each of them,
    which differences, ratios, means and the least of them are.

    Raises:
        AbsentError: The paper does not print a number that is needed.
        UserError: The quantity names what does not exist.
    """
    plain = Printed(published)
    value = float(quantity(plain))
    rounded = {key: place for key, place in plain.read.items() if place.half}
    if not 0 < len(rounded) <= _MOST_INPUTS:
        return Computed(value, value, value)
    corners = np.array(list(product((-1, 1), repeat=len(rounded)))).T
    shifted = {
        key: place.value + place.half * signs for (key, place), signs in zip(rounded.items(), corners, strict=True)
    }
    values = np.asarray(quantity(Printed(published, shifted)))
    return Computed(value, float(values.min()), float(values.max()))


class _Place(NamedTuple):
    value: float
    half: float


class Printed(Numbers):
    """The functions over ``published.yaml``.

    Attributes:
        read: Every number that was asked for.
    """

    def __init__(self, published: Published, instead: Mapping[str, Value] = MappingProxyType({})) -> None:
        """Take some numbers not as printed but as given, by their name in :attr:`read`."""
        super().__init__(published)
        self._instead = instead
        self.read: dict[str, _Place] = {}

    def accuracy(self, method: str, benchmark: str, backbone: str = POOL, table: str = "") -> Value:
        """From the main table unless ``table`` names another; from whichever has it for a variant of GMR."""
        self._check_names(method, benchmark, backbone)
        name = f"accuracy of {method} {backbone} on {benchmark}"
        return self._number(f"{name}{table and f' in {table}'}", self._accuracy(method, benchmark, backbone, table))

    def cost(self, method: str, benchmark: str, backbone: str = POOL, table: str = "") -> Value:
        """The total over the test set; from the cost tables unless ``table`` names another."""
        self._check_names(method, benchmark, backbone)
        name = f"cost of {method} {backbone} on {benchmark}"
        value = self._cost(method, benchmark, backbone, table)
        half = _COST if value is None or round(value, 3) == value else _FINE_COST
        return self._number(f"{name}{table and f' in {table}'}", value, half)

    def strongest_cost(self, benchmark: str) -> Value:
        """Of the row with the highest accuracy as printed, whatever its rounding leaves open."""
        self._check_names(OWN, benchmark, POOL)
        ranked = {row: self._accuracy(row[0], benchmark, row[1], "") or 0.0 for row in self._multi_agent()}
        method, backbone = max(ranked, key=ranked.__getitem__)
        return self.cost(method, benchmark, backbone)

    def depth(self, method: str, benchmark: str) -> Value:
        """From the table of gate behaviour."""
        return self._further("gate_behaviour", method, benchmark, "depth")

    def steps_share(self, method: str, benchmark: str, steps: int) -> Value:
        """The paper prints none."""
        self._check_names(method, benchmark, POOL)
        raise AbsentError(f"the share of trajectories of {method} on {benchmark} with {steps} steps")

    def depth_by_difficulty(self, benchmark: str) -> Value:
        """The paper prints nothing of single questions."""
        self._check_names(OWN, benchmark, POOL)
        raise AbsentError(f"the depth of {OWN} on {benchmark} question by question")

    def write_rate(self, benchmark: str) -> Value:
        """From the table of gate behaviour."""
        return self._further("gate_behaviour", "gmr", benchmark, "write_rate")

    def retrieved(self, benchmark: str, step: int) -> Value:
        """From the table of gate behaviour."""
        return self._further("gate_behaviour", "gmr", benchmark, f"retrieved_{step}")

    def lowest_entropy(self, benchmark: str, gate: str) -> Value:
        """The paper prints none."""
        self._check_names("gmr", benchmark, POOL)
        raise AbsentError(f"the entropy of the {gate} gate on {benchmark}")

    def training_steps(self, method: str, benchmark: str) -> Value:
        """From the table of training computation."""
        return self._further("halting_training", method, benchmark, "steps")

    def training_depth(self, method: str, benchmark: str) -> Value:
        """From the table of training computation."""
        return self._further("halting_training", method, benchmark, "depth")

    def flops(self, method: str, benchmark: str, backbone: str = POOL) -> Value:
        """From the table of FLOPs and time."""
        return self._further("hw_cost", method, benchmark, "pflops")

    def seconds(self, method: str, benchmark: str, backbone: str = POOL) -> Value:
        """From the table of FLOPs and time."""
        return self._further("hw_cost", method, benchmark, "seconds")

    def seed_mean(self, method: str, benchmark: str, backbone: str = POOL) -> Value:
        """From the table of seeds."""
        return self._further("seed_variance", method, benchmark, "mean")

    def seed_lowest(self, method: str, backbone: str = POOL) -> Value:
        """From the text on seeds."""
        return self._further("seed_variance", method, OVERALL, "lowest")

    def seed_highest(self, method: str, backbone: str = POOL) -> Value:
        """From the text on seeds."""
        return self._further("seed_variance", method, OVERALL, "highest")

    def seed_lead(self, method: str, backbone: str, other: str, its: str) -> Value:
        """The paper prints no value of a single seed but the worst and the best."""
        for row, runs in ((method, backbone), (other, its)):
            self._check_names(row, OVERALL, runs)
        raise AbsentError(f"the lead of {method} over {other} seed by seed")

    def roles(self, domain: str) -> Value:
        """In no table; a claim gives what the text says."""
        self._check_domain(domain)
        raise AbsentError(f"the number of {domain} roles")

    def _accuracy(self, method: str, benchmark: str, backbone: str, table: str) -> float | None:
        if table == "costs":
            found = [row.accuracy for row in self._paper.costs[benchmark] if self._is(row, method, backbone)]
            return found[0] if found else None
        row = next((row for row in self._paper.rows if self._is(row, method, backbone)), None)
        if table or row is None:
            return self._elsewhere(table, method, benchmark, "accuracy")
        return row.average if benchmark == AVERAGE else row.accuracies[benchmark].percent

    def _cost(self, method: str, benchmark: str, backbone: str, table: str) -> float | None:
        rows = self._paper.costs.get(benchmark, ())
        found = next((row.cost for row in rows if self._is(row, method, backbone)), None)
        return self._elsewhere(table, method, benchmark, "cost") if table or found is None else found

    def _elsewhere(self, table: str, method: str, benchmark: str, measure: str) -> float | None:
        found = [self._paper.at(one, method, benchmark, measure) for one in ([table] if table else _ELSEWHERE)]
        return next((value for value in found if value is not None), None)

    def _further(self, table: str, method: str, benchmark: str, measure: str) -> Value:
        self._check_names(method, benchmark, POOL)
        value = self._paper.at(table, method, benchmark, measure)
        name = f"{measure} of {method} on {benchmark} in {table}"
        return self._number(name, value, _HALF[table].get(measure, _RETRIEVED))

    def _number(self, name: str, value: float | None, half: float = _ACCURACY) -> Value:
        if value is None:
            raise AbsentError(name)
        self.read[name] = _Place(value, half)
        return self._instead.get(name, value)

    @staticmethod
    def _is(row: PublishedRow | PublishedCost, method: str, backbone: str) -> bool:
        return (row.method, row.backbone) == (method, backbone)
