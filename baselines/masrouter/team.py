"""MASRouter's teams: tasks, output formats, modes, rounds and final node (D-MR-2, D-MR-7, D-MR-10)."""

import ast
import dataclasses
import json
import string
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

from harness.agents.activation import Team, act
from harness.agents.prompts import Record, team_prompt
from harness.agents.roles import Output, Role
from harness.benchmarks.programs import parse
from harness.concurrency import gather
from harness.files import Declaration, read_entries
from harness.method import CallSpec, Context, Decision, Item, Message


class Task(Declaration):
    """Task class of a question."""

    key: str  # domain of its roles
    description: str  # for the embedding
    instruction: str  # for the final node

    @property
    def profile(self) -> str:
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


def formats_of(role: Role) -> tuple[str, str]:
    """Return a role's released output formats for its first call and for a second call that the mode adds."""
    return TEXTS[role.output], TEXTS[_second_output(role) or role.output]


def profile(role: Role) -> str:
    """Return the whole role as JSON, with field names and order of the released files."""
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
    """Mode of collaboration. From round two on, an agent sees the others' texts of the previous round."""

    key: str
    description: str  # for the embedding
    rounds: int = 1  # turns per agent
    edges: Literal["none", "chain", "complete"] = "none"  # earlier agents that are visible in the first round
    note: str = ""  # extra instruction of every agent
    second_call: str | None = None  # instruction of a second call for roles that have no second call

    @property
    def profile(self) -> str:
        return f"{self.key} : {self.description}"

    def visible(self, number: int, slot: int, agents: int) -> Collection[int]:
        """Return the slots visible in round ``number``: earlier slots in round 1, all other slots later."""
        if number > 1:
            return {*range(agents)} - {slot}
        first = {"none": slot, "chain": max(slot - 1, 0), "complete": 0}[self.edges]
        return range(first, slot)

    def layers(self, agents: int) -> tuple[tuple[int, ...], ...]:
        """Group slots into layers. Layers run in order, slots of a layer concurrently."""
        if self.edges == "none":
            return (tuple(range(agents)),)
        return tuple((slot,) for slot in range(agents))


MODES = tuple(read_entries(Path(__file__).with_name("modes.yaml"), Mode).values())
THIS_ROUND = "Outputs of other agents in this round:"
PREVIOUS_ROUND = "Outputs of the other agents in the previous round:"


class Agent(NamedTuple):
    """Agent of a team."""

    role: Role
    backbone: str


def letter(slot: int) -> str:
    """Label of an agent in prompts. Slots count from 0."""
    return string.ascii_uppercase[slot]


def speakers(texts: Sequence[str]) -> Iterator[int]:
    """Iterate over slots with a text. Agents whose call failed are not shown."""
    return (slot for slot, text in enumerate(texts) if text.strip())


async def work(mode: Mode, agents: Sequence[Agent], item: Item, context: Context) -> list[str]:
    """Run all rounds of a mode and return the last text of each agent, empty if its call failed."""
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
    """Return an agent's text in a round: the first visible solution that passes the tests, else its own reply."""
    for other, record in records.items():
        if await context.code_tools.passes(item, record.text):
            context.decide(Decision(number, "short_cut", slot + 1, f"Agent {letter(other)}", len(records), 0.0))
            return record.text
    header = THIS_ROUND if number == 1 else PREVIOUS_ROUND
    team = Team(mode.note, header, mode.second_call, formats_of(agent.role))
    spec = CallSpec(number, slot=slot + 1, temperature=None)
    return await act(agent.role, agent.backbone, item, list(records.values()), context, spec, team)


def with_all_tests(item: Item) -> Item:
    """Make every test visible (D-MR-2) if the tests are plain asserts."""
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
    """Build the prompt of the final node from the agents' last texts, labelled by letter only."""
    records = [Record(f"Agent {letter(slot)}", texts[slot]) for slot in speakers(texts)]
    closing = "" if records else NOTHING_CAME_BACK
    return team_prompt((TASKS[domain].instruction, rules), item, records, closing, header=LAST_OUTPUTS)
