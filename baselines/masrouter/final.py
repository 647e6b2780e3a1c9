"""The final node, which turns the last outputs of a team into the answer (D-MR-7)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from baselines.masrouter.team import letter, said
from harness.agents.prompts import Record, team_prompt
from harness.benchmarks.items import Item
from harness.llm.request import Message

INSTRUCTIONS: Mapping[str, str] = {
    "Code": (
        "You are the decision-maker of a team of programmers. Compare the functions that the agents propose, check "
        "them against the description and its examples, and deliver one that is right, taken from them or written "
        "anew."
    ),
    "Commonsense": (
        "You are the decision-maker of a team of experts. Compare the arguments with which the agents defend their "
        "options, and settle on the option that the facts support."
    ),
    "Math": (
        "You are the decision-maker of a team of mathematicians. Compare the solutions of the agents, recalculate "
        "where their results differ, and settle on one result."
    ),
}
LAST_OUTPUTS = "What the agents delivered:"
NOTHING_CAME_BACK = "No agent delivered anything; answer the question on your own."


def final_prompt(domain: str, rules: str, item: Item, texts: Sequence[str]) -> tuple[Message, ...]:
    """The prompt of the final node.

    Args:
        domain: Whose decision prompt it gets.
        rules: The benchmark's output rules.
        item: The question.
        texts: What each agent said in the last round, by slot; labelled by letters, without the roles.
    """
    records = [Record(f"Agent {letter(slot)}", texts[slot]) for slot in said(texts)]
    closing = "" if records else NOTHING_CAME_BACK
    return team_prompt((INSTRUCTIONS[domain], rules), item, records, closing, header=LAST_OUTPUTS)
