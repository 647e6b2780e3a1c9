"""Which conclusions of a simulated run hang on an assumption: each end of the range of its strongest parameters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby

from analysis import tables
from analysis.costs import published_cost
from analysis.flips import Decision, Finding, Outcome, outcomes
from analysis.grid import Grid, build_grid
from analysis.notes import conditions
from analysis.provenance import provenance
from analysis.published import load
from analysis.sensitivity import Conclusion
from analysis.sensitivity import Row as Side
from analysis.source import Source
from analysis.tables import Entry, Group, Row, Table
from analysis.tidy import exact, identity

FLIP = "‡"
_HEADS = ("Parameter", "Value")
_CAPTION = "Which conclusions flip when one assumed parameter of the simulated world moves to an end of its range."


def build(source: Source) -> Table:
    """Build the table: a row a world, a column a conclusion.

    Raises:
        UserError: When the preset has no such worlds, or a cell of one cannot be read.
    """
    found = outcomes(source.run)
    base = found[0]
    grid = build_grid(base.cells, load())
    printed = [_published(grid, finding.conclusion) for finding in base.findings]
    return Table(
        label="simulator-sensitivity",
        caption=f"{_CAPTION}{conditions(grid)}",
        simulated=True,
        heads=_HEADS,
        groups=tuple(_groups(grid, base.findings)),
        rows=(_published_row(base.findings, printed), *(_row(outcome, base) for outcome in found)),
        notes=tuple(_notes(grid, found)),
        provenance=provenance([cell for outcome in found for cell in outcome.cells]),
        records=tuple(_records(found, printed)),
    )


def _groups(grid: Grid, findings: Sequence[Finding]) -> Iterator[Group]:
    """Neighbouring conclusions on one benchmark and measure stand under one heading."""
    for _, same in groupby(findings, key=lambda one: (one.conclusion.benchmark, one.conclusion.measure)):
        together = list(same)
        first = together[0]
        title = f"{grid.benchmarks[first.conclusion.benchmark]}, {first.conclusion.measure}"
        yield Group(title, f"n = {first.found.n}", tuple(one.conclusion.title for one in together))


def _published_row(findings: Sequence[Finding], printed: Sequence[float | None]) -> Row:
    entries = [
        Entry("" if value is None else _text(finding.conclusion, value))
        for finding, value in zip(findings, printed, strict=True)
    ]
    return Row("paper", ("in the paper", ""), tuple(entries))


def _row(outcome: Outcome, base: Outcome) -> Row:
    pairs = zip(outcome.findings, base.findings, strict=True)
    return Row(outcome.world.parameter, _labels(outcome), tuple(_entry(*pair) for pair in pairs))


def _labels(outcome: Outcome) -> tuple[str, str]:
    world = outcome.world
    if not world.parameter:
        return "as stated", ""
    return f"{world.parameter} ({world.stated:g})", f"{world.value:g}"


def _entry(finding: Finding, base: Finding) -> Entry:
    estimate, conclusion = finding.estimate, finding.conclusion
    low, high = (_end(conclusion, end) for end in (estimate.low, estimate.high))
    return Entry(
        text=_text(conclusion, estimate.mean),
        sign=(tables.DAGGER if _is_fitted(finding) else "") + (FLIP if finding.flips(base) else ""),
        beside=finding.decision if finding is base or finding.decision != base.decision else "",
        below=f"{low}, {high}" if conclusion.measure == "accuracy" else f"{low}–{high}",
    )


def _text(conclusion: Conclusion, value: float) -> str:
    return tables.signed(100 * value) if conclusion.measure == "accuracy" else f"×{value:.2f}"


def _end(conclusion: Conclusion, value: float) -> str:
    """An end of an interval, with one decimal less than a difference in points."""
    if conclusion.measure == "cost":
        return f"{value:.2f}"
    text = f"{100 * value:+.1f}"
    return text.replace("-", "−") if float(text) else "0.0"


def _published(grid: Grid, conclusion: Conclusion) -> float | None:
    """The same of the printed values: a difference as a fraction, a ratio of costs by question."""
    lines = {(line.method, line.backbone): line for line in grid.lines}
    pair = [lines[row.method, row.backbone] for row in (conclusion.first, conclusion.second)]
    if conclusion.measure == "cost":
        costs = [published_cost(grid.published, line, conclusion.benchmark) for line in pair]
        return None if costs[0] is None or costs[1] is None else costs[0] / costs[1]
    rows = [line.published for line in pair if line.published]
    own = [row.accuracies[conclusion.benchmark].percent for row in rows if conclusion.benchmark in row.accuracies]
    return (own[0] - own[1]) / 100 if len(own) == 2 else None


def _notes(grid: Grid, found: Sequence[Outcome]) -> Iterator[str]:
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
    yield f"Flipped ({FLIP}): {'; '.join(_flipped(grid, found)) or 'none'}."
    yield f"Decided otherwise: {'; '.join(_decided(grid, found)) or 'none'}."
    yield (
        f"One training seed ({base.cells[0].run.seed}) in each world: the spread between trainings is in no interval "
        "and can alone move a learned row to the other side. With this many comparisons some change by chance."
    )
    if any(_is_fitted(finding) for finding in base.findings):
        yield (
            f"{tables.DAGGER}: one side is fitted to its published accuracy and cost in every world, so only the other "
            "is a result of it."
        )


def _flipped(grid: Grid, found: Sequence[Outcome]) -> Iterator[str]:
    """The conclusions that flip anywhere, each with the worlds in which they do."""
    for place, base in enumerate(found[0].findings):
        worlds = [outcome for outcome in found[1:] if outcome.findings[place].flips(base)]
        if worlds:
            yield f"{_named(grid, base.conclusion)} at {_listed(worlds)}"


def _decided(grid: Grid, found: Sequence[Outcome]) -> Iterator[str]:
    """The conclusions whose interval decides otherwise anywhere, with the decision as stated and the others."""
    for place, base in enumerate(found[0].findings):
        by_decision = {
            decision: [outcome for outcome in found if outcome.findings[place].decision == decision]
            for decision in Decision
            if decision != base.decision
        }
        others = [f"{decision} at {_listed(worlds)}" for decision, worlds in by_decision.items() if worlds]
        if others:
            yield f"{_named(grid, base.conclusion)} {base.decision} as stated, {' and '.join(others)}"


def _named(grid: Grid, conclusion: Conclusion) -> str:
    return f"{conclusion.title} ({grid.benchmarks[conclusion.benchmark]}, {conclusion.measure})"


def _listed(worlds: Sequence[Outcome]) -> str:
    return ", ".join(f"{outcome.world.parameter} = {outcome.world.value:g}" for outcome in worlds)


def _records(found: Sequence[Outcome], printed: Sequence[float | None]) -> Iterator[Mapping[str, str]]:
    """One record a world and conclusion: differences are fractions, costs ratios, as in the table's columns."""
    for outcome in found:
        for finding, base, value in zip(outcome.findings, found[0].findings, printed, strict=True):
            yield {**_world(outcome), **_finding(finding, base, value), **_identities(finding)}


def _world(outcome: Outcome) -> dict[str, str]:
    world = outcome.world
    value = exact(world.value) if world.parameter else ""
    return {"preset": world.preset, "parameter": world.parameter, "value": value}


def _finding(finding: Finding, base: Finding, printed: float | None) -> dict[str, str]:
    conclusion, estimate = finding.conclusion, finding.estimate
    return {
        "benchmark": conclusion.benchmark,
        "measure": conclusion.measure,
        **_row_names("first", conclusion.first),
        **_row_names("second", conclusion.second),
        "published": "" if printed is None else exact(printed),
        "measured": exact(estimate.mean),
        "low": exact(estimate.low),
        "high": exact(estimate.high),
        "n": str(finding.found.n),
        "p_exact": exact(finding.found.discordant.p),
        "decision": finding.decision,
        "stated_decision": base.decision,
        "flipped": str(finding.flips(base)).lower(),
        "calibrated": str(_is_fitted(finding)).lower(),
    }


def _row_names(side: str, row: Side) -> dict[str, str]:
    return {f"{side}_method": row.method, f"{side}_backbone": row.backbone}


def _identities(finding: Finding) -> dict[str, str]:
    return {
        f"{side}_{name}": value
        for side, row in (("first", finding.first), ("second", finding.second))
        for name, value in identity(row).items()
    }


def _is_fitted(finding: Finding) -> bool:
    return finding.first.calibrated or finding.second.calibrated
