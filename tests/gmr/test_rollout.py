"""Algorithm 1 on a scripted client: draws and records, calls, visible context, halting."""

import math
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np
import pytest
import torch

from gmr.rollout import NOTHING_STORED, GatedRollout
from gmr.router import Uniforms
from gmr.training import Trace
from harness.agents import rng
from harness.agents.prompts import RECORDS_HEADER
from harness.agents.trajectory import Episode, Trajectory, sample
from harness.llm.request import GREEDY, Reply, Request
from harness.scripted import backbones
from tests.fixtures import FAILED, ITEMS, RULES, Answering, Client, embedding, runtime, sampling
from tests.gmr.fixtures import MODULES, POOL, PROFILES, Reference, config, router, walk

# In the order of the pool.
CRITIC, HISTORIAN, REFLECTOR, INSPECTOR = range(4)
SMALL, LARGE = range(2)


@pytest.mark.parametrize(("score", "greedy"), [("dot", False), ("cosine", False), ("dot", True)])
async def test_every_decision_follows_its_draw_and_the_probability_of_the_reference(score: str, greedy: bool) -> None:
    """Greedy takes the most probable instead, and opens gates above one half."""
    network = router(PROFILES, score=score)
    options = {"role": [role.key for role in POOL.roles], "backbone": [llm.key for llm in POOL.backbones]}
    for item in ITEMS[:4]:
        trajectory, trace = await walk(network, Client(), item, 3, Episode(2, 5), greedy)
        draws = Reference(network).walk(trace)
        drawn = (decision for decision in trajectory.decisions if decision.name != "redundancy")
        decisions = {(decision.step, decision.name, decision.slot): decision for decision in drawn}
        assert len(decisions) == len(draws)
        for draw in draws:
            uniform = rng.uniform("3", "2", "5", "toy", item.id, str(draw.step), draw.name, str(draw.slot))
            is_choice, p = draw.name in options, draw.probabilities
            sampled = sample(p, uniform) if is_choice else uniform < round(p[1], 9)
            assert draw.outcome == (p.argmax() if greedy else sampled)
            decision, keys = decisions[draw[:3]], options.get(draw.name, ["no", "yes"])
            assert (decision.choice, decision.options) == (keys[draw.outcome], len(keys))
            assert decision.log_prob == round(draw.log_prob, 6)
        assert trace.log_prob == pytest.approx(sum(draw.log_prob for draw in draws), abs=1e-12)


@pytest.mark.parametrize(("off", "name"), MODULES.items())
async def test_a_module_that_is_off_adds_no_log_probability_and_a_gate_draws_nothing(off: str, name: str) -> None:
    for item in ITEMS[:4]:
        trajectory, trace = await walk(router(PROFILES, **{off: False}), Client(), item)
        of_module = {decision.log_prob for decision in trajectory.decisions if decision.name == name}
        counted = sum(decision.log_prob for decision in trajectory.decisions if decision.name != name)
        assert trace.log_prob == pytest.approx(counted, abs=1e-4)
        # Somebody has to act: the choice is uniform, and no policy's.
        uniform = {"role": {round(-math.log(4), 6)}, "backbone": {round(-math.log(2), 6)}}
        assert of_module == uniform.get(name, set())
        assert off != "retrieval_gate" or all(all(step.retrieved) for step in trace.steps)
        assert off != "write_gate" or all(step.written for step in trace.steps)
        assert off != "halting" or len(trace.steps) == 6


async def test_how_near_a_contribution_is_to_what_is_stored_is_written_down() -> None:
    seen = 0
    for item in ITEMS[:4]:
        trajectory, trace = await walk(router(PROFILES, halting=False), Client(), item)
        redundancy = (decision for decision in trajectory.decisions if decision.name == "redundancy")
        nearest = {decision.step: float(decision.choice) for decision in redundancy}
        for number, step in enumerate(trace.steps, 1):
            stored = [other.response for other in trace.steps[: number - 1] if other.written]
            lengths = [np.linalg.norm(step.response) * np.linalg.norm(y) for y in stored]
            cosines = [np.dot(step.response, y) / length for y, length in zip(stored, lengths, strict=True)]
            assert nearest.pop(number, None) == (pytest.approx(max(cosines), abs=1e-4) if stored else None)
            seen += len(stored)
        assert not nearest
    assert seen > 4


async def test_a_greedy_policy_leaves_the_choice_it_does_not_make_to_chance() -> None:
    network = router(PROFILES, llm_router=False, max_depth=1)
    walks = [await walk(network, Client(), episode=Episode(0, rollout), greedy=True) for rollout in range(20)]
    assert len({trace.steps[0].role for _, trace in walks}) == 1
    assert {trace.steps[0].backbone for _, trace in walks} == {SMALL, LARGE}


class Plan(NamedTuple):
    role: int
    backbone: int
    retrieve: tuple[bool, ...] = ()
    write: bool = True
    halt: bool = False


async def planned(*plans: Plan, answering: Answering | None = None) -> tuple[Trajectory, Client, Trace]:
    """Return a trajectory that goes as planned; unless told otherwise, the n-th reply is ``text n``."""
    client = Client()
    client.answering = answering or (lambda backbone, request: f"text {len(client.asked)}")
    context = runtime(client).context(ITEMS[0])
    rollout = GatedRollout(router(PROFILES), POOL, config())

    def recorded(context: Any, step: int, slots: int) -> Uniforms:
        plan = plans[step - 1]
        retrieve = [*map(int, plan.retrieve), *[0] * (slots - len(plan.retrieve))]
        return Uniforms(
            *map(torch.tensor, ([plan.role], [plan.backbone], [retrieve], [plan.write * 1], [plan.halt * 1]))
        )

    with patch("gmr.rollout._uniforms", recorded):
        return context.close(await rollout.solve(ITEMS[0], context)), client, rollout.trace


async def test_agents_act_in_order_and_see_retrieved_records_only() -> None:
    trajectory, client, trace = await planned(
        Plan(CRITIC, LARGE),
        Plan(HISTORIAN, SMALL, (False,), write=False),
        Plan(INSPECTOR, SMALL, (True,)),
        Plan(CRITIC, LARGE, (False, True)),
        Plan(HISTORIAN, LARGE, (True, False, True), halt=True),
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
    assert trace.question.tolist() == embedding(ITEMS[0].question).tolist()


async def test_replies_sampled_as_published_are_samples_of_their_own_in_every_rollout() -> None:
    network, client = router(PROFILES, sampling="published", halting=False, max_depth=2), Client()
    for rollout in range(2):
        await walk(network, client, episode=Episode(1, rollout))
    assert all(sampling(request) == backbones()[name].sampling != GREEDY for name, request in client.asked)
    assert len({request.draw for request in client.requests}) == len(client.requests) == 2 * 3


async def test_calls_of_steps_and_the_aggregation_are_told_apart_and_the_second_reply_is_what_is_stored() -> None:
    trajectory, client, trace = await planned(Plan(REFLECTOR, LARGE), Plan(CRITIC, SMALL, (True,), halt=True))
    assert [(call.step, call.purpose, call.backbone, call.role, call.is_step) for call in trajectory.calls] == [
        (1, "act", "large", "Commonsense/Reflector", True),
        (1, "second_call", "large", "Commonsense/Reflector", True),
        (2, "act", "small", "Commonsense/Critic", True),
        (3, "aggregate", "large", "", False),
    ]
    assert trajectory.depth == 2
    again = f"{POOL.roles[2].second_call}\n\n{RULES}"
    assert [message.content for message in client.requests[1].messages[2:]] == ["text 1", again]
    assert [step.response.tolist() for step in trace.steps] == [embedding(f"text {n}").tolist() for n in (2, 3)]
    assert client.users[-1].endswith("[1] Reflector:\ntext 2\n\n[2] Critic:\ntext 3")


async def test_where_nothing_is_stored_the_aggregator_is_told_so() -> None:
    plans = Plan(CRITIC, SMALL, write=False), Plan(HISTORIAN, SMALL, write=False, halt=True)
    _, client, _ = await planned(*plans)
    assert client.users[2].endswith(NOTHING_STORED)
    assert RECORDS_HEADER not in client.users[2]
    assert "text" not in client.users[2]


async def test_a_failed_call_is_the_empty_text_and_the_trajectory_goes_on() -> None:
    def answering(backbone: str, request: Request) -> str | Reply:
        return FAILED if request.messages[0].content.startswith(POOL.roles[CRITIC].description) else "ok"

    plans = Plan(CRITIC, SMALL), Plan(HISTORIAN, SMALL, (True,), halt=True)
    trajectory, client, trace = await planned(*plans, answering=answering)
    assert [step.response.tolist() for step in trace.steps] == [embedding(text).tolist() for text in ("", "ok")]
    [critic, historian] = client.users[-1].split("[1] ")[1].split("[2] ")
    assert (critic.strip(), historian.strip()) == ("Critic:", "Historian:\nok")
    assert [call.error for call in trajectory.calls] == ["gone", None, None]
    assert trajectory.answer == "ok"


@pytest.mark.parametrize(
    ("choices", "closing"),
    [([SMALL, LARGE, LARGE], "large"), ([LARGE, SMALL, SMALL, LARGE], "large"), ([SMALL, LARGE], "small")],
)
async def test_every_step_has_a_voice_in_who_aggregates(choices: list[int], closing: str) -> None:
    """Only the last step is stored: discarded steps count all the same."""
    plans = [Plan(CRITIC, backbone, write=False) for backbone in choices[:-1]]
    trajectory, _, _ = await planned(*plans, Plan(CRITIC, choices[-1], halt=True))
    assert (trajectory.calls[-1].purpose, trajectory.calls[-1].backbone) == ("aggregate", closing)


@pytest.mark.parametrize("max_depth", [1, 2, 6])
async def test_the_depth_stays_within_its_limit_and_the_last_draw_is_not_made(max_depth: int) -> None:
    never, at_once = (router(PROFILES, halting_bias=bias, max_depth=max_depth) for bias in (-50, 50))
    trajectory, trace = await walk(never, Client())
    assert trajectory.depth == len(trace.steps) == max_depth
    halts = [decision for decision in trajectory.decisions if decision.name == "halt"]
    assert [(decision.step, decision.choice) for decision in halts] == [(step, "no") for step in range(1, max_depth)]
    assert [step.halted for step in trace.steps] == [False] * (max_depth - 1) + [None]
    trajectory, trace = await walk(at_once, Client())
    assert trajectory.depth == 1
    assert trace.steps[0].halted is (None if max_depth == 1 else True)
