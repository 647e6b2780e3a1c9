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
    made = VAE().double()
    texts, noise = rows(4, 5, 384), rows(5, 5, 64)
    w = {name: value.detach().numpy() for name, value in made.named_parameters()}

    def linear(name: str, x: np.ndarray) -> np.ndarray:
        return np.asarray(x @ w[f"{name}.weight"].T + w[f"{name}.bias"])

    hidden = np.maximum(linear("encoder.0", texts.numpy()), 0)
    mu, logvar = linear("mu", hidden), linear("logvar", hidden)
    # A sample has a tenth of the deviation of its posterior.
    z = mu + 0.1 * np.exp(logvar / 2) * noise.numpy()
    rebuilt = linear("decoder.2", np.maximum(linear("decoder.0", z), 0))
    kl = kl_divergence(Normal(torch.tensor(mu), torch.tensor(np.exp(logvar / 2))), Normal(0.0, 0.1)).mean().item()  # type: ignore[no-untyped-call]
    assert made.loss(texts, noise).item() == pytest.approx(np.mean((rebuilt - texts.numpy()) ** 2) + kl)
    unit = z / np.linalg.norm(z, axis=1, keepdims=True)
    assert made.direction(texts, noise).detach().numpy() == pytest.approx(unit)
    assert [value.shape for name, value in w.items() if "weight" in name] == [
        *((64, 384), (64, 64), (64, 64), (64, 64), (384, 64))
    ]


async def test_training_starts_with_three_agents_and_the_loss_that_users_reported() -> None:
    """Half of six agents, and about 5 times 47.2 for the autoencoders (D-MR-6)."""
    made = router()
    for item in ITEMS:
        _, trace = await walk(made, Client(), item)
        assert len(trace.choices.roles) == 3
        assert made.evaluate([trace]).n_f.item() == pytest.approx(3, abs=0.5)
        assert made.vae_loss([trace]).item() == pytest.approx(5 * 47.2, abs=6)


async def traces(made: Router, epochs: int = 3) -> list[Trace]:
    walks = [await walk(made, Client(), item, episode=Episode(at, 0)) for item in ITEMS for at in range(epochs)]
    return [trace for _, trace in walks]


# Probabilities


async def test_every_decision_is_the_draw_by_its_key_from_the_probabilities_of_plain_numpy() -> None:
    made = router(moved=0.15)
    names = [mode.name for mode in MODES]
    noises = set()
    roles, backbones = ([one.key for one in part] for part in (pool().roles, BACKBONES))
    for item in ITEMS:
        trajectory, trace = await walk(made, Client(), item, seed=3, episode=Episode(2, 0))
        expected, again = Reference(made, trace), made.evaluate([trace])
        assert [again.log_prob.item(), trace.log_prob] == pytest.approx([expected.log_prob] * 2, abs=1e-9)
        assert again.n_f.item() == pytest.approx(expected.n_f)
        found = {(one.name, one.slot): one for one in trajectory.decisions}

        def check(name: str, slot: int, probabilities: np.ndarray, keys: list[str], place: str) -> None:
            index = sample(probabilities, rng.uniform("3", "2", "0", "toy", place, "0", name, str(slot)))
            one = found[name, slot]  # noqa: B023
            assert (one.step, one.choice, one.options) == (0, keys[index], len(keys))
            assert one.log_prob == round(math.log(probabilities[index]), 6)

        check("mode", 0, expected.modes, names, item.id)
        for agent, probabilities in enumerate(expected.roles, 1):
            check("role", agent, probabilities, roles, item.id)
            check("backbone", agent, expected.backbones, backbones, item.id)
        agents = len(expected.roles)
        assert agents == min(max(round(expected.n_f), 1), 6)
        assert (found["agents", 0].choice, found["agents", 0].log_prob) == (str(agents), 0.0)
        guess = int(expected.tasks.argmax())
        task = found["task", 0]
        assert task.choice == ("Code", "Commonsense", "Math")[guess]
        assert task.log_prob == round(math.log(expected.tasks[guess]), 6)
        assert len(found) == 3 + 2 * agents
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
    n_f: float, chosen: list[int], weights: list[float]
) -> None:
    p = np.array(weights) / sum(weights)
    expected = gammaln(n_f + 1)
    for index in range(5):
        count = chosen.count(index)
        expected += count * math.log(p[index]) - math.log(math.factorial(count))
    counts = torch.tensor([[chosen.count(index) for index in range(5)]], dtype=torch.float64)
    found = log_multinomial(torch.tensor([n_f], dtype=torch.float64), torch.tensor(np.log(p))[None], counts)
    assert found.item() == pytest.approx(expected, abs=1e-9)
    # Of a whole number of agents it is the probability of the counts.
    whole = log_multinomial(torch.tensor([float(len(chosen))]).double(), torch.tensor(np.log(p))[None], counts)
    assert whole.item() == pytest.approx(multinomial.logpmf(counts[0].numpy(), len(chosen), p), abs=1e-6)


# What depends on what


@cache
def walked(small: bool) -> tuple[Router, list[Trace]]:
    """A router whose teams differ in size, and what it decided; or one whose teams have one agent each."""
    made = router(moved=0.15)
    if small:
        made.number.head.bias.data.fill_(-9)
    else:
        made.number.head.weight.data.mul_(30)
    with ThreadPoolExecutor() as thread:
        found = thread.submit(asyncio.run, traces(made)).result()
    assert (len({len(trace.choices.roles) for trace in found}) == 1) == small
    return made, found


# Gradient


async def test_reward_reaches_the_number_of_agents_through_one_term_alone() -> None:
    """∂ log π = ψ(n_f + 1) ∂n_f for every weight of that network, with digamma ψ."""
    made = router(moved=0.15)
    mine = list(made.number.parameters())
    for trace in await traces(made, epochs=1):
        decided = made.evaluate([trace])
        found = torch.autograd.grad(decided.log_prob, mine, allow_unused=True, retain_graph=True)
        of_n = torch.autograd.grad(decided.n_f, mine, allow_unused=True)
        factor = digamma(decided.n_f.item() + 1)
        for one, other in zip(found, of_n, strict=True):
            assert (one is None) == (other is None)
            if one is not None and other is not None:
                assert one.numpy() == pytest.approx(factor * other.numpy(), abs=1e-12)
        assert any(one is not None and one.abs().max() > 0 for one in found)


# Many questions at once


@settings(max_examples=10, deadline=None)
@given(st.lists(st.integers(0, 23), min_size=1, max_size=24), st.booleans())
def test_a_pass_over_many_questions_is_the_pass_over_each(picked: list[int], small: bool) -> None:
    made, made_traces = walked(small)
    some = [made_traces[number] for number in picked]
    many, one_by_one = made.evaluate(some), [made.evaluate([trace]) for trace in some]
    assert many.choices == tuple(trace.choices for trace in some)
    assert many.log_prob.tolist() == pytest.approx([trace.log_prob for trace in some], abs=1e-12)
    assert many.n_f.tolist() == pytest.approx([one.n_f.item() for one in one_by_one], abs=1e-12)
    for name in ("tasks", "modes", "backbones"):
        apart = torch.cat([getattr(one, name) for one in one_by_one])
        assert torch.allclose(getattr(many, name), apart, rtol=0, atol=1e-11), name
    apart = torch.stack([made.vae_loss([trace]) for trace in some]).mean()
    assert made.vae_loss(some).item() == pytest.approx(apart.item(), rel=1e-12)
