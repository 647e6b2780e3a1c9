"""Simulated backbones are told what every turn is for, and find the contributions in its prompt."""

from __future__ import annotations

from typing import Any

import pytest

from baselines.aflow.operators import Interpreter
from baselines.aflow.workflow import Workflow, start
from harness.benchmarks import benchmark
from harness.benchmarks.items import Item
from harness.llm.request import Request
from harness.simulator.contributions import Reading, read
from harness.simulator.world import QuestionIndex
from tests import scripted
from tests.baselines.aflow.made import CODE, ITEM, Bench, fenced, flow, node
from tests.scripted import ScriptedClient

WRONG = fenced("def double(x):\n    return x")
CHOICE = Item(id="m", benchmark="mmlu_pro", question="Which of them?\nA. this\nB. that", gold="B")


async def readings(workflow: Workflow, item: Item, *replies: str) -> list[Reading]:
    rules = benchmark(item.benchmark).output_rules
    client = ScriptedClient(*replies)
    context = scripted.context(item, client, rules, code_tools=Bench(), extract=benchmark(item.benchmark).extract)
    await Interpreter(workflow, "small").solve(item, context)
    return [read(messages(request), request.metadata, QuestionIndex([item])) for _, request in client.asked]


def messages(request: Request) -> list[dict[str, Any]]:
    return [message._asdict() for message in request.messages]


def told(its: Reading) -> tuple[str, str, str, bool, int]:
    return its.kind, its.style, its.form, its.feedback, len(its.contributions)


@pytest.mark.parametrize(
    ("workflow", "item", "replies", "expected"),
    [
        (start("Math"), ITEM, ["x"], [("solve", "direct", "answer", False, 0)]),
        (start("Code"), CODE, ["x"], [("solve", "direct", "answer", False, 0)]),
        (
            flow(node("a", "Custom"), node("b", "Custom", "a")),
            ITEM,
            ["x"],
            [("solve", "direct", "answer", False, 0), ("solve", "direct", "answer", False, 1)],
        ),
        (flow(node("a", "AnswerGenerate")), CHOICE, ["x"], [("solve", "step_by_step", "answer", False, 0)]),
        (
            flow(node("a", "Custom", repeat=2), node("e", "ScEnsemble", "a")),
            ITEM,
            ["x", "y", "Candidate B"],
            [
                ("solve", "direct", "answer", False, 0),
                ("solve", "direct", "answer", False, 0),
                ("aggregate", "direct", "letter", False, 2),
            ],
        ),
        (
            flow(node("p", "Programmer")),
            ITEM,
            ["x", fenced("answer = 3")],
            [("solve", "direct", "program", False, 0), ("revise", "direct", "program", False, 1)],
        ),
        (
            flow(node("a", "Custom"), node("t", "Test", "a")),
            CODE,
            [WRONG, "x"],
            [("solve", "direct", "answer", False, 0), ("revise", "direct", "answer", True, 1)],
        ),
    ],
)
async def test_what_a_turn_is_for_is_said_with_it(
    workflow: Workflow, item: Item, replies: list[str], expected: list[Any]
) -> None:
    found = await readings(workflow, item, *replies)
    assert [told(reading) for reading in found] == expected
    assert all(reading.item == item and reading.role is None for reading in found)
