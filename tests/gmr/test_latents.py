import numpy as np
import pytest
import torch
from torch.distributions import Independent, Normal, kl_divergence

from gmr.latents import ProfileVAE
from tests.gmr.made import router, units
from tests.gmr.reference import Reference, relu


def test_the_policies_use_the_mean_of_the_posterior() -> None:
    made = router()
    reference = Reference(made)
    roles, backbones = made.latents()
    assert roles.detach().numpy() == pytest.approx(np.stack([reference.latent("role", i) for i in range(7)]))
    assert backbones.detach().numpy() == pytest.approx(np.stack([reference.latent("backbone", i) for i in range(5)]))


@pytest.mark.parametrize("kl", ["sum", "mean"])
def test_the_loss_is_reconstruction_plus_divergence_from_the_prior(kl: str) -> None:
    made = router(vae_kl=kl)
    reference = Reference(made)
    rng = np.random.default_rng(1)
    noise = {"role": rng.normal(size=(7, 128)), "backbone": rng.normal(size=(5, 128))}
    expected = 0.0
    for kind, draws in noise.items():
        profiles = reference.weights[f"{kind}_profiles"]
        errors, divergences = [], []
        for profile, draw in zip(profiles, draws, strict=True):
            hidden = relu(reference.linear(f"{kind}_vae.encoder.0", profile))
            mu, logvar = (reference.linear(f"{kind}_vae.{head}", hidden) for head in ("mu", "logvar"))
            sample = mu + np.sqrt(np.exp(logvar)) * draw
            rebuilt = reference.linear(f"{kind}_vae.decoder.2", relu(reference.linear(f"{kind}_vae.decoder.0", sample)))
            errors.append((rebuilt - profile) ** 2)
            posterior = Independent(Normal(torch.from_numpy(mu), torch.from_numpy(np.exp(logvar / 2))), 1)
            prior = Independent(Normal(torch.zeros(128).double(), torch.ones(128).double()), 1)
            divergences.append(kl_divergence(posterior, prior).item() / (1 if kl == "sum" else 128))
        expected += np.mean(errors) + np.mean(divergences)
    loss = made.vae_loss(torch.from_numpy(noise["role"]), torch.from_numpy(noise["backbone"]))
    assert loss.item() == pytest.approx(expected, rel=1e-12)


def test_a_posterior_equal_to_the_prior_has_no_divergence() -> None:
    vae = ProfileVAE().double()
    with torch.no_grad():
        for parameter in (*vae.mu.parameters(), *vae.logvar.parameters(), *vae.decoder.parameters()):
            parameter.zero_()
    profiles = torch.from_numpy(units(np.random.default_rng(0), 4).astype(np.float64))
    assert vae.loss(profiles, torch.ones(4, 128).double(), "sum").item() == pytest.approx(1 / 384, rel=1e-6)


def test_the_loss_trains_every_parameter_of_both_autoencoders() -> None:
    made = router()
    made.vae_loss(torch.ones(7, 128).double(), torch.ones(5, 128).double()).backward()
    learning = {name for name, parameter in made.named_parameters() if parameter.grad is not None}
    assert learning == {name for name, _ in made.named_parameters() if "_vae." in name}
    assert all(made.get_parameter(name).grad.abs().sum() > 0 for name in learning)
