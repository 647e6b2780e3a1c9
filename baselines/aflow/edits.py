"""Edits of one node of a workflow: their form, their application, and a JSON schema for one parent (D-AF-3)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import count
from typing import Annotated, Any, Literal, get_args

from pydantic import Field

from baselines.aflow.workflow import (
    MOST_INPUTS,
    MOST_NODES,
    MOST_REPEATS,
    QUESTION,
    InvalidWorkflowError,
    Node,
    Operator,
    Status,
    Workflow,
    check,
    offered,
)
from harness.files import Declaration


class Add(Declaration):
    """New node behind ``at`` others."""

    kind: Literal["add"] = "add"
    at: int
    node: Node


class Replace(Declaration):
    """Another node in place of one."""

    kind: Literal["replace"] = "replace"
    id: str
    node: Node


class Remove(Declaration):
    """One node less."""

    kind: Literal["remove"] = "remove"
    id: str


Edit = Annotated[Add | Replace | Remove, Field(discriminator="kind")]


def apply(edit: Edit, parent: Workflow, domain: str) -> Workflow:
    """Return the workflow after an edit; InvalidWorkflowError if it does not fit or the result could not run."""
    # A replaced node keeps its name; readers of a removed one read its inputs; nodes without readers are dropped.
    nodes = parent.nodes
    if not isinstance(edit, Add) and edit.id not in parent.ids:
        raise InvalidWorkflowError(f"there is no node {edit.id!r}; there are {', '.join(parent.ids)}")
    match edit:
        case Add(at=at, node=node):
            if not 0 <= at <= len(nodes):
                raise InvalidWorkflowError(f"at is {at}; a node can be added at 0 to {len(nodes)}")
            readers = [_reading(next_, (*next_.inputs, node.id)) for next_ in nodes[at : at + 1]]
            child = (*nodes[:at], node, *readers, *nodes[at + 1 :])
        case Replace(id=id_, node=node):
            child = tuple(node.model_copy(update={"id": id_}) if old.id == id_ else old for old in nodes)
        case Remove(id=id_):
            inputs = nodes[parent.ids.index(id_)].inputs
            child = tuple(_reading(node, _rewired(node, id_, inputs)) for node in nodes if node.id != id_)
    if not child:
        raise InvalidWorkflowError("the last node cannot be removed")
    edited = Workflow((*child[:-1], child[-1].model_copy(update={"repeat": 1})))
    needed = edited.needed()
    pruned = Workflow(tuple(node for node in edited.nodes if node.id in needed))
    check(pruned, domain)
    return pruned


def in_short(edit: Edit, child: Workflow) -> str:
    """Return an edit and its result in a few words."""
    if isinstance(edit, Remove):
        return f"remove {edit.id}"
    node = child.nodes[child.ids.index(edit.node.id if isinstance(edit, Add) else edit.id)]
    new = node.operator + (f" × {node.repeat}" if node.repeat > 1 else "")
    return f"add {new} at {edit.at}" if isinstance(edit, Add) else f"replace {edit.id} by {new}"


def _reading(node: Node, inputs: tuple[str, ...]) -> Node:
    return node.model_copy(update={"inputs": inputs})


def _rewired(node: Node, removed: str, inputs: tuple[str, ...]) -> tuple[str, ...]:
    names = ([name] if name != removed else inputs for name in node.inputs)
    return tuple(dict.fromkeys(name for group in names for name in group))


def schema(parent: Workflow, domain: str) -> dict[str, Any]:
    """Return a JSON schema of proposals for a parent; a few of its instances are invalid all the same."""
    # Every position has a branch, because a schema without conditions cannot say "earlier" otherwise.
    edits = [*_additions(parent, domain), *_replacements(parent, domain), *_removals(parent, domain)]
    return _object({"modification": {"type": "string"}, "edit": {"anyOf": edits}})


def _additions(parent: Workflow, domain: str) -> Iterator[dict[str, Any]]:
    if len(parent.nodes) == MOST_NODES:
        return
    fresh = next(name for name in (f"node_{number}" for number in count(1)) if name not in parent.ids)
    for place in range(len(parent.nodes) + 1):
        if any(len(follower.inputs) == MOST_INPUTS for follower in parent.nodes[place : place + 1]):
            continue
        for node in _nodes(fresh, parent.nodes[:place], tuple(offered(domain).values()), domain):
            yield _object({"kind": {"const": "add"}, "at": {"const": place}, "node": node})


def _replacements(parent: Workflow, domain: str) -> Iterator[dict[str, Any]]:
    watched = {node.when.node for node in parent.nodes if node.when is not None}
    for place, old in enumerate(parent.nodes):
        operators = [operator for operator in offered(domain).values() if operator.has_status or old.id not in watched]
        for node in _nodes(old.id, parent.nodes[:place], operators, domain):
            yield _object({"kind": {"const": "replace"}, "id": {"const": old.id}, "node": node})


def _removals(parent: Workflow, domain: str) -> Iterator[dict[str, Any]]:
    removable = []
    for id_ in parent.ids:
        with suppress(InvalidWorkflowError):
            apply(Remove(id=id_), parent, domain)
            removable.append(id_)
    if removable:
        yield _object({"kind": {"const": "remove"}, "id": {"enum": removable}})


def _nodes(id_: str, earlier: Sequence[Node], operators: Sequence[Operator], domain: str) -> Iterator[dict[str, Any]]:
    ids = [node.id for node in earlier]
    with_status = [node.id for node in earlier if offered(domain)[node.operator].has_status]
    kinds: dict[tuple[bool, bool], list[str]] = {}
    for operator in operators:
        kinds.setdefault((operator.takes_instruction, operator.needs_result), []).append(operator.name)
    for (takes_instruction, needs_result), names in kinds.items():
        inputs = ids if needs_result else [QUESTION, *ids]
        if not inputs:
            continue
        yield _object(
            {
                "id": {"const": id_},
                "operator": {"enum": names},
                "inputs": {
                    "type": "array",
                    "items": {"enum": inputs},
                    "minItems": 1,
                    "maxItems": min(len(inputs), MOST_INPUTS),
                },
                **({"instruction": {"type": "string"}} if takes_instruction else {}),
                "repeat": {"type": "integer", "minimum": 1, "maximum": MOST_REPEATS},
                "when": _condition(with_status),
            }
        )


def _condition(nodes: Sequence[str]) -> dict[str, Any]:
    if not nodes:
        return {"type": "null"}
    condition = _object({"node": {"enum": list(nodes)}, "is": {"enum": list(get_args(Status))}})
    return {"anyOf": [{"type": "null"}, condition]}


def _object(properties: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(properties),
        "additionalProperties": False,
    }
