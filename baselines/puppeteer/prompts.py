"""What agents and the final call are told; every agent sees the whole path (methods §5.2, §5.5).

On programming questions the current program stands where the contributions stand elsewhere, as upstream.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from baselines.puppeteer.actions import Action
from baselines.puppeteer.path import Messages, Path
from harness.benchmarks.extraction import after_answer_is, last_box
from harness.items import Item
from harness.llm.request import Message
from harness.prompts import RECORDS_HEADER, Record, render_records, team_prompt

PROGRAM_HEADER = "Where the program of your team stands:"
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


def turn(action: Action, item: Item, rules: str, path: Path) -> Messages:
    """The messages that let an agent act: a new conversation, or its earlier one with the work as it is now.

    Args:
        action: Who acts.
        item: The question.
        rules: The benchmark's output rules.
        path: The work so far, all of which is shown.
    """
    header, records = history(item, path)
    request = _request(action, item)
    earlier = path.dialogs.get(action.key)
    if earlier:
        return (*earlier, Message("user", _blocks(AGAIN, request, render_records(records, header))))
    system = (action.persona, action.instruction, rules if action.answers else "")
    if not records:
        return team_prompt(system, item, (), request)
    return team_prompt(system, item, records, header=_blocks(request, header))


def history(item: Item, path: Path) -> tuple[str, list[Record]]:
    """What a path shows to its agents, and the line above it.

    All contributions, unfiltered: this is what Gated-Memory Routing is set against.
    """
    if item.code is None:
        return RECORDS_HEADER, [
            Record(speaker, one.text) for speaker, one in zip(path.speakers, path.contributions, strict=True)
        ]
    records = [] if path.program is None else [Record("Current program", fenced(path.program))]
    return PROGRAM_HEADER, [*records, *([Record("Latest execution", path.outcome)] if path.outcome else [])]


def final(item: Item, rules: str, path: Path) -> Messages:
    """The final call: the question, which upstream leaves out, and the candidate answers of the path (D-PUP-7)."""
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
