"""One small change of a workflow: how it is written, how it is applied, and a schema made for one parent (D-AF-3).

That an edit touches one node is enforced here, not asked for.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Any, Literal, get_args

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
    node_of,
    offered,
)

Kind = Literal["add", "replace", "remove"]
_FIELDS: Mapping[str, frozenset[str]] = {
    "add": frozenset({"kind", "at", "node"}),
    "replace": frozenset({"kind", "id", "node"}),
    "remove": frozenset({"kind", "id"}),
}


@dataclass(frozen=True, slots=True)
class Edit:
    """A change of one node: a new one behind ``at`` others, or another, or ``None``, in place of the node ``id``."""

    kind: Kind
    at: int = 0
    id: str = ""
    node: Node | None = None


def edit_of(document: Any) -> Edit:
    """Read the JSON form of an edit; raises InvalidWorkflowError where it is none."""
    if not isinstance(document, Mapping) or document.get("kind") not in get_args(Kind):
        raise InvalidWorkflowError(f"an edit is an object whose kind is one of {', '.join(get_args(Kind))}")
    kind: Kind = document["kind"]
    if set(document) != _FIELDS[kind]:
        raise InvalidWorkflowError(f"an edit of kind {kind} has the fields {', '.join(sorted(_FIELDS[kind]))}")
    if kind == "add":
        if type(document["at"]) is not int:
            raise InvalidWorkflowError("at is a whole number")
        return Edit(kind, at=document["at"], node=node_of(document["node"]))
    if not isinstance(document["id"], str):
        raise InvalidWorkflowError("id is the name of a node")
    return Edit(kind, id=document["id"], node=node_of(document["node"]) if kind == "replace" else None)


def apply(edit: Edit, parent: Workflow, domain: str) -> Workflow:
    """The workflow after an edit.

    An added node is read by the one that then follows it, besides what that one reads already. A replaced node keeps
    its name, so that others still find it. Who read a removed node reads its inputs instead. Nodes that nothing reads
    any longer go, and the last node runs once.

    Raises:
        InvalidWorkflowError: The edit does not fit the parent, or the result could not run.
    """
    nodes = parent.nodes
    if edit.kind == "add" and edit.node is not None:
        if not 0 <= edit.at <= len(nodes):
            raise InvalidWorkflowError(f"at is {edit.at}; a node can be added at 0 to {len(nodes)}")
        child = (*nodes[: edit.at], edit.node, *_reading(edit.node.id, nodes[edit.at :]))
    else:
        if edit.id not in parent.ids:
            raise InvalidWorkflowError(f"there is no node {edit.id!r}; there are {', '.join(parent.ids)}")
        if edit.node is None:
            child = _without(nodes, edit.id)
        else:
            child = tuple(replace(edit.node, id=edit.id) if old.id == edit.id else old for old in nodes)
    return _settled(child, domain)


def in_short(edit: Edit, child: Workflow) -> str:
    """An edit, and what it led to, in a few words."""
    if edit.node is None:
        return f"remove {edit.id}"
    name = edit.node.id if edit.kind == "add" else edit.id
    node = child.nodes[child.ids.index(name)]
    new = node.operator + (f" × {node.repeat}" if node.repeat > 1 else "")
    return f"add {new} at {edit.at}" if edit.kind == "add" else f"replace {edit.id} by {new}"


def _settled(nodes: tuple[Node, ...], domain: str) -> Workflow:
    if not nodes:
        raise InvalidWorkflowError("the last node cannot be removed")
    whole = Workflow((*nodes[:-1], replace(nodes[-1], repeat=1)))
    needed = whole.needed()
    settled = Workflow(tuple(node for node in whole.nodes if node.id in needed))
    check(settled, domain)
    return settled


def _reading(id_: str, followers: tuple[Node, ...]) -> tuple[Node, ...]:
    """The nodes behind a new one, the first of which reads it."""
    if not followers:
        return ()
    return (replace(followers[0], inputs=(*followers[0].inputs, id_)), *followers[1:])


def _without(nodes: tuple[Node, ...], id_: str) -> tuple[Node, ...]:
    removed = next(node for node in nodes if node.id == id_)
    return tuple(replace(node, inputs=_rewired(node, removed)) for node in nodes if node.id != id_)


def _rewired(node: Node, removed: Node) -> tuple[str, ...]:
    names = ([name] if name != removed.id else removed.inputs for name in node.inputs)
    return tuple(dict.fromkeys(name for group in names for name in group))


def schema(parent: Workflow, domain: str) -> dict[str, Any]:
    """A JSON schema of the proposals that fit a parent, within what guided decoding knows.

    Every position has a branch of its own, because a schema without conditions cannot say "earlier" otherwise. What it
    cannot say is the length of a text, and what an edit does to nodes behind it: a few of its instances are invalid.
    """
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
        operators = [one for one in offered(domain).values() if one.judges or old.id not in watched]
        for node in _nodes(old.id, parent.nodes[:place], operators, domain):
            yield _object({"kind": {"const": "replace"}, "id": {"const": old.id}, "node": node})


def _removals(parent: Workflow, domain: str) -> Iterator[dict[str, Any]]:
    removable = [id_ for id_ in parent.ids if _can_go(id_, parent, domain)]
    if removable:
        yield _object({"kind": {"const": "remove"}, "id": {"enum": removable}})


def _can_go(id_: str, parent: Workflow, domain: str) -> bool:
    try:
        apply(Edit("remove", id=id_), parent, domain)
    except InvalidWorkflowError:
        return False
    return True


def _nodes(id_: str, earlier: Sequence[Node], operators: Sequence[Operator], domain: str) -> Iterator[dict[str, Any]]:
    """Schemas of a node behind some others; operators of equal needs share one."""
    ids = [node.id for node in earlier]
    judges = [node.id for node in earlier if offered(domain)[node.operator].judges]
    kinds = dict.fromkeys((one.instructed, one.needs_result) for one in operators)
    for instructed, needs_result in kinds:
        inputs = ids if needs_result else [QUESTION, *ids]
        if not inputs:
            continue
        names = [one.name for one in operators if (one.instructed, one.needs_result) == (instructed, needs_result)]
        yield _object(
            {
                "id": {"const": id_},
                "operator": {"enum": names},
                "inputs": _list_of(inputs),
                **({"instruction": {"type": "string"}} if instructed else {}),
                "repeat": {"type": "integer", "minimum": 1, "maximum": MOST_REPEATS},
                "when": _condition(judges),
            }
        )


def _list_of(names: Sequence[str]) -> dict[str, Any]:
    most = min(len(names), MOST_INPUTS)
    return {"type": "array", "items": {"enum": list(names)}, "minItems": 1, "maxItems": most}


def _condition(judges: Sequence[str]) -> dict[str, Any]:
    if not judges:
        return {"type": "null"}
    condition = _object({"node": {"enum": list(judges)}, "is": {"enum": list(get_args(Status))}})
    return {"anyOf": [{"type": "null"}, condition]}


def _object(properties: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(properties),
        "additionalProperties": False,
    }
