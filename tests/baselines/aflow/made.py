"""Workflows, models that answer by rule, a code_tools without processes, and trainings, for the tests of AFlow."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from baselines.aflow.workflow import QUESTION, Condition, Node, Workflow
from harness.agents.code_tools import Value
from harness.agents.error_share import ErrorShare
from harness.agents.prompts import EXAMPLES_RUN
from harness.agents.runtime import Runtime
from harness.benchmarks.items import CodeTask, Item, Status, Verdict
from harness.errors import UserError
from harness.llm.request import Reply, Request
from harness.training.loop import Training
from tests.scripted import backbones

RULES = "End with a line that says: The answer is <number>."
ITEM = Item(id="1", benchmark="gsm_hard", question="How many eggs?", gold="3.0")
CODE = Item(
    id="c",
    benchmark="humaneval",
    question="def double(x): ...",
    gold="def double(x):\n    return 2 * x\n",
    code=CodeTask("double", "", "assert double(21) == 42", ("assert double(1) == 2",)),
)


def node(id_: str, operator: str, *inputs: str, **changes: Any) -> Node:
    return replace(Node(id_, operator, inputs or (QUESTION,)), **changes)


def flow(*nodes: Node) -> Workflow:
    return Workflow(nodes)


def when(id_: str, outcome: Any) -> Condition:
    return Condition(id_, outcome)


def fenced(program: str) -> str:
    return f"```python\n{program}\n```"


class Model:
    """Stands where a ChatClient does and answers by a rule; notes what it was asked, in order."""

    def __init__(self, rule: Callable[[Request], str | Reply]) -> None:
        self.rule = rule
        self.asked: list[tuple[str, Request]] = []

    async def complete(self, backbone: str, request: Request) -> Reply:
        self.asked.append((backbone, request))
        reply = self.rule(request)
        return reply if isinstance(reply, Reply) else Reply(reply, 100, 10, "stop", request.model)

    @property
    def requests(self) -> list[Request]:
        return [request for _, request in self.asked]


class Bench:
    """A code_tools that judges by words: a program with ``good`` passes, one with ``answer = X`` gives X."""

    async def passes(self, item: Item, text: str) -> bool | None:
        return None if item.code is None or not item.code.visible else "good" in text

    async def examples(self, item: Item, text: str) -> str:
        return f"{EXAMPLES_RUN}\n- example {'passed' if 'good' in text else 'failed'}: assert double(1) == 2"

    async def value(self, text: str) -> Value | None:
        if "```" not in text:
            return None
        found = text.partition("answer = ")[2].splitlines()
        return Value(printed=found[0]) if found else Value(failure="it has no variable named answer")


def text_of(request: Request) -> str:
    return "\n".join(message.content for message in request.messages)


def is_proposal(request: Request) -> bool:
    return request.messages[0].content.startswith("You improve, edit by edit, a workflow")


def proposal(modification: str, **edit: Any) -> str:
    return json.dumps({"modification": modification, "edit": edit})


def told(instruction: str) -> str:
    """A proposal that gives the only node of the start workflow an instruction."""
    new = {"id": "node_1", "operator": "Custom", "inputs": ["question"], "instruction": instruction}
    return proposal(f"Tell it to {instruction}", kind="replace", id="node_1", node=new)


class Graded:
    """A benchmark whose texts are their own answers, right where they are the gold answer."""

    key = "gsm_hard"
    output_rules = RULES

    def extract(self, item: Item, text: str) -> str | None:
        return text or None

    async def grade(self, item: Item, text: str, tools: Any) -> Verdict:
        return Verdict(text == item.gold, text, Status.GRADED)


def questions(count: int) -> list[Item]:
    return [
        Item(id=f"q{number}", benchmark="gsm_hard", question=f"Question {number}?", gold=f"right {number}")
        for number in range(count)
    ]


def training(folder: Path, client: Any, items: Sequence[Item], seed: int = 7, limit: float = 1.0) -> Training:
    parts: dict[str, Any] = {"benchmark": Graded(), "tools": None, "code_tools": Bench(), "embeddings": None}
    place = Runtime(client=client, backbones=backbones(), seed=seed, errors=ErrorShare(limit), **parts)
    return Training(items, place, folder, {"identity": "one", "method": "aflow"}, "a cell", lambda key: True, 64)


def breaking(model: Model, at: int) -> Model:
    """A model whose endpoint goes away at a call."""

    def rule(request: Request) -> str | Reply:
        if len(model.asked) > at:
            raise UserError("gone")
        return inner(request)

    inner, model.rule = model.rule, rule
    return model
