"""How many replies and verdicts flipped, as Markdown for people and CSV for programs."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from analysis.statistics import wilson
from analysis.tables import warning
from harness.files import write_atomically
from workflow.flips import Answer, Passes

FILES = ("flip_rate.md", "flip_rate.csv")
_COLUMNS = (
    "backbone",
    "compared",
    "requests",
    "failed",
    "replies differ",
    "95% interval",
    "verdicts differ",
    "95% interval ",
)
_ALL = "all"
_AGAIN = "one at a time, twice"
_LOADED = "one at a time, all at once"
_READING = (
    "Every request was sent three times with temperature 0 and the same seed: one at a time, one at a time again, and "
    "all at once, as many as the limits of the server allow. A verdict differs where one reply is graded right and the "
    "other is not. Requests of which one of both calls failed for good are not compared. Intervals are Wilson's; those "
    "of all backbones together take every request for itself, though backbones share their questions."
)


@dataclass(frozen=True, slots=True)
class Flips:
    """Two passes held against each other.

    Attributes:
        requests: Of which both calls were answered.
        failed: The others.
        replies: Of the former, how many came to another text.
        verdicts: How many came to another verdict.
    """

    requests: int = 0
    failed: int = 0
    replies: int = 0
    verdicts: int = 0

    def plus(self, other: Flips) -> Flips:
        """Both together."""
        return Flips(
            self.requests + other.requests,
            self.failed + other.failed,
            self.replies + other.replies,
            self.verdicts + other.verdicts,
        )


def flips(first: Sequence[Answer], second: Sequence[Answer]) -> Flips:
    """Compare two passes, request by request."""
    pairs = list(zip(first, second, strict=True))
    whole = [(a, b) for a, b in pairs if a.reply.error is None and b.reply.error is None]
    return Flips(
        requests=len(whole),
        failed=len(pairs) - len(whole),
        replies=sum(a.reply.text != b.reply.text for a, b in whole),
        verdicts=sum(a.verdict.correct != b.verdict.correct for a, b in whole),
    )


def write(found: Sequence[Passes], folder: Path) -> list[Path]:
    """Write the report; returns where it lies."""
    contents = dict(zip(FILES, (to_markdown(found), to_csv(found)), strict=True))
    for name, content in contents.items():
        write_atomically(folder / name, content)
    return [folder / name for name in contents]


def to_markdown(found: Sequence[Passes]) -> str:
    """The report."""
    lines = ["# Flip rate at temperature 0", ""]
    if said := _warning(found):
        lines += [f"**{said}.**", ""]
    lines += [_READING, "", _line(_COLUMNS), _line("---" for _ in _COLUMNS)]
    lines += [_line(row) for row in _rows(found)]
    lines += ["", "## What was asked", ""]
    return "\n".join([*lines, *(_facts(one) for one in found), ""])


def to_csv(found: Sequence[Passes]) -> str:
    """The table; its first line says where it is from simulated backbones."""
    out = io.StringIO()
    said = _warning(found)
    out.write(f"# {said or 'flip rate at temperature 0'}\n")
    names = ("backbone", "compared", "requests", "failed", "replies", "verdicts", "simulated")
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(names)
    for backbone, compared, counted in _compared(found):
        row = (counted.requests, counted.failed, counted.replies, counted.verdicts)
        writer.writerow([backbone, compared, *row, str(bool(said)).lower()])
    return out.getvalue()


def _compared(found: Sequence[Passes]) -> Iterator[tuple[str, str, Flips]]:
    for compared in (_AGAIN, _LOADED):
        total = Flips()
        for one in found:
            counted = flips(one.alone, one.again if compared == _AGAIN else one.loaded)
            total = total.plus(counted)
            yield one.backbone, compared, counted
        yield _ALL, compared, total


def _rows(found: Sequence[Passes]) -> Iterator[list[str]]:
    for backbone, compared, counted in _compared(found):
        rates = [text for number in (counted.replies, counted.verdicts) for text in _rate(number, counted.requests)]
        yield [backbone, compared, str(counted.requests), str(counted.failed), *rates]


def _rate(number: int, of: int) -> tuple[str, str]:
    if not of:
        return "–", "–"
    low, high = wilson(number, of)
    return f"{number} ({100 * number / of:.1f}%)", f"{100 * low:.1f}% to {100 * high:.1f}%"


def _facts(one: Passes) -> str:
    facts = dict(one.served.details)
    if one.served.owned_by is not None:
        facts["served by"] = one.served.owned_by
    if one.weights is not None:
        facts["weights"] = one.weights
    said = ", ".join(f"{name} {value}" for name, value in sorted(facts.items()))
    return f"- {one.backbone}: `{one.served.model}`{f' ({said})' if said else ''}"


def _warning(found: Sequence[Passes]) -> str:
    return warning(any(one.served.simulated for one in found))


def _line(cells: Sequence[str] | Iterator[str]) -> str:
    return f"| {' | '.join(cell.strip() for cell in cells)} |"
