"""The language: what is a workflow, what is none, and when two are the same."""

from __future__ import annotations

from typing import Any

import pytest

from baselines.aflow.workflow import InvalidWorkflowError, Node, Workflow, check, node_of, start, workflow_of
from tests.baselines.aflow.world import flow, node, when

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
