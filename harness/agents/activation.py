"""One activation of a role: its prompt, its call, its tool, its second call (paper, Agent Role Profiles; D-PROMPT-2).

The catalogue says what happens around the call of a role. Every role acts on every benchmark, so a tool that
finds nothing to work on says so in one line.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from typing import NamedTuple

from harness.agents.code_tools import NO_EXAMPLE, NO_PROGRAM, CodeTools, programs
from harness.agents.prompts import RECORDS_HEADER, Record, agent_prompt
from harness.agents.roles import Output, Role
from harness.agents.trajectory import Context
from harness.benchmarks.extraction import after_answer_is, fenced_blocks, last_box
from harness.benchmarks.items import Item
from harness.concurrency import gather
from harness.llm.request import Kind, Message, Style, Turn

_KIND_OF_FIRST_CALL: Mapping[Output, Kind] = {"text": "plan", "keywords": "search"}
# Lines of tools hold no digit of their own and never say "answer is": either could pass for an answer.
NO_ENTRY = "The encyclopedia has no result for these keywords."
_LONGEST_CANDIDATE = 80
# A brace before it makes a number the argument of a TeX command, such as half of a fraction.
_NUMBER = re.compile(
    r"(?<![\w.{/])[-+]?(?:(?:\d{1,3}(?:,\d{3})+(?!\d)|\d+)(?:\.\d+)?|\.\d+)(?:[eE][-+]?\d{1,3}\b|/\d+)?"
)


class Formats(NamedTuple):
    """What an agent is told of the form of its replies; empty for nothing."""

    first: str  # of the first call, in the system text
    # Of the second one, behind its instruction; empty also where that shares the rules of the first.
    second: str = ""


async def act(
    role: Role,
    backbone: str,
    item: Item,
    records: Sequence[Record],  # what others have said that the agent may see, in the order shown
    context: Context,
    *,
    step: int,
    slot: int = 0,
    note: str = "",  # what the agent is told beyond its role
    header: str = RECORDS_HEADER,
    second_call: str | None = None,  # for a role without one of its own
    formats: Formats | None = None,
    style: Style | None = None,  # how explicitly to reason, where that is not its role's own way
    temperature: float | None = 0.0,
) -> str:
    """Let an agent contribute once; raises UserError where the sandbox is broken, or an endpoint is gone.

    The backbone is asked once, or twice where there is a second call: that one continues the conversation, sees the
    first reply with what the tool added to it, and its own reply replaces the first. Unless an agent has formats of its
    own, the output rules of the benchmark are in the system text, which both calls share. Step, slot and temperature
    are those of the calls.

    Returns:
        The contribution: the second reply, or the only one with what the tool added to it. The empty text where a
        call failed for good (D-GMR-11); after a failed first call there is no second.
    """
    hints: tuple[str, ...] = ()
    if role.sees == "test_feedback":
        records = await gather(_with_feedback(record, item, context) for record in records)
    elif role.sees == "numeric_hints":
        hints = await candidates(records, context.code_tools)
    formats = formats or Formats(context.rules)
    prompt = agent_prompt(role, formats.first, item, records, hints, note=note, header=header)
    turn = Turn(
        kind=_KIND_OF_FIRST_CALL.get(role.output, "solve"),
        style=style or ("direct" if role.output == "text" else "step_by_step"),
        form="program" if role.tool in ("execute_answer", "execute_code") else "answer",
        role=role.key,
    )
    ask = functools.partial(context.ask, backbone, step=step, slot=slot, temperature=temperature)
    first = await ask(prompt, turn, purpose="act")
    if first.error is not None:
        return ""
    outcome = await _tool_line(role, item, first.text, context)
    context.note_tool(first, outcome)
    text = appended(first.text, outcome)
    second_call = role.second_call or second_call
    if second_call is None:
        return text
    asked = "\n\n".join(filter(None, (second_call, formats.second)))
    conversation = (*prompt, Message("assistant", text), Message("user", asked))
    turn = turn._replace(kind="finish") if role.second_call else turn
    return (await ask(conversation, turn, purpose="second_call")).text


async def candidates(records: Sequence[Record], code_tools: CodeTools) -> tuple[str, ...]:
    """The distinct answers that records state or compute, in order of first appearance.

    A record states what stands in its last box or, without a box, the number on its last answer line; it computes
    what its program leaves in ``answer``. Numbers of equal value are one candidate.
    """
    values = await gather(code_tools.value(record.text) for record in records)
    found: dict[Decimal | str, str] = {}
    for record, value in zip(records, values, strict=True):
        computed = value.printed if value is not None and value.printed != "None" else None
        for candidate in (*_stated(record.text), computed or ""):
            if 0 < len(candidate) <= _LONGEST_CANDIDATE:
                found.setdefault(_number_or_text(candidate), candidate)
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


def _number_or_text(candidate: str) -> Decimal | str:
    try:
        number = Decimal(candidate.replace(",", ""))
    except InvalidOperation:
        return candidate
    return number if number.is_finite() else candidate


async def _with_feedback(record: Record, item: Item, context: Context) -> Record:
    """A record with the outcome of the examples, unless there is none or the agent's own tool has put it there."""
    if not programs(record.text):
        return record
    outcome = await context.code_tools.examples(item, record.text)
    if outcome == NO_EXAMPLE or outcome in record.text:
        return record
    return Record(record.speaker, appended(record.text, outcome))


async def _tool_line(role: Role, item: Item, reply: str, context: Context) -> str:
    match role.tool:
        case "none":
            return ""
        case "run_examples":
            return await context.code_tools.examples(item, reply)
        case "execute_answer":
            return str(await context.code_tools.value(reply) or NO_PROGRAM)
        case "execute_code":
            return str(await context.code_tools.value(reply) or "")
        case "lookup":
            # A look-up over the network would make a result depend on the day of the run (D-GEN-7).
            return NO_ENTRY


def appended(text: str, addition: str) -> str:
    """A text with an addition that no extractor takes for a part of the program in it, whose fence is mended."""
    if not addition or not text.strip():
        return addition or text
    if programs(text) == [text]:
        return f"```python\n{text.rstrip()}\n```\n\n{addition}"
    for closing in ("", _closing("`", text), _closing("~", text)):
        whole = f"{text.rstrip()}{closing}\n\n{addition}"
        blocks = fenced_blocks(whole)
        if not blocks or not blocks[-1].source.rstrip().endswith(addition):
            break
    return whole


def _closing(mark: str, text: str) -> str:
    longest = max((len(run) for run in re.findall(f"{mark}+", text)), default=0)
    return "\n" + mark * max(3, longest)
