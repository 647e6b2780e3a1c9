import numpy as np
import pytest
import torch

from gmr import measures
from gmr.padded import Entropy, Evaluation, evaluate
from gmr.trace import Step, Trace
from tests.gmr.made import router, trace, units

RNG = np.random.default_rng(0)


def step(written: bool, *retrieved: bool) -> Step:
    return Step(0, 0, retrieved, units(RNG), written, None, 0.0)


def test_groups_with_nothing_to_tell_apart_are_counted() -> None:
    rewards = np.array([[1.0, 1.0], [0.0, 0.0], [1.0, 0.0], [1.0, 1.0]])
    utilities = rewards - np.array([[0.1, 0.1], [0.1, 0.2], [0.1, 0.1], [0.2, 0.2]])
    centred = utilities - utilities.mean(axis=1, keepdims=True)
    found = measures.of_rewards(utilities, rewards, centred)
    assert found["equal_reward_groups"] == 0.75
    assert found["zero_advantage_groups"] == 0.5
    assert found["utility"] == pytest.approx(utilities.sum() / 8)


def test_what_became_of_responses_and_records() -> None:
    traces = [
        Trace(units(RNG), (step(True), step(False, True), step(True, False))),
        Trace(units(RNG), (step(False), step(False))),
        Trace(units(RNG), (step(True), step(True, True), step(True, True, False))),
    ]
    found = measures.of_traces(traces)
    assert found == {
        "steps": 8.0,
        "write_rate": 5 / 8,
        "empty_memory": pytest.approx(1 / 3),
        "retrieved": 3 / 5,
    }


def test_no_share_of_nothing() -> None:
    found = measures.of_traces([Trace(units(RNG), (step(False), step(False)))])
    assert "retrieved" not in found
    assert found["empty_memory"] == 1.0


def test_entropies_are_means_over_the_draws_of_a_module() -> None:
    entropies = {"role": Entropy(torch.tensor(6.0), 4), "retrieval": Entropy(torch.tensor(0.0), 0)}
    found = measures.of_policy(Evaluation(torch.zeros(2), torch.tensor(0.0), entropies, {"role": 0.75}))
    assert found == {"entropy_role": 1.5, "max_probability_role": 0.75}


def test_a_module_that_is_off_has_no_entry() -> None:
    traces = [trace(np.random.default_rng(seed), 3, written=1.0) for seed in range(3)]
    whole = measures.of_policy(evaluate(router(), traces))
    assert {name for name in whole if name.startswith("entropy_")} == {
        f"entropy_{name}" for name in ("role", "backbone", "retrieval", "write", "halt")
    }
    less = measures.of_policy(evaluate(router(llm_router=False, halting=False), traces))
    assert set(whole) - set(less) == {"entropy_backbone", "entropy_halt", "max_probability_backbone"}
