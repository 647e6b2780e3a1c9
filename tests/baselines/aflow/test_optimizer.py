"""Proposals: the optimizer's prompt, parsing of its reply, and retries."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from baselines.aflow.edits import parse_proposal
from baselines.aflow.method import FAILED, AFlow, Config
from baselines.aflow.search import Failure, Round
from baselines.aflow.workflow import InvalidWorkflowError, start
from harness.benchmarks.items import Item
from harness.llm.request import Reply
from harness.scripted import setting
from tests.baselines.aflow.fixtures import flow, node, proposal, round_, text_of, told
from tests.fixtures import RULES, Client, questions, training

PARENT = round_(1, None, workflow=start("Math"), score=62.5)
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
    parent = PARENT.model_copy(update={"failures": failures})
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


INVALID = {
    **dict.fromkeys(("", "No.", PROGRAM[:40] + " ...", "[1]", "}{"), "the reply is no JSON object"),
    proposal("  ", kind="remove", id="node_1"): "modification: .* at least 1",
    json.dumps({"modification": "x", "edit": USING_A_PROGRAM, "more": 1}): "unknown key 'more'",
    of_node(repeat=6): "edit.add.node.repeat: .*5",
}


def test_an_object_may_stand_in_a_fence_or_between_sentences_and_has_to_be_a_proposal() -> None:
    texts = PROGRAM, f"```json\n{PROGRAM}\n```", f"Here is what I suggest: {PROGRAM}."
    assert {parse_proposal(text).modification for text in texts} == {"Compute it."}
    for text, reason in INVALID.items():
        with pytest.raises(InvalidWorkflowError, match=reason):
            parse_proposal(text)


UNUSABLE = {
    "the reply is no JSON object": "Let me think.",
    "the last node cannot be removed": proposal("x", kind="remove", id="node_1"),
    "no operator 'Review'": of_node(operator="Review"),
}


@pytest.mark.parametrize("reason", list(UNUSABLE))
async def test_an_invalid_proposal_is_asked_again_once_with_the_reason(tmp_path: Path, reason: str) -> None:
    entry, model = await propose(tmp_path, UNUSABLE[reason], PROGRAM)
    assert entry.workflow is not None
    assert reason not in text_of(model.requests[0])
    assert reason in text_of(model.requests[1])
    assert model.requests[0].draw != model.requests[1].draw
    entry, _ = await propose(tmp_path / "again", "Let me think.", UNUSABLE[reason])
    assert entry.workflow is None
    assert reason in entry.reason
    assert entry.modification == entry.edit == ""


REFUSED = Reply.failed("m", "Error code: 400 - response_format is\nnot supported, req-7f3a")


async def test_a_refused_response_format_is_left_out_once_and_the_reply_may_be_unreadable(tmp_path: Path) -> None:
    entry, model = await propose(tmp_path, REFUSED, "Hm.", REFUSED, PROGRAM)
    assert entry.workflow == flow(node("node_1", "Programmer"))
    assert entry.reason == ""
    assert [request.response_format is None for request in model.requests] == [False, True, False, True]
    first, second, third, _ = model.requests
    assert (second.messages, second.draw, second.temperature) == (first.messages, first.draw, first.temperature)
    assert "the reply is no JSON object" in text_of(third)
    # Nothing that the server said of itself is told to the model.
    assert not any(re.search(r"Error code|not supported|req-", text_of(request)) for request in model.requests)
    entry, _ = await propose(tmp_path / "down", *[REFUSED] * 4)
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
async def test_what_was_tried_is_asked_again_three_times_in_all(
    tmp_path: Path, reply: str, tried: Round, reason: str
) -> None:
    entry, model = await propose(tmp_path, reply, told("be long"), children=[tried])
    assert entry.modification == "Tell it to be long"
    assert reason in text_of(model.requests[1])
    entry, model = await propose(tmp_path / "thrice", reply, reply, reply, children=[tried])
    assert (entry.workflow, entry.reason) == (None, reason)
    draws = [request.draw for request in model.requests]
    assert len(set(draws)) == 3
