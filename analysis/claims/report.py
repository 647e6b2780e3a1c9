"""The report on all claims: what every file format is made from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeAlias

from analysis.claims.declared import Claim
from analysis.claims.judge import Finding, Judged, Outcome, Part, judge
from analysis.claims.readings import Run, Seeds, Timed, by_key
from analysis.claims.statements import CLAIMS
from analysis.frames import Results
from analysis.notes import conditions
from analysis.provenance import by_server, provenance, table_run_id, warning
from analysis.published import Published, load
from analysis.results import Cell, short
from analysis.results import Run as Record
from analysis.source import Source
from analysis.table import DAGGER
from analysis.timings import read_timings
from harness.runner import config

LABEL = "claims"
# How keys of benchmarks, methods and backbones read.
Titles: TypeAlias = Mapping[str, str]


@dataclass(frozen=True)
class Report:
    """Every claim, judged.

    Attributes:
        judged: In the order of the declaration.
        published: Names for what the claims are about.
        cells: The finished cells there were; none where the print alone was judged.
        timings: How many timing jobs there were.
        seeds: Those that there ought to be.
    """

    judged: tuple[Judged, ...]
    published: Published
    cells: tuple[Cell, ...]
    timings: int = 0
    seeds: Seeds = field(default_factory=Seeds)

    @property
    def simulated(self) -> bool:
        """Whether the backbones were simulated."""
        return any(cell.run.simulated for cell in self.cells)

    @property
    def warning(self) -> str:
        """The sentence about simulated backbones, or nothing."""
        return warning(self.simulated)

    @property
    def title(self) -> str:
        """What the report is about, in a line."""
        if not self.cells:
            return "The statements of the paper, held against its own numbers"
        return f"The statements of the paper, held against its own numbers and the run {self.cells[0].run.preset!r}"

    @property
    def sections(self) -> Mapping[str, Sequence[Judged]]:
        """The claims by section, in the order of first appearance."""
        found: dict[str, list[Judged]] = {}
        for one in self.judged:
            found.setdefault(one.claim.section, []).append(one)
        return found

    @property
    def summary(self) -> tuple[str, ...]:
        """How many claims came out which way, a sentence a side."""
        print_ = _counted(one.consistency for one in self.judged)
        if not self.cells:
            return (f"In print: {print_}.", "No finished cell: no run was judged.")
        verdicts = _counted(one.verdict for one in self.judged)
        shown = _counted(one.outcome for one in self.judged if one.outcome in _DECIDED)
        rehearsal = f" The rehearsed ones, in the simulation: {shown or 'none'}." if self.simulated else ""
        return (f"In print: {print_}.", f"In this run: {verdicts}.{rehearsal}")

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader must know."""
        return (_PRINT_NOTE, *(self._run_notes() if self.cells else ()))

    @property
    def provenance(self) -> dict[str, str]:
        """What identifies the run."""
        return {**provenance(self.cells), "timings": str(self.timings)} if self.cells else {}

    @cached_property
    def records(self) -> tuple[Mapping[str, str], ...]:
        """One line a part of a claim."""
        return records(self.judged, self.titles, simulated=self.simulated)

    @cached_property
    def titles(self) -> Titles:
        """How keys of benchmarks, methods and backbones read."""
        methods = {key: entry.title for key, entry in config.methods().items()}
        return {**methods, **self.published.benchmarks, **self.published.backbones}

    def _run_notes(self) -> tuple[str, ...]:
        found = [_RUN_NOTE, _VALUE_NOTE, f"Seeds: {self.seeds}. A statement that lacks one of its seeds is not run."]
        if any(one.calibrated for one in self.judged):
            found.append(
                f"{DAGGER}: rests on cells whose accuracies, lengths and costs were fitted to the paper; that a "
                "statement about them holds is no finding."
            )
        changed = conditions(Results(self.cells, self.published)).strip()
        return (*found, changed) if changed else tuple(found)


def build(source: Source | None = None, claims: Iterable[Claim] = CLAIMS) -> Report:
    """Judge every claim.

    Args:
        source: Whatever is finished of a preset; ``None`` or no cell judges the print alone.
        claims: Those to judge.

    Raises:
        UserError: A cell or timing cannot be read, two of them do not go together, or the cells
            are of no preset that would tell their seeds.
    """
    published = load()
    if source is None or not source.cells:
        return Report(tuple(judge(claim, published, Run()) for claim in claims), published, ())
    cells, seeds = source.results().cells, Seeds.of(source.run)
    timed = read_timings(source.timings, cells)
    times = {key: Timed(one.per_query, one.seed) for key, one in timed.items()}
    run = Run(by_key(cells), times, seeds, any(cell.run.simulated for cell in cells))
    return Report(tuple(judge(claim, published, run) for claim in claims), published, cells, len(timed), seeds)


_DECIDED = (Outcome.HOLDS, Outcome.FAILS, Outcome.UNDECIDED)
_PRINT_NOTE = (
    "In print: the value that the paper's own numbers give; in brackets what the numbers before rounding allow. "
    "Consistent: it is what the paper says, within the tolerance of the claim. Partly: so for some parts only. Not "
    "checkable: the paper prints no number for it."
)
_RUN_NOTE = (
    "Measured: mean over seeds and questions with a 95 % percentile bootstrap interval, in which all methods share the "
    "questions drawn; costs are of a test question. Reproduced: the whole interval lies where the claim says. "
    "Contradicted: the whole interval lies elsewhere. Undecided: it lies across, or there is none. Not run: a cell is "
    "missing. A claim of several parts needs all of them."
)
_VALUE_NOTE = (
    "Where the paper names a value, a run must show its direction; whether the interval contains the value is said "
    "beside it. docs/claims.md has the margins. About the print only: arithmetic that no run can bear out."
)


def _counted(values: Iterable[str]) -> str:
    times = Counter(values)
    return ", ".join(f"{count} {value}" for value, count in sorted(times.items(), key=lambda one: (-one[1], one[0])))


def records(judged: Sequence[Judged], titles: Titles, *, simulated: bool) -> tuple[Mapping[str, str], ...]:
    """Every part of every claim.

    ``print_verdict`` and ``outcome`` are of the part, ``claim_print_verdict`` and ``verdict`` of the whole claim. A
    field is empty where there is nothing to say. What differs between the runs behind a number is joined by a space,
    hashes in short form; ``run_id`` of several is the hash over theirs.
    """
    return tuple(_record(one, part, titles, simulated) for one in judged for part in one.parts)


def label(part: Part, titles: Titles) -> str:
    """What tells a part from the others; empty for the only one."""
    return ", ".join(titles.get(value, value) for value in part.variables.values() if isinstance(value, str))


def _record(one: Judged, part: Part, titles: Titles, simulated: bool) -> dict[str, str]:
    claim, computed = one.claim, part.computed
    return {
        "claim": claim.key,
        "part": label(part, titles),
        "section": claim.section,
        "place": claim.place,
        "says": claim.says,
        "unit": claim.unit,
        "published": "" if computed is None else _exact(computed.value),
        "published_low": "" if computed is None else _exact(computed.low),
        "published_high": "" if computed is None else _exact(computed.high),
        "stated": "" if part.stated is None else _exact(part.stated),
        "tolerance": "" if claim.stated is None else str(claim.tolerance),
        "print_verdict": part.consistency,
        "claim_print_verdict": one.consistency,
        "holds": "" if part.region is None else str(part.region),
        **_measured(part),
        "verdict": one.verdict,
        "simulated": str(simulated).lower() if part.finding.cells else "",
        "note": claim.note,
        **_identity(part.finding),
    }


def _measured(part: Part) -> dict[str, str]:
    finding = part.finding
    interval, covers = finding.interval, part.covers
    return {
        "measured": "" if finding.value is None else _exact(finding.value),
        "low": "" if interval is None else _exact(interval.low),
        "high": "" if interval is None else _exact(interval.high),
        "measured_all_calls": "" if finding.all_calls is None else _exact(finding.all_calls),
        "contains_published": "" if covers is None else str(covers).lower(),
        "calibrated": str(finding.calibrated).lower() if finding.cells else "",
        "outcome": finding.outcome,
        "missing": "; ".join(finding.missing),
        "reason": "; ".join(filter(None, (part.reason, finding.reason))),
    }


def _identity(finding: Finding) -> dict[str, str]:
    cells = finding.cells
    return {
        "cells": " ".join(cell.run.cell for cell in cells),
        "run_id": cells[0].run.run_id if len(cells) == 1 else table_run_id(cells) if cells else "",
        "seeds": " ".join(map(str, sorted({cell.run.seed for cell in cells}))),
        "config_hash": _distinct(cells, lambda run: short(run.config_hash)),
        "code": _distinct(cells, lambda run: short(run.code)),
        "data_checksum": _distinct(cells, lambda run: short(run.data.checksum)),
        "backbones": "; ".join(sorted(_backbones(cells))),
    }


def _backbones(cells: Iterable[Cell]) -> set[str]:
    return {
        f"{key}={identity['model']}{by_server(identity)}"
        for cell in cells
        for key, identity in cell.run.backbones.items()
    }


def _distinct(cells: Iterable[Cell], of: Callable[[Record], str]) -> str:
    return " ".join(sorted({of(cell.run) for cell in cells}))


def _exact(value: float) -> str:
    """Differences of decimals carry dust in their last digits."""
    return f"{round(value, 9) + 0.0:.10g}"
