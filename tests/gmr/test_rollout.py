"""Algorithm 1 on a scripted client: what is drawn and recorded, what is asked, who sees what, when it ends."""

from __future__ import annotations

import asyncio
import math
from collections import Counter
from typing import Any

import numpy as np
import pytest
import torch

from gmr.policy import Snapshot
from gmr.rollout import NOTHING_STORED
from harness.agents import rng
from harness.agents.prompts import RECORDS_HEADER
from harness.agents.trajectory import Episode, Trajectory, sample
from harness.llm.request import GREEDY, Reply, Request
from tests.fixtures import FAILED, ITEMS, RULES, Answering, Client, embedding
from tests.gmr.fixtures import (
    CRITIC,
    HISTORIAN,
    INSPECTOR,
    LARGE,
    MODULES,
    POOL,
    PROFILES,
    REFLECTOR,
    SMALL,
    Plan,
    Scripted,
    config,
    router,
    snapshot,
    walk,
)
from tests.gmr.reference import Reference
from tests.scripted import sampling

# Draws


@pytest.mark.parametrize("score", ["dot", "cosine"])
async def test_every_decision_follows_its_own_draw_and_the_probability_of_plain_numpy(score: str) -> None:
    made = router(profiles=PROFILES, score=score)
    names = dict(MODULES.values()) | {"retrieval": "retrieve"}
    options = {"role": [one.key for one in POOL.roles], "backbone": [one.key for one in POOL.backbones]}
    for item in ITEMS[:4]:
        trajectory, trace = await walk(Snapshot(made), config(), Client(), item, seed=3, episode=Episode(2, 5))
        walked = Reference(made).walk(trace)
        found = {(one.step, one.name, one.slot): one for one in trajectory.decisions}
        assert len(found) == len(walked.made)
        for step, module, slot, probabilities, outcome in walked.made:
            name = names[module]
            uniform = rng.uniform("3", "2", "5", "toy", item.id, str(step), name, str(slot))
            assert outcome == (sample(probabilities, uniform) if name in options else uniform < probabilities[1])
            one, keys = found[step, name, slot], options.get(name, ["no", "yes"])
            assert (one.choice, one.options) == (keys[outcome], len(keys))
            assert one.log_prob == pytest.approx(math.log(probabilities[outcome]), abs=1e-12)
        assert trace.log_prob == pytest.approx(sum(walked.log_prob.values()), abs=1e-12)


@pytest.mark.parametrize("off", MODULES)
async def test_a_module_that_is_off_adds_no_log_probability_and_a_gate_that_is_off_draws_nothing(off: str) -> None:
    changed, (_, name) = config(**{off: False}), MODULES[off]
    policy = snapshot(**{off: False})
    for item in ITEMS[:4]:
        trajectory, trace = await walk(policy, changed, Client(), item)
        counted = sum(one.log_prob for one in trajectory.decisions if one.name != name)
        assert trace.log_prob == pytest.approx(counted, abs=1e-12)
        # Somebody has to act: the choice is uniform, and no policy's.
        uniform = {"role": {-math.log(len(POOL.roles))}, "backbone": {-math.log(len(POOL.backbones))}}
        assert {one.log_prob for one in trajectory.decisions if one.name == name} == uniform.get(name, set())
        assert off != "retrieval_gate" or all(all(step.retrieved) for step in trace.steps)
        assert off != "write_gate" or all(step.written for step in trace.steps)
        assert off != "halting" or len(trace.steps) == changed.max_depth


class Undecided(Scripted):
    """Probabilities near and at one half."""

    def __init__(self, gate: float, *, llm_router: bool = True) -> None:
        super().__init__()
        self.gate = gate
        self.llm_router = llm_router

    def probabilities(self, step: int, name: str) -> Any:
        if name in ("role", "backbone"):
            return np.array([0.2, 0.3, 0.1, 0.4] if name == "role" else [0.51, 0.49])
        yes = {"write": (0.9, self.gate), "halt": (0.49, 0.9), "retrieve": (np.zeros(0), np.array([self.gate]))}[name]
        return np.stack([1 - np.array(yes[step]), yes[step]], axis=-1)

    def drawn(self, state: Any, name: str, draw: Any, otherwise: Any) -> Any:
        if name == "backbone" and not self.llm_router:
            return torch.tensor([draw(name, None, np.ones((), dtype=bool))])
        return super().drawn(state, name, draw, otherwise)


@pytest.mark.parametrize(("gate", "is_open"), [(0.49, False), (0.5, False), (0.51, True)])
async def test_greedy_takes_the_most_probable_and_opens_gates_above_one_half(gate: float, is_open: bool) -> None:
    for rollout in range(3):
        trajectory, trace = await walk(Undecided(gate), config(), Client(), greedy=True, episode=Episode(0, rollout))
        assert [(step.role, step.backbone) for step in trace.steps] == [(INSPECTOR, SMALL)] * 2
        assert [step.retrieved for step in trace.steps] == [(), (is_open,)]
        assert [step.written for step in trace.steps] == [True, is_open]
        assert [step.halted for step in trace.steps] == [False, True]
        [role, *_] = [one for one in trajectory.decisions if one.name == "role"]
        assert role.log_prob == pytest.approx(math.log(0.4))


async def test_a_greedy_policy_leaves_the_choice_it_does_not_make_to_chance() -> None:
    settings = config(llm_router=False, max_depth=2)
    chosen = Counter[int]()
    for rollout in range(20):
        episode = Episode(0, rollout)
        _, trace = await walk(Undecided(0.9, llm_router=False), settings, Client(), greedy=True, episode=episode)
        assert {step.role for step in trace.steps} == {INSPECTOR}
        chosen.update(step.backbone for step in trace.steps)
    assert set(chosen) == {SMALL, LARGE}


@pytest.mark.parametrize("score", ["dot", "cosine"])
async def test_neither_company_nor_latency_nor_order_shows(score: str) -> None:
    policy, settings = snapshot(score=score), config()
    alone = [await walk(policy, settings, Client(), item) for item in ITEMS]
    latencies: list[Any] = [lambda number: number % 5, lambda number: 7 * number % 11]
    for late, order in zip(latencies, (1, -1), strict=True):
        client = Client(late=late)
        together = await asyncio.gather(*(walk(policy, settings, client, item) for item in ITEMS[::order]))
        for (trajectory, trace), (other, other_trace) in zip(alone, together[::order], strict=True):
            assert trajectory == other
            assert trace.log_prob == other_trace.log_prob


# Who is asked, in which order, and what each one sees


async def scripted(
    *plans: Plan, answering: Answering | None = None, **changes: Any
) -> tuple[Trajectory, Client, Scripted]:
    """A trajectory that goes as planned; unless told otherwise, the n-th reply is ``text n``."""
    client = Client()
    client.answering = answering or (lambda backbone, request: f"text {len(client.asked)}")
    policy = Scripted(*plans)
    trajectory, _ = await walk(policy, config(**changes), client)
    return trajectory, client, policy


async def test_agents_act_in_order_and_see_retrieved_records_only() -> None:
    trajectory, client, policy = await scripted(
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
    assert client.users == [f"{question}\n\n{RECORDS_HEADER}\n\n{seen}" if seen else question for seen in records]
    for request, role in zip(client.requests, (CRITIC, HISTORIAN, INSPECTOR, CRITIC, HISTORIAN), strict=False):
        assert request.messages[0].content.startswith(POOL.roles[role].description)
    assert all(request.messages[0].content.endswith(RULES) for request in client.requests)
    # Same decisions, same calls: temperature 0 and one draw, whatever the rollout.
    assert {(sampling(request), request.draw) for request in client.requests} == {(GREEDY, 0)}
    assert trajectory.answer == "text 6"
    assert tuple(policy.question) == tuple(embedding(ITEMS[0].question))


async def test_calls_of_steps_and_the_aggregation_are_told_apart_and_the_second_reply_is_what_is_stored() -> None:
    trajectory, client, policy = await scripted(Plan(REFLECTOR, LARGE), Plan(CRITIC, SMALL, (True,), halts=True))
    assert [(call.step, call.purpose, call.backbone, call.role, call.is_step) for call in trajectory.calls] == [
        (1, "act", "large", "Commonsense/Reflector", True),
        (1, "second_call", "large", "Commonsense/Reflector", True),
        (2, "act", "small", "Commonsense/Critic", True),
        (3, "aggregate", "large", "", False),
    ]
    assert trajectory.depth == 2
    assert trajectory.cost_steps == sum(call.cost for call in trajectory.calls[:3])
    assert trajectory.cost_total == pytest.approx(trajectory.cost_steps + trajectory.calls[3].cost)
    assert [message.content for message in client.requests[1].messages[2:]] == ["text 1", POOL.roles[2].second_call]
    assert [tuple(vector) for vector in policy.responses] == [tuple(embedding(f"text {n}")) for n in (2, 3)]
    assert client.users[-1].endswith("[1] Reflector:\ntext 2\n\n[2] Critic:\ntext 3")


# Empty memory, failed calls


async def test_where_nothing_is_stored_the_aggregator_is_told_so() -> None:
    plans = Plan(CRITIC, SMALL, writes=False), Plan(HISTORIAN, SMALL, writes=False, halts=True)
    _, client, _ = await scripted(*plans)
    assert client.users[2].endswith(NOTHING_STORED)
    assert RECORDS_HEADER not in client.users[2]
    assert "text" not in client.users[2]


async def test_a_failed_call_is_the_empty_text_and_the_trajectory_goes_on() -> None:
    def answering(backbone: str, request: Request) -> str | Reply:
        return FAILED if request.messages[0].content.startswith(POOL.roles[CRITIC].description) else "ok"

    plans = Plan(CRITIC, SMALL), Plan(HISTORIAN, SMALL, (True,), halts=True)
    trajectory, client, policy = await scripted(*plans, answering=answering)
    assert [tuple(vector) for vector in policy.responses] == [tuple(embedding("")), tuple(embedding("ok"))]
    [critic, historian] = client.users[-1].split("[1] ")[1].split("[2] ")
    assert (critic.strip(), historian.strip()) == ("Critic:", "Historian:\nok")
    assert [call.error for call in trajectory.calls] == ["gone", None, None]
    assert trajectory.answer == "ok"
    trajectory, _, _ = await scripted(Plan(CRITIC, SMALL, halts=True), answering=lambda backbone, request: FAILED)
    assert trajectory.answer == ""
    assert trajectory.final_call is not None
    assert trajectory.final_call.error == "gone"


@pytest.mark.parametrize(
    ("chosen", "closing"),
    [([SMALL, LARGE, LARGE], "large"), ([LARGE, SMALL, SMALL, LARGE], "large"), ([SMALL, LARGE], "small")],
)
@pytest.mark.parametrize("written", [True, False])
async def test_every_step_has_a_voice_in_who_aggregates(chosen: list[int], closing: str, written: bool) -> None:
    """Only the last step is stored, or none: discarded steps count all the same."""
    plans = [Plan(CRITIC, backbone, writes=False) for backbone in chosen[:-1]]
    trajectory, _, _ = await scripted(*plans, Plan(CRITIC, chosen[-1], writes=written, halts=True))
    assert (trajectory.calls[-1].purpose, trajectory.calls[-1].backbone) == ("aggregate", closing)


@pytest.mark.parametrize("max_depth", [1, 2, 6])
async def test_the_depth_stays_within_its_limit_and_the_last_draw_is_not_made(max_depth: int) -> None:
    settings = config(max_depth=max_depth)
    never, at_once = (snapshot(halting_bias=bias, max_depth=max_depth) for bias in (-50, 50))
    trajectory, trace = await walk(never, settings, Client())
    assert trajectory.depth == len(trace.steps) == max_depth
    halts = [decision for decision in trajectory.decisions if decision.name == "halt"]
    assert [(one.step, one.choice) for one in halts] == [(step, "no") for step in range(1, max_depth)]
    assert [step.halted for step in trace.steps] == [False] * (max_depth - 1) + [None]
    trajectory, trace = await walk(at_once, settings, Client())
    assert trajectory.depth == 1
    assert trace.steps[0].halted is (None if max_depth == 1 else True)
