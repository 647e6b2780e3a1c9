"""The report on all claims: what every file format is made from, and the table of all parts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from analysis.claims.declared import Claim
from analysis.claims.judge import Judged, Outcome, Part, judge
from analysis.claims.measured import Run, Seeds
from analysis.claims.statements import CLAIMS
from analysis.frames import Results
from analysis.notes import settings
from analysis.provenance import by_server, provenance, table_run_id, warning
from analysis.published import Published, load
from analysis.results import Cell, short
from analysis.source import Source
from analysis.table import DAGGER
from analysis.timings import read_timings
from harness.runner import config

DECIDED = (Outcome.HOLDS, Outcome.FAILS, Outcome.UNDECIDED)
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


@dataclass(frozen=True)
class Report:
    """Every claim, judged.

    Attributes:
        judged: In the order of the declaration.
        published: Names for what the claims are about.
        cells: The finished cells there were; none where the print alone was judged.
        run: The same cells, timings, and the seeds there ought to be.
    """

    judged: tuple[Judged, ...]
    published: Published
    cells: tuple[Cell, ...] = ()
    run: Run = field(default_factory=Run)

    @property
    def warning(self) -> str:
        """The sentence about simulated backbones, or nothing."""
        return warning(self.run.simulated)

    @property
    def title(self) -> str:
        """What the report is about, in a line."""
        against = f" and the run {self.cells[0].run.preset!r}" if self.cells else ""
        return f"The statements of the paper, held against its own numbers{against}"

    @property
    def sections(self) -> Mapping[str, Sequence[Judged]]:
        """The claims by section, in the order of first appearance."""
        names = dict.fromkeys(one.claim.section for one in self.judged)
        return {name: [one for one in self.judged if one.claim.section == name] for name in names}

    @property
    def summary(self) -> tuple[str, str]:
        """How many claims came out which way, a sentence a side."""
        in_print = f"In print: {_counted(one.consistency for one in self.judged)}."
        if not self.cells:
            return in_print, "No finished cell: no run was judged."
        shown = _counted(one.outcome for one in self.judged if one.outcome in DECIDED) or "none"
        rehearsal = f" The rehearsed ones, in the simulation: {shown}." if self.run.simulated else ""
        return in_print, f"In this run: {_counted(one.verdict for one in self.judged)}.{rehearsal}"

    @property
    def notes(self) -> list[str]:
        """What a reader must know."""
        if not self.cells:
            return [_PRINT_NOTE]
        asked = f"Seeds: {self.run.seeds}. A statement that lacks one of its seeds is not run."
        fitted = (
            f"{DAGGER}: rests on cells whose accuracies, lengths and costs were fitted to the paper; that a statement "
            "about them holds is no finding."
        )
        calibrated = any(part.calibrated for one in self.judged for part in one.parts)
        changed = settings(Results(self.cells, self.published)).strip()
        found = [_PRINT_NOTE, _RUN_NOTE, _VALUE_NOTE, asked, fitted if calibrated else "", changed]
        return [note for note in found if note]

    @property
    def provenance(self) -> dict[str, str]:
        """What identifies the run."""
        return {**provenance(self.cells), "timings": str(len(self.run.timings))} if self.cells else {}

    @cached_property
    def titles(self) -> Mapping[str, str]:
        """How keys of benchmarks, methods and backbones read."""
        methods = {key: entry.title for key, entry in config.methods().items()}
        return {**methods, **self.published.benchmarks, **self.published.backbones}

    def label(self, part: Part) -> str:
        """What tells a part from the others; empty for the only one."""
        named = (one for value in part.variables.values() for one in (value if isinstance(value, tuple) else (value,)))
        return ", ".join(self.titles.get(one, one) for one in named if isinstance(one, str))

    @property
    def records(self) -> list[dict[str, str]]:
        """Every part of every claim, a record each.

        ``print_verdict`` and ``outcome`` are of the part, ``claim_print_verdict`` and ``verdict`` of the whole claim. A
        field is empty where there is nothing to say. What differs between the runs behind a number is joined by a
        space, hashes in short form; ``run_id`` of several is the hash over theirs.
        """
        return [self._record(one, part) for one in self.judged for part in one.parts]

    def _record(self, one: Judged, part: Part) -> dict[str, str]:
        claim, runs = one.claim, [cell.run for cell in part.cells]
        published, published_low, published_high = part.computed or (None, None, None)
        low, high = part.interval or (None, None)
        return {
            "claim": claim.key,
            "part": self.label(part),
            "section": claim.section,
            "place": claim.place,
            "says": claim.says,
            "unit": claim.unit,
            "published": _exact(published),
            "published_low": _exact(published_low),
            "published_high": _exact(published_high),
            "stated": _exact(part.stated),
            "tolerance": "" if claim.stated is None else str(claim.tolerance),
            "print_verdict": part.consistency,
            "claim_print_verdict": one.consistency,
            "holds": "" if part.region is None else str(part.region),
            "measured": _exact(part.value),
            "low": _exact(low),
            "high": _exact(high),
            "measured_all_calls": _exact(part.all_calls),
            "contains_published": "" if part.covers is None else str(part.covers).lower(),
            "calibrated": str(part.calibrated).lower() if runs else "",
            "outcome": part.outcome,
            "missing": "; ".join(part.missing),
            "reason": "; ".join(filter(None, (part.not_printed, part.reason))),
            "verdict": one.verdict,
            "simulated": str(self.run.simulated).lower() if runs else "",
            "note": claim.note,
            "cells": " ".join(run.cell for run in runs),
            "run_id": runs[0].run_id if len(runs) == 1 else table_run_id(part.cells) if runs else "",
            "seeds": " ".join(map(str, sorted({run.seed for run in runs}))),
            "config_hash": " ".join(sorted({short(run.config_hash) for run in runs})),
            "code": " ".join(sorted({short(run.code) for run in runs})),
            "data_checksum": " ".join(sorted({short(run.data.checksum) for run in runs})),
            "backbones": "; ".join(sorted(_backbones(part.cells))),
        }


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
        return Report(tuple(judge(claim, published, Run()) for claim in claims), published)
    results, seeds = source.results(), Seeds.of(source.run)
    run = Run(results.trainings, read_timings(source.timings, results.cells), seeds)
    return Report(tuple(judge(claim, published, run) for claim in claims), published, results.cells, run)


def _backbones(cells: Iterable[Cell]) -> set[str]:
    named = [(key, identity) for cell in cells for key, identity in cell.run.backbones.items()]
    return {f"{key}={identity['model']}{by_server(identity)}" for key, identity in named}


def _counted(values: Iterable[str]) -> str:
    times = Counter(values)
    return ", ".join(f"{count} {value}" for value, count in sorted(times.items(), key=lambda one: (-one[1], one[0])))


def _exact(value: float | None) -> str:
    """Differences of decimals carry dust in their last digits."""
    return "" if value is None else f"{round(value, 9) + 0.0:.10g}"
