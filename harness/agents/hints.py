"""Candidate answers in earlier contributions: the hints that some mathematical roles see."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from decimal import Decimal, InvalidOperation

from harness.agents.code_tools import CodeTools, Value
from harness.agents.prompts import Record
from harness.benchmarks.extraction import after_answer_is, last_box
from harness.concurrency import gather

_LONGEST = 80
# A brace before it makes a number the argument of a TeX command, such as half of a fraction.
_NUMBER = re.compile(
    r"(?<![\w.{/])[-+]?(?:(?:\d{1,3}(?:,\d{3})+(?!\d)|\d+)(?:\.\d+)?|\.\d+)(?:[eE][-+]?\d{1,3}\b|/\d+)?"
)


async def candidates(records: Sequence[Record], code_tools: CodeTools) -> tuple[str, ...]:
    """The distinct answers that records state or compute, in order of first appearance.

    A record states what stands in its last box or, without a box, the number on its last answer line; it computes
    what its program leaves in ``answer``. Numbers of equal value are one candidate.

    Raises:
        UserError: The sandbox is broken.
    """
    values = await gather(code_tools.value(record.text) for record in records)
    found: dict[Decimal | str, str] = {}
    for record, value in zip(records, values, strict=True):
        for candidate in (*_stated(record.text), *_computed(value)):
            if 0 < len(candidate) <= _LONGEST:
                found.setdefault(_identity(candidate), candidate)
    return tuple(found.values())


def _stated(text: str) -> Iterator[str]:
    box = last_box(text)
    if box is not None:
        yield " ".join(box.split())
        return
    for line in reversed(after_answer_is(text.replace("−", "-"))):
        # A calculation may precede the result: "12 + 3 = 15".
        number = _NUMBER.search(line.rpartition("=")[2])
        if number:
            yield number.group()
            return


def _computed(value: Value | None) -> Iterator[str]:
    if value is not None and value.printed is not None and value.printed != "None":
        yield value.printed


def _identity(candidate: str) -> Decimal | str:
    try:
        number = Decimal(candidate.replace(",", ""))
    except InvalidOperation:
        return candidate
    return number if number.is_finite() else candidate
