"""One row of the main table against every other: the pairs, what the paper prints of them, and their tidy form."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from analysis import tables
from analysis.costs import published_cost
from analysis.grid import Grid, Line
from analysis.measures import Measurement
from analysis.paired import Comparison, compare, holm
from analysis.statistics import Estimate, macro_average
from analysis.tidy import AVERAGE, even, exact, identity_of, in_percent, plain
from harness.benchmarks.items import Status
from harness.errors import UserError


class Pair(NamedTuple):
    """A row and the reference on one benchmark.

    Attributes:
        row: What the row scored and spent.
        reference: What the reference did.
        found: The reference against the row.
        p: Of the exact test, adjusted after Holm over the benchmarks of the row.
    """

    row: Measurement
    reference: Measurement
    found: Comparison
    p: float

    @property
    def calibrated(self) -> bool:
        """Whether either side was fitted to the paper."""
        return self.row.calibrated or self.reference.calibrated


@dataclass(frozen=True)
class Against:
    """Every row of a grid against one of them.

    Attributes:
        grid: The rows and benchmarks.
        reference: The row that the others are compared with.
    """

    grid: Grid
    reference: Line

    @classmethod
    def of(cls, grid: Grid, method: str) -> Against:
        """Against the row of a method: the first that was run, else its first, of which only printed values are known.

        Raises:
            UserError: The grid has no row of the method.
        """
        found = [line for line in grid.lines if line.method == method]
        if not found:
            known = ", ".join(dict.fromkeys(line.method for line in grid.lines))
            raise UserError(f"reference {method!r} is no row of this table; expected one of {known}; name one of them")
        run = [line for line in found if any(grid.at(line, key) for key in grid.benchmarks)]
        return cls(grid, (run or found)[0])

    @property
    def lines(self) -> list[Line]:
        """The other rows."""
        return [line for line in self.grid.lines if line is not self.reference]

    @cached_property
    def pairs(self) -> Mapping[tuple[str, str], Mapping[str, Pair]]:
        """By method and backbone, then by benchmark, where both were run."""
        return {(line.method, line.backbone): self._pairs(line) for line in self.lines}

    def at(self, line: Line, benchmark: str) -> Pair | None:
        """What was found, ``None`` unless both were run."""
        return self.pairs[line.method, line.backbone].get(benchmark)

    def published_difference(self, line: Line, benchmark: str) -> float | None:
        """Reference minus row in points, of the printed accuracies; ``None`` without both."""
        rows = [one.published for one in (self.reference, line)]
        cells = [row.accuracies[benchmark].percent for row in rows if row and benchmark in row.accuracies]
        return cells[0] - cells[1] if len(cells) == 2 else None

    def average(self, line: Line) -> Estimate | None:
        """Reference minus row, a fraction, on average over the paper's benchmarks.

        ``None`` unless both have an average, that is all benchmarks with the same seeds. The benchmarks share no
        question and no training, so the variances of their differences add.
        """
        if self.grid.average(line) is None or self.grid.average(self.reference) is None:
            return None
        pairs = self.pairs[line.method, line.backbone]
        return macro_average([pairs[key].found.accuracy for key in self.grid.published.benchmarks], lowest=-1)

    def published_average(self, line: Line) -> float | None:
        """Reference minus row in points, of the printed averages; ``None`` without both."""
        rows = [one.published for one in (self.reference, line) if one.published]
        return rows[0].average - rows[1].average if len(rows) == 2 else None

    def is_calibrated(self, line: Line) -> bool:
        """Whether any number behind the average was fitted to the paper."""
        return self.grid.is_calibrated(line) or self.grid.is_calibrated(self.reference)

    def published_ratio(self, line: Line, benchmark: str) -> float | None:
        """Reference over row, of the printed costs by question; ``None`` without both."""
        own, other = (published_cost(self.grid.published, one, benchmark) for one in (self.reference, line))
        return None if own is None or other is None else own / other

    def records(self) -> tuple[Mapping[str, str], ...]:
        """Every row and benchmark, the pairs that were not run included.

        Accuracies, their differences and the ends of their intervals are in percent or points; costs of a question are
        in the paper's unit. What identifies the runs of the reference has its own fields. Where the grid has an
        average, it follows the benchmarks of a row under their key :data:`analysis.tidy.AVERAGE`.
        """
        return even([record for line in self.lines for record in self._row(line)])

    def _row(self, line: Line) -> list[dict[str, str]]:
        found = [self._record(line, key) for key in self.grid.benchmarks]
        return [*found, self._average(line)] if self.grid.has_average else found

    def _average(self, line: Line) -> dict[str, str]:
        printed, found = self.published_average(line), self.average(line)
        record = {
            "reference": self.reference.method,
            "method": line.method,
            "backbone": line.backbone,
            "benchmark": AVERAGE,
            "published_difference": "" if printed is None else plain(tables.signed(printed)),
        }
        own, other = self.grid.average(line), self.grid.average(self.reference)
        if found is None or own is None or other is None:
            return record
        return record | {
            "reference_accuracy": in_percent(other.mean),
            "accuracy": in_percent(own.mean),
            **_estimate("difference", found, 100),
            "calibrated": str(self.is_calibrated(line)).lower(),
            **_identities(self.grid.row(line), self.grid.row(self.reference)),
        }

    def _pairs(self, line: Line) -> dict[str, Pair]:
        both = {key: (self.grid.at(line, key), self.grid.at(self.reference, key)) for key in self.grid.benchmarks}
        found = {key: (own, other, compare(other, own)) for key, (own, other) in both.items() if own and other}
        adjusted = holm([comparison.discordant.p for _, _, comparison in found.values()])
        return {key: Pair(*parts, p) for (key, parts), p in zip(found.items(), adjusted, strict=True)}

    def _record(self, line: Line, benchmark: str) -> dict[str, str]:
        difference, ratio = self.published_difference(line, benchmark), self.published_ratio(line, benchmark)
        pair = self.at(line, benchmark)
        return {
            "reference": self.reference.method,
            "method": line.method,
            "backbone": line.backbone,
            "benchmark": benchmark,
            "published_difference": "" if difference is None else plain(tables.signed(difference)),
            "published_cost_ratio": "" if ratio is None else exact(ratio),
            **(_measured(pair) if pair else {}),
        }


def _measured(pair: Pair) -> dict[str, str]:
    found, discordant = pair.found, pair.found.discordant
    return {
        "n": str(found.n),
        "reference_accuracy": in_percent(pair.reference.accuracy.mean),
        "accuracy": in_percent(pair.row.accuracy.mean),
        "reference_without_verdict": in_percent(1 - pair.reference.shares[Status.GRADED]),
        "without_verdict": in_percent(1 - pair.row.shares[Status.GRADED]),
        **_estimate("difference", found.accuracy, 100),
        "difference_first_seed": exact(100 * found.first_seed),
        "reference_right_alone": str(discordant.first),
        "row_right_alone": str(discordant.second),
        "p_exact": exact(discordant.p),
        "p_holm": exact(pair.p),
        "odds_ratio": _number(discordant.odds_ratio),
        "cohens_g": exact(discordant.cohens_g),
        "detectable_difference": exact(100 * found.detectable),
        **_estimate("cost_difference", found.cost),
        **_estimate("cost_ratio", found.cost_ratio),
        **_estimate("cost_ratio_all_calls", found.cost_ratio_all_calls),
        "calibrated": str(pair.calibrated).lower(),
        **_identities([pair.row], [pair.reference]),
    }


def _identities(row: Sequence[Measurement], reference: Sequence[Measurement]) -> dict[str, str]:
    own, other = (identity_of([cell for one in part for cell in one.cells]) for part in (row, reference))
    return {**own, **{f"reference_{name}": value for name, value in other.items()}}


def _estimate(name: str, estimate: Estimate, unit: float = 1) -> dict[str, str]:
    ends = {name: estimate.mean, f"{name}_low": estimate.low, f"{name}_high": estimate.high}
    return {key: _number(unit * value) for key, value in ends.items()}


def _number(value: float) -> str:
    return "" if math.isnan(value) else exact(value)
