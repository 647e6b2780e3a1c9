"""One turn of an agent: prompt, call, tool and optional second call (paper, Agent Role Profiles; D-PROMPT-2).

Every role acts on every benchmark, so a tool without input says so in one line.
"""

import re
from collections import Counter
from collections.abc import Sequence
from decimal import Decimal, InvalidOperation
from typing import NamedTuple

from harness.agents.code_tools import NO_EXAMPLE, NO_PROGRAM, CodeTools, programs
from harness.agents.prompts import HINTS_HEADER, RECORDS_HEADER, Record, team_prompt
from harness.agents.roles import Role, ToolOutput
from harness.agents.trajectory import CallSpec
from harness.benchmarks.items import Item
from harness.benchmarks.programs import fenced_blocks
from harness.benchmarks.reading import last_box, statements
from harness.concurrency import gather
from harness.llm.request import Message
from harness.method import Context

# Tool messages contain no digit and not "answer is": an extractor could take either for an answer.
NO_ENTRY = "The encyclopedia has no result for these keywords."
_LONGEST_CANDIDATE = 80
# A number after a brace is an argument of a TeX command, such as a numerator.
_NUMBER = re.compile(
    r"(?<![\w.{/])[-+]?(?:(?:\d{1,3}(?:,\d{3})+(?!\d)|\d+)(?:\.\d+)?|\.\d+)(?:[eE][-+]?\d{1,3}\b|/\d+)?"
)


def most_frequent(backbones: Sequence[str]) -> str:
    """Return the most frequent backbone of a team. Ties go to the first."""
    # Counter keeps insertion order.
    return Counter(backbones).most_common(1)[0][0]


class Team(NamedTuple):
    """What a team adds to the prompts of an agent."""

    note: str = ""  # extra system text
    header: str = RECORDS_HEADER  # heading of the records
    second_call: str | None = None  # instruction of a second call, if the role has none
    formats: tuple[str, str] | None = None  # output rules of the first and of a second call; default: the benchmark's
    tool_output: ToolOutput = "last"  # where the returned record and the records shown have the output of tools


async def act(
    role: Role,
    backbone: str,
    item: Item,
    records: Sequence[Record],
    context: Context,
    spec: CallSpec = CallSpec(),
    team: Team = Team(),
) -> str:
    """Let an agent contribute once, in one or two calls. The second call continues after the tool output.

    Args:
        role: Role of the agent.
        backbone: Backbone to call.
        item: Question.
        records: Earlier contributions shown to the agent, in this order.
        context: Access to models and tools.
        spec: Step, slot and sampling of the calls. Purpose and role are set here.
        team: What the team adds to the prompts.

    Returns:
        The second reply, or else the first reply with the tool output. Empty if a call failed for good (D-GMR-11).

    Raises:
        UserError: If the sandbox is broken or an endpoint is gone.
    """
    hints = ""
    if role.sees == "test_feedback" and team.tool_output != "none":
        records = await gather(_with_feedback(record, item, context, team.tool_output) for record in records)
    elif role.sees == "numeric_hints":
        answers = await candidates(records, context.code_tools)
        hints = f"{HINTS_HEADER} {'; '.join(answers)}" if answers else ""
    rules, second_rules = team.formats or (context.rules, context.rules)
    system = (role.description, role.instruction, team.note, rules)
    prompt = team_prompt(system, item, records, hints, header=team.header)
    spec = spec._replace(role=role.key, purpose="act")
    first = await context.ask(backbone, prompt, spec)
    if first.error is not None:
        return ""
    output = await _tool_output(role, item, first.text, context)
    context.record_tool_output(first, output, item)
    instruction = role.second_call or team.second_call
    if instruction is None:
        return _with_output(first.text, output, team.tool_output)
    text = append_text(first.text, output)
    request = "\n\n".join(filter(None, (instruction, second_rules)))
    conversation = (*prompt, Message("assistant", text), Message("user", request))
    return (await context.ask(backbone, conversation, spec._replace(purpose="second_call"))).text


async def candidates(records: Sequence[Record], code_tools: CodeTools) -> tuple[str, ...]:
    """Collect the distinct answers of records in order of first appearance. Numbers of equal value are one candidate.

    A record can contribute its last box (or else the number on its last answer line) and the value of ``answer`` in
    its program.
    """
    values = await gather(code_tools.value(record.text) for record in records)
    distinct: dict[Decimal | str, str] = {}
    for record, value in zip(records, values, strict=True):
        computed = value.printed if value is not None and value.printed != "None" else None
        for candidate in (_extract_answer(record.text), computed or ""):
            if 0 < len(candidate) <= _LONGEST_CANDIDATE:
                distinct.setdefault(_number_or_text(candidate), candidate)
    return tuple(distinct.values())


def _extract_answer(text: str) -> str:
    if box := last_box(text):
        return " ".join(box.split())
    for line in reversed([statement.line for statement in statements(text.replace("−", "-"))]):
        # The result may follow a calculation: "12 + 3 = 15".
        if number := _NUMBER.search(line.rpartition("=")[2]):
            return number.group()
    return ""


def _number_or_text(candidate: str) -> Decimal | str:
    try:
        number = Decimal(candidate.replace(",", ""))
    except InvalidOperation:
        return candidate
    return number if number.is_finite() else candidate


async def _with_feedback(record: Record, item: Item, context: Context, place: ToolOutput) -> Record:
    """Add example results to a record, unless it already has them or there are none."""
    results = await context.code_tools.examples(item, record.text)
    if results in (NO_EXAMPLE, NO_PROGRAM) or results in record.text:
        return record
    return Record(record.speaker, _with_output(record.text, results, place))


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
            # A network look-up would make results depend on the date of the run (D-GEN-7).
            return NO_ENTRY


def _with_output(text: str, output: str, place: ToolOutput) -> str:
    if place == "last":
        return append_text(text, output)
    if place == "none" or not output:
        return text
    if programs(text) == [text]:
        text = f"```python\n{text.rstrip()}\n```"
    return f"{output}\n\n{text}"


def append_text(text: str, addition: str) -> str:
    """Append to a text, closing an open fence, so that extractors do not read the addition as part of a program."""
    if not addition or not text.strip():
        return addition or text
    if programs(text) == [text]:
        return f"```python\n{text.rstrip()}\n```\n\n{addition}"
    whole = f"{text.rstrip()}\n\n{addition}"
    blocks = fenced_blocks(whole)
    if blocks and not blocks[-1].closed:
        fence = "`" * max([3, *(len(run) for run in re.findall("`+", text))])
        return f"{text.rstrip()}\n{fence}\n\n{addition}"
    return whole
