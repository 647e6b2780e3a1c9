"""Simulated backbones understand what roles are shown: first and second calls, records, feedback and hints."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from harness.agents.activation import act
from harness.agents.code_tools import CodeTools
from harness.agents.prompts import HINTS_HEADER, Record, agent_prompt
from harness.agents.roles import Role, catalogue, role
from harness.agents.trajectory import Context
from harness.benchmarks import benchmark
from harness.benchmarks.items import Item
from harness.llm.backbones import Backbone
from harness.llm.request import Reply, Request
from harness.sandbox import Limits, Sandbox
from harness.simulator import SimulatedEndpoint, World
from harness.simulator.contributions import weigh
from harness.simulator.reading import Reader, Reading

from .samples import Questions

BACKBONE = "qwen-2.5-14B"
KEYS = ["math", "gsm_hard", "mbpp", "humaneval", "mmlu_pro"]
KIND_OF_FIRST_CALL = {
    "text": "plan",
    "keywords": "search",
    "code": "solve",
    "program": "solve",
    "formula": "solve",
    "answer": "solve",
}


class Asked:
    """A client in front of simulated backbones that reads along."""

    def __init__(self, endpoint: SimulatedEndpoint) -> None:
        rules = [benchmark(key).output_rules for key in sorted(endpoint.world.benchmarks)]
        self.reader = Reader(endpoint.world.index, endpoint.world.settings.recognition, rules)
        self.endpoint = endpoint
        self.readings: list[Reading] = []
        self.replies: list[str] = []

    async def complete(self, backbone: str, request: Request) -> Reply:
        self.readings.append(self.reader.read([message._asdict() for message in request.messages]))
        status, body = self.endpoint.chat(request.fields()[0])
        assert status == 200, body
        usage, [choice] = body["usage"], body["choices"]
        self.replies.append(choice["message"]["content"])
        return Reply(
            self.replies[-1], usage["prompt_tokens"], usage["completion_tokens"], choice["finish_reason"], BACKBONE
        )


@pytest.fixture
async def code_tools() -> AsyncIterator[CodeTools]:
    async with Sandbox(Limits(cpu_s=5)) as sandbox:
        yield CodeTools(sandbox)


async def activate(
    one: Role,
    item: Item,
    records: list[Record],
    endpoint: SimulatedEndpoint,
    backbones: dict[str, Backbone],
    code_tools: CodeTools,
) -> tuple[str, Asked]:
    client = Asked(endpoint)
    its = benchmark(item.benchmark)
    equipment: dict[str, Any] = {"code_tools": code_tools, "embeddings": None, "extract": its.extract}
    context = Context(item, client, backbones, its.output_rules, **equipment)  # type: ignore[arg-type]
    return await act(one, BACKBONE, item, records, context, step=1), client


@pytest.mark.parametrize("key", KEYS)
async def test_what_is_shown_to_a_role_is_read_as_what_it_is(
    key: str,
    pools: dict[str, Questions],
    endpoint: SimulatedEndpoint,
    backbones: dict[str, Backbone],
    code_tools: CodeTools,
) -> None:
    """All roles, one after the other, each with the four before it: nothing is lost, doubled or taken for more."""
    item = pools[key].pool[0]
    records: list[Record] = []
    for one in catalogue():
        seen = records[-4:]
        text, client = await activate(one, item, seen, endpoint, backbones, code_tools)
        first, *second = client.readings
        assert (first.item, first.role, first.kind) == (item, one, KIND_OF_FIRST_CALL[one.output])
        assert len(first.contributions) == len(seen)
        for contribution, record in zip(first.contributions, seen, strict=True):
            assert not contribution.own
            assert contribution.text.startswith(record.text)
            assert HINTS_HEADER not in contribution.text
        assert [(turn.item, turn.role, turn.kind) for turn in second] == [(item, one, "finish")] * bool(one.second_call)
        for turn in second:
            *others, own = turn.contributions
            assert others == first.contributions
            assert own.own
            assert own.text.startswith(client.replies[0])
        records.append(Record(one.name, text))


@pytest.mark.parametrize("key", ["mbpp", "humaneval"])
async def test_outcomes_of_examples_are_noticed(
    key: str,
    pools: dict[str, Questions],
    endpoint: SimulatedEndpoint,
    backbones: dict[str, Backbone],
    code_tools: CodeTools,
) -> None:
    item = pools[key].pool[0]
    assert item.code is not None
    assert item.code.visible
    program = Record("Somebody", benchmark(key).present(item, item.gold))
    for name, records, noticed in (
        ("Code/BugFixer", [], [False, True]),
        ("Code/BugFixer", [program], [True, True]),
        ("Code/PlanSolver", [program], [True, True]),
        ("Code/PlanSolver", [Record("Somebody", "A plan.")], [False, False]),
        ("Commonsense/Critic", [program], [False]),
    ):
        _, client = await activate(role(name), item, records, endpoint, backbones, code_tools)
        assert [reading.feedback for reading in client.readings] == noticed, name


async def test_where_no_example_can_be_run_there_is_no_outcome(
    pools: dict[str, Questions], endpoint: SimulatedEndpoint, backbones: dict[str, Backbone], code_tools: CodeTools
) -> None:
    program = Record("Somebody", "```python\nanswer = 42\n```")
    for key in ("gsm_hard", "math", "mmlu_pro"):
        item = pools[key].pool[0]
        _, client = await activate(role("Code/BugFixer"), item, [program], endpoint, backbones, code_tools)
        assert [reading.feedback for reading in client.readings] == [False, False]


@pytest.mark.parametrize("key", ["gsm_hard", "math", "mmlu_pro"])
async def test_programs_for_mathematics_compute_the_answer_they_state(
    key: str,
    pools: dict[str, Questions],
    endpoint: SimulatedEndpoint,
    backbones: dict[str, Backbone],
    code_tools: CodeTools,
) -> None:
    for name in ("Math/ProgrammingExpert", "Math/SoftwareDeveloper"):
        item = pools[key].pool[1]
        _, client = await activate(role(name), item, [], endpoint, backbones, code_tools)
        value = await code_tools.value(client.replies[0])
        stated = benchmark(key).extract(item, client.replies[0])
        assert value is not None
        assert value.printed is not None
        assert stated is not None
        assert benchmark(key).same(item, value.printed, stated)
        own = client.readings[1].contributions[-1].text
        assert own.endswith(f"holds {value.printed}")


def test_hints_add_no_weight(world: World, pools: dict[str, Questions], endpoint: SimulatedEndpoint) -> None:
    """A plan that is the last record says no more for the hints behind it."""
    item = pools["math"].pool[0]
    rules = benchmark("math").output_rules
    records = [Record("A", "The answer is \\boxed{7}"), Record("B", "Only a plan.")]
    reader = Asked(endpoint).reader
    plain, hinted = (
        reader.read([m._asdict() for m in agent_prompt(role("Math/MathSolver"), rules, item, records, hints=hints)])
        for hints in ((), ("7", "\\boxed{8}", "The answer is \\boxed{9}"))
    )
    assert hinted == plain
    values = world.settings.parameters
    weights = [weigh(world.answers(item), one.contributions, False, values) for one in (hinted, plain)]
    assert weights[0] == weights[1]
