"""The five decisions: their probabilities, what they depend on, and where their gradient goes."""

from __future__ import annotations

import asyncio
import dataclasses
import itertools
import math
from functools import cache

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import digamma, gammaln
from scipy.stats import multinomial

from baselines.masrouter.router import Router, Trace, draw_noise, log_multinomial
from harness.agents import rng
from harness.agents.sampling import sample
from harness.agents.trajectory import Episode
from tests.baselines.masrouter.reference import Reference
from tests.baselines.masrouter.world import BACKBONES, ITEMS, Client, pool, router, walk

SEEDS = range(4)


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
    for seed in SEEDS:
        made = router(seed, domain, moved=0.15)
        for trace in await traces(made, domain, epochs=1):
            expected, found = Reference(made, trace), made.again([trace])
            assert found.log_prob.item() == pytest.approx(trace.log_prob, abs=1e-12)
            assert found.log_prob.item() == pytest.approx(expected.log_prob, abs=1e-9)
            assert found.n_f.item() == pytest.approx(expected.n_f)
            assert torch.softmax(found.tasks[0], 0).tolist() == pytest.approx(expected.tasks.tolist())
            assert found.modes[0].exp().tolist() == pytest.approx(expected.modes.tolist())
            assert found.backbones[0].exp().tolist() == pytest.approx(expected.backbones.tolist())


async def test_what_is_recorded_are_the_draws_by_their_keys() -> None:
    made = router(moved=0.15)
    names = [mode.name for mode in pool().modes]
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


async def test_the_noise_is_keyed_by_seed_episode_and_question() -> None:
    made, found = router(), []
    for item, seed, episode in itertools.product(ITEMS[:2], (0, 1), (Episode(1, 0), Episode(2, 0))):
        _, trace = await walk(made, Client(), item, seed=seed, episode=episode)
        uniform = rng.uniform(str(seed), str(episode.epoch), "0", "toy", item.id, "0", "noise", "0")
        expected = draw_noise(uniform, 6, 7, 2)
        assert all(torch.equal(a, b) for a, b in zip(trace.noise, expected, strict=True))
        found.append(trace.noise.question.numpy().tobytes())
    assert len(set(found)) == 8


@pytest.mark.parametrize(("agents", "backbones"), [(1, 2), (3, 2), (4, 3), (6, 2)])
def test_the_multinomial_term_is_a_distribution_over_counts(agents: int, backbones: int) -> None:
    """For a whole number of agents, enumerated: all counts together have probability 1."""
    p = np.random.default_rng(agents).dirichlet(np.ones(backbones))
    log_p, n_f = torch.tensor(np.log(p))[None], torch.tensor([float(agents)], dtype=torch.float64)
    total, orders = 0.0, 0.0
    seen = set()
    for chosen in itertools.product(range(backbones), repeat=agents):
        orders += math.prod(p[index] for index in chosen)
        counts = tuple(chosen.count(index) for index in range(backbones))
        found = log_multinomial(n_f, log_p, torch.tensor([counts], dtype=torch.float64)).item()
        assert found == pytest.approx(multinomial.logpmf(counts, agents, p))
        if counts not in seen:
            seen.add(counts)
            total += math.exp(found)
    assert total == pytest.approx(1)
    assert orders == pytest.approx(1)


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


# What depends on what


async def test_roles_are_drawn_with_replacement() -> None:
    drawn = [trace.choices.roles for trace in await traces(router(moved=0.15))]
    assert any(len(set(roles)) < len(roles) for roles in drawn)
    assert {index for roles in drawn for index in roles} == set(range(7))


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


async def test_sampling_leaves_no_graph() -> None:
    made = router()
    await walk(made, Client())
    assert all(parameter.grad is None for parameter in made.parameters())


# Many questions at once


@settings(max_examples=25, deadline=None)
@given(st.lists(st.integers(0, 23), min_size=1, max_size=24), st.booleans())
def test_a_pass_over_many_questions_is_the_pass_over_each(picked: list[int], small: bool) -> None:
    made, made_traces = walked(small)
    some = [made_traces[number] for number in picked]
    many, one_by_one = made.again(some), [made.again([trace]) for trace in some]
    assert many.choices == tuple(trace.choices for trace in some)
    for name in ("log_prob", "tasks", "n_f", "modes", "backbones"):
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


def test_gradients_of_many_questions_are_the_sum_of_those_of_each() -> None:
    made, made_traces = walked(False)
    parameters = dict(made.named_parameters())
    factors = torch.linspace(-1, 2, len(made_traces), dtype=torch.float64)

    def gradients(loss: torch.Tensor) -> dict[str, torch.Tensor]:
        found = torch.autograd.grad(loss, list(parameters.values()), allow_unused=True)
        return {name: value for name, value in zip(parameters, found, strict=True) if value is not None}

    together = gradients((made.again(made_traces).log_prob * factors).sum())
    apart = gradients(
        sum(made.again([trace]).log_prob[0] * factor for trace, factor in zip(made_traces, factors, strict=True))  # type: ignore[arg-type]
    )
    assert together.keys() == apart.keys()
    for name, value in together.items():
        assert torch.allclose(value, apart[name], rtol=1e-9, atol=1e-11), name
