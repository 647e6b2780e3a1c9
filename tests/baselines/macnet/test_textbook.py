"""The textbook schedule in detail: prompts word by word, what waits for what, what happens when a call fails."""

from __future__ import annotations

import asyncio

import pytest

from baselines import macnet
from harness.llm.request import Message, Reply, Request
from tests.baselines.macnet.model import ITEM, RULES, Digesting, solve, take_apart
from tests.scripted import ScriptedClient

QUESTION = f"Question:\n{ITEM.question}"


async def test_a_chain_of_three_word_by_word() -> None:
    client = ScriptedClient("First.", "It lacks a unit.", "Second.", "no revision needed.", "Third.")
    trajectory = await solve(client, "chain", 3)
    assert trajectory.answer == "Third."
    critic = "\n\n".join(
        [
            macnet.PROFILE,
            macnet.CRITICISE,
            macnet.CHECKS["Math"],
            "If you find no defect, reply with these words alone: NO REVISION NEEDED",
            f"The colleague, not you, has to keep to this form: {RULES}",
        ]
    )
    reviser = f"{macnet.PROFILE}\n\n{macnet.REVISE}\n\n{RULES}"
    assert [(request.temperature, *request.messages) for _, request in client.asked] == [
        (1.0, Message("system", f"{macnet.PROFILE}\n\n{macnet.SOLVE}\n\n{RULES}"), user("Advice: None.")),
        (0.5, Message("system", critic), user("The colleague's solution:\n\n[1] Solution:\nFirst.")),
        (0.5, Message("system", reviser), user(revision("First.", "It lacks a unit."))),
        (0.0, Message("system", critic), user("The colleague's solution:\n\n[1] Solution:\nSecond.")),
        (0.0, Message("system", reviser), user(revision("Second.", "None."))),
    ]
    assert [(call.purpose, call.step, call.slot) for call in trajectory.calls] == [
        ("solve", 1, 0),
        ("critique", 2, 1),
        ("revise", 2, 2),
        ("critique", 3, 5),
        ("revise", 3, 6),
    ]
    assert {(name, request.max_tokens) for name, request in client.asked} == {("small", 2048)}


def user(block: str) -> Message:
    return Message("user", f"{QUESTION}\n\n{block}")


def revision(solution: str, advice: str) -> str:
    return f"The solution, and the advice on it:\n\n[1] Solution:\n{solution}\n\n[2] Advice:\n{advice}"


async def test_edges_to_a_node_and_nodes_of_a_layer_run_at_the_same_time() -> None:
    class Counting(Digesting):
        at_work = most = 0

        async def complete(self, backbone: str, request: Request) -> Reply:
            self.at_work += 1
            self.most = max(self.most, self.at_work)
            for _ in range(5):
                await asyncio.sleep(0)
            self.at_work -= 1
            return await super().complete(backbone, request)

    for topology, most in (("chain", 1), ("tree", 3), ("star", 5), ("complete", 5)):
        client = Counting()
        await solve(client, topology)
        assert client.most == most, topology


async def test_a_node_waits_for_its_own_predecessors_alone() -> None:
    """In the tree, node 3 or 4 starts from node 1 while the other branch is still without its first critique."""

    class Held(Digesting):
        branches = 0

        async def complete(self, backbone: str, request: Request) -> Reply:
            asked = take_apart(request)
            if asked.temperature == 0.5 and asked.kind == "critique":
                self.branches += 1
                if self.branches == 2:
                    await reached.wait()
            if asked.temperature == 0 and asked.kind == "critique":
                reached.set()
            return await super().complete(backbone, request)

    reached = asyncio.Event()
    trajectory = await asyncio.wait_for(solve(Held(), "tree"), timeout=5)
    assert len(trajectory.calls) == 12


@pytest.mark.parametrize("failure", ["", " \n", Reply.failed("org/small", "refused")])
async def test_nothing_to_criticise(failure: str | Reply) -> None:
    """A source that says nothing: the next node answers as if it were the first, at its own temperature."""
    client = ScriptedClient(failure, "Mine.", "Advice.", "Better.")
    trajectory = await solve(client, "chain", 3)
    assert [call.purpose for call in trajectory.calls] == ["solve", "solve", "critique", "revise"]
    first, second = (request for _, request in client.asked[:2])
    assert (first.messages, first.temperature, second.temperature) == (second.messages, 1.0, 0.5)
    assert trajectory.answer == "Better."


@pytest.mark.parametrize("failure", ["", Reply.failed("org/small", "refused"), "Fine.\n\n**No revision needed.**"])
async def test_the_actor_is_asked_although_there_is_no_advice(failure: str | Reply) -> None:
    client = ScriptedClient("Mine.", failure, "Better.")
    trajectory = await solve(client, "chain", 2)
    assert [call.purpose for call in trajectory.calls] == ["solve", "critique", "revise"]
    assert client.asked[-1][1].messages[1] == user(revision("Mine.", "None."))
    assert trajectory.answer == "Better."


async def test_empty_candidates_are_left_out_of_a_merge() -> None:
    client = ScriptedClient("Root.", "A1", "", "A2", "Two.", "A3", "Three.", "Merged.")
    trajectory = await solve(client, "star", 4)
    assert take_apart(client.asked[-1][1]) == ("merge", ("Two.", "Three."), 0.0, 0)
    assert trajectory.answer == "Merged."


async def test_a_single_candidate_left_of_several_is_merged_too() -> None:
    """The last leaf failed; its call must not be taken for the one that gave the answer."""
    refused = Reply.failed("org/small", "refused")
    client = ScriptedClient("Root.", "A1", "One.", "A2", refused, "Merged.")
    trajectory = await solve(client, "star", 3)
    assert take_apart(client.asked[-1][1]) == ("merge", ("One.",), 0.0, 0)
    assert trajectory.final_call is not None
    assert (trajectory.final_call.error, trajectory.answer) == (None, "Merged.")


async def test_when_every_call_fails_the_question_counts_as_failed() -> None:
    client = ScriptedClient(Reply.failed("org/small", "refused"))
    trajectory = await solve(client, "complete")
    assert trajectory.answer == ""
    assert [call.purpose for call in trajectory.calls] == ["solve"] * 16
    assert trajectory.final_call is not None
    assert trajectory.final_call.error == "refused"


async def test_a_broken_endpoint_ends_all_nodes() -> None:
    class Gone(Digesting):
        async def complete(self, backbone: str, request: Request) -> Reply:
            if len(self.requests) == 4:
                raise ConnectionError("gone")
            return await super().complete(backbone, request)

    before = asyncio.all_tasks()
    with pytest.raises(ConnectionError, match="gone"):
        await asyncio.wait_for(solve(Gone(latency=1), "complete"), timeout=5)
    assert asyncio.all_tasks() == before
