"""What each world of a sensitivity run says of each conclusion, and which conclusions flip between two of them."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass

from analysis.comparable import read_comparable
from analysis.measures import Measurement, measure
from analysis.paired import Comparison, compare
from analysis.results import Cell
from analysis.sensitivity import Conclusion, World, conclusions, plan
from analysis.statistics import Estimate
from harness.errors import UserError
from harness.runner.config import Preset


class Decision(enum.StrEnum):
    """What an interval says of a conclusion."""

    HOLDS = "holds"
    OPEN = "open"
    FAILS = "fails"


@dataclass(frozen=True, slots=True)
class Finding:
    """One conclusion in one world.

    Attributes:
        first: What the row it is about scored and spent.
        second: The row it is compared with.
        found: The first against the second, question by question.
    """

    conclusion: Conclusion
    first: Measurement
    second: Measurement
    found: Comparison

    @property
    def estimate(self) -> Estimate:
        """First minus second as a fraction; of costs, first over second."""
        return self.found.accuracy if self.conclusion.measure == "accuracy" else self.found.cost_ratio

    def flips(self, stated: Finding) -> bool:
        """Whether the point estimate is on the other side than in the world as stated; a tie is on neither."""
        return self._margin(self.estimate.mean) * self._margin(stated.estimate.mean) < 0

    @property
    def decision(self) -> Decision:
        """Whether the whole interval lies on one side."""
        ends = [self._margin(end) for end in (self.estimate.low, self.estimate.high)]
        if min(ends) > 0:
            return Decision.HOLDS
        return Decision.FAILS if max(ends) < 0 else Decision.OPEN

    def _margin(self, value: float) -> float:
        """Above zero where a value speaks for the conclusion."""
        return value if self.conclusion.measure == "accuracy" else 1 - value


@dataclass(frozen=True, slots=True)
class Outcome:
    """All conclusions in one world, in their order."""

    world: World
    cells: tuple[Cell, ...]
    findings: tuple[Finding, ...]


def outcomes(preset: Preset) -> list[Outcome]:
    """Read every world of a preset, the one as stated first.

    Raises:
        UserError: The preset has no such worlds, a cell is missing, or a world was run on other questions.
    """
    worlds = plan(preset)
    if not worlds:
        raise UserError(
            f"preset {preset.name} has no worlds to compare: config/sensitivity.yaml needs simulated backbones as "
            "stated, and a benchmark and backbones that it names; choose another preset"
        )
    found = [_outcome(world, conclusions(preset)) for world in worlds]
    for outcome in found[1:]:
        _check_questions(found[0], outcome)
    return found


def _outcome(world: World, watched: Sequence[Conclusion]) -> Outcome:
    cells = read_comparable(world.folders)
    if cells[0].run.preset != world.preset:
        raise UserError(
            f"{cells[0].folder} is of preset {cells[0].run.preset!r}, expected {world.preset!r}; run the cell again"
        )
    measured = measure(cells)
    pairs = {one.keys for one in watched}
    compared = {pair: compare(measured[pair[0]], measured[pair[1]]) for pair in sorted(pairs)}
    findings = [Finding(one, measured[one.keys[0]], measured[one.keys[1]], compared[one.keys]) for one in watched]
    return Outcome(world, cells, tuple(findings))


def _check_questions(stated: Outcome, changed: Outcome) -> None:
    """The worlds differ in their replies alone."""
    data = {cell.run.benchmark: cell.run.data for cell in stated.cells}
    for cell in changed.cells:
        if cell.run.data != data[cell.run.benchmark]:
            raise UserError(
                f"{cell.folder} was run on other questions of {cell.run.benchmark} than {stated.cells[0].folder}; "
                "expected the same in every world; run one of them again"
            )
