"""The autoencoder and the number of agents against computations of their own."""

from __future__ import annotations

import asyncio
import math
from concurrent.futures import ThreadPoolExecutor
from functools import cache

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import digamma, gammaln
from scipy.stats import multinomial
from torch.distributions import Normal, kl_divergence

from baselines.masrouter.router import (
    VAE,
    Router,
    Trace,
    draw_noise,
    log_multinomial,
)
from baselines.masrouter.team import MODES
from harness.agents import rng
from harness.agents.trajectory import Episode, sample
from tests.baselines.masrouter.fixtures import BACKBONES, pool, router, walk
from tests.baselines.masrouter.reference import Reference
from tests.fixtures import ITEMS, Client


def rows(seed: int, *shape: int) -> torch.Tensor:
    return torch.tensor(np.random.default_rng(seed).normal(size=shape))


def test_direction_and_loss_against_plain_numpy() -> None:
    torch.manual_seed(0)
    vae = VAE().double()
    texts, noise = rows(4, 5, 384), rows(5, 5, 64)
    w = {name: value.detach().numpy() for name, value in vae.named_parameters()}

    def linear(name: str, x: np.ndarray) -> np.ndarray:
        return np.asarray(x @ w[f"{name}.weight"].T + w[f"{name}.bias"])

    hidden = np.maximum(linear("encoder.0", texts.numpy()), 0)
    mu, logvar = linear("mu", hidden), linear("logvar", hidden)
    # A sample has a tenth of the deviation of its posterior.
    z = mu + 0.1 * np.exp(logvar / 2) * noise.numpy()
    rebuilt = linear("decoder.2", np.maximum(linear("decoder.0", z), 0))
    kl = kl_divergence(Normal(torch.tensor(mu), torch.tensor(np.exp(logvar / 2))), Normal(0.0, 0.1)).mean().item()  # type: ignore[no-untyped-call]
    assert vae.loss(texts, noise).item() == pytest.approx(np.mean((rebuilt - texts.numpy()) ** 2) + kl)
    unit = z / np.linalg.norm(z, axis=1, keepdims=True)
    assert vae.direction(texts, noise).detach().numpy() == pytest.approx(unit)
    assert [value.shape for name, value in w.items() if "weight" in name] == [
        *((64, 384), (64, 64), (64, 64), (64, 64), (384, 64))
    ]


async def test_training_starts_with_three_agents_and_the_loss_that_users_reported() -> None:
    """Half of six agents, and about 5 times 47.2 for the autoencoders (D-MR-6)."""
    network = router()
    for item in ITEMS:
        _, trace = await walk(network, Client(), item)
        assert len(trace.choices.roles) == 3
        assert network.evaluate([trace]).n_f.item() == pytest.approx(3, abs=0.5)
        assert network.vae_loss([trace]).item() == pytest.approx(5 * 47.2, abs=6)


async def traces(network: Router, epochs: int = 3) -> list[Trace]:
    walks = [await walk(network, Client(), item, episode=Episode(at, 0)) for item in ITEMS for at in range(epochs)]
    return [trace for _, trace in walks]


# Probabilities


async def test_every_decision_is_the_draw_by_its_key_from_the_probabilities_of_plain_numpy() -> None:
    network = router(moved=0.15)
    names = [mode.name for mode in MODES]
    noises = set()
    roles, backbones = ([member.key for member in part] for part in (pool().roles, BACKBONES))
    for item in ITEMS:
        trajectory, trace = await walk(network, Client(), item, seed=3, episode=Episode(2, 0))
        expected, plan = Reference(network, trace), network.evaluate([trace])
        assert [plan.log_prob.item(), trace.log_prob] == pytest.approx([expected.log_prob] * 2, abs=1e-9)
        assert plan.n_f.item() == pytest.approx(expected.n_f)
        decisions = {(decision.name, decision.slot): decision for decision in trajectory.decisions}

        def check(name: str, slot: int, probabilities: np.ndarray, keys: list[str], place: str) -> None:
            index = sample(probabilities, rng.uniform("3", "2", "0", "toy", place, "0", name, str(slot)))
            decision = decisions[name, slot]  # noqa: B023
            assert (decision.step, decision.choice, decision.options) == (0, keys[index], len(keys))
            assert decision.log_prob == round(math.log(probabilities[index]), 6)

        check("mode", 0, expected.modes, names, item.id)
        for agent, probabilities in enumerate(expected.roles, 1):
            check("role", agent, probabilities, roles, item.id)
            check("backbone", agent, expected.backbones, backbones, item.id)
        agents = len(expected.roles)
        assert agents == min(max(round(expected.n_f), 1), 6)
        assert (decisions["agents", 0].choice, decisions["agents", 0].log_prob) == (str(agents), 0.0)
        guess = int(expected.tasks.argmax())
        task = decisions["task", 0]
        assert task.choice == ("Code", "Commonsense", "Math")[guess]
        assert task.log_prob == round(math.log(expected.tasks[guess]), 6)
        assert len(decisions) == 3 + 2 * agents
        noise = draw_noise(rng.uniform("3", "2", "0", "toy", item.id, "0", "noise", "0"), 6, 7, 2)
        assert all(torch.equal(a, b) for a, b in zip(trace.noise, noise, strict=True))
        noises.add(noise.question.numpy().tobytes())
    assert len(noises) == len(ITEMS)


@given(
    st.floats(0, 6, exclude_min=True),
    st.lists(st.integers(0, 4), min_size=1, max_size=6),
    st.lists(st.floats(0.01, 1), min_size=5, max_size=5),
)
def test_the_multinomial_term_with_a_number_that_is_not_rounded(
    n_f: float, backbones: list[int], weights: list[float]
) -> None:
    p = np.array(weights) / sum(weights)
    expected = gammaln(n_f + 1)
    for index in range(5):
        count = backbones.count(index)
        expected += count * math.log(p[index]) - math.log(math.factorial(count))
    counts = torch.tensor([[backbones.count(index) for index in range(5)]], dtype=torch.float64)
    value = log_multinomial(torch.tensor([n_f], dtype=torch.float64), torch.tensor(np.log(p))[None], counts)
    assert value.item() == pytest.approx(expected, abs=1e-9)
    # Of a whole number of agents it is the probability of the counts.
    whole = log_multinomial(torch.tensor([float(len(backbones))]).double(), torch.tensor(np.log(p))[None], counts)
    assert whole.item() == pytest.approx(multinomial.logpmf(counts[0].numpy(), len(backbones), p), abs=1e-6)


# What depends on what


@cache
def walked(small: bool) -> tuple[Router, list[Trace]]:
    """A router whose teams differ in size, and what it decided; or one whose teams have one agent each."""
    network = router(moved=0.15)
    if small:
        network.number.head.bias.data.fill_(-9)
    else:
        network.number.head.weight.data.mul_(30)
    with ThreadPoolExecutor() as thread:
        walks = thread.submit(asyncio.run, traces(network)).result()
    assert (len({len(trace.choices.roles) for trace in walks}) == 1) == small
    return network, walks


# Gradient


async def test_reward_reaches_the_number_of_agents_through_one_term_alone() -> None:
    """∂ log π = ψ(n_f + 1) ∂n_f for every weight of that network, with digamma ψ."""
    network = router(moved=0.15)
    mine = list(network.number.parameters())
    for trace in await traces(network, epochs=1):
        decided = network.evaluate([trace])
        gradients = torch.autograd.grad(decided.log_prob, mine, allow_unused=True, retain_graph=True)
        of_n = torch.autograd.grad(decided.n_f, mine, allow_unused=True)
        factor = digamma(decided.n_f.item() + 1)
        for gradient, other in zip(gradients, of_n, strict=True):
            assert (gradient is None) == (other is None)
            if gradient is not None and other is not None:
                assert gradient.numpy() == pytest.approx(factor * other.numpy(), abs=1e-12)
        assert any(gradient is not None and gradient.abs().max() > 0 for gradient in gradients)


# Many questions at once


@settings(max_examples=10, deadline=None)
@given(st.lists(st.integers(0, 23), min_size=1, max_size=24), st.booleans())
def test_a_pass_over_many_questions_is_the_pass_over_each(picked: list[int], small: bool) -> None:
    network, made_traces = walked(small)
    picked_traces = [made_traces[number] for number in picked]
    many, one_by_one = network.evaluate(picked_traces), [network.evaluate([trace]) for trace in picked_traces]
    assert many.choices == tuple(trace.choices for trace in picked_traces)
    assert many.log_prob.tolist() == pytest.approx([trace.log_prob for trace in picked_traces], abs=1e-12)
    assert many.n_f.tolist() == pytest.approx([single.n_f.item() for single in one_by_one], abs=1e-12)
    for name in ("tasks", "modes", "backbones"):
        apart = torch.cat([getattr(single, name) for single in one_by_one])
        assert torch.allclose(getattr(many, name), apart, rtol=0, atol=1e-11), name
    apart = torch.stack([network.vae_loss([trace]) for trace in picked_traces]).mean()
    assert network.vae_loss(picked_traces).item() == pytest.approx(apart.item(), rel=1e-12)
