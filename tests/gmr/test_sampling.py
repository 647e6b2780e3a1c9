"""The draws of a rollout: what is recorded of them, how they follow the policy, and what they depend on."""

from __future__ import annotations

import asyncio
import math
from collections import Counter
from typing import Any

import numpy as np
import pytest

from harness.agents import rng
from harness.agents.sampling import sample
from harness.agents.trajectory import Context, Decision, Episode
from tests.gmr.world import (
    INSPECTOR,
    ITEMS,
    LARGE,
    POOL,
    SMALL,
    Client,
    Plan,
    Scripted,
    config,
    embedding,
    snapshot,
    walk,
)

NAMES = {
    "role_allocator": "role",
    "llm_router": "backbone",
    "retrieval_gate": "retrieve",
    "write_gate": "write",
    "halting": "halt",
}


FIRST = Episode(1, 0)


async def test_every_draw_is_recorded_and_the_trace_adds_up_their_log_probabilities() -> None:
    for item in ITEMS:
        trajectory, trace = await walk(snapshot(), config(), Client(), item)
        for number, step in enumerate(trace.steps, 1):
            its = [decision for decision in trajectory.decisions if decision.step == number]
            stored = sum(earlier.written for earlier in trace.steps[: number - 1])
            expected = Counter(role=1, backbone=1, retrieve=stored, write=1, halt=int(number < 6))
            assert Counter(one.name for one in its) == +expected
            assert step.log_prob == pytest.approx(sum(one.log_prob for one in its), abs=1e-12)
            assert [one.choice == "yes" for one in its if one.name == "retrieve"] == list(step.retrieved)
            assert [one.slot for one in its if one.name == "retrieve"] == list(range(stored))
            role, backbone = POOL.roles[step.role].key, POOL.backbones[step.backbone].key
            assert {one.choice for one in its if one.name in ("role", "backbone")} == {role, backbone}
            assert {one.options for one in its} == {2, len(POOL.roles)}


async def test_a_decision_follows_its_probability_and_its_own_draw() -> None:
    policy = snapshot()
    trajectory, trace = await walk(policy, config(), Client(), seed=3, episode=Episode(2, 5))
    state = policy.begin(embedding(ITEMS[0].question))
    by_place = {(one.step, one.name, one.slot): one for one in trajectory.decisions}

    def check(number: int, name: str, slot: int, yes: bool, probability: float) -> None:
        uniform = rng.uniform("3", "2", "5", "toy", "q0", str(number), name, str(slot))
        assert yes == (uniform < probability)
        found = by_place[number, name, slot]
        assert (found.choice, found.options) == ("yes" if yes else "no", 2)
        assert found.log_prob == pytest.approx(math.log(probability if yes else 1 - probability))

    for number, step in enumerate(trace.steps, 1):
        for name, index, probabilities in (
            ("role", step.role, policy.roles(state)),
            ("backbone", step.backbone, policy.backbones(state, step.role)),
        ):
            uniform = rng.uniform("3", "2", "5", "toy", "q0", str(number), name, "0")
            assert index == sample(probabilities, uniform)
            assert by_place[number, name, 0].log_prob == pytest.approx(math.log(probabilities[index]))
        gates = policy.retrieval(state, step.role, step.backbone)
        assert gates is not None
        for slot, seen in enumerate(step.retrieved):
            check(number, "retrieve", slot, seen, float(gates[slot]))
        check(number, "write", 0, step.written, policy.write(state, step.response) or 0.0)
        memory, p_halt = policy.advance(state, step.role, step.backbone, step.response, step.written)
        state = await policy.state(memory)
        if p_halt is not None:
            check(number, "halt", 0, bool(step.halted), p_halt)


@pytest.mark.parametrize(("off", "name"), NAMES.items())
async def test_a_module_that_is_off_adds_no_log_probability_and_a_gate_that_is_off_draws_nothing(
    off: str, name: str
) -> None:
    changed = config(**{off: False})
    policy = snapshot(**{off: False})
    for item in ITEMS[:4]:
        trajectory, trace = await walk(policy, changed, Client(), item)
        counted = sum(one.log_prob for one in trajectory.decisions if one.name != name)
        assert sum(step.log_prob for step in trace.steps) == pytest.approx(counted, abs=1e-12)
        without = [one for one in trajectory.decisions if one.name == name]
        if name in ("role", "backbone"):
            # Somebody has to act: the choice is uniform, and no policy's.
            assert {one.log_prob for one in without} == {
                -math.log(len(POOL.roles if name == "role" else POOL.backbones))
            }
        else:
            assert without == []
        if off == "retrieval_gate":
            assert all(all(step.retrieved) for step in trace.steps)
        if off == "write_gate":
            assert all(step.written for step in trace.steps)
        if off == "halting":
            assert len(trace.steps) == changed.max_depth


# Greedy decisions


class Undecided(Scripted):
    """Probabilities near and at one half."""

    def __init__(self, gate: float) -> None:
        super().__init__(*[Plan(0, 0)] * 2)
        self.gate = gate

    def roles(self, state: int) -> Any:
        return np.array([0.2, 0.3, 0.1, 0.4])

    def backbones(self, state: int, role: int) -> Any:
        return np.array([0.51, 0.49])

    def retrieval(self, state: int, role: int, backbone: int) -> Any:
        return np.full(state, self.gate)

    def write(self, state: int, response: Any) -> float:
        return 0.9 if state == 0 else self.gate

    def advance(self, state: int, role: int, backbone: int, response: Any, written: bool) -> tuple[int, float]:
        return state + 1, 0.49 if state == 0 else 0.9


@pytest.mark.parametrize(("gate", "is_open"), [(0.49, False), (0.5, False), (0.51, True)])
async def test_greedy_takes_the_most_probable_and_opens_gates_above_one_half(gate: float, is_open: bool) -> None:
    policy: Any = Undecided(gate)
    for rollout in range(3):
        episode = Episode(0, rollout)
        trajectory, trace = await walk(policy, config(), Client(), greedy=True, episode=episode)
        assert [(step.role, step.backbone) for step in trace.steps] == [(INSPECTOR, SMALL)] * 2
        assert [step.retrieved for step in trace.steps] == [(), (is_open,)]
        assert [step.written for step in trace.steps] == [True, is_open]
        assert [step.halted for step in trace.steps] == [False, True]
        [role, *_] = [one for one in trajectory.decisions if one.name == "role"]
        assert role.log_prob == pytest.approx(math.log(0.4))


async def test_a_greedy_policy_leaves_the_choice_it_does_not_make_to_chance() -> None:
    settings = config(llm_router=False, max_depth=2)
    policy: Any = Undecided(0.9)
    chosen = Counter()
    for rollout in range(20):
        _, trace = await walk(policy, settings, Client(), greedy=True, episode=Episode(0, rollout))
        assert {step.role for step in trace.steps} == {INSPECTOR}
        chosen.update(step.backbone for step in trace.steps)
    assert set(chosen) == {SMALL, LARGE}


# Chance


async def test_neither_company_nor_latency_nor_order_shows() -> None:
    policy, settings = snapshot(), config()
    alone = [await walk(policy, settings, Client(), item) for item in ITEMS]
    latencies: list[Any] = [lambda number: number % 5, lambda number: 7 * number % 11]
    for late, order in zip(latencies, (1, -1), strict=True):
        client = Client(late=late)
        together = await asyncio.gather(*(walk(policy, settings, client, item) for item in ITEMS[::order]))
        for (trajectory, trace), (other, other_trace) in zip(alone, together[::order], strict=True):
            assert trajectory == other
            assert [step.log_prob for step in trace.steps] == [step.log_prob for step in other_trace.steps]


async def test_another_seed_epoch_rollout_or_question_is_another_trajectory() -> None:
    policy, settings = snapshot(), config()

    async def decided(number: int = 0, seed: int = 0, episode: Episode = FIRST) -> tuple[Decision, ...]:
        return (await walk(policy, settings, Client(), ITEMS[number], seed=seed, episode=episode))[0].decisions

    base = await decided()
    assert base == await decided()
    others = [
        await decided(seed=1),
        await decided(episode=Episode(2, 0)),
        await decided(episode=Episode(1, 1)),
        await decided(1),
    ]
    assert base not in others
    assert len(set(others)) == len(others)


async def test_the_draw_of_a_context_is_where_a_choice_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    policy: Any = Undecided(0.5)
    for uniform, role in ((0.19, 0), (0.21, 1), (0.49, 1), (0.51, 2), (0.59, 2), (0.61, 3)):
        monkeypatch.setattr(Context, "uniform", lambda self, step, name, slot=0, value=uniform: value)
        _, trace = await walk(policy, config(max_depth=1), Client())
        assert trace.steps[0].role == role
