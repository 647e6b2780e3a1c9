"""Questions, verdicts, and the division into training and test questions.

No random generator divides: an id's rank is a hash of the id, whatever the order of files or the version of a library.
"""

from __future__ import annotations

import dataclasses
import enum
import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import orjson


@dataclass(frozen=True, slots=True)
class CodeTask:
    """The data for executing an answer that is a program."""

    entry_point: str  # name of the function the tests call
    setup: str  # source run before the candidate program (may be empty)
    checks: str  # source run after it; an exception means a wrong answer
    visible: tuple[str, ...]  # single ``assert`` statements of the question; tools may run no others


@dataclass(frozen=True, slots=True)
class Item:
    """One question of a benchmark in normalised form."""

    id: str  # unique within the benchmark and independent of the source
    benchmark: str  # key of the benchmark in ``config/benchmarks.yaml``
    question: str  # the text a prompt shows, options and visible examples included
    gold: str  # content of the box (MATH), ``repr`` of a float (GSM-Hard), a letter (MMLU-Pro), or a correct program
    stratum: str = ""  # the group within which sampling is balanced, such as ``"Algebra/Level 3"``
    options: tuple[str, ...] = ()  # answer options in letter order (multiple choice only)
    code: CodeTask | None = None  # execution data (HumanEval and MBPP only)
    difficulty: float | None = None  # between 0 and 1 where the record states it, else ``None``

    def to_json(self) -> bytes:
        """Return the canonical serialisation: one line, keys sorted."""
        return orjson.dumps(dataclasses.asdict(self), option=orjson.OPT_SORT_KEYS)


def checksum(items: Iterable[Item]) -> str:
    """Return the SHA-256 of the canonical lines in order of id: equal for equal questions."""
    lines = (item.to_json() + b"\n" for item in sorted(items, key=lambda item: item.id))
    return hashlib.sha256(b"".join(lines)).hexdigest()


class Status(enum.StrEnum):
    """Origin of a verdict; only ``graded`` and ``unparsable`` say something about the answer."""

    GRADED = "graded"
    UNPARSABLE = "unparsable"
    EMPTY = "empty"
    TOOL_CALLS = "tool_calls"
    CONTENT_FILTER = "content_filter"
    TRUNCATED = "truncated"
    CALL_FAILED = "call_failed"
    SANDBOX_ERROR = "sandbox_error"


@dataclass(frozen=True, slots=True)
class Verdict:
    """The grade of one answer."""

    correct: bool  # also the reward of learned methods
    answer: str | None  # what was extracted from the text, ``None`` where nothing could be
    status: Status  # whether the answer was graded and, if not, why
    detail: str = ""  # a few words more, such as the sandbox outcome
    also: Mapping[str, bool] = field(default_factory=dict)  # secondary rules, such as ``{"math_verify": True}``


SPLIT_SEED = 1234


@dataclass(frozen=True, slots=True)
class Split:
    """Ids of the training and the test questions, each in the order in which a limit cuts them."""

    train: tuple[str, ...]
    test: tuple[str, ...]

    @property
    def checksum(self) -> str:
        """Return the SHA-256 of both id lists in order."""
        lines = ["train", *self.train, "test", *self.test]
        return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def keyed_order(ids: Iterable[str], purpose: str) -> list[str]:
    """Return the ids in an order that looks random and depends on nothing but the ids and the purpose."""
    return sorted(ids, key=lambda id_: (hashlib.sha256(f"{SPLIT_SEED}/{purpose}/{id_}".encode()).digest(), id_))


def share_split(ids: Sequence[str], key: str) -> Split:
    """Divide questions: a fifth of them, rounded down, for training; the others for the test."""
    order = keyed_order(ids, f"{key}/split")
    n_train = len(order) // 5
    return Split(tuple(order[:n_train]), tuple(order[n_train:]))


def largest_remainder(counts: Mapping[str, int], total: int) -> dict[str, int]:
    """Return seats in proportion to counts, ``total`` in all; among equal remainders the first name gets the seat."""
    population = sum(counts.values())
    seats = {name: total * count // population for name, count in counts.items()}
    by_remainder = sorted(counts, key=lambda name: (-(total * counts[name] % population), name))
    for name in by_remainder[: total - sum(seats.values())]:
        seats[name] += 1
    return seats


def stratified_sample(strata: Mapping[str, str], sizes: Mapping[str, int], key: str) -> list[str]:
    """Draw ids by the size of each stratum, in order of stratum; ``strata`` has the stratum of each id."""
    order = keyed_order(strata, f"{key}/sample")
    by_stratum = {name: [id_ for id_ in order if strata[id_] == name] for name in sorted(sizes)}
    return [id_ for name, ids in by_stratum.items() for id_ in ids[: sizes[name]]]
