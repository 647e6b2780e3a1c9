"""The language of workflows: a short list of nodes that a schema can describe and nothing has to execute (D-AF-3).

A workflow is one to ten nodes in the order in which they run; the answer is the output of the last. Every node sees the
question, and beside it the outputs of the earlier nodes among its inputs. A node is one of the operators of its domain.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

import orjson


@dataclass(frozen=True, slots=True)
class Operator:
    """One operator, as the optimizer is told of it.

    Attributes:
        instructed: Whether a node may give it an instruction.
        needs_result: Whether it works on results of earlier nodes and can do nothing with the question alone.
        judges: Whether it ends with a status, ``passed`` or ``failed``, that a later node can look at.
    """

    name: str
    what: str
    instructed: bool = False
    needs_result: bool = False
    judges: bool = False


CUSTOM = Operator(
    "Custom",
    "One call with an instruction of yours, which may be empty, and the results of its inputs.",
    instructed=True,
)
CODE_GENERATE = Operator(
    "CustomCodeGenerate",
    "One call with an instruction of yours, which may be empty; of the reply only the program is passed on.",
    instructed=True,
)
ANSWER_GENERATE = Operator("AnswerGenerate", "One call that thinks first and then gives a short answer.")
ENSEMBLE = Operator(
    "ScEnsemble",
    "One call that sees every result of its inputs as a candidate and picks the one that agrees best with the others. "
    "It makes sense after a node with a repeat, or after several nodes.",
    needs_result=True,
)
PROGRAMMER = Operator(
    "Programmer",
    "Has a Python program written that computes the answer, and runs it; what went wrong goes into the next of at most "
    "three attempts. Its status is failed when none of them gave a value.",
    judges=True,
)
TEST = Operator(
    "Test",
    "Runs the program of its input on the examples in the question. While it fails, it is rewritten, three times at "
    "most. Its status is that of the last run.",
    needs_result=True,
    judges=True,
)

OFFERED: Mapping[str, tuple[Operator, ...]] = {
    "Code": (CUSTOM, CODE_GENERATE, ENSEMBLE, TEST),
    "Math": (CUSTOM, ENSEMBLE, PROGRAMMER),
    "Commonsense": (CUSTOM, ANSWER_GENERATE, ENSEMBLE),
}
START: Mapping[str, Operator] = {"Code": CODE_GENERATE, "Math": CUSTOM, "Commonsense": CUSTOM}


def offered(domain: str) -> dict[str, Operator]:
    """The operators of a domain, by name."""
    return {operator.name: operator for operator in OFFERED[domain]}


Status = Literal["failed", "passed"]

QUESTION = "question"
MOST_NODES = 10
# Five results of five inputs are as many candidates as have letters.
MOST_INPUTS = 5
MOST_REPEATS = 5
LONGEST_INSTRUCTION = 2000
_ID = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,31}\Z")
_FIELDS = ("id", "operator", "inputs", "instruction", "repeat", "when")


class InvalidWorkflowError(ValueError):
    """A workflow, or an edit of one, that the language does not allow; says why in a few words."""


@dataclass(frozen=True, slots=True)
class Condition:
    """A node runs only if an earlier one ended with a status."""

    node: str
    outcome: Status


@dataclass(frozen=True, slots=True)
class Node:
    """One step of a workflow.

    Attributes:
        inputs: ``"question"`` or ids of earlier nodes, each once, in the order in which they are shown.
        instruction: What the operator is told, where it takes an instruction; may be empty.
        repeat: How often the operator runs; every run is one output. The last node runs once.
        when: The condition under which it runs, ``None`` for always.
    """

    id: str
    operator: str
    inputs: tuple[str, ...] = (QUESTION,)
    instruction: str = ""
    repeat: int = 1
    when: Condition | None = None

    @property
    def sources(self) -> tuple[str, ...]:
        """The earlier nodes among the inputs."""
        return tuple(name for name in self.inputs if name != QUESTION)

    @property
    def refers_to(self) -> frozenset[str]:
        """Every earlier node that its outcome depends on."""
        return frozenset(self.sources) | ({self.when.node} if self.when else set())

    def to_json(self) -> dict[str, Any]:
        """The form the optimizer sees and checkpoints keep."""
        when = None if self.when is None else {"node": self.when.node, "is": self.when.outcome}
        return {
            "id": self.id,
            "operator": self.operator,
            "inputs": list(self.inputs),
            "instruction": self.instruction,
            "repeat": self.repeat,
            "when": when,
        }


@dataclass(frozen=True, slots=True)
class Workflow:
    """Nodes in the order in which they run."""

    nodes: tuple[Node, ...]

    @property
    def ids(self) -> tuple[str, ...]:
        """The names of the nodes, in order."""
        return tuple(node.id for node in self.nodes)

    def to_json(self) -> list[dict[str, Any]]:
        """The inverse of :func:`workflow_of`."""
        return [node.to_json() for node in self.nodes]

    def canonical(self) -> bytes:
        """Equal for workflows that differ in nothing but the names of nodes and white space in instructions."""
        names = {QUESTION: QUESTION, **{id_: str(place) for place, id_ in enumerate(self.ids)}}
        plain = [
            [
                node.operator,
                [names[name] for name in node.inputs],
                " ".join(node.instruction.split()),
                node.repeat,
                None if node.when is None else [names[node.when.node], node.when.outcome],
            ]
            for node in self.nodes
        ]
        return orjson.dumps(plain)

    def needed(self) -> frozenset[str]:
        """The nodes that the answer depends on."""
        reached = {self.nodes[-1].id}
        for node in reversed(self.nodes):
            if node.id in reached:
                reached |= node.refers_to
        return frozenset(reached)


def start(domain: str) -> Workflow:
    """The workflow of round 1: the question, asked once."""
    return Workflow((Node("node_1", START[domain].name),))


def workflow_of(document: Any) -> Workflow:
    """Read the JSON form; raises InvalidWorkflowError where it is none."""
    if not isinstance(document, list):
        raise InvalidWorkflowError("a workflow is a list of nodes")
    return Workflow(tuple(map(node_of, document)))


def node_of(document: Any) -> Node:
    """Read the JSON form of a node; instruction, repeat and when may be left out, inputs that repeat count once."""
    if not isinstance(document, Mapping):
        raise InvalidWorkflowError("a node is an object")
    unknown = [name for name in document if name not in _FIELDS]
    if unknown:
        raise InvalidWorkflowError(f"a node has no field {unknown[0]!r}")
    inputs = document.get("inputs")
    if not isinstance(inputs, list) or not all(isinstance(name, str) for name in inputs):
        raise InvalidWorkflowError("inputs is a list of names")
    return Node(
        id=_text(document, "id"),
        operator=_text(document, "operator"),
        inputs=tuple(dict.fromkeys(inputs)),
        instruction=_text(document, "instruction", "").strip(),
        repeat=_repeat(document.get("repeat", 1)),
        when=_condition_of(document.get("when")),
    )


def _text(document: Mapping[str, Any], name: str, default: str | None = None) -> str:
    value = document.get(name, default)
    if not isinstance(value, str):
        raise InvalidWorkflowError(f"{name} is a text")
    return value


def _repeat(value: Any) -> int:
    if type(value) is not int or not 1 <= value <= MOST_REPEATS:
        raise InvalidWorkflowError(f"repeat is a whole number from 1 to {MOST_REPEATS}")
    return value


def _condition_of(document: Any) -> Condition | None:
    if document is None:
        return None
    if not isinstance(document, Mapping) or set(document) != {"node", "is"}:
        raise InvalidWorkflowError("when is null, or an object with node and is")
    if document["is"] not in get_args(Status):
        raise InvalidWorkflowError(f"a status is one of {', '.join(get_args(Status))}")
    return Condition(_text(document, "node"), document["is"])


def check(workflow: Workflow, domain: str) -> None:
    """Raise InvalidWorkflowError for a workflow that could not run, or part of which would run for nothing."""
    if not 1 <= len(workflow.nodes) <= MOST_NODES:
        raise InvalidWorkflowError(f"a workflow has 1 to {MOST_NODES} nodes, this one {len(workflow.nodes)}")
    earlier: dict[str, Node] = {}
    for node in workflow.nodes:
        if not _ID.match(node.id) or node.id == QUESTION:
            raise InvalidWorkflowError(f"{node.id!r} is no name for a node; use letters, digits and underscores")
        if node.id in earlier:
            raise InvalidWorkflowError(f"two nodes have the name {node.id}")
        _check_operator(node, domain)
        _check_references(node, earlier, domain)
        earlier[node.id] = node
    if node.repeat > 1:
        raise InvalidWorkflowError(f"{node.id}: the last node runs once")
    unread = [id_ for id_ in workflow.ids if id_ not in workflow.needed()]
    if unread:
        raise InvalidWorkflowError(f"{unread[0]}: no later node reads it")


def _check_operator(node: Node, domain: str) -> None:
    operators = offered(domain)
    if node.operator not in operators:
        raise InvalidWorkflowError(f"{node.id}: no operator {node.operator!r}; there are {', '.join(operators)}")
    operator = operators[node.operator]
    if node.instruction and not operator.instructed:
        raise InvalidWorkflowError(f"{node.id}: {node.operator} takes no instruction")
    if len(node.instruction) > LONGEST_INSTRUCTION:
        raise InvalidWorkflowError(f"{node.id}: the instruction has more than {LONGEST_INSTRUCTION} characters")
    if not 1 <= len(node.inputs) <= MOST_INPUTS:
        raise InvalidWorkflowError(f"{node.id}: a node has 1 to {MOST_INPUTS} inputs")
    if operator.needs_result and not node.sources:
        raise InvalidWorkflowError(f"{node.id}: {node.operator} needs an earlier node among its inputs")


def _check_references(node: Node, earlier: Mapping[str, Node], domain: str) -> None:
    for name in node.sources:
        if name not in earlier:
            raise InvalidWorkflowError(f"{node.id}: its input {name!r} is no earlier node")
    if node.when is None:
        return
    watched = earlier.get(node.when.node)
    if watched is None or not offered(domain)[watched.operator].judges:
        raise InvalidWorkflowError(f"{node.id}: {node.when.node!r} is no earlier node that ends with a status")
