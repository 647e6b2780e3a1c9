"""The autoencoder and the number of agents against computations of their own."""

from __future__ import annotations

import asyncio
import dataclasses
import math
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
    NumberOfAgents,
    Posterior,
    Router,
    Trace,
    divergence,
    draw_noise,
    log_multinomial,
    team_size,
)
from baselines.masrouter.team import MODES
from harness.agents import rng
from harness.agents.trajectory import Episode, sample
from tests.baselines.masrouter.fixtures import BACKBONES, pool, router, walk
from tests.baselines.masrouter.reference import Reference
from tests.fixtures import ITEMS, Client


def rows(seed: int, *shape: int) -> torch.Tensor:
    return torch.tensor(np.random.default_rng(seed).normal(size=shape))


def test_the_divergence_is_that_of_two_normal_distributions_47_at_unit_variance() -> None:
    mu, logvar = rows(0, 4, 64), rows(100, 4, 64)
    expected = kl_divergence(Normal(mu, torch.exp(logvar / 2)), Normal(0.0, 0.1)).mean()  # type: ignore[no-untyped-call]
    assert divergence(Posterior(mu, logvar)).item() == pytest.approx(expected.item())
    nothing = torch.zeros(3, 64, dtype=torch.float64)
    assert divergence(Posterior(nothing, nothing)).item() == pytest.approx(0.5 * (100 - 1 - math.log(100)))
    assert divergence(Posterior(nothing, nothing + math.log(0.01))).item() == pytest.approx(0, abs=1e-12)


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
    kl = np.mean(0.5 * ((mu**2 + np.exp(logvar)) / 0.01 - 1 - np.log(np.exp(logvar) / 0.01)))
    assert made.loss(texts, noise).item() == pytest.approx(np.mean((rebuilt - texts.numpy()) ** 2) + kl)
    unit = z / np.linalg.norm(z, axis=1, keepdims=True)
    assert made.direction(texts, noise).detach().numpy() == pytest.approx(unit)
    assert [value.shape for name, value in w.items() if "weight" in name] == [
        *((64, 384), (64, 64), (64, 64), (64, 64), (384, 64))
    ]


@settings(max_examples=25)
@given(st.integers(0, 10_000), st.floats(-50, 50), st.floats(0, 26), st.integers(1, 26))
def test_whatever_the_weights_a_team_has_one_to_max_agents(seed: int, bias: float, n_f: float, most: int) -> None:
    torch.manual_seed(seed)
    made = NumberOfAgents(most).double()
    made.head.bias.data.fill_(bias)
    assert 0 <= made(rows(seed, 1, 384), rows(seed + 1, 1, 64)).item() <= most
    assert team_size(n_f, most) == int(torch.clamp(torch.round(torch.tensor(n_f, dtype=torch.float64)), 1, most))


async def test_training_starts_with_three_agents_and_the_loss_that_users_reported() -> None:
    """Half of six agents, and about 5 times 47.2 for the autoencoders (D-MR-6)."""
    made = router()
    for item in ITEMS:
        _, trace = await walk(made, Client(), item)
        assert len(trace.choices.roles) == 3
        assert made.again([trace]).n_f.item() == pytest.approx(3, abs=0.5)
        assert made.vae_loss([trace]).item() == pytest.approx(5 * 47.2, abs=6)


def test_the_noise_of_a_trajectory_follows_from_one_number() -> None:
    before = torch.random.get_rng_state()
    first = draw_noise(0.3, 6, 12, 5)
    assert [tuple(part.shape) for part in first] == [(6, 64), (1, 64), (1, 64), (12, 64), (5, 64)]
    assert all(torch.equal(a, b) for a, b in zip(first, draw_noise(0.3, 6, 12, 5), strict=True))
    assert not any(torch.equal(a, b) for a, b in zip(first, draw_noise(0.30001, 6, 12, 5), strict=True))
    together = torch.cat(list(first))
    assert abs(together.mean().item()) < 0.1
    assert together.std().item() == pytest.approx(1, abs=0.1)
    assert torch.equal(before, torch.random.get_rng_state())


async def traces(made: Router, domain: str = "Commonsense", epochs: int = 3) -> list[Trace]:
    walks = [
        await walk(made, Client(), item, domain=domain, episode=Episode(epoch, 0))
        for item in ITEMS
        for epoch in range(epochs)
    ]
    return [trace for _, trace in walks]


# Probabilities


@pytest.mark.parametrize("domain", ["Code", "Commonsense", "Math"])
async def test_every_decision_against_plain_numpy(domain: str) -> None:
    for seed in range(2):
        made = router(seed, domain, moved=0.15)
        for trace in await traces(made, domain, epochs=1):
            expected, found = Reference(made, trace), made.again([trace])
            assert found.log_prob.item() == trace.log_prob
            assert found.log_prob.item() == pytest.approx(expected.log_prob, abs=1e-9)
            assert found.n_f.item() == pytest.approx(expected.n_f)
            assert torch.softmax(found.tasks[0], 0).tolist() == pytest.approx(expected.tasks.tolist())
            assert found.modes[0].exp().tolist() == pytest.approx(expected.modes.tolist())
            assert found.backbones[0].exp().tolist() == pytest.approx(expected.backbones.tolist())


async def test_what_is_recorded_are_the_draws_by_their_keys() -> None:
    made = router(moved=0.15)
    names = [mode.name for mode in MODES]
    noises = set()
    roles, backbones = ([one.key for one in part] for part in (pool().roles, BACKBONES))
    for item in ITEMS:
        trajectory, trace = await walk(made, Client(), item, seed=3, episode=Episode(2, 0))
        expected = Reference(made, trace)
        found = {(one.name, one.slot): one for one in trajectory.decisions}

        def check(name: str, slot: int, probabilities: np.ndarray, keys: list[str], place: str) -> None:
            index = sample(probabilities, rng.uniform("3", "2", "0", "toy", place, "0", name, str(slot)))
            one = found[name, slot]  # noqa: B023
            assert (one.step, one.choice, one.options) == (0, keys[index], len(keys))
            assert one.log_prob == pytest.approx(math.log(probabilities[index]))

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
        assert task.log_prob == pytest.approx(math.log(expected.tasks[guess]))
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


def other_role(made: Router, trace: Trace, place: int) -> tuple[Trace, bool]:
    """The trace with another role at one place, and whether the backbones' probabilities stay as they were."""
    roles = list(trace.choices.roles)
    roles[place] = (roles[place] + 1) % 7
    changed = dataclasses.replace(trace, choices=dataclasses.replace(trace.choices, roles=tuple(roles)))
    return changed, torch.equal(made.again([trace]).backbones, made.again([changed]).backbones)


async def test_the_backbones_know_every_role_but_the_last() -> None:
    made = router(moved=0.15)
    several = [trace for trace in await traces(made) if len(trace.choices.roles) > 1]
    assert several
    for trace in several:
        assert other_role(made, trace, -1)[1]
        assert not other_role(made, trace, -2)[1]


async def test_a_single_agent_has_a_history_of_zeros() -> None:
    made = router()
    made.number.head.bias.data.fill_(-9)
    for trace in await traces(made, epochs=1):
        assert len(trace.choices.roles) == 1
        assert other_role(made, trace, 0)[1]
        before = made.again([trace]).backbones
        with torch.no_grad():
            made.backbone_matching.context.weight[:, 128:] += 1
        assert torch.equal(made.again([trace]).backbones, before)


# Gradient


async def test_reward_reaches_the_number_of_agents_through_one_term_alone() -> None:
    """∂ log π = ψ(n_f + 1) ∂n_f for every weight of that network, with digamma ψ."""
    made = router(moved=0.15)
    mine = list(made.number.parameters())
    for trace in await traces(made, epochs=1):
        decided = made.again([trace])
        found = torch.autograd.grad(decided.log_prob, mine, allow_unused=True, retain_graph=True)
        of_n = torch.autograd.grad(decided.n_f, mine, allow_unused=True)
        factor = digamma(decided.n_f.item() + 1)
        for one, other in zip(found, of_n, strict=True):
            assert (one is None) == (other is None)
            if one is not None and other is not None:
                assert one.numpy() == pytest.approx(factor * other.numpy(), abs=1e-12)
        assert any(one is not None and one.abs().max() > 0 for one in found)


async def test_gradient_by_differences() -> None:
    """A few weights of every part of log π, moved by hand while the choices stay."""
    made = router(moved=0.1)
    trace = next(one for one in await traces(made) if len(one.choices.roles) > 2)
    made.zero_grad()
    made.again([trace]).log_prob.backward()  # type: ignore[no-untyped-call]
    for name, parameter in made.named_parameters():
        if "decoder" in name or "classifier.tasks" in name:
            assert parameter.grad is None
            continue
        assert parameter.grad is not None
        place = int(parameter.grad.abs().argmax())
        with torch.no_grad():
            values = []
            for step in (1e-5, -1e-5):
                parameter.view(-1)[place] += step
                values.append(made.again([trace]).log_prob.item())
                parameter.view(-1)[place] -= step
        expected = (values[0] - values[1]) / 2e-5
        assert parameter.grad.view(-1)[place].item() == pytest.approx(expected, rel=1e-3, abs=1e-7), name


# Many questions at once


@settings(max_examples=10, deadline=None)
@given(st.lists(st.integers(0, 23), min_size=1, max_size=24), st.booleans())
def test_a_pass_over_many_questions_is_the_pass_over_each(picked: list[int], small: bool) -> None:
    made, made_traces = walked(small)
    some = [made_traces[number] for number in picked]
    many, one_by_one = made.again(some), [made.again([trace]) for trace in some]
    assert many.choices == tuple(trace.choices for trace in some)
    assert many.log_prob.tolist() == [trace.log_prob for trace in some]
    for name in ("tasks", "n_f", "modes", "backbones"):
        apart = torch.cat([getattr(one, name) for one in one_by_one])
        assert torch.allclose(getattr(many, name), apart, rtol=0, atol=1e-11), name
    apart = torch.stack([made.vae_loss([trace]) for trace in some]).mean()
    assert made.vae_loss(some).item() == pytest.approx(apart.item(), rel=1e-12)


@cache
def walked(small: bool) -> tuple[Router, list[Trace]]:
    """A router whose teams differ in size, and what it decided; or one whose teams have one agent each."""
    made = router(moved=0.15)
    if small:
        made.number.head.bias.data.fill_(-9)
    else:
        made.number.head.weight.data.mul_(30)
    found = asyncio.run(traces(made))
    assert (len({len(trace.choices.roles) for trace in found}) == 1) == small
    return made, found
