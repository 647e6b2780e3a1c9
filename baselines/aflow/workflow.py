"""Workflows as lists of nodes instead of code (D-AF-3)."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, RootModel, StringConstraints

from harness.files import Declaration, Many, read_entries


class Operator(Declaration):
    """Operator: its description for the optimizer and its prompts for the executor."""

    key: str
    domains: Many[str]  # domains in which it is offered
    description: str
    takes_instruction: bool = False
    needs_result: bool = False  # needs an earlier node as input
    has_status: bool = False  # ends with ``passed`` or ``failed``, for conditions of later nodes
    prompt: str = ""  # for operators without an instruction
    again: str = ""  # retry prompt after a ``{failure}``


OPERATORS = read_entries(Path(__file__).with_name("operators.yaml"), Operator)


def offered(domain: str) -> dict[str, Operator]:
    return {name: operator for name, operator in OPERATORS.items() if domain in operator.domains}


Status = Literal["failed", "passed"]

QUESTION = "question"
MOST_NODES = 10
# 5 inputs with 5 results each are 25 candidates, which letters can label.
MOST_INPUTS = 5
MOST_REPEATS = 5
LONGEST_INSTRUCTION = 2000


class InvalidWorkflowError(ValueError):
    """Invalid workflow or edit. The optimizer is shown the message."""


class Condition(Declaration):
    """Run a node only if an earlier node ended with this status."""

    node: str
    outcome: Status = Field(alias="is")


class Node(Declaration):
    """Step of a workflow."""

    id: Annotated[str, Field(pattern="^[A-Za-z][A-Za-z0-9_]{0,31}$")]
    operator: str
    # ``"question"`` or ids of earlier nodes, without duplicates, in the order shown.
    inputs: Annotated[Many[str], AfterValidator(lambda names: tuple(dict.fromkeys(names)))] = (QUESTION,)
    instruction: Annotated[str, StringConstraints(strip_whitespace=True, max_length=LONGEST_INSTRUCTION)] = ""
    repeat: Annotated[int, Field(ge=1, le=MOST_REPEATS)] = 1  # number of runs; 1 for the last node
    when: Condition | None = None

    @property
    def sources(self) -> tuple[str, ...]:
        return tuple(name for name in self.inputs if name != QUESTION)


class Workflow(RootModel[Many[Node]], frozen=True):
    """Nodes in execution order, stored as a JSON list."""

    @property
    def nodes(self) -> tuple[Node, ...]:
        return self.root

    @property
    def ids(self) -> tuple[str, ...]:
        return tuple(node.id for node in self.nodes)

    def canonical(self) -> list[list[Any]]:
        """Normalise node ids and white space in instructions, for comparison."""
        names = {QUESTION: QUESTION, **{id_: str(index) for index, id_ in enumerate(self.ids)}}
        return [
            [
                node.operator,
                [names[name] for name in node.inputs],
                node.instruction.split(),
                node.repeat,
                node.when and [names[node.when.node], node.when.outcome],
            ]
            for node in self.nodes
        ]

    def needed(self) -> frozenset[str]:
        reached = {self.nodes[-1].id}
        for node in reversed(self.nodes):
            if node.id in reached:
                reached.update(node.sources)
                if node.when is not None:
                    reached.add(node.when.node)
        return frozenset(reached)


def start(domain: str) -> Workflow:
    return Workflow((Node(id="node_1", operator="CustomCodeGenerate" if domain == "Code" else "Custom"),))


def check(workflow: Workflow, domain: str) -> None:
    """Raise InvalidWorkflowError if a workflow cannot run or has a node that no later node reads."""
    if not 1 <= len(workflow.nodes) <= MOST_NODES:
        raise InvalidWorkflowError(f"a workflow has 1 to {MOST_NODES} nodes, this one {len(workflow.nodes)}")
    earlier: dict[str, Node] = {}
    for node in workflow.nodes:
        if node.id in {QUESTION, *earlier}:
            raise InvalidWorkflowError(f"the name {node.id} is taken")
        if fault := _fault(node, earlier, offered(domain)):
            raise InvalidWorkflowError(f"{node.id}: {fault}")
        earlier[node.id] = node
    if node.repeat > 1:
        raise InvalidWorkflowError(f"{node.id}: the last node runs once")
    unread = [id_ for id_ in workflow.ids if id_ not in workflow.needed()]
    if unread:
        raise InvalidWorkflowError(f"{unread[0]}: no later node reads it")


def _fault(node: Node, earlier: Mapping[str, Node], operators: Mapping[str, Operator]) -> str:
    """Explain why a node is invalid after ``earlier`` nodes. Empty if it is valid."""
    if node.operator not in operators:
        return f"no operator {node.operator!r}; there are {', '.join(operators)}"
    operator = operators[node.operator]
    if node.instruction and not operator.takes_instruction:
        return f"{node.operator} takes no instruction"
    if not 1 <= len(node.inputs) <= MOST_INPUTS:
        return f"a node has 1 to {MOST_INPUTS} inputs"
    if operator.needs_result and not node.sources:
        return f"{node.operator} needs an earlier node among its inputs"
    for name in node.sources:
        if name not in earlier:
            return f"its input {name!r} is no earlier node"
    if node.when is not None:
        watched = earlier.get(node.when.node)
        if watched is None or not operators[watched.operator].has_status:
            return f"{node.when.node!r} is no earlier node that ends with a status"
    return ""
