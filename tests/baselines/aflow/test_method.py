"""The search: rounds, the optimizer's prompt and proposals, retries, failures, and the selected workflow."""

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from baselines.aflow.edits import parse_proposal
from baselines.aflow.method import FAILED, AFlow, Config
from baselines.aflow.search import Failure, Round, candidates, probabilities, scores
from baselines.aflow.workflow import InvalidWorkflowError, start
from harness.agents import rng
from harness.agents.trajectory import sample
from harness.benchmarks.items import Item
from harness.errors import UserError
from harness.llm.request import Reply, Request
from harness.scripted import setting
from tests.baselines.aflow.test_workflow import flow, is_proposal, node, proposal, round_, text_of, told
from tests.fixtures import RULES, Client, learned, questions, trained, training

QUESTIONS = [Item(f"q{number}", "toy", f"Question {number}?", f"right {number}") for number in range(8)]


def answer(request: Request) -> str:
    """Answer as many questions of eight right as the instruction of a prompt says, two without one."""
    instruction, _, question = text_of(request).partition("\n\n")
    level = next((int(word) for word in instruction.split() if word.isdigit()), 2)
    number = int(question.rpartition("Question ")[2].rstrip("?"))
    return f"right {number}" if number < level else f"wrong {number}"


def searching(*proposals: str | Reply) -> Client:
    """Return a model that proposes these edits in turn, the last again and again, and solves as it is told."""
    left = list(proposals)

    def rule(backbone: str, request: Request) -> str | Reply:
        if is_proposal(request):
            return left.pop(0) if len(left) > 1 else left[0]
        return answer(request)

    return Client(rule)


def levels(*wanted: int) -> list[str]:
    words = ("count", "guess", "add", "check", "list", "draw", "name")
    return [told(f"{word} {number}") for word, number in zip(words, wanted, strict=False)]


async def searched(folder: Path, model: Client, seed: int = 7, **config: Any) -> tuple[AFlow, list[Round]]:
    method = await trained(AFlow(setting(), Config(**config)), folder, model, QUESTIONS, seed)
    return method, [Round.model_validate(entry) for entry in learned(folder).metadata["search"]]


async def test_the_best_round_answers_and_every_round_is_kept(tmp_path: Path) -> None:
    model = searching(*levels(4, 6, 3))
    method, saved = await searched(tmp_path, model, max_rounds=3)
    assert [(entry.round, entry.status) for entry in saved] == [(number, "scored") for number in (1, 2, 3, 4)]
    assert saved[0].score == 25.0
    assert sorted(scores(saved)) == [25.0, 37.5, 50.0, 75.0]
    assert method.workflow.nodes[0].instruction == "guess 6"
    # Validation is greedy and sees every training question.
    solving = [request for request in model.requests if not is_proposal(request)]
    assert {(request.temperature, request.draw) for request in solving} == {(0.0, 0)}
    prompts = [text_of(request).rpartition("Question ")[2] for request in solving]
    assert sorted(prompts) == sorted([f"{number}?" for number in range(8)] * 4)
    # The ledger of the training holds the whole search.
    calls = pq.read_table(tmp_path / "training_calls.parquet").to_pylist()
    assert sum(row["cost"] for row in calls) == pytest.approx((4 * 8 + 3) * (100 * 0.003 + 10 * 0.010) / 1e6)
    asked_at = [(row["epoch"], row["rollout"]) for row in calls if row["item_id"] == "optimizer"]
    assert asked_at == [(2, 0), (3, 0), (4, 0)]
    solved_in = [row["epoch"] for row in calls if row["item_id"] != "optimizer"]
    assert solved_in == [number for number in (1, 2, 3, 4) for _ in QUESTIONS]
    log = pq.read_table(tmp_path / "training.parquet").to_pylist()
    of_last = {row["measure"]: row["value"] for row in log if row["epoch"] == 4}
    assert of_last["score"] == saved[3].score == 100 * of_last["accuracy"]
    assert (of_last["best"], of_last["parent"]) == (75.0, saved[3].parent)


async def test_a_parent_is_drawn_for_every_attempt_from_the_scores_of_the_rounds_before(tmp_path: Path) -> None:
    """As in the released search: after a repetition or an unreadable reply, the draw and so the parent are new."""
    proposals = [*levels(3), "Hm.", *levels(4, 4, 4), *levels(4, 5), "Hm.", told("draw 6"), "Hm.", "Hm."]
    others = 0
    for seed in range(3):
        model = searching(*proposals)
        _, saved = await searched(tmp_path / str(seed), model, max_rounds=7, seed=seed, patience=20)
        prompts = [text_of(request) for request in model.requests if is_proposal(request)]
        calls = pq.read_table(tmp_path / str(seed) / "training_calls.parquet").to_pylist()
        attempts = Counter(row["epoch"] for row in calls if row["item_id"] == "optimizer")
        for entry in saved[1:]:
            drawn_from = candidates(saved[: entry.round - 1], 4)
            shares = probabilities(scores(drawn_from), 0.3, 0.2)
            numbers = [
                rng.uniform("parent", str(seed), str(entry.round), str(at)) for at in range(attempts[entry.round])
            ]
            parents = [drawn_from[sample(shares, number)] for number in numbers]
            for parent in parents:
                assert f"with a score of {parent.score:.2f} %:" in prompts.pop(0)
            assert entry.parent == parents[-1].round
            others += len(set(parents)) > 1
        assert prompts == []
    assert others > 1


async def test_a_round_without_a_proposal_is_kept_and_of_equal_scores_the_earliest_answers(tmp_path: Path) -> None:
    method, saved = await searched(tmp_path, searching("Hm.", "Hm.", *levels(2)), max_rounds=2, sample=1)
    _, failed, scored = saved
    assert (failed.status, failed.score, failed.workflow) == ("no_proposal", None, None)
    assert failed.reason == "the reply is no JSON object"
    assert (scored.status, scored.parent, scored.score) == ("scored", 1, 25.0)
    # The earliest of equals answers.
    assert method.workflow.nodes[0].instruction == ""


async def test_a_search_ends_once_its_best_scores_stay_the_same(tmp_path: Path) -> None:
    _, saved = await searched(tmp_path, searching(*levels(2, 2, 2, 2)), max_rounds=5, patience=1)
    assert scores(saved) == [25.0] * 4


async def test_another_backbone_may_be_the_optimizer(tmp_path: Path) -> None:
    model = searching(*levels(4))
    await searched(tmp_path, model, optimizer="large", max_rounds=1)
    asked = {(backbone, is_proposal(request)) for backbone, request in model.asked}
    assert asked == {("small", False), ("large", True)}
    with pytest.raises(UserError, match=r"optimizer is 'huge'; expected one of small, large; .*`further_backbones`"):
        AFlow(setting(), Config(optimizer="huge"))


USING_A_PROGRAM = {"kind": "replace", "id": "node_1", "node": {
    "id": "node_1", "operator": "Programmer", "inputs": ["question"], "repeat": 1, "when": None,
}}  # fmt: skip
PROGRAM = proposal("Compute it.", **USING_A_PROGRAM)


def child(number: int, modification: str, **fields: Any) -> Round:
    tried = {"workflow": flow(node("x", "Custom", instruction=modification)), "score": 62.5}
    return round_(number, edit="replace node_1 by Custom", modification=modification, **{**tried, **fields})


async def propose(
    folder: Path, *replies: str | Reply, children: Any = (), failures: Any = (), items: Any = ()
) -> tuple[Round, Client]:
    left = list(replies)
    model = Client(lambda backbone, request: left.pop(0))
    parent = round_(1, None, workflow=start("Math"), score=62.5, failures=failures)
    # Of one candidate, the first round is the parent.
    method = AFlow(setting(), Config(optimizer="large", sample=1))
    entry = await method.propose([parent, *children], training(model, items or questions(2), 7))
    assert not left
    return entry, model


async def test_the_prompt_holds_everything_the_search_knows(tmp_path: Path) -> None:
    """The wording is in ``tests/test_prompts.py``."""
    wrong = [Item(id=f"q{n}", benchmark="gsm_hard", question="How many hens?", gold="77.0") for n in range(2)]
    children = [child(2, "Tell it to be brief.", score=70.0), child(3, "Tell it to be long.", score=50.0)]
    failures = (
        Failure(item="q0", output="It must be 78.", extracted="78"),
        Failure(item="q1", output="", extracted=None),
    )
    entry, model = await propose(tmp_path, PROGRAM, children=children, failures=failures, items=wrong)
    assert entry.workflow == flow(node("node_1", "Programmer"))
    assert (entry.edit, entry.modification, entry.reason) == ("replace node_1 by Programmer", "Compute it.", "")
    [(backbone, request)] = model.asked
    assert (backbone, request.temperature) == ("large", 0.7)
    system, user = (message.content for message in request.messages)
    assert ("- Programmer(" in system, "- Test(" in system, system.endswith(RULES)) == (True, False, True)
    tried = ("brief. (score 62.50 % before, 70.00 % after, better)", "long. (score 62.50 % before, 50.00 % after, no b")
    shown = start("Math").model_dump_json(by_alias=True, indent=2)
    assert all(text in user for text in (f"score of 62.50 %:\n```json\n{shown}", *tried, "It must be 78.", "(none)"))
    assert user.count("How many hens?\nRight answer:\n77.0") == 2


def of_node(**changes: Any) -> str:
    return proposal("x", kind="add", at=1, node={"id": "b", "operator": "Custom", "inputs": ["node_1"], **changes})


def test_an_object_may_stand_in_a_fence_or_between_sentences_and_has_to_be_a_proposal() -> None:
    texts = PROGRAM, f"```json\n{PROGRAM}\n```", f"Here is what I suggest: {PROGRAM}."
    assert {parse_proposal(text).modification for text in texts} == {"Compute it."}
    invalid = {
        **dict.fromkeys(("", "No.", PROGRAM[:40] + " ...", "[1]", "}{"), "the reply is no JSON object"),
        proposal("  ", kind="remove", id="node_1"): "modification: .* at least 1",
        json.dumps({"modification": "x", "edit": USING_A_PROGRAM, "more": 1}): "unknown key 'more'",
        of_node(repeat=6): "edit.add.node.repeat: .*5",
    }
    for text, reason in invalid.items():
        with pytest.raises(InvalidWorkflowError, match=reason):
            parse_proposal(text)


async def test_an_invalid_proposal_is_asked_again_once_with_the_reason(tmp_path: Path) -> None:
    last, operator = proposal("x", kind="remove", id="node_1"), of_node(operator="Review")
    entry, model = await propose(tmp_path, last, PROGRAM)
    assert entry.workflow is not None
    assert "the last node cannot be removed" in text_of(model.requests[1])
    assert model.requests[0].draw != model.requests[1].draw
    entry, _ = await propose(tmp_path, "Let me think.", operator)
    assert (entry.workflow, entry.modification, entry.edit) == (None, "", "")
    assert "no operator 'Review'" in entry.reason


async def test_a_refused_response_format_is_left_out_once_and_the_reply_may_be_unreadable(tmp_path: Path) -> None:
    refused = Reply.failed("m", "Error code: 400 - response_format is\nnot supported, req-7f3a")
    entry, model = await propose(tmp_path, refused, "Hm.", refused, PROGRAM)
    assert entry.workflow == flow(node("node_1", "Programmer"))
    assert entry.reason == ""
    assert [request.response_format is None for request in model.requests] == [False, True, False, True]
    first, second, third, _ = model.requests
    assert (second.messages, second.draw, second.temperature) == (first.messages, first.draw, first.temperature)
    assert "the reply is no JSON object" in text_of(third)
    # Nothing that the server said of itself is told to the model.
    assert not any(re.search(r"Error code|not supported|req-", text_of(request)) for request in model.requests)
    entry, _ = await propose(tmp_path / "down", *[refused] * 4)
    assert (entry.workflow, entry.reason) == (None, FAILED)


FIRST = start("Math").model_dump(mode="json", by_alias=True)[0]
AGAIN = proposal("Repeat.", kind="replace", id="node_1", node={**FIRST, "repeat": 4})


@pytest.mark.parametrize(
    ("reply", "tried", "reason"),
    [
        (told("be brief."), child(3, "tell it to  Be Brief"), "round 3 tried an edit of this description"),
        (PROGRAM, child(3, "Run.", workflow=flow(node("x", "Programmer"))), "round 3 tried the workflow that results"),
        (AGAIN, child(3, "Other."), "the edit changes nothing"),
    ],
)
async def test_an_edit_that_was_tried_is_asked_again_twice(
    tmp_path: Path, reply: str, tried: Round, reason: str
) -> None:
    entry, model = await propose(tmp_path, reply, told("be long"), children=[tried])
    assert entry.modification == "Tell it to be long"
    assert reason in text_of(model.requests[1])
    entry, model = await propose(tmp_path / "thrice", reply, reply, reply, children=[tried])
    assert (entry.workflow, entry.reason) == (None, reason)
    draws = [request.draw for request in model.requests]
    assert len(set(draws)) == 3
