"""The aggregator, which turns what is stored into the answer (paper, Aggregator Prompt)."""

from __future__ import annotations

from collections.abc import Sequence

from harness.agents.prompts import Record, team_prompt
from harness.benchmarks.items import Item
from harness.llm.request import Message

INSTRUCTION = (
    "You close the work of a team. Weigh the analyses and results your colleagues stored, find the errors in them, and "
    "commit to the single most reliable answer; where nothing they stored convinces you, answer on your own."
)
NOTHING_STORED = "No stored records: none of your colleagues' contributions was kept."


def aggregator_prompt(rules: str, item: Item, records: Sequence[Record]) -> tuple[Message, ...]:
    """The final call: the question and the stored records, or an explicit line that there are none."""
    return team_prompt((INSTRUCTION, rules), item, records, "" if records else NOTHING_STORED)
