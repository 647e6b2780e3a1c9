"""Which conclusions of a simulated run hang on an assumption: each end of the range of its strongest parameters."""

from __future__ import annotations

import enum
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import pandas as pd

from analysis import notes
from analysis.frames import IDENTITY, Results, with_costs
from analysis.paired import Comparison, compare
from analysis.provenance import provenance
from analysis.results import read_all
from analysis.sensitivity import Conclusion, World, conclusions, plan
from analysis.source import Source
from analysis.statistics import Estimate
from analysis.table import DAGGER, Entry, Table, shown, signed
from harness.errors import UserError
from harness.runner.config import Preset

FLIP = "‡"


class Decision(enum.StrEnum):
    """What an interval says of a conclusion."""

    HOLDS = "holds"
    OPEN = "open"
    FAILS = "fails"


@dataclass(frozen=True, slots=True)
class Finding:
    """One conclusion in one world: the first row against the second, question by question.

    Attributes:
        calibrated: Whether either side is fitted to the paper.
    """

    conclusion: Conclusion
    found: Comparison
    calibrated: bool

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
    results: Results
    findings: tuple[Finding, ...]


def build(source: Source) -> Table:
    """Build the table: a row a world, a column a conclusion.

    Raises:
        UserError: When the preset has no such worlds, or a cell of one cannot be read.
    """
    found = outcomes(source.run)
    base = found[0]
    printed = _published(base)
    cells = [cell for outcome in found for cell in outcome.results.cells]
    groups: dict[tuple[str, str], dict[str, list[Entry]]] = {}
    watched = list(enumerate(base.findings))
    for _, same in groupby(watched, key=lambda one: (one[1].conclusion.benchmark, one[1].conclusion.measure)):
        together = list(same)
        conclusion, n = together[0][1].conclusion, together[0][1].found.n
        title = f"{base.results.benchmarks[conclusion.benchmark]}, {conclusion.measure}"
        groups[title, f"n = {n}"] = {
            one.conclusion.title: [
                Entry("" if pd.isna(printed[place]) else _text(one.conclusion, printed[place])),
                *(_entry(outcome.findings[place], one) for outcome in found),
            ]
            for place, one in together
        }
    return Table(
        label="simulator-sensitivity",
        caption=(
            "Which conclusions flip when one assumed parameter of the simulated world moves to an end of its range."
            f"{notes.conditions(base.results)}"
        ),
        simulated=True,
        shown=shown([("paper", "in the paper", ""), *map(_labels, found)], ("Parameter", "Value"), groups),
        notes=tuple(_notes(found)),
        provenance=provenance(cells),
        frame=pd.DataFrame([one for outcome in found for one in _records(outcome, base, printed)]),
    )


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
    # The worlds differ in their replies alone.
    data = {cell.run.benchmark: cell.run.data for cell in found[0].results.cells}
    for cell in (cell for outcome in found[1:] for cell in outcome.results.cells):
        if cell.run.data != data[cell.run.benchmark]:
            raise UserError(
                f"{cell.folder} was run on other questions of {cell.run.benchmark} than "
                f"{found[0].results.cells[0].folder}; expected the same in every world; run one of them again"
            )
    return found


def _outcome(world: World, watched: Sequence[Conclusion]) -> Outcome:
    results = Results(read_all(world.folders))
    first = results.cells[0]
    if first.run.preset != world.preset:
        raise UserError(f"{first.folder} is of preset {first.run.preset!r}, expected {world.preset!r}; run it again")
    pairs = sorted({one.keys for one in watched})
    compared = {pair: compare(*(results.trainings[key] for key in pair)) for pair in pairs}
    findings = [
        Finding(
            one,
            compared[one.keys],
            bool(results.measured.loc[list(one.keys), "calibrated"].any()),
        )
        for one in watched
    ]
    return Outcome(world, results, tuple(findings))


def _published(base: Outcome) -> list[float]:
    """The same of the printed values: a difference as a fraction, a ratio of costs by question."""
    frame = with_costs(base.results.frame, base.results)
    found = []
    for finding in base.findings:
        one = finding.conclusion
        own, other = (frame.loc[key] for key in one.keys)
        if one.measure == "cost":
            found.append(own["published_cost_per_query"] / other["published_cost_per_query"])
        else:
            found.append((own["published"] - other["published"]) / 100)
    return found


def _labels(outcome: Outcome) -> tuple[str, str, str]:
    world = outcome.world
    if not world.parameter:
        return "", "as stated", ""
    return world.parameter, f"{world.parameter} ({world.stated:g})", f"{world.value:g}"


def _entry(finding: Finding, base: Finding) -> Entry:
    estimate, conclusion = finding.estimate, finding.conclusion
    low, high = estimate.low, estimate.high
    return Entry(
        text=_text(conclusion, estimate.mean),
        sign=(DAGGER if finding.calibrated else "") + (FLIP if finding.flips(base) else ""),
        beside=finding.decision if finding is base or finding.decision != base.decision else "",
        below=(
            f"{signed(100 * low, 1)}, {signed(100 * high, 1)}"
            if conclusion.measure == "accuracy"
            else f"{low:.2f}–{high:.2f}"
        ),
    )


def _text(conclusion: Conclusion, value: float) -> str:
    return signed(100 * value) if conclusion.measure == "accuracy" else f"×{value:.2f}"


def _notes(found: Sequence[Outcome]) -> Iterator[str]:
    base = found[0]
    yield (
        "Each row is a world of its own: one parameter of config/simulator.yaml as given (in brackets as stated), the "
        "others as stated, abilities and lengths calibrated anew, methods trained anew."
    )
    yield (
        "Accuracy: first minus second in points. Cost: first over second, by question. Below: 95 % interval (bootstrap "
        "over questions). The conclusion is that the first is more accurate, or cheaper."
    )
    yield (
        f"{FLIP}: the point estimate is on the other side than in the world as stated. holds, open, fails: whether the "
        "whole interval is on the side of the conclusion, on neither, on the other; given where it differs from the "
        "world as stated."
    )
    yield f"Flipped ({FLIP}): {'; '.join(_flipped(found)) or 'none'}."
    yield f"Decided otherwise: {'; '.join(_decided(found)) or 'none'}."
    yield (
        f"One training seed ({base.results.cells[0].run.seed}) in each world: the spread between trainings is in no "
        "interval and can alone move a learned row to the other side. With this many comparisons some change by chance."
    )
    if any(finding.calibrated for finding in base.findings):
        yield (
            f"{DAGGER}: one side is fitted to its published accuracy and cost in every world, so only the other "
            "is a result of it."
        )


def _flipped(found: Sequence[Outcome]) -> Iterator[str]:
    """The conclusions that flip anywhere, each with the worlds in which they do."""
    for place, base in enumerate(found[0].findings):
        worlds = [outcome for outcome in found[1:] if outcome.findings[place].flips(base)]
        if worlds:
            yield f"{_named(found[0], base.conclusion)} at {_listed(worlds)}"


def _decided(found: Sequence[Outcome]) -> Iterator[str]:
    """The conclusions whose interval decides otherwise anywhere, with the decision as stated and the others."""
    for place, base in enumerate(found[0].findings):
        by_decision = {
            decision: [outcome for outcome in found if outcome.findings[place].decision == decision]
            for decision in Decision
            if decision != base.decision
        }
        others = [f"{decision} at {_listed(worlds)}" for decision, worlds in by_decision.items() if worlds]
        if others:
            yield f"{_named(found[0], base.conclusion)} {base.decision} as stated, {' and '.join(others)}"


def _named(base: Outcome, conclusion: Conclusion) -> str:
    return f"{conclusion.title} ({base.results.benchmarks[conclusion.benchmark]}, {conclusion.measure})"


def _listed(worlds: Sequence[Outcome]) -> str:
    return ", ".join(f"{outcome.world.parameter} = {outcome.world.value:g}" for outcome in worlds)


def _records(outcome: Outcome, base: Outcome, printed: Sequence[float]) -> Iterator[dict[str, Any]]:
    """One record a world and conclusion: differences are fractions, costs ratios, as in the table's columns."""
    world, measured = outcome.world, outcome.results.measured
    for finding, stated, value in zip(outcome.findings, base.findings, printed, strict=True):
        one = finding.conclusion
        yield {
            "preset": world.preset,
            "parameter": world.parameter,
            "value": world.value if world.parameter else None,
            "benchmark": one.benchmark,
            "measure": one.measure,
            **{
                f"{side}_{name}": key[place]
                for side, key in _sides(one)
                for place, name in ((0, "method"), (1, "backbone"))
            },
            "published": value,
            "measured": finding.estimate.mean,
            "low": finding.estimate.low,
            "high": finding.estimate.high,
            "n": finding.found.n,
            "p_exact": finding.found.discordant.p,
            "decision": str(finding.decision),
            "stated_decision": str(stated.decision),
            "flipped": finding.flips(stated),
            "calibrated": finding.calibrated,
            **{f"{side}_{name}": measured.loc[key, name] for side, key in _sides(one) for name in IDENTITY},
        }


def _sides(conclusion: Conclusion) -> tuple[tuple[str, tuple[str, str, str]], ...]:
    first, second = conclusion.keys
    return (("first", first), ("second", second))
