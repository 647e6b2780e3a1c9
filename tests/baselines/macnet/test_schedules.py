"""Both schedules on a model whose replies say what it was shown: who is asked what, how often, how warm."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.agents.trajectory import Trajectory
from harness.llm.request import Reply, Request
from tests.baselines.macnet import model
from tests.baselines.macnet.model import TOPOLOGIES, Digesting, solve

ANY_SIZE = st.integers(1, 8)
ANY_TOPOLOGY = st.sampled_from(TOPOLOGIES)
ANY_SCHEDULE = st.sampled_from(["textbook", "official"])
REFERENCES = {"textbook": model.textbook, "official": model.official}


def run(client: Digesting, topology: str, agents: int, schedule: str) -> Trajectory:
    return asyncio.run(solve(client, topology, agents, schedule))


@pytest.mark.parametrize(
    ("schedule", "topology", "calls"),
    [
        ("textbook", "chain", {"solve": 1, "critique": 5, "revise": 5}),
        ("textbook", "star", {"solve": 1, "critique": 5, "revise": 5, "merge": 1}),
        ("textbook", "tree", {"solve": 1, "critique": 5, "revise": 5, "merge": 1}),
        ("textbook", "complete", {"solve": 1, "critique": 15, "revise": 15, "merge": 4}),
        ("official", "chain", {"solve": 1, "critique": 6, "revise": 6}),
        ("official", "star", {"solve": 1, "critique": 10, "revise": 10, "merge": 1}),
        ("official", "tree", {"solve": 1, "critique": 8, "revise": 8, "merge": 2}),
        ("official", "complete", {"solve": 1, "critique": 16, "revise": 16, "merge": 3}),
    ],
)
async def test_calls_of_six_agents(schedule: str, topology: str, calls: dict[str, int]) -> None:
    client = Digesting()
    trajectory = await solve(client, topology, 6, schedule)
    assert Counter(call.purpose for call in trajectory.calls) == calls
    assert Counter(asked.kind for asked in client.asked) == calls


@settings(deadline=None, max_examples=50)
@given(ANY_TOPOLOGY, ANY_SIZE, ANY_SCHEDULE)
def test_every_prompt_shows_what_it_should_and_nothing_else(topology: str, agents: int, schedule: str) -> None:
    answer, asked = REFERENCES[schedule](topology, agents)
    client = Digesting()
    assert run(client, topology, agents, schedule).answer == answer
    assert Counter(client.asked) == Counter(asked)


@settings(deadline=None, max_examples=50)
@given(ANY_TOPOLOGY, ANY_SIZE, ANY_SCHEDULE, st.integers(0, 999))
def test_the_order_in_which_replies_arrive_does_not_show(
    topology: str, agents: int, schedule: str, latency: int
) -> None:
    assert run(Digesting(latency), topology, agents, schedule) == run(Digesting(), topology, agents, schedule)


@settings(deadline=None, max_examples=30)
@given(ANY_TOPOLOGY, ANY_SIZE, ANY_SCHEDULE)
def test_no_two_warm_calls_are_one(topology: str, agents: int, schedule: str) -> None:
    client = Digesting()
    calls = run(client, topology, agents, schedule).calls
    assert len({(call.step, call.slot) for call in calls}) == len(calls)
    warm = [request for request in client.requests if request.temperature > 0]
    assert len({request.draw for request in warm}) == len(warm)
    assert {request.draw for request in client.requests if request.temperature == 0} <= {0}


@settings(deadline=None, max_examples=100)
@given(ANY_TOPOLOGY, ANY_SIZE, ANY_SCHEDULE, st.randoms(use_true_random=False), st.sampled_from([0.1, 0.4, 0.9]))
def test_whatever_fails_the_answer_is_the_reply_to_the_last_call(
    topology: str, agents: int, schedule: str, chance: object, share: float
) -> None:
    fates: dict[str, Reply | None] = {}

    def instead(request: Request) -> Reply | None:
        failed = Reply.failed(request.model, "refused")
        fates.setdefault(request.key, failed if chance.random() < share else None)  # type: ignore[attr-defined]
        return fates[request.key]

    client = Digesting(instead=instead)
    trajectory = run(client, topology, agents, schedule)
    assert trajectory.final_call is not None
    assert trajectory.answer == client.replies[trajectory.final_call.key]


@pytest.mark.parametrize("schedule", ["textbook", "official"])
@pytest.mark.parametrize("topology", TOPOLOGIES)
async def test_only_the_merge_behind_all_nodes_is_no_step(topology: str, schedule: str) -> None:
    trajectory = await solve(Digesting(), topology, 6, schedule)
    apart = [call.purpose for call in trajectory.calls if not call.is_step]
    assert apart == (["merge"] if schedule == "textbook" and topology in ("star", "tree") else [])
    assert trajectory.depth == (6 if schedule == "textbook" else 7)


def depends_on(topology: str, schedule: str, kinds: tuple[str, ...]) -> list[tuple[str, int]]:
    """Purpose and step of the calls whose reply, changed, changes the answer; found by changing each in turn."""
    plain = run(Digesting(), topology, 6, schedule)
    seen = []
    for call in plain.calls:
        changed = run(Digesting(instead=_other_reply(call.key)), topology, 6, schedule)
        if call.purpose in kinds and changed.answer != plain.answer:
            seen.append((call.purpose, call.step))
    return seen


def _other_reply(key: str, reply: str = "another reply") -> Callable[[Request], str | None]:
    return lambda request: reply if request.key == key else None


def test_released_complete_graph_depends_on_three_solutions() -> None:
    """Node 0, node 5 refining node 0, and the sink refining node 5."""
    assert depends_on("complete", "official", ("solve", "revise", "merge")) == [
        ("solve", 1),
        ("revise", 6),
        ("revise", 7),
    ]
    assert depends_on("complete", "official", ("critique",)) == [("critique", 6), ("critique", 7)]


@pytest.mark.parametrize(("agents", "merged"), [(2, 1), (3, 2), (4, 3), (5, 1), (6, 2), (8, 3)])
def test_pooled_merges_of_so_many_leaves(agents: int, merged: int) -> None:
    """On a star with so many leaves the released sink has as many candidates."""
    calls = run(Digesting(), "star", agents + 1, "official").calls
    assert sum(call.purpose == "merge" for call in calls) == merged


async def test_an_empty_candidate_takes_no_place_in_the_pool() -> None:
    """Five candidates would be halved to two; the four that hold anything are merged in two rounds."""
    plain = await solve(Digesting(), "star", 6, "official")
    key = next(call.key for call in plain.calls if call.purpose == "revise" and call.step == 7)
    trajectory = await solve(Digesting(instead=_other_reply(key, "")), "star", 6, "official")
    assert sum(call.purpose == "merge" for call in trajectory.calls) == 3
