"""The autoencoder and the number of agents against computations of their own."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.distributions import Normal, kl_divergence

from baselines.masrouter.router import VAE, NumberOfAgents, Posterior, divergence, draw_noise, team_size
from tests.baselines.masrouter.world import router, walk
from tests.world import ITEMS, Client


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
