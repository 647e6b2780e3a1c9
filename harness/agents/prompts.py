"""Prompts: static text first, the question next, contributions last.

In this order the leading blocks of a prompt are the same bytes from question to question and from step to step, which
is what a server's prefix cache needs. The texts of a method's prompts, such as an aggregator's, stand with the method.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from harness.benchmarks.items import Item
from harness.llm.request import Message

# No heading before contributions may read as a question: they end a prompt, and to "What colleagues have contributed so
# far" a small model gave a colleague's name in place of a program in most of 27 cases; to this heading in none.
RECORDS_HEADER = "Contributions of colleagues so far, oldest first:"
HINTS_HEADER = "Candidate answers among these contributions:"
EXAMPLES_RUN = "The program was run on every visible example of the question:"


class Record(NamedTuple):
    """Contribution as later agents see it: speaker and text."""

    speaker: str
    text: str


def question_prompt(instruction: str, rules: str, item: Item) -> tuple[Message, ...]:
    """Return one user message: an instruction, which may be empty, the output rules, the question."""
    return (Message("user", join(instruction, rules, f"Question:\n{item.question}")),)


def team_prompt(
    system: Sequence[str], item: Item, records: Sequence[Record], closing: str = "", *, header: str = RECORDS_HEADER
) -> tuple[Message, ...]:
    """Return a system message of text blocks, and a user message: question, contributions in their order, closing."""
    user = join(f"Question:\n{item.question}", render_records(records, header), closing)
    return (Message("system", join(*system)), Message("user", user))


def render_records(records: Sequence[Record], header: str = RECORDS_HEADER) -> str:
    """Return contributions as one block, numbered in the order given; empty without any."""
    blocks = [f"[{number}] {record.speaker}:\n{record.text.strip()}" for number, record in enumerate(records, 1)]
    return "\n\n".join([header, *blocks]) if blocks else ""


def join(*blocks: str) -> str:
    """Return blocks with an empty line between them, without those that are blank."""
    return "\n\n".join(block.strip() for block in blocks if block.strip())
