"""Single-node edits of a workflow: parsing, application, and the JSON schema of proposals (D-AF-3)."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import chain, count
from typing import Annotated, Any, Literal, get_args

import orjson
from pydantic import AfterValidator, Field, ValidationError

from baselines.aflow.search import Round
from baselines.aflow.workflow import (
    MOST_INPUTS,
    MOST_NODES,
    MOST_REPEATS,
    OPERATORS,
    QUESTION,
    InvalidWorkflowError,
    Node,
    Operator,
    Status,
    Workflow,
    check,
    offered,
)
from harness.benchmarks.programs import fenced_blocks
from harness.files import Declaration


class Add(Declaration):
    """Insert a node at position ``at``."""

    kind: Literal["add"] = "add"
    at: int
    node: Node


class Replace(Declaration):
    """Replace a node."""

    kind: Literal["replace"] = "replace"
    id: str
    node: Node


class Remove(Declaration):
    """Remove a node."""

    kind: Literal["remove"] = "remove"
    id: str


Edit = Annotated[Add | Replace | Remove, Field(discriminator="kind")]


class Proposal(Declaration):
    """Proposal of the optimizer."""

    modification: Annotated[
        str, AfterValidator(lambda text: " ".join(text.split())), Field(min_length=1, max_length=500)
    ]
    edit: Edit


def parse_proposal(text: str) -> Proposal:
    """Parse the JSON proposal in a reply, which may be fenced or amid text. Raises InvalidWorkflowError if invalid."""
    for source in [text, *(block.source for block in fenced_blocks(text)), text[text.find("{") : text.rfind("}") + 1]]:
        with suppress(orjson.JSONDecodeError):
            if isinstance(document := orjson.loads(source), dict):
                break
    else:
        raise InvalidWorkflowError("the reply is no JSON object")
    try:
        return Proposal.model_validate(document)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise InvalidWorkflowError(f"{'.'.join(map(str, first['loc']))}: {first['msg']}") from None


def apply(edit: Edit, parent: Workflow, domain: str) -> Workflow:
    """Apply an edit to a workflow.

    A replaced node keeps its id. Readers of a removed node read its inputs instead. Nodes without readers are dropped.

    Raises:
        InvalidWorkflowError: If the edit does not fit, or the result cannot run.
    """
    nodes = list(parent.nodes)
    if isinstance(edit, Add):
        if not 0 <= edit.at <= len(nodes):
            raise InvalidWorkflowError(f"at is {edit.at}; a node can be added at 0 to {len(nodes)}")
        if edit.at < len(nodes):
            nodes[edit.at] = _reading(nodes[edit.at], [*nodes[edit.at].inputs, edit.node.id])
        nodes.insert(edit.at, edit.node)
    elif edit.id not in parent.ids:
        raise InvalidWorkflowError(f"there is no node {edit.id!r}; there are {', '.join(parent.ids)}")
    elif isinstance(edit, Replace):
        nodes[parent.ids.index(edit.id)] = edit.node.model_copy(update={"id": edit.id})
    elif len(nodes) == 1:
        raise InvalidWorkflowError("the last node cannot be removed")
    else:
        removed = nodes.pop(parent.ids.index(edit.id))
        instead = {name: (name,) for name in (QUESTION, *parent.ids)} | {removed.id: removed.inputs}
        nodes = [_reading(node, chain.from_iterable(instead[name] for name in node.inputs)) for node in nodes]
    nodes[-1] = nodes[-1].model_copy(update={"repeat": 1})
    needed = Workflow(tuple(nodes)).needed()
    child = Workflow(tuple(node for node in nodes if node.id in needed))
    check(child, domain)
    return child


def _reading(node: Node, inputs: Iterable[str]) -> Node:
    return node.model_copy(update={"inputs": tuple(dict.fromkeys(inputs))})


def in_short(edit: Edit, child: Workflow) -> str:
    if isinstance(edit, Remove):
        return f"remove {edit.id}"
    node = child.nodes[child.ids.index(edit.node.id if isinstance(edit, Add) else edit.id)]
    new = node.operator + (f" × {node.repeat}" if node.repeat > 1 else "")
    return f"add {new} at {edit.at}" if isinstance(edit, Add) else f"replace {edit.id} by {new}"


def repetition(proposal: Proposal, child: Workflow, parent: Round, children: Sequence[Round]) -> str:
    """Explain why an edit repeats an earlier child of the parent or changes nothing. Empty if the edit is new."""

    def plain(text: str) -> str:
        return " ".join(text.casefold().split()).rstrip(".! ")

    if child.canonical() == parent.tried.canonical():
        return "the edit changes nothing"
    for earlier in children:
        if plain(earlier.modification) == plain(proposal.modification):
            return f"round {earlier.round} tried an edit of this description"
        if earlier.tried.canonical() == child.canonical():
            return f"round {earlier.round} tried the workflow that results"
    return ""


def proposal_schema(parent: Workflow, domain: str) -> dict[str, Any]:
    """Build the JSON schema of proposals for a parent. It also admits a few invalid proposals."""
    # One branch per position, since a schema without conditions cannot express "earlier node".
    nodes, operators, edits = parent.nodes, offered(domain).values(), []
    if len(nodes) < MOST_NODES:
        new_id = next(name for number in count(1) if (name := f"node_{number}") not in parent.ids)
        for at in range(len(nodes) + 1):
            # The new node becomes a further input of the next node.
            if at == len(nodes) or len(nodes[at].inputs) < MOST_INPUTS:
                fields = {"kind": {"const": "add"}, "at": {"const": at}}
                edits += [_object({**fields, "node": node}) for node in _nodes(new_id, nodes[:at], operators)]
    watched = {node.when.node for node in nodes if node.when is not None}
    for at, old in enumerate(nodes):
        usable = [operator for operator in operators if operator.has_status or old.id not in watched]
        fields = {"kind": {"const": "replace"}, "id": {"const": old.id}}
        edits += [_object({**fields, "node": node}) for node in _nodes(old.id, nodes[:at], usable)]
    removable = []
    for id_ in parent.ids:
        with suppress(InvalidWorkflowError):
            apply(Remove(id=id_), parent, domain)
            removable.append(id_)
    if removable:
        edits.append(_object({"kind": {"const": "remove"}, "id": {"enum": removable}}))
    return _object({"modification": {"type": "string"}, "edit": {"anyOf": edits}})


def _nodes(id_: str, earlier: Sequence[Node], operators: Iterable[Operator]) -> Iterator[dict[str, Any]]:
    """Iterate over the schemas of a node, one for each group of operators with the same fields."""
    ids = [node.id for node in earlier]
    with_status = [node.id for node in earlier if OPERATORS[node.operator].has_status]
    when: dict[str, Any] = {"type": "null"}
    if with_status:
        condition = _object({"node": {"enum": with_status}, "is": {"enum": list(get_args(Status))}})
        when = {"anyOf": [when, condition]}
    by_fields: defaultdict[tuple[bool, bool], list[str]] = defaultdict(list)
    for operator in operators:
        by_fields[operator.takes_instruction, operator.needs_result].append(operator.key)
    for (takes_instruction, needs_result), names in by_fields.items():
        inputs = ids if needs_result else [QUESTION, *ids]
        if not inputs:
            continue
        read = {"type": "array", "items": {"enum": inputs}, "minItems": 1, "maxItems": min(len(inputs), MOST_INPUTS)}
        properties = {"id": {"const": id_}, "operator": {"enum": names}, "inputs": read}
        if takes_instruction:
            properties["instruction"] = {"type": "string"}
        properties["repeat"] = {"type": "integer", "minimum": 1, "maximum": MOST_REPEATS}
        yield _object({**properties, "when": when})


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": [*properties], "additionalProperties": False}
