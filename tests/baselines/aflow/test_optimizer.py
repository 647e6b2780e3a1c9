"""Proposals: what the optimizer is told, what is read from its reply, when it is asked again."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import orjson
import pytest

from baselines.aflow.edits import schema
from baselines.aflow.optimizer import FAILED, Optimizer, Proposal, Situation, clipped, parsed
from baselines.aflow.search import Failure, Round
from baselines.aflow.workflow import InvalidWorkflowError, start
from harness.benchmarks.items import Item
from harness.llm.request import Reply
from tests.baselines.aflow.fixtures import flow, node, proposal, text_of, told
from tests.fixtures import RULES, Client, questions, training

PARENT = Round(1, None, "scored", workflow=start("Math"), score=62.5)
PROGRAM = proposal("Compute it.", kind="replace", id="node_1", node={
    "id": "node_1", "operator": "Programmer", "inputs": ["question"], "repeat": 1, "when": None,
})  # fmt: skip


def child(number: int, modification: str, **fields: Any) -> Round:
    fields = {
        "score": 62.5,
        "success": False,
        "workflow": flow(node("x", "Custom", instruction=modification)),
        **fields,
    }
    return Round(number, 1, "scored", "replace node_1 by Custom", modification, **fields)


async def propose(
    folder: Path, *replies: str | Reply, children: Any = (), failures: Any = (), seed: int = 7
) -> tuple[Proposal, Client]:
    left = list(replies)
    model = Client(lambda backbone, request: left.pop(0))
    its = training(folder, model, questions(2), seed)
    found = await Optimizer("large", "Math").propose(5, lambda attempt: Situation(PARENT, children, failures), its)
    assert not left
    assert len(found.replies) == len(model.asked)
    return found, model


# What it is told


async def test_the_prompt_holds_everything_the_search_knows(tmp_path: Path) -> None:
    wrong = Item(id="q", benchmark="gsm_hard", question="How many hens?", gold="77.0")
    children = [child(2, "Tell it to be brief.", score=70.0, success=True), child(3, "Tell it to be long.", score=50.0)]
    failures = [(wrong, Failure("q", "It must be 78.", "78")), (wrong, Failure("q", "", None))]
    found, model = await propose(tmp_path, PROGRAM, children=children, failures=failures)
    assert found.workflow == flow(node("node_1", "Programmer"))
    assert (found.edit, found.modification, found.reason) == ("replace node_1 by Programmer", "Compute it.", "")
    [(backbone, request)] = model.asked
    assert (backbone, request.temperature) == ("large", 0.7)
    system, user = (message.content for message in request.messages)
    for operator in ("Custom(inputs, instruction)", "ScEnsemble(inputs) -> text", "Programmer(inputs) -> text and"):
        assert f"- {operator}" in system
    assert "Test(" not in system
    assert system.endswith(RULES)
    shown = orjson.dumps(start("Math").to_json(), option=orjson.OPT_INDENT_2).decode()
    assert f"score of 62.50 %:\n```json\n{shown}" in user
    assert "replace node_1 by Custom: Tell it to be brief. (score 62.50 % before, 70.00 % after, better)" in user
    assert "Tell it to be long. (score 62.50 % before, 50.00 % after, no better)" in user
    assert "(1 of 2):\nQuestion:\nHow many hens?\nRight answer:\n77.0\nOutput of the workflow:\nIt must be 78." in user
    assert "Answer found in it:\n78" in user
    assert "Output of the workflow:\n(empty)\nAnswer found in it:\n(none)" in user


def test_long_texts_lose_their_middle() -> None:
    assert clipped(" short ", 5) == "short"
    assert clipped("a" * 50 + "b" * 50, 30) == "a" * 10 + " [...] " + "b" * 20


# What is read


def test_an_object_may_stand_in_a_fence_or_between_sentences() -> None:
    for text in (PROGRAM, f"```json\n{PROGRAM}\n```", f"Here is what I suggest: {PROGRAM}."):
        assert parsed(text) == json.loads(PROGRAM)
    for text in ("", "No.", PROGRAM[:40] + " ...", "[1]", "}{", '{"modification": "\\ud800"}'):
        with pytest.raises(InvalidWorkflowError, match="the reply is no JSON object"):
            parsed(text)


INVALID = {
    "the reply is no JSON object": "Let me think.",
    "modification and an edit": json.dumps({"modification": "x", "edit": {}, "more": 1}),
    "modification has 1 to 500": proposal("  ", kind="remove", id="node_1"),
    "an edit is an object whose kind": proposal("x", id="node_1"),
    "the last node cannot be removed": proposal("x", kind="remove", id="node_1"),
    "no operator 'Review'": proposal(
        "x", kind="add", at=1, node={"id": "b", "operator": "Review", "inputs": ["node_1"]}
    ),
}


@pytest.mark.parametrize("reason", list(INVALID))
async def test_an_invalid_proposal_is_asked_again_once_with_the_reason(tmp_path: Path, reason: str) -> None:
    found, model = await propose(tmp_path, INVALID[reason], PROGRAM)
    assert found.workflow is not None
    assert reason not in text_of(model.requests[0])
    assert reason in text_of(model.requests[1])
    assert model.requests[0].draw != model.requests[1].draw
    found, _ = await propose(tmp_path / "again", "Let me think.", INVALID[reason])
    assert found.workflow is None
    assert reason in found.reason
    assert found.modification == found.edit == ""


# Calls that fail

REFUSED = Reply.failed("m", "Error code: 400 - response_format is\nnot supported, req-7f3a")
TOO_LONG = Reply.failed("m", "Error code: 400 - 40000 tokens are too many, req-91bc")


def said_by_a_server(text: str) -> list[str]:
    return re.findall(r"Error code|not supported|too many|req-\w+", text)


async def test_a_refused_response_format_is_left_out_once_and_the_reply_may_be_unreadable(tmp_path: Path) -> None:
    found, model = await propose(tmp_path, REFUSED, "Hm.", REFUSED, PROGRAM)
    assert found.workflow == flow(node("node_1", "Programmer"))
    assert (found.reason, found.replies[0]) == ("", REFUSED)
    assert [request.response_format is None for request in model.requests] == [False, True, False, True]
    first, second, third, _ = model.requests
    assert (second.messages, second.draw, second.temperature) == (first.messages, first.draw, first.temperature)
    assert "the reply is no JSON object" in text_of(third)
    assert not any(said_by_a_server(text_of(request)) for request in model.requests)


async def test_an_attempt_whose_calls_both_fail_is_repeated_with_the_same_prompt(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    found, model = await propose(tmp_path, REFUSED, TOO_LONG, PROGRAM)
    assert found.modification == "Compute it."
    first, second, third = model.requests
    assert first.messages == second.messages == third.messages
    assert third.response_format == first.response_format
    assert third.draw != first.draw
    logged = [record.getMessage().partition(" failed: ") for record in caplog.records]
    assert [(before, said) for before, _, said in logged] == [
        ("optimizer large, round 5: the call with a response format", " ".join((REFUSED.error or "").split())),
        ("optimizer large, round 5: the call without a response format", TOO_LONG.error),
    ]


@pytest.mark.parametrize(
    ("replies", "reason"),
    [
        ([REFUSED, TOO_LONG, REFUSED, TOO_LONG], FAILED),
        (["Hm.", REFUSED, TOO_LONG], FAILED),
        ([REFUSED, TOO_LONG, "Hm."], "the reply is no JSON object"),
    ],
)
async def test_two_attempts_that_fail_or_are_unusable_end_the_round(
    tmp_path: Path, replies: list[str | Reply], reason: str
) -> None:
    found, model = await propose(tmp_path, *replies)
    assert (found.workflow, found.reason) == (None, reason)
    assert not any(said_by_a_server(text) for text in (reason, *map(text_of, model.requests)))


# What was tried before

AGAIN = proposal("Repeat.", kind="replace", id="node_1", node={**start("Math").nodes[0].to_json(), "repeat": 4})


@pytest.mark.parametrize(
    ("reply", "tried", "reason"),
    [
        (told("be brief."), child(3, "tell it to  Be Brief"), "round 3 tried an edit of this description"),
        (
            proposal("It.", **json.loads(PROGRAM)["edit"]),
            child(3, "Run.", workflow=flow(node("other", "Programmer"))),
            "round 3 tried the workflow that results",
        ),
        (AGAIN, child(3, "Other."), "the edit changes nothing"),
    ],
)
async def test_what_was_tried_is_asked_again_three_times_in_all(
    tmp_path: Path, reply: str, tried: Round, reason: str
) -> None:
    found, model = await propose(tmp_path, reply, told("be long"), children=[tried])
    assert found.modification == "Tell it to be long"
    assert reason in text_of(model.requests[1])
    found, model = await propose(tmp_path / "thrice", reply, reply, reply, children=[tried])
    assert (found.workflow, found.reason) == (None, reason)
    draws = [request.draw for request in model.requests]
    assert len(set(draws)) == 3
    assert all(0 <= draw < 1 << 31 for draw in draws)
    # They follow from seed, round and attempt.
    _, same = await propose(tmp_path / "same", PROGRAM)
    _, other = await propose(tmp_path / "other", PROGRAM, seed=8)
    assert same.requests[0].draw == draws[0] != other.requests[0].draw


async def test_every_attempt_edits_a_parent_of_its_own_and_hears_what_was_refused_of_it(tmp_path: Path) -> None:
    other = Round(2, 1, "scored", workflow=flow(node("a", "Custom", instruction="Add.")), score=50.0)
    tried = child(4, "Tell it to be brief")
    drawn = [Situation(PARENT, (tried,), ()), Situation(other, (), ()), Situation(PARENT, (tried,), ())]
    replies = [told("be brief"), "Hm.", PROGRAM]
    model = Client(lambda backbone, request: replies.pop(0))
    its = training(tmp_path, model, questions(2))
    found = await Optimizer("large", "Math").propose(5, drawn.__getitem__, its)
    first, second, third = map(text_of, model.requests)
    assert [text.partition(" with a score of ")[2][:5] for text in (first, second, third)] == [
        "62.50",
        "50.00",
        "62.50",
    ]
    assert json.loads(model.requests[1].response_format or "")["json_schema"]["schema"] == schema(other.tried, "Math")
    refusals = [text.count("A proposal of this round was refused") for text in (first, second, third)]
    assert refusals == [0, 0, 1]
    assert "refused: round 4 tried an edit of this description" in third
    assert (found.parent, found.workflow) == (PARENT, flow(node("node_1", "Programmer")))
