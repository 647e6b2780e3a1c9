"""Questions and verdicts: the two records every benchmark, method and table shares."""

from __future__ import annotations

import dataclasses
import enum
import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import orjson


@dataclass(frozen=True, slots=True)
class CodeTask:
    """The data for executing an answer that is a program."""

    entry_point: str  # name of the function the tests call
    setup: str  # source run before the candidate program (may be empty)
    checks: str  # source run after it; an exception means a wrong answer
    # Single ``assert`` statements of the question; tools may run these and no others.
    visible: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Item:
    """One question of a benchmark in normalised form."""

    id: str  # unique within the benchmark and independent of the source
    benchmark: str  # key of the benchmark in ``config/benchmarks.yaml``
    question: str  # the text a prompt shows, options and visible examples included
    # The reference answer. MATH: content of the box; GSM-Hard: ``repr`` of a float; MMLU-Pro: a letter; HumanEval and
    # MBPP: a complete correct program.
    gold: str
    # The group within which sampling is balanced, such as ``"Algebra/Level 3"``; may be empty.
    stratum: str = ""
    options: tuple[str, ...] = ()  # answer options in letter order (multiple choice only)
    code: CodeTask | None = None  # execution data (HumanEval and MBPP only)
    difficulty: float | None = None  # between 0 and 1 where the record states it, else ``None``

    def to_json(self) -> bytes:
        """The canonical serialisation: one line, keys sorted."""
        return orjson.dumps(dataclasses.asdict(self), option=orjson.OPT_SORT_KEYS)


def checksum(items: Iterable[Item]) -> str:
    """SHA-256 over the canonical lines in order of id: equal for equal questions."""
    digest = hashlib.sha256()
    for item in sorted(items, key=lambda item: item.id):
        digest.update(item.to_json())
        digest.update(b"\n")
    return digest.hexdigest()


class Status(enum.StrEnum):
    """The way to a verdict; only ``graded`` and ``unparsable`` say something about the answer."""

    GRADED = "graded"
    UNPARSABLE = "unparsable"
    EMPTY = "empty"
    TRUNCATED = "truncated"
    CALL_FAILED = "call_failed"
    SANDBOX_ERROR = "sandbox_error"


@dataclass(frozen=True, slots=True)
class Verdict:
    """The grade of one answer."""

    correct: bool  # the headline verdict, also the reward of learned methods
    answer: str | None  # what was extracted from the text, ``None`` where nothing could be
    status: Status  # why an answer that is not right is not right
    detail: str = ""  # A few words more, such as the sandbox outcome
    # Verdicts of secondary rules, such as ``{"math_verify": True}``.
    also: Mapping[str, bool] = field(default_factory=dict)
