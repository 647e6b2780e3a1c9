"""MASRouter's teams: tasks, formats, modes, the rounds of a team, and the final node (D-MR-2, D-MR-7, D-MR-10)."""

from __future__ import annotations

import ast
import dataclasses
import json
import string
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

from harness.agents.activation import Formats, act
from harness.agents.prompts import Record, team_prompt
from harness.agents.roles import Output, Role
from harness.agents.runtime import Context
from harness.agents.trajectory import Decision
from harness.benchmarks.items import Item
from harness.benchmarks.programs import parse
from harness.concurrency import gather
from harness.files import Declaration, read_entries
from harness.llm.request import Message, Style


class Task(Declaration):
    """Task that the router classifies a question as."""

    key: str  # domain of its roles
    description: str  # for the embedding
    instruction: str  # of the final node

    @property
    def profile(self) -> str:
        """Text of the task for its embedding, ``key : description``."""
        return f"{self.key} : {self.description}"


TASKS = read_entries(Path(__file__).with_name("tasks.yaml"), Task)

_ANSWER = (
    "Close with a line that states the result alone, without a unit and without further words: The answer is <result>. "
    "Where the question has options, the result is the letter of an option."
)
TEXTS: Mapping[Output, str] = {
    "text": "",
    "code": (
        "Write the whole function in one fenced Python block, and keep its name and the types of its parameters as the "
        "task gives them."
    ),
    "program": (
        "Work the problem out in functions without parameters, and let the last line call them and assign the result "
        "to a variable named answer. Import nothing but the standard library. Put the whole program into one fenced "
        "Python block."
    ),
    "formula": f"State the formula that the problem calls for, then put the numbers in and calculate. {_ANSWER}",
    "answer": _ANSWER,
    "keywords": (
        "Give at most three short keywords on one line, with commas between them; none where nothing needs looking up."
    ),
}


def formats_of(role: Role) -> Formats:
    """Return the role's released formats: of its first call, and of one that the mode of collaboration adds."""
    return Formats(TEXTS[role.output], TEXTS[_second_output(role) or role.output])


def profile(role: Role) -> str:
    """Return the whole profile as JSON, with the fields of the released files in their order."""
    fields = {
        "Name": role.name,
        "MessageAggregation": role.sees,
        "Description": f"{role.description} {role.instruction}",
        "OutputFormat": role.output,
        "PostProcess": role.tool,
        "PostDescription": role.second_call,
        "PostOutputFormat": _second_output(role),
    }
    return json.dumps({name: "none" if value is None else value for name, value in fields.items()})


def _second_output(role: Role) -> Output | None:
    if role.second_call is None:
        return None
    return "code" if role.domain == "Code" else "answer"


class Mode(Declaration):
    """Mode of collaboration; from round two on, an agent sees what the others said in the round before."""

    key: str
    description: str  # for the embedding
    rounds: int = 1  # how often each agent speaks
    edges: Literal["none", "chain", "complete"] = "none"  # which earlier agents one sees in the first round
    note: str = ""  # instruction of every agent beside its role
    style: Style | None = None  # how explicitly every agent is to reason; ``None``: as its role does
    second_call: str | None = None  # instruction of a second call for roles without one

    @property
    def profile(self) -> str:
        """Text of the mode for its embedding, ``key : description``."""
        return f"{self.key} : {self.description}"

    def visible(self, number: int, slot: int, agents: int) -> Collection[int]:
        """Return the slots that a slot sees: in the first round earlier ones, later all others of the round before."""
        if number > 1:
            return {*range(agents)} - {slot}
        first = {"none": slot, "chain": max(slot - 1, 0), "complete": 0}[self.edges]
        return range(first, slot)

    def layers(self, agents: int) -> tuple[tuple[int, ...], ...]:
        """Return the slots in the order of their turns; those of one layer are concurrent."""
        if self.edges == "none":
            return (tuple(range(agents)),)
        return tuple((slot,) for slot in range(agents))


MODES = tuple(read_entries(Path(__file__).with_name("modes.yaml"), Mode).values())
THIS_ROUND = "Outputs of other agents in this round:"
PREVIOUS_ROUND = "Outputs of the other agents in the previous round:"


class Agent(NamedTuple):
    """Agent of a team: its role and the key of its backbone."""

    role: Role
    backbone: str


def letter(slot: int) -> str:
    """Return the letter that names an agent in prompts, for slots counted from 0."""
    return string.ascii_uppercase[slot]


def speakers(texts: Sequence[str]) -> Iterator[int]:
    """Iterate over the slots with a text; an agent whose call failed stays silent and is shown to nobody."""
    return (slot for slot, text in enumerate(texts) if text.strip())


async def work(mode: Mode, agents: Sequence[Agent], item: Item, context: Context) -> list[str]:
    """Run all rounds of a mode and return the last text of each agent, empty if it stayed silent."""
    texts = [""] * len(agents)
    for number in range(1, mode.rounds + 1):
        previous, texts = texts, [""] * len(agents)
        shown = texts if number == 1 else previous
        for layer in mode.layers(len(agents)):
            records = [_records(agents, shown, mode.visible(number, slot, len(agents))) for slot in layer]
            turns = zip(layer, records, strict=True)
            replies = await gather(_turn(mode, agents[slot], slot, number, seen, item, context) for slot, seen in turns)
            for slot, reply in zip(layer, replies, strict=True):
                texts[slot] = reply
    return texts


def _records(agents: Sequence[Agent], texts: Sequence[str], visible: Collection[int]) -> dict[int, Record]:
    names = [f"Agent {letter(slot)}, {agent.role.name}" for slot, agent in enumerate(agents)]
    return {slot: Record(names[slot], texts[slot]) for slot in speakers(texts) if slot in visible}


async def _turn(
    mode: Mode, agent: Agent, slot: int, number: int, records: Mapping[int, Record], item: Item, context: Context
) -> str:
    """Return the text of an agent in a round: the first visible solution that passes the tests, else its reply."""
    for other, record in records.items():
        if await context.code_tools.passes(item, record.text):
            context.decide(Decision(number, "short_cut", slot + 1, f"Agent {letter(other)}", len(records), 0.0))
            return record.text
    return await act(
        agent.role,
        agent.backbone,
        item,
        list(records.values()),
        context,
        step=number,
        slot=slot + 1,
        note=mode.note,
        header=THIS_ROUND if number == 1 else PREVIOUS_ROUND,
        second_call=mode.second_call,
        formats=formats_of(agent.role),
        style=mode.style,
        temperature=None,
    )


def with_all_tests(item: Item) -> Item:
    """Return the question with every test as an example (D-MR-2), if its tests are asserts without set-up code."""
    if item.code is None:
        return item
    tree = parse(item.code.checks)
    if tree is None or not tree.body or not all(isinstance(node, ast.Assert) for node in tree.body):
        return item
    tests = (ast.get_source_segment(item.code.checks, node) or "" for node in tree.body)
    return dataclasses.replace(item, code=dataclasses.replace(item.code, visible=tuple(tests)))


LAST_OUTPUTS = "Outputs of the agents:"
NOTHING_CAME_BACK = "No agent delivered anything; answer the question on your own."


def final_prompt(domain: str, rules: str, item: Item, texts: Sequence[str]) -> tuple[Message, ...]:
    """Return the prompt of the final node: the last texts by slot, labelled by letters and without the roles."""
    records = [Record(f"Agent {letter(slot)}", texts[slot]) for slot in speakers(texts)]
    closing = "" if records else NOTHING_CAME_BACK
    return team_prompt((TASKS[domain].instruction, rules), item, records, closing, header=LAST_OUTPUTS)
