"""Graphs on a model whose replies say what it was shown: who is asked what, how often, how warm."""

import asyncio
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from baselines import macnet
from harness.agents.trajectory import Trajectory
from harness.llm.request import Message, Reply, Request
from tests.baselines.macnet import model
from tests.baselines.macnet.model import ITEM, RULES, TOPOLOGIES, Digesting, solve, take_apart
from tests.scripted import ScriptedClient

ANY = (st.sampled_from(TOPOLOGIES), st.integers(1, 8))


def run(client: Digesting, topology: str, agents: int) -> Trajectory:
    return asyncio.run(solve(client, topology, agents))


@settings(max_examples=50)
@given(*ANY, st.integers(0, 999))
def test_every_prompt_shows_what_it_should_whatever_reply_arrives_first(
    topology: str, agents: int, latency: int
) -> None:
    answer, calls = model.textbook(topology, agents)
    client = Digesting(latency)
    trajectory = run(client, topology, agents)
    assert trajectory.answer == answer
    assert Counter(client.prompts) == Counter(calls)
    assert len({(call.step, call.slot) for call in trajectory.calls}) == len(calls)
    # A merge behind all nodes is no step.
    assert [call.is_step for call in trajectory.calls].count(False) <= 1


@settings(max_examples=100)
@given(*ANY, st.randoms(use_true_random=False), st.sampled_from([0.1, 0.4, 0.9]))
def test_whatever_fails_the_answer_is_the_reply_to_the_last_call(
    topology: str, agents: int, chance: object, share: float
) -> None:
    fates: dict[str, Reply | None] = {}

    def instead(request: Request) -> Reply | None:
        failed = Reply.failed(request.model, "refused")
        fates.setdefault(request.key, failed if chance.random() < share else None)  # type: ignore[attr-defined]
        return fates[request.key]

    client = Digesting(instead=instead)
    trajectory = run(client, topology, agents)
    assert trajectory.answer == client.replies[trajectory.calls[-1].key]


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
        (0.75, Message("system", f"{macnet.PROFILE}\n\n{macnet.SOLVE}\n\n{RULES}"), user("Advice: None.")),
        (0.5, Message("system", critic), user("The colleague's solution:\n\n[1] Solution:\nFirst.")),
        (0.5, Message("system", reviser), user(revision("First.", "It lacks a unit."))),
        (0.25, Message("system", critic), user("The colleague's solution:\n\n[1] Solution:\nSecond.")),
        (0.25, Message("system", reviser), user(revision("Second.", "None."))),
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


async def test_a_node_waits_for_its_own_predecessors_alone() -> None:
    """In the tree, node 3 or 4 starts from node 1 while the other branch is still without its first critique."""
    branches, reached = [], asyncio.Event()

    class Held(Digesting):
        async def complete(self, backbone: str, request: Request) -> Reply:
            call = take_apart(request)
            if (call.kind, call.temperature) == ("critique", 0.5):
                branches.append(call)
                if len(branches) == 2:
                    await reached.wait()
            if (call.kind, call.temperature) == ("critique", 0.25):
                reached.set()
            return await super().complete(backbone, request)

    trajectory = await asyncio.wait_for(solve(Held(), "tree"), timeout=5)
    assert len(trajectory.calls) == 12


@pytest.mark.parametrize("failure", ["", " \n", Reply.failed("org/small", "refused")])
async def test_nothing_to_criticise(failure: str | Reply) -> None:
    """A source that says nothing: the next node answers as if it were the first, at its own temperature."""
    client = ScriptedClient(failure, "Mine.", "Advice.", "Better.")
    trajectory = await solve(client, "chain", 3)
    assert [call.purpose for call in trajectory.calls] == ["solve", "solve", "critique", "revise"]
    first, second = (request for _, request in client.asked[:2])
    assert (first.messages, first.temperature, second.temperature) == (second.messages, 0.75, 0.5)
    assert trajectory.answer == "Better."


@pytest.mark.parametrize("failure", ["", Reply.failed("org/small", "refused"), "Fine.\n\n**No revision needed.**"])
async def test_the_actor_is_asked_although_there_is_no_advice(failure: str | Reply) -> None:
    client = ScriptedClient("Mine.", failure, "Better.")
    trajectory = await solve(client, "chain", 2)
    assert [call.purpose for call in trajectory.calls] == ["solve", "critique", "revise"]
    assert client.asked[-1][1].messages[1] == user(revision("Mine.", "None."))
    assert trajectory.answer == "Better."


def test_approval_and_silence_are_no_advice_and_approval_with_a_restriction_is() -> None:
    for critique in (
        "NO REVISION NEEDED",
        "  No revision needed.\n",
        "All hold.\n\n> **`No revision needed`**",
        " \n ",
    ):
        assert macnet.advice_in(critique) == ""
    for critique in ("No revision needed, except for the sign.", "REVISION NEEDED"):
        assert macnet.advice_in(f"\n{critique} ") == critique


@pytest.mark.parametrize("domain", ["Math", "Code", "Commonsense"])
async def test_critics_check_what_the_domain_of_the_benchmark_asks_for(domain: str) -> None:
    client = Digesting()
    await solve(client, "chain", 2, domain=domain)
    [critic] = [request.messages[0].content for request in client.requests if macnet.CRITICISE in str(request)]
    assert [name for name, checks in macnet.CHECKS.items() if checks in critic] == [domain]


def test_temperatures_are_those_of_the_released_code_and_written_as_the_fractions_that_they_are() -> None:
    assert macnet.graph_of("tree", 6).temperatures == (0.75, 0.5, 0.5, 0.25, 0.25, 0.25)
    assert macnet.graph_of("chain", 4).temperatures == (0.8, 0.6, 0.4, 0.2)
