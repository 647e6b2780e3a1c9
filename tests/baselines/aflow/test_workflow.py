"""The workflow language: validation and equality; and the statistics of the search."""

import json
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from baselines.aflow.edits import Add, Edit, Remove, Replace, apply
from baselines.aflow.method import AFlow, Config
from baselines.aflow.search import Round, candidates, converged, probabilities
from baselines.aflow.workflow import QUESTION, Condition, InvalidWorkflowError, Node, Workflow, check, start
from harness.llm.request import Request
from harness.scripted import setting


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


ENSEMBLE = flow(node("a", "Custom", repeat=3, instruction="Be brief."), node("b", "ScEnsemble", "a"))
REPAIR = flow(
    node("a", "CustomCodeGenerate"),
    node("t", "Test", "a"),
    node("c", "Custom", "question", "t", when=when("t", "failed")),
)


@pytest.mark.parametrize(
    ("nodes", "reason"),
    [
        ([node(f"n{n}", "Custom", *([f"n{n - 1}"] if n else [])) for n in range(11)], "this one 11"),
        ([node("a", "Custom"), node("a", "Custom")], "the name a is taken"),
        ([node("a", "Custom", "b"), node("b", "Custom", "a")], "a: its input 'b' is no earlier node"),
        ([node("a", "Custom"), node("b", "Custom", when=when("a", "failed"))], "'a' is no earlier node that ends with"),
        ([node("a", "Custom", repeat=2)], "a: the last node runs once"),
        ([node("a", "Custom"), node("b", "Custom")], "a: no later node reads it"),
    ],
)
def test_what_could_not_run_is_refused(nodes: list[Node], reason: str) -> None:
    with pytest.raises(InvalidWorkflowError, match=reason):
        check(flow(*nodes), "Math")


def test_names_and_white_space_make_no_other_workflow_and_all_else_does() -> None:
    renamed = flow(node("x", "Custom", repeat=3, instruction=" Be\nbrief. "), node("y", "ScEnsemble", "x"))
    assert renamed.canonical() == ENSEMBLE.canonical()
    first, last = ENSEMBLE.nodes
    for first_change, last_change in (
        ({"repeat": 2}, {}),
        ({"instruction": "Be long."}, {}),
        ({}, {"inputs": ("question", "a")}),
        ({}, {"operator": "Custom"}),
    ):
        other = flow(first.model_copy(update=first_change), last.model_copy(update=last_change))
        assert other.canonical() != ENSEMBLE.canonical()
    without = flow(*REPAIR.nodes[:2], node("c", "Custom", "question", "t"))
    assert without.canonical() != REPAIR.canonical()


CHAIN = flow(node("a", "Custom", repeat=3), node("b", "Custom", "a"), node("c", "ScEnsemble", "a", "b"))
TESTED = flow(*REPAIR.nodes[:2], node("c", "Custom", "t", when=when("t", "failed")))


def test_an_edit_changes_one_node_and_who_reads_it() -> None:
    child = apply(Add(at=1, node=node("x", "Programmer")), CHAIN, "Math")
    read = {"a": ("question",), "x": ("question",), "b": ("a", "x"), "c": ("a", "b")}
    assert [(member.id, member.inputs) for member in child.nodes] == list(read.items())
    # A replaced node keeps its name; who read a removed one reads its inputs.
    child = apply(Replace(id="b", node=node("other", "Programmer", "a")), CHAIN, "Math")
    assert child.nodes == (CHAIN.nodes[0], node("b", "Programmer", "a"), CHAIN.nodes[2])
    assert apply(Remove(id="b"), CHAIN, "Math").nodes[-1].inputs == ("a",)
    assert apply(Remove(id="a"), CHAIN, "Math").nodes[0].inputs == ("question",)


def test_what_nothing_reads_any_longer_goes_and_the_last_node_runs_once() -> None:
    child = apply(Add(at=1, node=node("x", "ScEnsemble", "node_1", repeat=4)), start("Math"), "Math")
    assert [(member.id, member.repeat) for member in child.nodes] == [("node_1", 1), ("x", 1)]
    assert apply(Replace(id="c", node=node("c", "Custom")), CHAIN, "Math").ids == ("c",)
    repeated = flow(node("a", "Custom", repeat=5), node("e", "ScEnsemble", "a"))
    assert apply(Remove(id="e"), repeated, "Math") == flow(node("a", "Custom"))


@pytest.mark.parametrize(
    ("edit", "parent", "domain", "reason"),
    [
        (Add(at=4, node=node("x", "Custom")), CHAIN, "Math", "at is 4; a node can be added at 0 to 3"),
        (Replace(id="z", node=node("z", "Custom")), CHAIN, "Math", "no node 'z'; there are a, b, c"),
        (Remove(id="t"), TESTED, "Code", "'t' is no earlier node that ends"),
        (Remove(id="a"), TESTED, "Code", "Test needs an earlier node"),
        (Remove(id="node_1"), start("Math"), "Math", "the last node cannot be removed"),
    ],
)
def test_an_edit_that_does_not_fit_is_refused(edit: Edit, parent: Workflow, domain: str, reason: str) -> None:
    with pytest.raises(InvalidWorkflowError, match=reason):
        apply(edit, parent, domain)


def rounds(*scores: float | None) -> list[Round]:
    return [round_(number, score=score) for number, score in enumerate(scores, 1)]


@given(scores=st.lists(st.floats(0, 100), min_size=1, max_size=4), share=st.floats(0, 1), sharpness=st.floats(0, 1))
def test_probabilities_are_those_of_the_formula(scores: list[float], share: float, sharpness: float) -> None:
    top = max(scores)
    weights = [math.exp(sharpness * (score - top)) for score in scores]
    expected = [share / len(scores) + (1 - share) * weight / math.fsum(weights) for weight in weights]
    values = probabilities(scores, share, sharpness)
    np.testing.assert_allclose(values, expected, rtol=1e-12)
    assert values.sum() == pytest.approx(1)
    # Ten points less are a factor of e^-2 with α = 0.2; λ = 0.3 gives each 0.15.
    better = 1 / (1 + math.exp(-2))
    assert probabilities([60.0, 50.0], 0.3, 0.2).tolist() == pytest.approx([0.15 + 0.7 * better, 0.85 - 0.7 * better])


def test_the_first_round_is_always_a_candidate_and_the_best_others_fill_up() -> None:
    tried = rounds(10, 50, None, 70, 60, 70, 40)
    assert [entry.round for entry in candidates(tried, 4)] == [1, 4, 6, 5]
    assert [entry.round for entry in candidates(tried, 1)] == [1]
    assert [entry.round for entry in candidates(rounds(90, 50, 60), 4)] == [1, 3, 2]


@given(st.lists(st.integers(0, 8), max_size=16), st.integers(1, 5))
def test_convergence_against_exact_arithmetic(right: list[int], patience: int) -> None:
    unchanged, before = 0, None
    for end in range(3, len(right) + 1):
        mean = Fraction(sum(sorted(right[:end], reverse=True)[:3]), 3)
        unchanged = unchanged + 1 if mean == before else 0
        before = mean
    assert converged([100 * count / 7 for count in right], patience) == (unchanged >= patience)
