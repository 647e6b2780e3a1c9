"""The language: what is a workflow, what is none, and when two are the same."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import jsonschema
import pytest

from baselines.aflow.edits import Edit, apply, edit_of, schema
from baselines.aflow.workflow import OFFERED, InvalidWorkflowError, Node, Workflow, check, node_of, start, workflow_of
from harness.simulator.replies import schema_reply
from tests.baselines.aflow.fixtures import flow, node, when

ENSEMBLE = flow(node("a", "Custom", repeat=3, instruction="Be brief."), node("b", "ScEnsemble", "a"))
REPAIR = flow(
    node("a", "CustomCodeGenerate"),
    node("t", "Test", "a"),
    node("c", "Custom", "question", "t", when=when("t", "failed")),
)


@pytest.mark.parametrize(("workflow", "domain"), [(ENSEMBLE, "Math"), (ENSEMBLE, "Code"), (REPAIR, "Code")])
def test_a_sound_workflow_survives_the_round_trip(workflow: Workflow, domain: str) -> None:
    check(workflow, domain)
    assert workflow_of(workflow.to_json()) == workflow
    check(start(domain), domain)
    assert start(domain).nodes == (node("node_1", "CustomCodeGenerate" if domain == "Code" else "Custom"),)
    sparse = {"id": "a", "operator": "Custom", "inputs": ["question", "question"]}
    assert node_of(sparse) == node("a", "Custom")


@pytest.mark.parametrize(
    ("nodes", "reason"),
    [
        ([], "has 1 to 10 nodes, this one 0"),
        ([node(f"n{place}", "Custom", *([f"n{place - 1}"] if place else [])) for place in range(11)], "this one 11"),
        ([node("a", "Review")], "no operator 'Review'; there are Custom, ScEnsemble, Programmer"),
        ([node("a", "Custom"), node("a", "Custom")], "two nodes have the name a"),
        ([node("question", "Custom")], "'question' is no name"),
        ([node("1 a", "Custom")], "'1 a' is no name"),
        ([node("a", "Custom", "b"), node("b", "Custom", "a")], "a: its input 'b' is no earlier node"),
        ([node("a", "Custom", "a")], "its input 'a' is no earlier node"),
        ([node("a", "ScEnsemble")], "ScEnsemble needs an earlier node"),
        ([node("a", "Programmer", instruction="Go.")], "Programmer takes no instruction"),
        ([node("a", "Custom", instruction="x" * 2001)], "more than 2000 characters"),
        ([Node("a", "Custom", ())], "1 to 5 inputs"),
        ([node("a", "Custom"), node("b", "Custom", when=when("a", "failed"))], "'a' is no earlier node that ends with"),
        ([node("b", "Custom", when=when("b", "failed"))], "'b' is no earlier node that ends with"),
        ([node("a", "Custom", repeat=2)], "a: the last node runs once"),
        ([node("a", "Custom"), node("b", "Custom")], "a: no later node reads it"),
    ],
)
def test_what_could_not_run_is_refused(nodes: list[Node], reason: str) -> None:
    with pytest.raises(InvalidWorkflowError, match=reason):
        check(flow(*nodes), "Math")


@pytest.mark.parametrize(
    ("document", "reason"),
    [
        ("Custom", "a node is an object"),
        ({"id": "a", "operator": "Custom"}, "inputs is a list"),
        ({"id": "a", "operator": "Custom", "inputs": "question"}, "inputs is a list"),
        ({"id": 1, "operator": "Custom", "inputs": []}, "id is a text"),
        ({"id": "a", "inputs": []}, "operator is a text"),
        ({"id": "a", "operator": "Custom", "inputs": [], "instruction": None}, "instruction is a text"),
        ({"id": "a", "operator": "Custom", "inputs": [], "repeat": 6}, "repeat is a whole number from 1 to 5"),
        ({"id": "a", "operator": "Custom", "inputs": [], "repeat": True}, "repeat is a whole number"),
        ({"id": "a", "operator": "Custom", "inputs": [], "when": "failed"}, "when is null, or an object"),
        ({"id": "a", "operator": "Custom", "inputs": [], "when": {"node": "a", "is": "ok"}}, "failed, passed"),
        ({"id": "a", "operator": "Custom", "inputs": [], "model": "large"}, "no field 'model'"),
    ],
)
def test_what_is_no_node_is_refused(document: Any, reason: str) -> None:
    with pytest.raises(InvalidWorkflowError, match=reason):
        node_of(document)


def test_names_and_white_space_make_no_other_workflow_and_all_else_does() -> None:
    renamed = flow(node("x", "Custom", repeat=3, instruction=" Be\nbrief. "), node("y", "ScEnsemble", "x"))
    assert renamed.canonical() == ENSEMBLE.canonical()
    others = [
        flow(node("a", "Custom", repeat=2, instruction="Be brief."), node("b", "ScEnsemble", "a")),
        flow(node("a", "Custom", repeat=3, instruction="Be long."), node("b", "ScEnsemble", "a")),
        flow(node("a", "Custom", repeat=3, instruction="Be brief."), node("b", "ScEnsemble", "question", "a")),
        flow(node("a", "Custom", repeat=3, instruction="Be brief."), node("b", "Custom", "a")),
    ]
    assert len({one.canonical() for one in (ENSEMBLE, *others)}) == 5
    without = flow(*REPAIR.nodes[:2], node("c", "Custom", "question", "t"))
    assert without.canonical() != REPAIR.canonical()


CHAIN = flow(node("a", "Custom", repeat=3), node("b", "Custom", "a"), node("c", "ScEnsemble", "a", "b"))
TESTED = flow(
    node("a", "CustomCodeGenerate"), node("t", "Test", "a"), node("c", "Custom", "t", when=when("t", "failed"))
)
FULL = flow(
    node("n0", "Custom"),
    *(node(f"n{place}", "Custom", f"n{place - 1}") for place in range(1, 10)),
)
WIDE = flow(*(node(f"n{place}", "Custom") for place in range(5)), node("e", "ScEnsemble", *(f"n{k}" for k in range(5))))


def test_an_added_node_is_read_by_the_next_one() -> None:
    child = apply(Edit("add", at=1, node=node("x", "Programmer")), CHAIN, "Math")
    assert child.ids == ("a", "x", "b", "c")
    assert [one.inputs for one in child.nodes] == [("question",), ("question",), ("a", "x"), ("a", "b")]


def test_a_node_added_last_answers() -> None:
    child = apply(Edit("add", at=1, node=node("x", "ScEnsemble", "node_1", repeat=4)), start("Math"), "Math")
    assert child.ids == ("node_1", "x")
    assert child.nodes[-1].repeat == 1


def test_a_replaced_node_keeps_its_name() -> None:
    child = apply(Edit("replace", id="b", node=node("other", "Programmer", "a")), CHAIN, "Math")
    assert child.nodes == (CHAIN.nodes[0], node("b", "Programmer", "a"), CHAIN.nodes[2])


def test_who_read_a_removed_node_reads_its_inputs() -> None:
    assert apply(Edit("remove", id="b"), CHAIN, "Math").nodes[-1].inputs == ("a",)
    assert apply(Edit("remove", id="a"), CHAIN, "Math").nodes[0].inputs == ("question",)


def test_what_nothing_reads_any_longer_goes_and_the_last_node_runs_once() -> None:
    assert apply(Edit("replace", id="c", node=node("c", "Custom")), CHAIN, "Math").ids == ("c",)
    repeated = flow(node("a", "Custom", repeat=5), node("e", "ScEnsemble", "a"))
    assert apply(Edit("remove", id="e"), repeated, "Math") == flow(node("a", "Custom"))


@pytest.mark.parametrize(
    ("edit", "parent", "domain", "reason"),
    [
        (Edit("add", at=4, node=node("x", "Custom")), CHAIN, "Math", "at is 4; a node can be added at 0 to 3"),
        (Edit("add", at=-1, node=node("x", "Custom")), CHAIN, "Math", "at is -1"),
        (Edit("add", at=0, node=node("a", "Custom")), CHAIN, "Math", "two nodes have the name a"),
        (Edit("add", at=0, node=node("x", "Custom")), FULL, "Math", "this one 11"),
        (Edit("add", at=5, node=node("x", "Custom")), WIDE, "Math", "e: a node has 1 to 5 inputs"),
        (Edit("replace", id="z", node=node("z", "Custom")), CHAIN, "Math", "no node 'z'; there are a, b, c"),
        (Edit("replace", id="a", node=node("a", "Test", "question")), CHAIN, "Math", "no operator 'Test'"),
        (Edit("replace", id="t", node=node("t", "Custom", "a")), TESTED, "Code", "'t' is no earlier node that ends"),
        (Edit("remove", id="t"), TESTED, "Code", "'t' is no earlier node that ends"),
        (Edit("remove", id="a"), TESTED, "Code", "Test needs an earlier node"),
        (Edit("remove", id="node_1"), start("Math"), "Math", "the last node cannot be removed"),
    ],
)
def test_an_edit_that_does_not_fit_is_refused(edit: Edit, parent: Workflow, domain: str, reason: str) -> None:
    with pytest.raises(InvalidWorkflowError, match=reason):
        apply(edit, parent, domain)


@pytest.mark.parametrize(
    ("document", "reason"),
    [
        (["add"], "kind is one of add, replace, remove"),
        ({"kind": "move", "id": "a"}, "kind is one of"),
        ({"kind": ["add"]}, "kind is one of"),
        ({"kind": "add", "node": {}}, "has the fields at, kind, node"),
        ({"kind": "remove", "id": "a", "also": "b"}, "has the fields id, kind"),
        ({"kind": "add", "at": "1", "node": {}}, "at is a whole number"),
        ({"kind": "remove", "id": 1}, "id is the name"),
    ],
)
def test_what_is_no_edit_is_refused(document: Any, reason: str) -> None:
    with pytest.raises(InvalidWorkflowError, match=reason):
        edit_of(document)


# The schema

PARENTS = [
    *((start(domain), domain) for domain in OFFERED),
    (CHAIN, "Math"),
    (TESTED, "Code"),
    (FULL, "Math"),
    (WIDE, "Commonsense"),
]


def keywords(part: Any) -> Iterator[str]:
    """Every keyword of a schema; the names of properties are none."""
    if isinstance(part, dict):
        for name, value in part.items():
            yield name
            if name == "properties":
                for inner in value.values():
                    yield from keywords(inner)
            elif name not in ("const", "enum"):
                yield from keywords(value)
    elif isinstance(part, list):
        for inner in part:
            yield from keywords(inner)


@pytest.mark.parametrize(("parent", "domain"), PARENTS)
def test_the_schema_keeps_to_what_guided_decoding_knows(parent: Workflow, domain: str) -> None:
    its = schema(parent, domain)
    jsonschema.Draft202012Validator.check_schema(its)
    known = {"type", "properties", "required", "additionalProperties", "anyOf", "enum", "const", "items"}
    assert set(keywords(its)) <= known | {"minimum", "maximum", "minItems", "maxItems"}
    assert its["type"] == "object"


@pytest.mark.parametrize(("parent", "domain"), PARENTS)
def test_instances_of_the_schema_are_edits_that_fit(parent: Workflow, domain: str) -> None:
    its, valid, kinds = schema(parent, domain), 0, set()
    for number in range(60):
        document = json.loads(schema_reply(its, "some words about eggs and hens", 0.0, str(number)))
        edit = edit_of(document["edit"])
        kinds.add(edit.kind)
        try:
            apply(edit, parent, domain)
        except InvalidWorkflowError:
            continue
        valid += 1
    assert valid >= 57
    assert "replace" in kinds
    assert ("add" in kinds) == (len(parent.nodes) < 10)


def test_the_schema_does_not_offer_what_cannot_be() -> None:
    validator = jsonschema.Draft202012Validator(schema(TESTED, "Code"))

    def allows(**edit: Any) -> bool:
        return bool(validator.is_valid({"modification": "It.", "edit": edit}))

    plain = {"inputs": ["a"], "repeat": 1, "when": None}
    assert allows(kind="replace", id="t", node={"id": "t", "operator": "Test", **plain})
    assert not allows(kind="replace", id="t", node={"id": "t", "operator": "ScEnsemble", **plain})
    assert not allows(kind="replace", id="a", node={"id": "a", "operator": "Test", **plain})
    assert allows(kind="add", at=1, node={"id": "node_1", "operator": "Test", **plain})
    assert not allows(kind="add", at=0, node={"id": "node_1", "operator": "Test", **plain})
    assert not allows(kind="add", at=1, node={"id": "node_1", "operator": "Test", **plain, "inputs": ["t"]})
    assert not allows(kind="add", at=4, node={"id": "node_1", "operator": "Test", **plain})
    assert [id_ for id_ in TESTED.ids if allows(kind="remove", id=id_)] == ["c"]
