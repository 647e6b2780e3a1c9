"""Fixtures for AFlow: workflows and rule-based models."""

import json
from typing import Any

from baselines.aflow.method import AFlow, Config
from baselines.aflow.search import Round
from baselines.aflow.workflow import QUESTION, Condition, Node, Workflow
from harness.benchmarks.items import Item
from harness.llm.request import Request
from harness.scripted import setting

ITEM = Item(id="1", benchmark="gsm_hard", question="How many eggs?", gold="3.0")


def node(id_: str, operator: str, *inputs: str, **changes: Any) -> Node:
    return Node(id=id_, operator=operator, inputs=inputs or (QUESTION,), **changes)


def flow(*nodes: Node) -> Workflow:
    return Workflow(nodes)


def when(id_: str, outcome: Any) -> Condition:
    return Condition(node=id_, **{"is": outcome})


def round_(number: int, parent: int | None = 1, **fields: Any) -> Round:
    return Round(round=number, parent=parent, **{"status": "scored", **fields})


def text_of(request: Request) -> str:
    return "\n".join(message.content for message in request.messages)


def is_proposal(request: Request) -> bool:
    return request.messages[0].content.startswith("You improve, edit by edit, a workflow")


def proposal(modification: str, **edit: Any) -> str:
    return json.dumps({"modification": modification, "edit": edit})


def told(instruction: str) -> str:
    """Return a proposal that sets the instruction of the initial workflow's only node."""
    new = {"id": "node_1", "operator": "Custom", "inputs": ["question"], "instruction": instruction}
    return proposal(f"Tell it to {instruction}", kind="replace", id="node_1", node=new)


def by_key(backbone: str, request: Request) -> str:
    """Return a proposal or a reply as a function of the request. Two thirds of the replies are right."""
    if is_proposal(request):
        return told(f"count {request.key[:6]}")
    return f"{request.key[:6]} {'right' if int(request.key, 16) % 3 else 'wrong'}"


def method(seed: int = 0, max_epochs: int | None = None, **changes: Any) -> AFlow:
    return AFlow(setting(seed=seed, max_epochs=max_epochs), Config(**changes))
