"""Networks and log-probabilities of a router against the reference, and initial values."""

import numpy as np
import pytest
import torch
from torch.distributions import Independent, Normal, kl_divergence

from gmr.networks import Halting, PoolSoftmax, RetrievalGate, StateEncoder
from gmr.router import Router
from gmr.training import Trace, evaluate
from tests.gmr.fixtures import MODULES, PROFILES, Reference, config, new_router, router, trace


@pytest.mark.parametrize("kl", ["sum", "mean"])
def test_the_loss_is_reconstruction_plus_divergence_from_the_prior(kl: str) -> None:
    network, noise = router(vae_kl=kl), torch.Generator().manual_seed(1)
    expected, prior = 0.0, Independent(Normal(torch.zeros(128).double(), torch.ones(128).double()), 1)
    for vae, profiles in ((network.role_vae, network.role_profiles), (network.backbone_vae, network.backbone_profiles)):
        hidden = vae.encoder(profiles)
        posterior = Independent(Normal(vae.mu(hidden), torch.exp(vae.logvar(hidden) / 2)), 1)
        draws = torch.randn(len(profiles), 128, generator=noise, dtype=torch.float64)
        rebuilt = vae.decoder(posterior.mean + posterior.stddev * draws)
        divergence = kl_divergence(posterior, prior).mean() / (1 if kl == "sum" else 128)
        expected += ((rebuilt - profiles) ** 2).mean().item() + divergence.item()
    loss = network.vae_loss(torch.Generator().manual_seed(1))
    assert loss.item() == pytest.approx(expected, rel=1e-12)
    loss.backward()
    learning = {name for name, parameter in network.named_parameters() if parameter.grad is not None}
    assert learning == {name for name, _ in network.named_parameters() if "_vae." in name}
    assert all(network.get_parameter(name).grad.abs().sum() > 0 for name in learning)


def test_what_the_networks_start_from() -> None:
    torch.manual_seed(0)
    encoder = StateEncoder(max_depth=10)
    assert encoder.position.std().item() == pytest.approx(0.02, rel=0.1)
    assert not encoder.h_empty.any()
    assert not torch.equal(encoder.layers[0].linear1.weight, encoder.layers[1].linear1.weight)
    # The learned scale of cosine scores is five.
    odds = PoolSoftmax("cosine")(torch.eye(128)[:1] * 1000, torch.eye(128)[:3])[0]
    assert (odds[0] - odds[1]).item() == pytest.approx(5.0, rel=1e-6)
    # A router that knows nothing halts one time in four.
    assert Halting(-1.1)(torch.zeros(1, 128)).exp()[0, 1].item() == pytest.approx(0.25, abs=0.03)
    assert RetrievalGate().s.item() == pytest.approx(5.0)


def compare(network: Router, traces: list[Trace]) -> None:
    evaluation, walks = evaluate(network, traces), [Reference(network).walk(rollout) for rollout in traces]
    expected = [sum(draw.log_prob for draw in walk) for walk in walks]
    assert evaluation.log_prob.detach().numpy() == pytest.approx(np.array(expected), abs=1e-9)
    steps, draws = sum(len(rollout.steps) for rollout in traces), [draw for walk in walks for draw in walk]
    entropies = {name: [draw.entropy for draw in draws if draw.name == name] for name in MODULES.values()}
    assert evaluation.entropies == pytest.approx({name: np.mean(of) for name, of in entropies.items() if of}, abs=1e-9)
    counted = ("role", "backbone", "halt") if network.config.entropy_of == "routing" else MODULES.values()
    mean_entropy = sum(sum(entropies[name]) for name in counted) / steps
    assert evaluation.mean_entropy.item() == pytest.approx(mean_entropy, abs=1e-9)
    top = {name: [draw.probabilities.max() for draw in draws if draw.name == name] for name in ("role", "backbone")}
    assert evaluation.top == pytest.approx({name: sum(of) / steps for name, of in top.items() if of})


OFF = [(), *((name,) for name in MODULES), ("retrieval_gate", "write_gate"), tuple(MODULES)]


@pytest.mark.parametrize("off", OFF, ids=str)
def test_a_batch_against_the_reference(off: tuple[str, ...]) -> None:
    """A module that is off adds neither log-probability nor entropy."""
    rng = np.random.default_rng(8)
    for reading in ({"score": "dot"}, {"score": "cosine"}, {"entropy_of": "all"}):
        for written in (1.0,) if "write_gate" in off else (0.0, 0.5):
            traces = [trace(rng, depth, written=written) for depth in (6, 1, 5, 3)]
            compare(router(**reading, **dict.fromkeys(off, False)), traces)


@pytest.mark.parametrize("off", OFF[:-1], ids=str)
def test_every_parameter_learns_from_stored_records_and_no_buffer_does(off: tuple[str, ...]) -> None:
    network, rng = router(score="cosine", **dict.fromkeys(off, False)), np.random.default_rng(3)
    written = 1.0 if "write_gate" in off else 0.8
    evaluation = evaluate(network, [trace(rng, depth=6, written=written) for _ in range(4)])
    vae = network.vae_loss(torch.Generator().manual_seed(0))
    (evaluation.log_prob.sum() + evaluation.mean_entropy + vae).backward()
    gradients = {name: value.grad for name, value in network.named_parameters()}
    always = {"encoder", "role_vae", "backbone_vae"}
    assert {name.split(".")[0] for name in gradients} == always | set(MODULES) - set(off)
    assert all(gradient.isfinite().all() and gradient.any() for gradient in gradients.values())
    assert all(buffer.grad is None and not buffer.requires_grad for buffer in network.buffers())


def test_ablations_start_from_the_weights_of_the_whole_router() -> None:
    full = dict(new_router(config(), *PROFILES).named_parameters())
    assert {value.dtype for value in full.values()} == {torch.float64}
    for switch in MODULES:
        ablated = dict(new_router(config(**{switch: False}), *PROFILES).named_parameters())
        assert 0 < len(ablated) < len(full)
        assert all(torch.equal(value, full[name]) for name, value in ablated.items())
