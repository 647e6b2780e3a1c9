"""What agents and the final call are told; every agent sees the whole path (D-PUP-2, D-PUP-7)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from baselines.puppeteer.actions import Action
from baselines.puppeteer.path import Messages, Path
from harness.agents.prompts import RECORDS_HEADER, Record, render_records, team_prompt
from harness.benchmarks.extraction import after_answer_is, last_box
from harness.benchmarks.items import Item
from harness.llm.request import Message

CANDIDATES_HEADER = "Candidate answers of your team, oldest first:"
AGAIN = "It is your turn again, with the same task as before. The work has gone on since."
COMPUTE = (
    "Write one Python program in a fenced block that computes the answer and leaves its result in a variable named "
    "answer. The program will be executed."
)
IMPLEMENT = (
    "Write the program as a whole in one fenced Python block. It will be executed on the examples that the question "
    "states."
)
STATE = "Check that this fits the question, then state the answer."
AGGREGATE = (
    "You speak for a team that has finished its work. Compare the candidate answers with the question, and with each "
    "other, and give the single most reliable answer, whether it is one of them or not."
)
NO_CANDIDATES = "Your team has left no candidate answer."
WRITE = (
    "You speak for a team that has finished its work and has left no program. Write the program that the question asks "
    "for, with the help of what the team has contributed."
)
# The released task of GSM-Hard puts such a line before every question; it has none for MATH and for programs (D-PUP-2).
POSED = {"gsm_hard": "The following mathematical problem is to be solved by writing a Python program:"}


def posed(item: Item) -> Item:
    """The question as agents and policy are to see it."""
    line = POSED.get(item.benchmark)
    return item if line is None else replace(item, question=f"{line}\n{item.question}")


def turn(action: Action, item: Item, rules: str, path: Path) -> Messages:
    """The messages that let an agent act: a new conversation, or its earlier one with the work as it is now.

    Args:
        action: Who acts.
        item: The question.
        rules: The benchmark's output rules.
        path: The work so far, all of which is shown.
    """
    records = history(path)
    request = _request(action, item)
    earlier = path.dialogs.get(action.key)
    if earlier:
        return (*earlier, Message("user", _blocks(AGAIN, request, render_records(records))))
    system = (action.persona, action.instruction, rules if action.answers else "")
    if not records:
        return team_prompt(system, item, (), request)
    return team_prompt(system, item, records, header=_blocks(request, RECORDS_HEADER))


def history(path: Path) -> list[Record]:
    """All contributions of a path, unfiltered: this is what Gated-Memory Routing is set against."""
    return [Record(speaker, one.text) for speaker, one in zip(path.speakers, path.contributions, strict=True)]


def final(item: Item, rules: str, path: Path) -> Messages:
    """The final call: the question, which upstream leaves out, and the candidate answers of the path (D-PUP-7).

    A program is no candidate that could be compared, so on programming questions it sees all contributions (D-PUP-11).
    """
    if item.code is not None:
        return team_prompt((WRITE, rules), item, history(path))
    records = [Record(speaker, f"The answer is {answer}") for speaker, answer in path.answers]
    closing = "" if records else NO_CANDIDATES
    return team_prompt((AGGREGATE, rules), item, records, closing, header=CANDIDATES_HEADER)


def stated(text: str) -> str | None:
    """The answer to which a reply commits, as it wrote it: its last box, else what follows its last "answer is"."""
    box = last_box(text)
    if box:
        return f"\\boxed{{{box}}}"
    lines: Sequence[str] = [line for line in after_answer_is(text) if line]
    return lines[-1] if lines else None


def fenced(program: str) -> str:
    """A program in a fence that nothing inside it can close."""
    longest = max((len(run) for run in re.findall("`+", program)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}python\n{program.rstrip()}\n{fence}"


def _request(action: Action, item: Item) -> str:
    """What stands in the message of the user, because the second call of the same conversation asks otherwise."""
    if action.kind != "program":
        return ""
    return COMPUTE if item.code is None else IMPLEMENT


def _blocks(*blocks: str) -> str:
    return "\n\n".join(block for block in blocks if block)
