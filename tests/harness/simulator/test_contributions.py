"""What is read from a prompt, and what has to be said with it: the kind of a turn is no matter of wording."""

from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from harness.agents.activation import act
from harness.agents.code_tools import CodeTools
from harness.agents.prompts import HINTS_HEADER, Record, question_prompt, team_prompt
from harness.agents.roles import Role, catalogue
from harness.benchmarks import benchmark
from harness.benchmarks.items import Item
from harness.llm.backbones import Backbone
from harness.llm.request import Message, Reply, Request, Turn
from harness.sandbox import Limits, Sandbox
from harness.simulator import SimulatedEndpoint
from harness.simulator.contributions import QuestionIndex, Reading, read, records
from tests.scripted import context

from .samples import Questions, word_problems

BACKBONE = "qwen-2.5-14B"
ITEM = word_problems(1)[0]
INDEX = QuestionIndex([ITEM])


def reading(*messages: Message, **told: str) -> Reading:
    return read(messages, Turn(**told), INDEX)  # type: ignore[arg-type]


def test_records_are_found_where_they_begin_in_turn() -> None:
    shown = [Record("Engineer", "First.\n\nStill first."), Record("Economist", "Second.")]
    for hints in ("", f"{HINTS_HEADER} 1; 2"):
        prompt = team_prompt(("An engineer.", "RULES"), ITEM, shown, hints)
        assert [one.text for one in reading(*prompt).contributions] == [record.text for record in shown]
    assert records("Intro\n[1] A:\nx\n[3] not a record:\ny\n[2] B:\nz") == ["x\n[3] not a record:\ny", "z"]
    assert records("no records [1] here: none") == []
    assert records(f"[1] A:\nx\n\n{HINTS_HEADER} 1; 2\n\n[2] B:\ny") == [f"x\n\n{HINTS_HEADER} 1; 2", "y"]


def test_the_question_is_that_of_the_last_user_message_that_holds_one() -> None:
    other = word_problems(2)[1]
    index = QuestionIndex([ITEM, other])
    texts = (("system", other), ("user", ITEM), ("assistant", other))
    messages = [Message(who, item.question) for who, item in texts]
    found = read([*messages, Message("user", "Are you sure?")], Turn(), index)
    assert found.item is ITEM
    assert found.contributions == [(other.question, True)]
    assert read(messages[:1], Turn(), index).item is None


class Asked:
    """A client in front of simulated backbones that reads along."""

    def __init__(self, endpoint: SimulatedEndpoint) -> None:
        self.endpoint = endpoint
        self.readings: list[Reading] = []
        self.replies: list[str] = []

    async def complete(self, backbone: str, request: Request) -> Reply:
        self.readings.append(read(request.messages, request.metadata or Turn(), self.endpoint.calibration.index))
        reply = self.endpoint.complete(replace(request, model=BACKBONE, revision=self.endpoint.revision))
        self.replies.append(reply.text)
        return reply


@pytest.fixture
async def code_tools() -> AsyncIterator[CodeTools]:
    async with Sandbox(Limits(cpu_s=5)) as sandbox:
        yield CodeTools(sandbox)


async def activate(
    one: Role,
    item: Item,
    seen: list[Record],
    endpoint: SimulatedEndpoint,
    backbones: dict[str, Backbone],
    code_tools: CodeTools,
) -> tuple[str, Asked]:
    client, its = Asked(endpoint), benchmark(item.benchmark)
    equipment = {"backbones": backbones, "code_tools": code_tools, "extract": its.extract}
    its_context = context(item, client, its.output_rules, **equipment)
    return await act(one, BACKBONE, item, seen, its_context, step=1), client


@pytest.mark.parametrize("key", ["math", "humaneval"])
async def test_what_is_shown_to_a_role_is_read_as_what_it_is(
    key: str,
    pools: dict[str, Questions],
    endpoint: SimulatedEndpoint,
    backbones: dict[str, Backbone],
    code_tools: CodeTools,
) -> None:
    """All roles, one after the other, each with the four before it: nothing is lost, doubled or taken for more."""
    item, spoken = pools[key].pool[0], list[Record]()
    for one in catalogue():
        seen = spoken[-4:]
        text, client = await activate(one, item, seen, endpoint, backbones, code_tools)
        first, *second = client.readings
        assert (first.item, first.role) == (item, one)
        assert first.turn.kind == {"text": "plan", "keywords": "search"}.get(one.output, "solve")
        assert len(first.contributions) == len(seen)
        for contribution, record in zip(first.contributions, seen, strict=True):
            assert not contribution.is_own
            assert contribution.text.startswith(record.text)
            assert HINTS_HEADER not in contribution.text
        assert [(its.item, its.role, its.turn.kind) for its in second] == [(item, one, "finish")] * bool(
            one.second_call
        )
        for turn in second:
            *others, own = turn.contributions
            assert others == first.contributions
            assert own.is_own
            assert own.text.startswith(client.replies[0])
        spoken.append(Record(one.name, text))


def test_only_simulated_weights_are_told_what_a_call_is_for() -> None:
    prompt = question_prompt("", "", ITEM)
    for revision, told in ((None, False), ("0123abc", False), ("simulated-1-2-1", True)):
        plain, critique = (Request("m", revision, prompt, metadata=turn) for turn in (None, Turn("critique")))
        assert (plain.key != critique.key, critique.record != plain.record) == (told, told)
        assert critique.body().get("metadata") == (Turn("critique")._asdict() if told else None)
