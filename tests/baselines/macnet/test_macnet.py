"""Graphs on a model that replies with digests of its prompts, against an independent schedule."""

import asyncio
import hashlib
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from baselines import macnet
from harness import scripted
from harness.agents.trajectory import Trajectory
from harness.benchmarks.items import Item
from harness.llm.request import Message, Reply, Request
from harness.runner.setting import build
from harness.scripted import ScriptedModel
from harness.simulator.endpoint import records
from tests import fixtures
from tests.fixtures import FAILED, RULES, Client

ITEM = Item(id="1", benchmark="gsm_hard", question="How many eggs?", gold="3.0")
QUESTION = f"Question:\n{ITEM.question}"
TOPOLOGIES = ["chain", "tree", "complete"]
KINDS = {macnet.SOLVE: "solve", macnet.CRITICISE: "critique", macnet.REVISE: "revise", macnet.MERGE: "merge"}


class Asked(NamedTuple):
    kind: str
    shown: tuple[str, ...]
    temperature: float
    draw: int


def take_apart(request: Request) -> Asked:
    system, user = request.messages
    [kind] = [kind for text, kind in KINDS.items() if text in system.content]
    assert user.content.startswith(QUESTION)
    assert request.metadata.purpose == kind
    return Asked(kind, tuple(records(user.content)), round(request.temperature, 9), request.draw)


def reply_to(call: Asked) -> str:
    """Return a name no other request gets; a prompt that shows it shows this reply."""
    return f"{call.kind} {hashlib.sha256(repr(call).encode()).hexdigest()[:16]}"


class Digesting(Client):
    """Answers with digests, or with what ``instead`` gives; with a seed of latencies, in a random order of arrival."""

    def __init__(self, latency: int | None = None, instead: Callable[[Request], Reply | str | None] = lambda _: None):
        random = np.random.default_rng(latency)
        super().__init__(self._answer, late=lambda _: 0 if latency is None else int(random.integers(9)))
        self._instead = instead
        self.replies: dict[str, str] = {}

    @property
    def prompts(self) -> list[Asked]:
        return [take_apart(request) for request in self.requests]

    def _answer(self, backbone: str, request: Request) -> str | Reply:
        reply = self._instead(request)
        if reply is None:
            reply = reply_to(take_apart(request))
        self.replies[request.key] = reply if isinstance(reply, str) else reply.text
        return reply


async def solve(client: Any, topology: str, agents: int = 6, **changes: Any) -> Trajectory:
    config = {"topology": topology, "agents": agents}
    context = fixtures.context(ITEM, client, RULES)
    return context.close(await build("baselines.macnet", scripted.setting(**changes), config).solve(ITEM, context))


def longest_path(node: int, edges: Sequence[tuple[int, int]]) -> int:
    return max((1 + longest_path(before, edges) for before, after in edges if after == node), default=0)


def textbook(topology: str, agents: int) -> tuple[str, list[Asked]]:
    """Return the answer and every request, one node after the other; each call that a node may need has a number."""
    solutions, calls = list[str](), list[Asked]()
    edges = {
        "chain": [(node, node + 1) for node in range(agents)],
        "tree": [(node, child) for node in range(agents) for child in (2 * node + 1, 2 * node + 2)],
        "complete": [(node, later) for node in range(agents) for later in range(node + 1, agents)],
    }[topology]
    # Ordered by where they lead, then by where they come from.
    edges = sorted((edge for edge in edges if edge[1] < agents), key=lambda edge: edge[::-1])
    incoming = [[source for source, target in edges if target == node] for node in range(agents)]
    deepest = max(longest_path(node, edges) for node in range(agents))

    def ask(node: int, offset: int, kind: str, shown: Sequence[str], temperature: float) -> str:
        number = sum(3 * len(sources) + 1 for sources in incoming[:node]) + offset
        calls.append(Asked(kind, tuple(shown), round(temperature, 9), number if temperature else 0))
        return reply_to(calls[-1])

    for node, sources in enumerate(incoming):
        # One edge more comes from the released code's virtual source, and another one leads to its sink.
        heat = 1 - (1 + longest_path(node, edges)) / (1 + deepest + 1)
        candidates = [] if sources else [ask(node, 0, "solve", [], heat)]
        for edge, source in enumerate(sources):
            advice = ask(node, 2 * edge, "critique", [solutions[source]], heat)
            candidates.append(ask(node, 2 * edge + 1, "revise", [solutions[source], advice], heat))
        merged = len(candidates) > 1
        solutions.append(ask(node, 2 * len(sources), "merge", candidates, heat) if merged else candidates[0])
    final = [solutions[node] for node in range(agents) if all(source != node for source, _ in edges)]
    return (final[0] if len(final) == 1 else ask(agents, 0, "merge", final, 0.0)), calls


ANY = (st.sampled_from(TOPOLOGIES), st.integers(1, 8))


def run(client: Digesting, topology: str, agents: int) -> Trajectory:
    return asyncio.run(solve(client, topology, agents))


@settings(max_examples=50)
@given(*ANY, st.integers(0, 999))
def test_every_prompt_shows_what_it_should_whatever_reply_is_first(topology: str, agents: int, latency: int) -> None:
    answer, calls = textbook(topology, agents)
    client = Digesting(latency)
    trajectory = run(client, topology, agents)
    assert trajectory.answer == answer
    assert Counter(client.prompts) == Counter(calls)
    assert len({(call.step, call.slot) for call in trajectory.calls}) == len(calls)
    # A merge behind all nodes is no step.
    assert [call.is_step for call in trajectory.calls].count(False) <= 1


@settings(max_examples=100)
@given(*ANY, st.randoms(use_true_random=False), st.sampled_from([0.1, 0.4, 0.9]))
def test_whatever_fails_the_last_reply_is_the_answer(topology: str, agents: int, chance: object, share: float) -> None:
    fates: dict[str, Reply | None] = {}

    def instead(request: Request) -> Reply | None:
        failed = Reply.failed(request.model, "refused")
        fates.setdefault(request.key, failed if chance.random() < share else None)  # type: ignore[attr-defined]
        return fates[request.key]

    client = Digesting(instead=instead)
    trajectory = run(client, topology, agents)
    assert trajectory.answer == client.replies[trajectory.calls[-1].key]


async def test_a_chain_of_three() -> None:
    """The wording is in ``tests/test_prompts.py``."""
    client = ScriptedModel("First.", "It lacks a unit.", "Second.", "no revision needed.", "Third.")
    trajectory = await solve(client, "chain", 3)
    assert trajectory.answer == "Third."
    assert [(request.temperature, request.messages[1]) for _, request in client.asked] == [
        (0.75, user("Advice: None.")),
        (0.5, user("The colleague's solution:\n\n[1] Solution:\nFirst.")),
        (0.5, user(revision("First.", "It lacks a unit."))),
        (0.25, user("The colleague's solution:\n\n[1] Solution:\nSecond.")),
        (0.25, user(revision("Second.", "None."))),
    ]
    purposes = [("solve", 1, 0), ("critique", 2, 1), ("revise", 2, 2), ("critique", 3, 5), ("revise", 3, 6)]
    assert [(call.purpose, call.step, call.slot) for call in trajectory.calls] == purposes
    assert {(name, request.max_tokens) for name, request in client.asked} == {("small", 2048)}


def user(block: str) -> Message:
    return Message("user", f"{QUESTION}\n\n{block}")


def revision(solution: str, advice: str) -> str:
    return f"The solution, and the advice on it:\n\n[1] Solution:\n{solution}\n\n[2] Advice:\n{advice}"


@pytest.mark.parametrize("failure", ["", " \n", FAILED])
async def test_nothing_to_criticise(failure: str | Reply) -> None:
    """A source that says nothing: the next node answers as if it were the first, at its own temperature."""
    client = ScriptedModel(failure, "Mine.", "Advice.", "Better.")
    trajectory = await solve(client, "chain", 3)
    assert [call.purpose for call in trajectory.calls] == ["solve", "solve", "critique", "revise"]
    first, second = (request for _, request in client.asked[:2])
    assert (first.messages, first.temperature, second.temperature) == (second.messages, 0.75, 0.5)
    assert trajectory.answer == "Better."


@pytest.mark.parametrize(
    ("critique", "advice"),
    [
        *((critique, "None.") for critique in ("", " \n ", FAILED, "NO REVISION NEEDED", "  No revision needed.\n")),
        ("All hold.\n\n> **`No revision needed`**", "None."),
        ("\nNo revision needed, except for the sign. ", "No revision needed, except for the sign."),
    ],
)
async def test_approval_and_silence_are_no_advice_to_the_actor(critique: str | Reply, advice: str) -> None:
    client = ScriptedModel("Mine.", critique, "Better.")
    trajectory = await solve(client, "chain", 2)
    assert [call.purpose for call in trajectory.calls] == ["solve", "critique", "revise"]
    assert client.asked[-1][1].messages[1] == user(revision("Mine.", advice))
    assert trajectory.answer == "Better."
