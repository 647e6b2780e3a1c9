"""Objective, advantage, log and update against the paper's equations; what a checkpoint keeps of a router."""

from __future__ import annotations

import asyncio
import dataclasses
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from gmr.config import Config, Pool
from gmr.padded import Entropy, Evaluation, evaluate
from gmr.rollout import Step, Trace
from gmr.router import Router
from gmr.training import (
    advantages,
    learn,
    loss,
    new_router,
    of_policy,
    of_rewards,
    of_traces,
    restored,
    utility,
    vae_noise,
)
from harness.agents.results import Answered
from harness.agents.trajectory import Call, Episode, Trajectory
from harness.benchmarks.items import Status, Verdict
from harness.errors import UserError
from harness.training import checkpoint
from harness.training.checkpoint import Checkpoint
from harness.training.learning import Learning, refuse_other_choices
from tests.gmr.made import router, trace, units
from tests.gmr.world import ITEMS, POOL, Client, config, embedding, walk

VALUES = st.floats(-2, 2, allow_nan=False)
SHAPES = st.tuples(st.integers(1, 5), st.integers(1, 6))
GROUPS = SHAPES.flatmap(lambda shape: arrays(np.float64, shape, elements=VALUES))


def evaluation(log_prob: torch.Tensor, mean_entropy: torch.Tensor) -> Evaluation:
    return Evaluation(log_prob, mean_entropy, {}, {})


def answered(correct: bool, *costs: tuple[float, bool]) -> Answered:
    """An attempt with calls of these prices, each of a step or not."""
    calls = tuple(
        Call(number, "act", 0, "small", "", "", 0, 0, cost, is_step, "stop", None)
        for number, (cost, is_step) in enumerate(costs, 1)
    )
    return Answered(Trajectory(ITEMS[0], "", calls, ()), Verdict(correct, "", Status.GRADED))


@pytest.mark.parametrize(("reward_cost", "charged"), [("steps", 0.003), ("all", 0.007)])
@pytest.mark.parametrize("correct", [True, False])
def test_the_utility_charges_the_calls_that_the_switch_names(reward_cost: str, charged: float, correct: bool) -> None:
    one = answered(correct, (0.001, True), (0.002, True), (0.004, False))
    for weight in (0, 20, 50):
        found = utility(one, config(lambda_c=weight, reward_cost=reward_cost))
        assert found == pytest.approx(correct - weight * charged)


@given(GROUPS)
def test_advantages_are_the_utilities_centred_in_their_group(utilities: np.ndarray) -> None:
    found = advantages(utilities)
    for group, centred in zip(utilities.tolist(), found.tolist(), strict=True):
        assert sum(centred) == pytest.approx(0, abs=1e-12)
        assert centred == pytest.approx([one - sum(group) / len(group) for one in group], abs=1e-12)


@given(st.floats(-50, 50), st.integers(1, 9))
def test_equal_utilities_leave_exactly_nothing(value: float, group: int) -> None:
    assert not np.any(advantages(np.full((2, group), value)))


def test_the_mean_of_equal_numbers_may_be_another_number() -> None:
    """What the case above protects from: this group would learn from rounding."""
    utilities = np.full((1, 3), 0.1)
    assert np.any(utilities - utilities.mean())
    assert not np.any(advantages(utilities))


@given(GROUPS)
def test_advantages_grow_with_the_spread_and_are_not_divided_by_it(utilities: np.ndarray) -> None:
    assert advantages(10 * utilities) == pytest.approx(10 * advantages(utilities), abs=1e-10)


def test_groups_do_not_mix() -> None:
    assert advantages(np.array([[1.0, 0.0], [5.0, 5.0]])).tolist() == [[0.5, -0.5], [0.0, 0.0]]


def test_the_loss_against_plain_numpy() -> None:
    rng = np.random.default_rng(0)
    log_prob, advantage, entropy, vae = rng.normal(size=12), rng.normal(size=12), 2.5, 0.7
    settings = config(vae_weight=0.3, entropy_weight=0.2)
    found = loss(evaluation(torch.tensor(log_prob), torch.tensor(entropy)), advantage, torch.tensor(vae), settings)
    assert found.item() == pytest.approx(-np.dot(log_prob, advantage) / 12 + 0.3 * vae - 0.2 * entropy)


def test_every_term_pulls_the_right_way() -> None:
    log_prob = torch.zeros(4, dtype=torch.float64, requires_grad=True)
    entropy, vae = (torch.tensor(1.0, dtype=torch.float64, requires_grad=True) for _ in range(2))
    advantage = np.array([1.0, -1.0, 0.5, 0.0])
    loss(evaluation(log_prob, entropy), advantage, vae, config(vae_weight=0.25, entropy_weight=0.5)).backward()  # type: ignore[no-untyped-call]
    assert log_prob.grad is not None
    assert log_prob.grad.tolist() == pytest.approx((-advantage / 4).tolist())
    assert entropy.grad == -0.5
    assert vae.grad == 0.25


def test_without_a_difference_the_policy_has_no_gradient() -> None:
    equal = [answered(True, (0.001, True)) for _ in range(6)]
    utilities = np.array([[utility(one, config()) for one in equal]])
    log_prob = torch.randn(6, dtype=torch.float64, requires_grad=True)
    zero = torch.tensor(0.0, dtype=torch.float64)
    loss(evaluation(log_prob, zero), advantages(utilities).ravel(), zero, config()).backward()  # type: ignore[no-untyped-call]
    assert log_prob.grad is not None
    assert not log_prob.grad.any()


def test_a_shorter_way_to_the_same_answer_is_worth_more() -> None:
    cheap, dear = answered(True, (0.001, True)), answered(True, (0.001, True), (0.001, True))
    wrong = dataclasses.replace(cheap.trajectory)
    values = [utility(one, config()) for one in (cheap, dear, Answered(wrong, Verdict(False, None, Status.EMPTY)))]
    assert values == sorted(values, reverse=True)


RNG = np.random.default_rng(0)


def step(written: bool, *retrieved: bool) -> Step:
    return Step(0, 0, retrieved, units(RNG), written, None, 0.0)


def test_groups_with_nothing_to_tell_apart_are_counted() -> None:
    rewards = np.array([[1.0, 1.0], [0.0, 0.0], [1.0, 0.0], [1.0, 1.0]])
    utilities = rewards - np.array([[0.1, 0.1], [0.1, 0.2], [0.1, 0.1], [0.2, 0.2]])
    centred = utilities - utilities.mean(axis=1, keepdims=True)
    found = of_rewards(utilities, rewards, centred)
    assert found["equal_reward_groups"] == 0.75
    assert found["zero_advantage_groups"] == 0.5
    assert found["utility"] == pytest.approx(utilities.sum() / 8)


def test_what_became_of_responses_and_records() -> None:
    traces = [
        Trace(units(RNG), (step(True), step(False, True), step(True, False))),
        Trace(units(RNG), (step(False), step(False))),
        Trace(units(RNG), (step(True), step(True, True), step(True, True, False))),
    ]
    found = of_traces(traces)
    assert found == {
        "steps": 8.0,
        "write_rate": 5 / 8,
        "empty_memory": pytest.approx(1 / 3),
        "retrieved": 3 / 5,
    }


def test_no_share_of_nothing() -> None:
    found = of_traces([Trace(units(RNG), (step(False), step(False)))])
    assert "retrieved" not in found
    assert found["empty_memory"] == 1.0


def test_entropies_are_means_over_the_draws_of_a_module() -> None:
    entropies = {"role": Entropy(torch.tensor(6.0), 4), "retrieval": Entropy(torch.tensor(0.0), 0)}
    found = of_policy(Evaluation(torch.zeros(2), torch.tensor(0.0), entropies, {"role": 0.75}))
    assert found == {"entropy_role": 1.5, "max_probability_role": 0.75}


def test_a_module_that_is_off_has_no_entry() -> None:
    traces = [trace(np.random.default_rng(seed), 3, written=1.0) for seed in range(3)]
    whole = of_policy(evaluate(router(), traces))
    assert {name for name in whole if name.startswith("entropy_")} == {
        f"entropy_{name}" for name in ("role", "backbone", "retrieval", "write", "halt")
    }
    less = of_policy(evaluate(router(llm_router=False, halting=False), traces))
    assert set(whole) - set(less) == {"entropy_backbone", "entropy_halt", "max_probability_backbone"}


PROFILES = [np.stack([embedding(each.profile) for each in part]) for part in (POOL.roles, POOL.backbones)]
SETTINGS = config()


def learning(seed: int = 0, **changes: object) -> Learning[Router]:
    settings = SETTINGS.model_copy(update=changes)
    return Learning(new_router(settings, PROFILES[0], PROFILES[1], seed), settings.lr)


def train(made: Learning[Router], *numbers: int) -> None:
    """Steps down the loss of the autoencoders, which need no rollouts."""
    for number in numbers:
        made.step(made.network.vae_loss(*vae_noise(made.network, 0, number)))


def state(made: Learning[Router]) -> dict[str, bytes]:
    return {name: value.tobytes() for name, value in {**made.learned(), **made.moments()}.items()}


def saved(made: Learning[Router]) -> Checkpoint:
    return Checkpoint({**made.learned(), **made.moments()}, POOL.to_facts())


def test_learning_goes_on_from_a_file_as_if_it_had_never_stopped(tmp_path: Path) -> None:
    undisturbed = learning()
    train(undisturbed, 1, 2, 3, 4)
    first = learning()
    train(first, 1, 2)
    checkpoint.save(tmp_path / "x.safetensors", saved(first))
    found = checkpoint.load(tmp_path / "x.safetensors")
    second = restored(found, SETTINGS, POOL)
    assert state(second) == state(first)
    train(second, 3, 4)
    assert state(second) == state(undisturbed)


def test_without_its_moments_adam_would_go_another_way() -> None:
    first, second = learning(), learning()
    train(first, 1, 2)
    second.restore(first.learned())
    assert second.learned().keys() == first.learned().keys()
    assert second.moments() == {}
    train(first, 3)
    train(second, 3)
    assert state(first) != state(second)


def test_what_was_saved_does_not_move_with_the_router() -> None:
    made = learning()
    train(made, 1)
    before = saved(made)
    copies = {name: value.copy() for name, value in before.tensors.items()}
    train(made, 2)
    assert all(np.array_equal(value, copies[name]) for name, value in before.tensors.items())


def test_the_initial_weights_are_those_of_the_seed_and_leave_the_generator_alone() -> None:
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    base = state(learning(seed=0))
    assert torch.equal(torch.rand(3), expected)
    assert state(learning(seed=0)) == base
    other = state(learning(seed=1))
    moved = {name for name in base if base[name] != other[name]}
    assert {"network.encoder.W_q.weight", "network.encoder.position", "network.role_vae.mu.weight"} <= moved


def test_an_ablation_starts_from_the_weights_of_the_whole() -> None:
    whole, without = state(learning()), state(learning(write_gate=False))
    assert without.items() < whole.items()


def test_the_noise_of_an_update_is_fixed_by_seed_and_number() -> None:
    made = learning()
    roles, backbones = vae_noise(made.network, 0, 1)
    assert (tuple(roles.shape), tuple(backbones.shape)) == ((len(POOL.roles), 128), (len(POOL.backbones), 128))
    assert torch.equal(roles, vae_noise(made.network, 0, 1)[0])
    for key in ((0, 2), (1, 1)):
        assert not torch.equal(roles, vae_noise(made.network, *key)[0])
    assert abs(float(roles.mean())) < 0.2
    assert float(roles.std()) == pytest.approx(1, abs=0.1)


OTHER_PROFILE = POOL.backbones[0].model_copy(update={"description": "Grew overnight."})


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (Pool(POOL.roles[:-1], POOL.backbones), "trained with 4 roles and is given 3"),
        (Pool(POOL.roles, POOL.backbones[:1]), "trained with 2 backbones and is given 1"),
        (Pool(POOL.roles[1:], POOL.backbones), "'Commonsense/Critic' where its roles now have 'Commonsense/Historian'"),
        (Pool(POOL.roles, POOL.backbones[::-1]), "'small' where its backbones now have 'large'"),
        (Pool(POOL.roles, (OTHER_PROFILE, POOL.backbones[1])), "the profile of 'small' is not the one"),
    ],
)
def test_a_pool_that_differs_from_the_trained_one_is_refused(tmp_path: Path, given: Pool, message: str) -> None:
    path = tmp_path / "x.safetensors"
    checkpoint.save(path, saved(learning()))
    found = checkpoint.load(path)
    refuse_other_choices(found.facts, POOL.to_facts())
    with pytest.raises(UserError, match=message) as caught:
        restored(found, SETTINGS, given)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("change", [{"write_gate": False}, {"max_depth": 4}, {"score": "cosine"}])
def test_a_configuration_of_another_shape_is_refused(change: dict[str, object]) -> None:
    with pytest.raises(UserError, match="other modules or sizes") as caught:
        restored(saved(learning()), SETTINGS.model_copy(update=change), POOL)  # type: ignore[arg-type]
    assert "\n" not in str(caught.value)


VARIANTS: dict[str, dict[str, Any]] = {
    "full": {},
    "cosine": {"score": "cosine"},
    "full history": {"retrieval_gate": False, "write_gate": False},
    "no role allocator": {"role_allocator": False},
    "no LLM router": {"llm_router": False},
    "no halting": {"halting": False},
    "one step": {"max_depth": 1},
    "rarely halting": {"halting_bias": -5.0},
}


def a_learning(settings: Config, seed: int = 0) -> Learning[Router]:
    roles, backbones = (np.stack([embedding(each.profile) for each in part]) for part in (POOL.roles, POOL.backbones))
    return Learning(new_router(settings, roles, backbones, seed), settings.lr)


async def rollouts(made: Learning[Router], settings: Config, questions: int = 2) -> tuple[list[Answered], list[Trace]]:
    """Graded rollouts of the present policy; every other one is right, so that every group tells something apart."""
    policy = made.network.snapshot()
    walks = [
        walk(policy, settings, Client(), item, episode=Episode(1, rollout))
        for item in ITEMS[:questions]
        for rollout in range(settings.group)
    ]
    pairs = await asyncio.gather(*walks)
    verdicts = [Verdict(number % 2 == 0, "", Status.GRADED) for number in range(len(pairs))]
    answered = [Answered(trajectory, verdict) for (trajectory, _), verdict in zip(pairs, verdicts, strict=True)]
    return answered, [trace for _, trace in pairs]


@pytest.mark.parametrize("variant", VARIANTS)
async def test_log_probabilities_computed_again_are_those_sampled(variant: str) -> None:
    settings = config(**VARIANTS[variant])
    made = a_learning(settings)
    for number in range(2):
        answered, traces = await rollouts(made, settings)
        sampled = [sum(step.log_prob for step in trace.steps) for trace in traces]
        again = evaluate(made.network, traces).log_prob.detach().numpy()
        assert np.abs(again - sampled).max() < 1e-9
        learn(made, answered, traces, settings, (0, number))


@pytest.mark.parametrize("change", ["role", "backbone", "written", "response", "log_prob"])
async def test_rollouts_of_another_policy_are_refused(change: str) -> None:
    settings = config()
    made = a_learning(settings)
    answered, traces = await rollouts(made, settings)
    first = traces[0].steps[-1]
    other = {
        "role": (first.role + 1) % len(POOL.roles),
        "backbone": 1 - first.backbone,
        "written": not first.written,
        "response": embedding("something else"),
        "log_prob": first.log_prob + 2e-5,
    }
    spoiled = dataclasses.replace(first, **{change: other[change]})
    traces[0] = dataclasses.replace(traces[0], steps=(*traces[0].steps[:-1], spoiled))
    before = made.learned()
    with pytest.raises(RuntimeError, match="the update is not on-policy"):
        learn(made, answered, traces, settings, (0, 1))
    assert all(np.array_equal(value, before[name]) for name, value in made.learned().items())


async def test_a_policy_that_has_moved_on_is_refused() -> None:
    settings = config()
    made = a_learning(settings)
    answered, traces = await rollouts(made, settings)
    learn(made, answered, traces, settings, (0, 1))
    with pytest.raises(RuntimeError, match=r"differ from the sampled ones by \d"):
        learn(made, answered, traces, settings, (0, 2))


async def test_every_parameter_learns_and_the_profiles_stay() -> None:
    settings = config(halting_bias=-3.0)
    made = a_learning(settings)
    before = made.learned()
    # Without a stored record nothing reaches what reads records, so a second update with other rollouts helps out.
    for number in range(2):
        answered, traces = await rollouts(made, settings, questions=4)
        learn(made, answered, traces, settings, (0, number))
    after = made.learned()
    still = {name for name in before if np.array_equal(before[name], after[name])}
    assert still == {"network.role_profiles", "network.backbone_profiles"}


async def test_nothing_is_learned_from_rollouts_that_are_all_alike() -> None:
    settings = config(lambda_c=0.0, vae_weight=0.0, entropy_weight=0.0)
    made = a_learning(settings)
    answered, traces = await rollouts(made, settings)
    alike = [one._replace(verdict=Verdict(True, "", Status.GRADED)) for one in answered]
    before = made.learned()
    log = learn(made, alike, traces, settings, (0, 1))
    assert all(np.array_equal(value, before[name]) for name, value in made.learned().items())
    assert (log["loss"], log["zero_advantage_groups"], log["utility"]) == (0.0, 1.0, 1.0)


async def test_the_update_is_a_function_of_rollouts_seed_and_number() -> None:
    settings = config()

    async def learned(noise: tuple[int, int]) -> bytes:
        made = a_learning(settings)
        answered, traces = await rollouts(made, settings)
        learn(made, answered, traces, settings, noise)
        return b"".join(value.tobytes() for value in made.learned().values())

    base = await learned((0, 1))
    assert base == await learned((0, 1))
    assert len({base, await learned((1, 1)), await learned((0, 2))}) == 3


async def test_the_log_of_an_update_agrees_with_the_rollouts() -> None:
    settings = config()
    made = a_learning(settings)
    answered, traces = await rollouts(made, settings)
    log = learn(made, answered, traces, settings, (0, 1))
    utilities = [one.verdict.correct - settings.lambda_c * one.trajectory.cost_steps for one in answered]
    assert log["utility"] == pytest.approx(sum(utilities) / len(utilities))
    assert log["steps"] == sum(one.trajectory.depth for one in answered)
    assert (log["equal_reward_groups"], log["zero_advantage_groups"]) == (0.0, 0.0)
    assert 0 < log["entropy_backbone"] <= math.log(len(POOL.backbones))
    assert 0 < log["entropy_role"] <= math.log(len(POOL.roles))
    assert all(math.isfinite(value) for value in log.values())
