"""Activation of a role: its prompt, its call, its tool, its second call (paper, Agent Role Profiles; D-PROMPT-2).

Every role acts on every benchmark, so a tool that finds nothing to work on says so in one line.
"""

from __future__ import annotations

import functools
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from decimal import Decimal, InvalidOperation
from typing import NamedTuple

from harness.agents.code_tools import NO_EXAMPLE, NO_PROGRAM, CodeTools, programs
from harness.agents.prompts import HINTS_HEADER, RECORDS_HEADER, Record, team_prompt
from harness.agents.roles import Output, Role
from harness.agents.runtime import Context
from harness.benchmarks.extraction import fenced_blocks
from harness.benchmarks.items import Item
from harness.benchmarks.statements import last_box, statements
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


def most_frequent(backbones: Sequence[str]) -> str:
    """Return the most frequent backbone of a team, of equally frequent ones the first."""
    # A Counter keeps the order of first sight.
    return Counter(backbones).most_common(1)[0][0]


class Formats(NamedTuple):
    """Rules of the form of an agent's replies; empty for none."""

    first: str  # of the first call, in the system text
    second: str = ""  # of the second one, behind its instruction


async def act(
    role: Role,
    backbone: str,
    item: Item,
    records: Sequence[Record],  # earlier contributions that the agent may see, in the order shown
    context: Context,
    *,
    step: int,
    slot: int = 0,
    note: str = "",  # system text beyond the role's
    header: str = RECORDS_HEADER,
    second_call: str | None = None,  # for a role without one of its own
    formats: Formats | None = None,  # without them, both calls are told the output rules of the benchmark
    style: Style | None = None,  # without it, the role's own
    temperature: float | None = 0.0,
) -> str:
    """Let an agent contribute once, in one call or two, and return its contribution.

    A second call continues the conversation: it sees the first reply with the output of the tool. The contribution is
    the second reply, else the only one with the output of the tool; empty where a call failed for good (D-GMR-11).
    Raises UserError if the sandbox is broken or an endpoint is gone.
    """
    hints = ""
    if role.sees == "test_feedback":
        records = await gather(_with_feedback(record, item, context) for record in records)
    elif role.sees == "numeric_hints":
        answers = await candidates(records, context.code_tools)
        hints = f"{HINTS_HEADER} {'; '.join(answers)}" if answers else ""
    formats = formats or Formats(context.rules, context.rules)
    system = (role.description, role.instruction, note, formats.first)
    prompt = team_prompt(system, item, records, hints, header=header)
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
    tool_output = await _tool_output(role, item, first.text, context)
    context.note_tool(first, tool_output, item)
    text = appended(first.text, tool_output)
    instruction = role.second_call or second_call
    if instruction is None:
        return text
    request = "\n\n".join(filter(None, (instruction, formats.second)))
    conversation = (*prompt, Message("assistant", text), Message("user", request))
    turn = turn._replace(kind="finish") if role.second_call else turn
    return (await ask(conversation, turn, purpose="second_call")).text


async def candidates(records: Sequence[Record], code_tools: CodeTools) -> tuple[str, ...]:
    """Return the distinct answers that records state or compute, in order of first appearance.

    A record states the content of its last box or, without a box, the number on its last answer line; it computes
    what its program leaves in ``answer``. Numbers of equal value are one candidate.
    """
    values = await gather(code_tools.value(record.text) for record in records)
    distinct: dict[Decimal | str, str] = {}
    for record, value in zip(records, values, strict=True):
        computed = value.printed if value is not None and value.printed != "None" else None
        for candidate in (_stated(record.text), computed or ""):
            if 0 < len(candidate) <= _LONGEST_CANDIDATE:
                distinct.setdefault(_number_or_text(candidate), candidate)
    return tuple(distinct.values())


def _stated(text: str) -> str:
    """Return the answer that a text states, empty if it states none."""
    if box := last_box(text):
        return " ".join(box.split())
    for line in reversed([statement.line for statement in statements(text.replace("−", "-"))]):
        # A calculation may precede the result: "12 + 3 = 15".
        if number := _NUMBER.search(line.rpartition("=")[2]):
            return number.group()
    return ""


def _number_or_text(candidate: str) -> Decimal | str:
    try:
        number = Decimal(candidate.replace(",", ""))
    except InvalidOperation:
        return candidate
    return number if number.is_finite() else candidate


async def _with_feedback(record: Record, item: Item, context: Context) -> Record:
    """Append the results of the examples to a record, unless there are none or they are in it."""
    results = await context.code_tools.examples(item, record.text)
    if results in (NO_EXAMPLE, NO_PROGRAM) or results in record.text:
        return record
    return Record(record.speaker, appended(record.text, results))


async def _tool_output(role: Role, item: Item, reply: str, context: Context) -> str:
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
    """Append to a text so that no extractor takes the addition for a part of the program before it; close its fence."""
    if not addition or not text.strip():
        return addition or text
    if programs(text) == [text]:
        return f"```python\n{text.rstrip()}\n```\n\n{addition}"
    for fence in ("", _closing_fence("`", text), _closing_fence("~", text)):
        whole = f"{text.rstrip()}{fence}\n\n{addition}"
        blocks = fenced_blocks(whole)
        if not blocks or not blocks[-1].source.rstrip().endswith(addition):
            break
    return whole


def _closing_fence(mark: str, text: str) -> str:
    longest = max((len(run) for run in re.findall(f"{mark}+", text)), default=0)
    return "\n" + mark * max(3, longest)
