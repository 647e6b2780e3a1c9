"""Algorithm 1 on a scripted client: what is asked, who sees what, when it ends."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gmr.rollout import NOTHING_STORED, aggregator_prompt
from gmr.router import Router, Snapshot
from harness.agents.prompts import RECORDS_HEADER, Record
from harness.agents.trajectory import Episode, Trajectory
from harness.llm.request import GREEDY, Reply, Request
from tests.gmr.made import units
from tests.gmr.world import (
    CRITIC,
    HISTORIAN,
    INSPECTOR,
    ITEMS,
    LARGE,
    LONGEST,
    POOL,
    REFLECTOR,
    RULES,
    SMALL,
    Answering,
    Client,
    Plan,
    Scripted,
    config,
    embedding,
    walk,
)
from tests.scripted import sampling


async def scripted(
    *plans: Plan, answering: Answering | None = None, **changes: Any
) -> tuple[Trajectory, Client, Scripted]:
    """A trajectory that goes as planned; unless told otherwise, the n-th reply is ``text n``."""
    client = Client()
    client.answering = answering or (lambda backbone, request: f"text {len(client.asked)}")
    policy: Any = Scripted(*plans)
    trajectory, _ = await walk(policy, config(**changes), client)
    return trajectory, client, policy


def halting(bias: float, **changes: Any) -> Snapshot:
    """A router that halts at every step, or at none."""
    profiles = (units(np.random.default_rng(0), len(POOL.roles)), units(np.random.default_rng(1), 2))
    return Router(config(halting_bias=bias, **changes), *profiles).snapshot()


def users(client: Client) -> list[str]:
    return [request.messages[1].content for _, request in client.asked]


# Who is asked, in which order, and what each one sees


async def test_agents_act_in_order_and_see_retrieved_records_only() -> None:
    trajectory, client, _ = await scripted(
        Plan(CRITIC, LARGE),
        Plan(HISTORIAN, SMALL, (False,), writes=False),
        Plan(INSPECTOR, SMALL, (True,)),
        Plan(CRITIC, LARGE, (False, True)),
        Plan(HISTORIAN, LARGE, (True, False, True), halts=True),
    )
    assert [backbone for backbone, _ in client.asked] == ["large", "small", "small", "large", "large", "large"]
    records = [
        "",
        "",
        "[1] Critic:\ntext 1",
        "[1] Inspector:\ntext 3",
        "[1] Critic:\ntext 1\n\n[2] Critic:\ntext 4",
        "[1] Critic:\ntext 1\n\n[2] Inspector:\ntext 3\n\n[3] Critic:\ntext 4\n\n[4] Historian:\ntext 5",
    ]
    question = f"Question:\n{ITEMS[0].question}"
    assert users(client) == [f"{question}\n\n{RECORDS_HEADER}\n\n{seen}" if seen else question for seen in records]
    for (_, request), role in zip(client.asked, (CRITIC, HISTORIAN, INSPECTOR, CRITIC, HISTORIAN), strict=False):
        assert request.messages[0].content.startswith(POOL.roles[role].description)
    assert all(request.messages[0].content.endswith(RULES) for _, request in client.asked)
    assert trajectory.answer == "text 6"


async def test_the_aggregator_never_sees_what_was_discarded() -> None:
    _, client, _ = await scripted(
        Plan(CRITIC, SMALL, writes=False), Plan(HISTORIAN, SMALL), Plan(CRITIC, SMALL, (True,), False, True)
    )
    assert "text 2" in users(client)[-1]
    assert not {"text 1", "text 3"} & set(users(client)[-1].splitlines())


async def test_calls_of_steps_and_the_aggregation_are_told_apart() -> None:
    trajectory, _, _ = await scripted(Plan(REFLECTOR, LARGE), Plan(CRITIC, SMALL, (True,), halts=True))
    assert [(call.step, call.purpose, call.backbone, call.role, call.is_step) for call in trajectory.calls] == [
        (1, "act", "large", "Commonsense/Reflector", True),
        (1, "second_call", "large", "Commonsense/Reflector", True),
        (2, "act", "small", "Commonsense/Critic", True),
        (3, "aggregate", "large", "", False),
    ]
    assert trajectory.depth == 2
    assert trajectory.cost_steps == sum(call.cost for call in trajectory.calls[:3])
    assert trajectory.cost_total == pytest.approx(trajectory.cost_steps + trajectory.calls[3].cost)


async def test_a_reply_depends_on_its_prompt_alone_whatever_the_rollout() -> None:
    """Same decisions, same calls: temperature 0 and one draw, and every role is told the benchmark's output rules."""
    plans = Plan(REFLECTOR, LARGE), Plan(CRITIC, SMALL, (True,), halts=True)
    asked = []
    for rollout in range(2):
        client, policy = Client(), Scripted(*plans)
        await walk(policy, config(), client, seed=rollout, episode=Episode(1, rollout))  # type: ignore[arg-type]
        asked.append([request for _, request in client.asked])
    assert asked[0] == asked[1]
    assert {(sampling(request), request.draw) for request in asked[0]} == {(GREEDY, 0)}
    assert all(request.messages[0].content.endswith(RULES) for request in asked[0])


async def test_the_second_reply_is_what_is_embedded_and_stored() -> None:
    _, client, policy = await scripted(Plan(REFLECTOR, SMALL, halts=True))
    assert [tuple(vector) for vector in policy.responses] == [tuple(embedding("text 2"))]
    assert users(client)[-1].endswith("[1] Reflector:\ntext 2")
    assert [message.content for message in client.asked[1][1].messages[2:]] == ["text 1", POOL.roles[2].second_call]


async def test_the_question_alone_is_embedded_for_the_state() -> None:
    _, _, policy = await scripted(Plan(CRITIC, SMALL, halts=True))
    assert tuple(policy.question) == tuple(embedding(ITEMS[0].question))


async def test_without_both_gates_everyone_sees_everything() -> None:
    plans = [Plan(CRITIC, SMALL, None, None) for _ in range(3)]
    trajectory, client, _ = await scripted(*plans, max_depth=3)
    assert [user.count("Critic:") for user in users(client)] == [0, 1, 2, 3]
    assert {one.name for one in trajectory.decisions} == {"role", "backbone", "halt"}


async def test_question_and_responses_are_embedded_and_those_too_long_are_counted() -> None:
    long = "word " * (LONGEST + 1)
    trajectory, _, _ = await scripted(
        *[Plan(CRITIC, SMALL, None)] * 2, answering=lambda backbone, request: long, max_depth=2
    )
    assert (trajectory.embedded, trajectory.truncated) == (3, 2)


# Empty memory, failed calls


@pytest.mark.parametrize(("way", "ending"), [("note", NOTHING_STORED), ("last_response", "[1] Historian:\ntext 2")])
async def test_nothing_stored_when_the_aggregator_is_called(way: str, ending: str) -> None:
    plans = Plan(CRITIC, SMALL, writes=False), Plan(HISTORIAN, SMALL, writes=False, halts=True)
    _, client, _ = await scripted(*plans, empty_memory=way)
    assert users(client)[2].endswith(ending)
    assert (RECORDS_HEADER in users(client)[2]) == (way == "last_response")
    assert "text 1" not in users(client)[2]


async def test_the_last_response_stands_in_for_an_empty_memory_only() -> None:
    plans = Plan(CRITIC, SMALL), Plan(HISTORIAN, SMALL, (True,), writes=False, halts=True)
    _, client, _ = await scripted(*plans, empty_memory="last_response")
    assert users(client)[-1].endswith("[1] Critic:\ntext 1")


async def test_a_failed_call_is_the_empty_text_and_the_trajectory_goes_on() -> None:
    def answering(backbone: str, request: Request) -> str | Reply:
        return (
            Reply.failed("m", "gone")
            if request.messages[0].content.startswith(POOL.roles[CRITIC].description)
            else "ok"
        )

    plans = Plan(CRITIC, SMALL), Plan(HISTORIAN, SMALL, (True,), halts=True)
    trajectory, client, policy = await scripted(*plans, answering=answering)
    assert [tuple(vector) for vector in policy.responses] == [tuple(embedding("")), tuple(embedding("ok"))]
    [critic, historian] = users(client)[-1].split("[1] ")[1].split("[2] ")
    assert (critic.strip(), historian.strip()) == ("Critic:", "Historian:\nok")
    assert [call.error for call in trajectory.calls] == ["gone", None, None]
    assert trajectory.answer == "ok"


async def test_a_failed_aggregation_is_an_empty_answer() -> None:
    def answering(backbone: str, request: Request) -> str | Reply:
        return Reply.failed("m", "gone") if "close the work" in request.messages[0].content else "ok"

    trajectory, _, _ = await scripted(Plan(CRITIC, SMALL, halts=True), answering=answering)
    assert trajectory.answer == ""
    assert trajectory.final_call is not None
    assert trajectory.final_call.error == "gone"


# Who aggregates


@pytest.mark.parametrize(
    ("chosen", "closing"),
    [
        ([SMALL, LARGE, LARGE], "large"),
        ([LARGE, SMALL, SMALL, LARGE], "large"),
        ([SMALL, LARGE], "small"),
    ],
)
@pytest.mark.parametrize("written", [True, False])
async def test_every_step_has_a_voice_in_who_aggregates(chosen: list[int], closing: str, written: bool) -> None:
    """Only the last step is stored, or none: discarded steps count all the same."""
    plans = [Plan(CRITIC, backbone, writes=False) for backbone in chosen[:-1]]
    trajectory, _, _ = await scripted(*plans, Plan(CRITIC, chosen[-1], writes=written, halts=True))
    assert trajectory.calls[-1].purpose == "aggregate"
    assert trajectory.calls[-1].backbone == closing


# Depth and halting


@pytest.mark.parametrize("max_depth", [1, 2, 6])
async def test_the_depth_stays_within_its_limit_and_the_last_draw_is_not_made(max_depth: int) -> None:
    never, at_once = halting(-50, max_depth=max_depth), halting(50, max_depth=max_depth)
    trajectory, trace = await walk(never, config(max_depth=max_depth), Client())
    assert trajectory.depth == len(trace.steps) == max_depth
    halts = [decision for decision in trajectory.decisions if decision.name == "halt"]
    assert [(one.step, one.choice) for one in halts] == [(step, "no") for step in range(1, max_depth)]
    assert [step.halted for step in trace.steps] == [False] * (max_depth - 1) + [None]
    trajectory, trace = await walk(at_once, config(max_depth=max_depth), Client())
    assert trajectory.depth == 1
    assert trace.steps[0].halted is (None if max_depth == 1 else True)


RECORDS = [Record("Critic", "It is 3."), Record("Historian", "It is 4.")]


def test_the_prompt_has_rules_first_then_question_then_records_in_memory_order() -> None:
    system, user = aggregator_prompt(RULES, ITEMS[0], RECORDS)
    assert (system.role, user.role) == ("system", "user")
    assert system.content.endswith(RULES)
    places = [user.content.index(part) for part in (ITEMS[0].question, "[1] Critic:\nIt is 3.", "[2] Historian:\n")]
    assert places == sorted(places)
    assert NOTHING_STORED not in user.content


def test_an_empty_memory_is_said_in_so_many_words() -> None:
    system, user = aggregator_prompt(RULES, ITEMS[0], [])
    assert user.content == f"Question:\n{ITEMS[0].question}\n\n{NOTHING_STORED}"
    assert system == aggregator_prompt(RULES, ITEMS[0], RECORDS)[0]
