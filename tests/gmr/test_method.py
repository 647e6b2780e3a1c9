"""Objective, advantage, log and update against the paper's equations; settings; training and test end to end."""

import math
import statistics
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from gmr.config import Config
from gmr.method import GMR
from gmr.training import Evaluation, Step, Trace, advantages, evaluate, loss, training_log
from harness.agents import rng
from harness.agents.trajectory import Episode
from harness.errors import UserError
from harness.runner.config import methods
from harness.runner.setting import Matched, settings_of
from harness.scripted import backbones, setting
from harness.training.learning import Learning
from harness.training.loop import TrainingStep
from tests.fixtures import ITEMS, Client, answered_by, attempt, graded_rollouts, questions, right_if, runtime, trained
from tests.gmr.fixtures import MODULES, PROFILES, config, method, new_router, units, walk


def test_the_utility_charges_the_steps_and_the_aggregation_only_if_told() -> None:
    for correct in (True, False):
        rollout = attempt(correct, (0.001, True), (0.002, True), (0.004, False))
        for weight in (0, 20, 50):
            for charged, cost in (("steps", 0.003), ("total", 0.007)):
                gmr = method(lambda_c=weight, charged=charged)
                assert gmr.utility(rollout) == pytest.approx(correct - weight * cost)


UTILITIES = st.sampled_from([-1.5, -0.02, 0.0, 0.1, 0.97, 1.0])


@given(arrays(np.float64, st.tuples(st.integers(1, 5), st.integers(2, 6)), elements=UTILITIES))
def test_advantages_are_centred_in_their_group_and_divided_by_its_spread_only_if_asked(utilities: Any) -> None:
    result = advantages(utilities)
    for group, centred in zip(utilities.tolist(), result.tolist(), strict=True):
        assert centred == pytest.approx([u - sum(group) / len(group) for u in group], abs=1e-12)
    for group, scaled in zip(utilities.tolist(), advantages(utilities, "standardised").tolist(), strict=True):
        spread = statistics.stdev(group) if len(set(group)) > 1 else 1.0
        assert scaled == pytest.approx([(u - sum(group) / len(group)) / spread for u in group], rel=1e-6, abs=1e-9)
    # Equal utilities leave exactly nothing, where 0.1 less its mean is a rounding error.
    assert not np.any(advantages(np.full((2, 3), 0.1)))
    assert np.any(np.full(3, 0.1) - np.full(3, 0.1).mean())


def test_the_loss_is_that_of_the_paper_and_every_term_pulls_the_right_way() -> None:
    rng = np.random.default_rng(0)
    log_prob = torch.tensor(rng.normal(size=12), requires_grad=True)
    entropy, vae = (torch.tensor(value, dtype=torch.float64, requires_grad=True) for value in (2.5, 0.7))
    advantage, settings = rng.normal(size=12), config(vae_weight=0.3, entropy_weight=0.2)
    value = loss(Evaluation(log_prob, entropy, {}, {}), advantage, vae, settings)
    expected = -np.dot(log_prob.detach().numpy(), advantage) / 12 + 0.3 * 0.7 - 0.2 * 2.5
    assert value.item() == pytest.approx(expected)
    value.backward()  # type: ignore[no-untyped-call]
    assert log_prob.grad.tolist() == pytest.approx((-advantage / 12).tolist())
    assert (entropy.grad, vae.grad) == (-0.2, 0.3)


def test_the_training_log_utilities_memories_and_entropies() -> None:
    rng = np.random.default_rng(0)

    def trace(*steps: tuple[bool, ...]) -> Trace:
        """Return a trajectory of steps: whether it is written, and of each record whether it is seen."""
        return Trace(units(rng), tuple(Step(0, 0, seen, units(rng), written, None) for written, *seen in steps), 0.0)  # type: ignore[arg-type]

    rewards = np.array([[1.0, 1.0], [0.0, 0.0], [1.0, 0.0], [1.0, 1.0]])
    costs = np.array([[0.1, 0.1], [0.1, 0.2], [0.1, 0.1], [0.2, 0.2]])
    utilities = rewards - costs
    traces = [
        trace((True,), (False, True), (True, False)),
        trace((False,), (False,)),
        trace((True,), (True, True), (True, True, False)),
    ]
    evaluation = Evaluation(torch.zeros(2), torch.tensor(0.0), {"role": 1.5, "retrieve": 0.5}, {"role": 0.75})
    measures = training_log(rewards, costs, utilities - utilities.mean(axis=1, keepdims=True), traces, evaluation)
    assert measures == {
        "utility": pytest.approx(utilities.sum() / 8),
        "reward_deviation": 0.125,
        "cost_deviation": pytest.approx(0.0125),
        "equal_reward_groups": 0.75,
        "zero_advantage_groups": 0.5,
        "steps": 8.0,
        "write_rate": 5 / 8,
        "empty_memory": pytest.approx(1 / 3),
        "retrieved": 3 / 5,
        "entropy_role": 1.5,
        "entropy_retrieval": 0.5,
        "max_probability_role": 0.75,
    }
    # No share of nothing.
    assert "retrieved" not in training_log(rewards, costs, utilities, traces[1:2], evaluation)


async def test_the_noise_of_the_autoencoders_follows_seed_and_update_and_the_log_agrees_with_the_rollouts() -> None:
    gmr, losses = method(), set()
    router = new_router(gmr.config, *PROFILES)
    rollouts = [(item, number) for item in ITEMS[:2] for number in range(gmr.config.group)]
    walks = [walk(router, Client(), item, episode=Episode(1, number)) for item, number in rollouts]
    answered, traces = await graded_rollouts(walks)
    utilities = np.array([gmr.utility(rollout) for rollout in answered]).reshape(2, -1)
    sampled, entropy = [trace.log_prob for trace in traces], evaluate(router, traces).mean_entropy.item()
    for seed, update, kind in ((0, 1, "centred"), (1, 1, "centred"), (0, 2, "standardised")):
        learner = method(seed, advantage=kind, vae_weight=0.3, entropy_weight=0.2)
        learning = Learning(new_router(gmr.config, *PROFILES), gmr.config.lr)
        log = learner.learn(learning, answered, traces, TrainingStep(1, update, 2))
        losses.add(log["vae_loss"])
        policy = -np.mean(sampled * advantages(utilities, kind).ravel())
        assert log["loss"] == pytest.approx(policy + 0.3 * log["vae_loss"] - 0.2 * entropy)
    assert len(losses) == 3
    assert log["utility"] == pytest.approx(np.mean([gmr.utility(rollout) for rollout in answered]))
    assert log["steps"] == sum(rollout.trajectory.depth for rollout in answered)
    assert np.isfinite(list(log.values())).all()


async def fitted(folder: Path, client: Any, number: int = 4, **changes: Any) -> GMR:
    small = {"batch": 2, "group": 2, "max_depth": 3}
    return await trained(method(**{**small, **changes}), folder, client, questions(number, "t"))


async def test_a_backbone_that_is_always_wrong_and_dearer_is_given_up(tmp_path: Path) -> None:
    async def share(router: GMR) -> float:
        answered = await answered_by(router, client, ITEMS)
        drawn = [choice for a in answered for choice in a.trajectory.decisions if choice.name == "backbone"]
        probabilities = [math.exp(choice.log_prob) for choice in drawn]
        pairs = zip(drawn, probabilities, strict=True)
        return float(np.mean([p if choice.choice == "large" else 1 - p for choice, p in pairs]))

    client = Client(right_if("small"), tokens=(1000, 300))
    learned = await fitted(tmp_path, client, 16, batch=4, group=6)
    untrained = await fitted(tmp_path, client, max_epochs=0)
    assert await share(untrained) > 0.3
    assert await share(learned) < 0.1
    answered = await answered_by(learned, client, ITEMS)
    assert sum(graded.verdict.correct for graded in answered) >= len(ITEMS) - 1


async def test_the_greedy_switch_rules_the_test_and_not_the_training(tmp_path: Path) -> None:
    """Of one question, greedy decisions are the same whatever the seed of the draws, and each the most probable."""
    decided, tables = {}, []
    for decode in ("sample", "greedy"):
        gmr = await fitted(tmp_path / decode, Client(), 2, decode=decode)
        tables.append((tmp_path / decode / "training_decisions.parquet").read_bytes())
        contexts = [runtime(Client(), seed).context(ITEMS[0]) for seed in range(8)]
        decided[decode] = {context.close(await gmr.solve(ITEMS[0], context)).decisions for context in contexts}
    assert tables[0] == tables[1]
    assert len(decided["greedy"]) == 1 < len(decided["sample"])
    [greedy] = decided["greedy"]
    gates = [decision for decision in greedy if decision.options == 2]
    assert {decision.name for decision in gates} >= {"backbone", "write", "halt"}
    assert all(decision.log_prob >= math.log(0.5) for decision in gates)


def test_each_ablation_switches_off_what_its_name_says_and_nothing_else() -> None:
    entries = methods()
    full = entries["gmr"].config
    for switch in MODULES:
        assert Config(**entries[f"gmr_no_{switch}"].config) == Config(**{**full, switch: False})
    both = Config(**{**full, "retrieval_gate": False, "write_gate": False})
    assert Config(**entries["gmr_no_memory_gates"].config) == Config(**entries["full_history"].config) == both


def keys(seed: int = 0, **changes: Any) -> list[str]:
    gmr = GMR(setting("pool", seed=seed), Config(epochs={"default": 1}, **changes))
    choices = gmr.choices()
    assert choices["backbones"] == [[key, backbone.profile] for key, backbone in backbones().items()]
    assert choices["roles"] == [[role.key, role.profile] for role in gmr.pool.roles]
    return [role.key for role in gmr.pool.roles]


def test_roles_can_be_listed() -> None:
    listed = ["Math/Mathematician", "Code/ProgrammingExpert"]
    assert keys(roles=listed) == sorted(listed)
    with pytest.raises(UserError, match=r"unknown role 'Code/ProgramingExpert'; did you mean 'Code/ProgrammingExpert'"):
        keys(roles=["Code/ProgramingExpert"])
    with pytest.raises(UserError, match=r"roles lists the roles"):
        settings_of("gmr", {"epochs": {"default": 1}, "roles": listed, "role_pool": "domain"})


def test_half_of_the_roles_is_drawn_once_by_the_seed() -> None:
    half = {"Math": 6, "Code": 4, "Commonsense": 3}
    drawn = keys(role_subset=half)
    assert Counter(key.split("/")[0] for key in drawn) == half
    assert drawn == sorted(drawn) == keys(role_subset=dict(reversed(half.items())))
    assert len({tuple(keys(seed, role_subset=half)) for seed in range(20)}) > 15
    assert set(keys(role_subset={"Math": 3})) < set(keys(role_subset={"Math": 6}))
    for count in (0, 13):
        with pytest.raises(UserError, match=f"asks for {count} roles of Math; choose between 1 and 12"):
            keys(role_subset={"Math": count})


async def test_a_random_router_that_matches_another_has_its_mean_depth(tmp_path: Path) -> None:
    """Every question has one or two steps, drawn by its number, and no role or backbone is preferred."""
    switches = methods()["random_matched"].config
    random = method(**{**switches, "max_depth": 3}, matched=Matched("gmr", 0.0, 1.25))
    client = Client()
    await trained(random, tmp_path, client, questions(1, "t"))
    items = questions(60)
    answered = await answered_by(random, client, items)
    depths = [trajectory.depth for trajectory, _ in answered]
    uniforms = [rng.uniform("0", "0", "0", "toy", item.id, "0", "one step more", "0") for item in items]
    assert depths == [1 + (uniform < 0.25) for uniform in uniforms]
    names = {decision.name for trajectory, _ in answered for decision in trajectory.decisions}
    assert names == {"role", "backbone"}
    with pytest.raises(UserError, match=r"the mean depth of gmr, 3\.10, which exceeds max_depth 3; raise"):
        method(**{**switches, "max_depth": 3}, matched=Matched("gmr", 0.0, 3.1))
