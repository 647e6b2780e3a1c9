"""What is written about an agreement: a table for people, the same for programs, and every disagreement."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from harness.files import write_atomically
from workflow.agreement.comparing import Comparison
from workflow.agreement.differences import Class

SAME = "the same"
LONGEST_EXTRACT = 160

_KEY = ("benchmark", "upstream", "model", "strategy", "our rule", "upstream's rule")
_COUNTS = ("records", "compared", "agree", "agree %", *Class)


def write(compared: Sequence[Comparison], folder: Path) -> list[Path]:
    """Write ``agreement.md``, ``agreement.csv`` and ``disagreements.csv``; returns where they lie."""
    contents = {
        "agreement.md": to_markdown(compared),
        "agreement.csv": _csv([(*_KEY, *_COUNTS), *_rows(compared, _group)]),
        "disagreements.csv": _csv(_disagreements(compared)),
    }
    for name, content in contents.items():
        write_atomically(folder / name, content)
    return [folder / name for name in contents]


def to_markdown(compared: Sequence[Comparison]) -> str:
    """The summary by benchmark and rule, then the whole table, then the number of disagreements by reason."""
    return "\n".join(
        [
            "# Agreement with recorded verdicts",
            "",
            *_table(("benchmark", "our rule", "upstream's rule", *_COUNTS), _rows(compared, _summary)),
            "",
            "## By model",
            "",
            *_table((*_KEY, *_COUNTS), _rows(compared, _group)),
            "",
            "## Disagreements by reason",
            "",
            *_table(("benchmark", "our rule", "class", "reason", "records"), _reasons(compared)),
            "",
        ]
    )


def shares(compared: Iterable[Comparison]) -> tuple[int, int]:
    """How many of the comparisons with two verdicts agree, and how many there are."""
    decided = [comparison.agrees for comparison in compared if comparison.agrees is not None]
    return sum(decided), len(decided)


def _summary(of: Comparison) -> tuple[str, ...]:
    return of.record.file, of.rule, "another" if of.difference else SAME


def _group(of: Comparison) -> tuple[str, ...]:
    record = of.record
    words = of.difference.words if of.difference else SAME
    return record.file, record.upstream, record.model, record.strategy, of.rule, words


def _rows(compared: Sequence[Comparison], key: Callable[[Comparison], tuple[str, ...]]) -> list[tuple[str | int, ...]]:
    groups: dict[tuple[str, ...], list[Comparison]] = {}
    for comparison in compared:
        groups.setdefault(key(comparison), []).append(comparison)
    return [(*names, *_counts(members)) for names, members in groups.items()]


def _counts(members: Sequence[Comparison]) -> tuple[str | int, ...]:
    agree, decided = shares(members)
    classes = Counter(comparison.judged[0] for comparison in members if comparison.agrees is False)
    share = f"{100 * agree / decided:.2f}" if decided else ""
    return len(members), decided, agree, share, *(classes[name] for name in Class)


def _reasons(compared: Sequence[Comparison]) -> list[tuple[str | int, ...]]:
    counts = Counter(
        (comparison.record.file, str(comparison.rule), *map(str, comparison.judged))
        for comparison in compared
        if comparison.agrees is False
    )
    return [(*names, count) for names, count in counts.items()]


def _disagreements(compared: Sequence[Comparison]) -> list[tuple[str | int, ...]]:
    head = ("benchmark", "item", "model", "strategy", "our rule", "ours", "upstream")
    rows: list[tuple[str | int, ...]] = [(*head, "ours extracted", "upstream extracted", "class", "reason")]
    for comparison in compared:
        record = comparison.record
        if comparison.agrees is False:
            verdicts = [str(verdict).lower() for verdict in (comparison.ours, record.upstream_correct)]
            extracts = [_short(comparison.extracted), _short(record.upstream_pred)]
            about = (record.file, record.item_id, record.model, record.strategy, str(comparison.rule))
            rows.append((*about, *verdicts, *extracts, *map(str, comparison.judged)))
    return rows


def _short(text: str | None) -> str:
    line = " ".join((text or "").split())
    return line if len(line) <= LONGEST_EXTRACT else f"{line[:LONGEST_EXTRACT]} ..."


def _csv(rows: Iterable[Iterable[str | int]]) -> str:
    lines = io.StringIO()
    csv.writer(lines, lineterminator="\n").writerows(rows)
    return lines.getvalue()


def _table(head: Sequence[str], rows: Iterable[Sequence[str | int]]) -> list[str]:
    cells = [[str(cell).replace("|", "\\|") for cell in row] for row in [head, ["---"] * len(head), *rows]]
    return [f"| {' | '.join(row)} |" for row in cells]
