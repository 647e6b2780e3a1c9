"""Prompts: static text first, the question next, contributions last.

With this order prompts share long prefixes across questions and steps, which the server's prefix cache needs. Prompt
texts of a method, such as its aggregator's, are in the method's module.
"""

from collections.abc import Sequence
from typing import NamedTuple

from harness.benchmarks.items import Item
from harness.llm.request import Message

# The heading must not read as a question. After "What colleagues have contributed so far" a small model answered with a
# colleague's name instead of a program in most of 27 cases; after this heading in none.
RECORDS_HEADER = "Contributions of colleagues so far, oldest first:"
HINTS_HEADER = "Candidate answers among these contributions:"
EXAMPLES_RUN = "The program was run on every visible example of the question:"


class Record(NamedTuple):
    """Contribution of an agent as later agents see it."""

    speaker: str
    text: str


def question_prompt(instruction: str, rules: str, item: Item) -> tuple[Message, ...]:
    """Build one user message from instruction (may be empty), output rules and question."""
    return (Message("user", join(instruction, rules, f"Question:\n{item.question}")),)


def team_prompt(
    system: Sequence[str], item: Item, records: Sequence[Record], closing: str = "", *, header: str = RECORDS_HEADER
) -> tuple[Message, ...]:
    """Build the system message from blocks, and the user message from question, records in order, and closing."""
    user = join(f"Question:\n{item.question}", render_records(records, header), closing)
    return (Message("system", join(*system)), Message("user", user))


def render_records(records: Sequence[Record], header: str = RECORDS_HEADER) -> str:
    """Format contributions as one numbered block. Empty if there are none."""
    blocks = [f"[{number}] {record.speaker}:\n{record.text.strip()}" for number, record in enumerate(records, 1)]
    return "\n\n".join([header, *blocks]) if blocks else ""


def join(*blocks: str) -> str:
    return "\n\n".join(block.strip() for block in blocks if block.strip())
