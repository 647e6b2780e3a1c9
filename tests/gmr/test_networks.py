"""What each network starts from and does at its edges; whole trajectories are compared with plain NumPy."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.distributions import Independent, Normal, kl_divergence
from torch.nn import functional as F  # noqa: N812

from gmr.networks import Halting, PoolSoftmax, RetrievalGate, StateEncoder, WriteGate
from gmr.policy import Evaluation, Step, Trace, evaluate
from gmr.router import Router
from tests.gmr.fixtures import BACKBONES, MODULES, ROLES, router, trace, units
from tests.gmr.reference import Reference, relu, total


def vectors(rows: int, seed: int = 0) -> Tensor:
    return torch.from_numpy(units(np.random.default_rng(seed), rows).astype(np.float64))


# Latents


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
    loss.backward()
    learning = {name for name, parameter in made.named_parameters() if parameter.grad is not None}
    assert learning == {name for name, _ in made.named_parameters() if "_vae." in name}
    assert all(made.get_parameter(name).grad.abs().sum() > 0 for name in learning)


# State encoder


def memories(rows: int, records: int) -> tuple[Tensor, Tensor, Tensor]:
    """Projected questions, tokens, and memories of 0, 1, 2 ... records."""
    draw = torch.Generator().manual_seed(0)
    q_hat = torch.randn(rows, 128, generator=draw, dtype=torch.float64)
    tokens = torch.randn(rows, records, 128, generator=draw, dtype=torch.float64)
    return q_hat, tokens, torch.arange(records) < torch.arange(rows)[:, None] % (records + 1)


def test_a_question_without_records_gets_the_learned_vector_and_clean_gradients() -> None:
    encoder = router(max_depth=4).encoder
    q_hat, tokens, stored = memories(10, 4)
    tokens.requires_grad_()
    context = encoder(q_hat, tokens, stored)
    assert torch.equal(context[0], torch.cat([q_hat[0], encoder.h_empty]))
    (context**2).sum().backward()
    used = {name: parameter for name, parameter in encoder.named_parameters() if name[:2] != "W_"}
    assert all(parameter.grad.isfinite().all() and parameter.grad.any() for parameter in used.values())
    assert torch.equal(tokens.grad.any(dim=2), stored)
    encoder.zero_grad()
    encoder(q_hat, tokens, torch.zeros_like(stored)).sum().backward()
    assert {name for name, parameter in encoder.named_parameters() if parameter.grad is not None} == {"h_empty"}


def test_starts_with_small_positions_no_empty_vector_and_two_different_layers() -> None:
    torch.manual_seed(0)
    encoder = StateEncoder(max_depth=10)
    assert encoder.position.shape == (10, 128)
    assert encoder.position.std().item() == pytest.approx(0.02, rel=0.1)
    assert not encoder.h_empty.any()
    assert not torch.equal(encoder.layers[0].linear1.weight, encoder.layers[1].linear1.weight)
    assert all(layer.norm_first and layer.dropout.p == 0 and layer.self_attn.dropout == 0 for layer in encoder.layers)


# Policies


@pytest.mark.parametrize("score", ["dot", "cosine"])
def test_a_saturated_choice_keeps_finite_log_probabilities_and_gradients(score: Any) -> None:
    softmax, options = PoolSoftmax(score).double(), torch.eye(128).double()[:4]
    query = (1e6 * torch.tensor([[1.0] + 127 * [-1.0]]).double()).requires_grad_()
    log_probs = softmax(query, options)
    log_probs[0, 3].backward()
    assert log_probs.isfinite().all()
    assert query.grad is not None
    assert query.grad.isfinite().all()


def test_the_learned_scale_starts_at_five_and_bounds_the_cosine() -> None:
    odds = PoolSoftmax("cosine")(torch.eye(128)[:1] * 1000, torch.eye(128)[:3])[0]
    assert (odds[0] - odds[1]).item() == pytest.approx(5.0, rel=1e-6)


# Gates


def logit(log_probs: Tensor) -> Tensor:
    """Of yes, for log-probabilities of no and yes."""
    assert torch.allclose(log_probs.exp().sum(dim=-1), torch.ones(1, dtype=log_probs.dtype))
    return log_probs[..., 1] - log_probs[..., 0]


def test_retrieval_starts_as_five_times_the_cosine() -> None:
    gate = RetrievalGate().double()
    question, latent = vectors(2), torch.zeros(2, 128).double()
    along = F.normalize(gate.W_p(torch.cat([question, latent, latent], dim=1)), dim=1)
    logits = logit(gate(question, latent, latent, torch.stack([along, -along], dim=1)))
    assert logits.detach().numpy() == pytest.approx(np.array([[5.0, -5.0]] * 2))


def test_write_starts_undecided_and_a_copy_is_less_welcome_than_news() -> None:
    gate = WriteGate().double()
    assert F.softplus(gate.beta).item() == pytest.approx(5.0, rel=1e-12)
    response = gate.direction(vectors(1))
    context, stored = torch.ones(1, 256).double(), torch.ones(1, 1, dtype=torch.bool)
    first = logit(gate(context, response, response[None], ~stored))
    copy, opposite = (logit(gate(context, response, sign * response[None], stored)) for sign in (1, -1))
    assert (first - copy).item() == pytest.approx(2.5)
    assert (opposite - first).item() == pytest.approx(2.5)
    # A first record has no novelty: its weight stays λ, and it can be refused.
    relevance = F.normalize(gate.P_c(context)) @ response.T
    assert first.item() == pytest.approx(2.5 * relevance.item())


# Halting


def test_the_initial_bias_sets_the_probability_of_a_router_that_knows_nothing() -> None:
    torch.manual_seed(0)
    probability = Halting(-1.1)(torch.zeros(1, 128)).exp()[0, 1]
    assert probability.item() == pytest.approx(0.25, abs=0.03)


MADE: dict[str, Router] = {score: router(score=score) for score in ("dot", "cosine")}


@st.composite
def batches(draw: st.DrawFn) -> list[Trace]:
    """One to three trajectories of any depth, any pattern of storing, seeing and halting."""
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    made = []
    for _ in range(draw(st.integers(1, 3))):
        steps: list[Step] = []
        stored = 0
        for number in range(1, 1 + draw(st.integers(1, 6))):
            seen = tuple(draw(st.lists(st.booleans(), min_size=stored, max_size=stored)))
            written, halted = draw(st.booleans()), None if number == 6 else draw(st.booleans())
            choice = draw(st.integers(0, ROLES - 1)), draw(st.integers(0, BACKBONES - 1))
            steps.append(Step(*choice, seen, units(rng), written, halted))
            stored += written
        made.append(Trace(units(rng), tuple(steps), 0.0))
    return made


def compare(made: Router, traces: list[Trace]) -> None:
    """The trajectories walked again against plain NumPy, in everything it reports."""
    found, reference = evaluate(made, traces), Reference(made)
    walks = [reference.walk(each) for each in traces]
    expected = [sum(walk.log_prob.values()) for walk in walks]
    assert found.log_prob.detach().numpy() == pytest.approx(np.array(expected), abs=1e-9)
    steps = sum(len(each.steps) for each in traces)
    assert set(found.entropies) == {name for switch, (name, _) in MODULES.items() if getattr(made.config, switch)}
    for name, entropy in found.entropies.items():
        assert entropy.draws == total((walk.draws for walk in walks), name)
        assert entropy.total.item() == pytest.approx(total((walk.entropy for walk in walks), name), abs=1e-9)
    policy = sum(total((walk.entropy for walk in walks), name) for name in ("role", "backbone", "halt"))
    assert found.mean_entropy.item() == pytest.approx(policy / steps, abs=1e-9)
    assert set(found.top) == {"role", "backbone"} & set(found.entropies)
    for name, top in found.top.items():
        assert top == pytest.approx(total((walk.top for walk in walks), name) / steps)


@settings(max_examples=12, deadline=None, derandomize=True)
@given(traces=batches(), score=st.sampled_from(["dot", "cosine"]))
def test_a_batch_against_plain_numpy(traces: list[Trace], score: str) -> None:
    compare(MADE[score], traces)


OFF = [*((name,) for name in MODULES), ("retrieval_gate", "write_gate"), tuple(MODULES)]


@pytest.mark.parametrize("off", OFF, ids=str)
def test_a_module_that_is_off_adds_neither_log_probability_nor_entropy(off: tuple[str, ...]) -> None:
    rng = np.random.default_rng(8)
    traces = [trace(rng, depth, written=1.0 if "write_gate" in off else 0.5) for depth in (1, 5, 6)]
    compare(router(**dict.fromkeys(off, False)), traces)


def gradients(made: Router, traces: list[Trace]) -> tuple[Evaluation, dict[str, torch.Tensor]]:
    made.zero_grad()
    found = evaluate(made, traces)
    noise = torch.ones(ROLES, 128).double(), torch.ones(BACKBONES, 128).double()
    (found.log_prob.sum() + found.mean_entropy + made.vae_loss(*noise)).backward()
    return found, {name: value.grad for name, value in made.named_parameters() if value.grad is not None}


@pytest.mark.parametrize("off", [(), *OFF[:-1]], ids=str)
def test_every_parameter_learns_from_stored_records_and_no_buffer_does(off: tuple[str, ...]) -> None:
    made, rng = router(score="cosine", **dict.fromkeys(off, False)), np.random.default_rng(3)
    written = 1.0 if "write_gate" in off else 0.8
    _, found = gradients(made, [trace(rng, depth=6, written=written) for _ in range(4)])
    assert set(found) == {name for name, _ in made.named_parameters()}
    always = {"encoder", "role_vae", "backbone_vae"}
    assert {name.split(".")[0] for name in found} == always | set(MODULES) - set(off)
    assert all(gradient.isfinite().all() and gradient.any() for gradient in found.values())
    assert all(buffer.grad is None and not buffer.requires_grad for buffer in made.buffers())


def test_without_records_the_networks_that_read_them_learn_nothing_and_nothing_breaks() -> None:
    made, rng = router(), np.random.default_rng(3)
    _, found = gradients(made, [trace(rng, depth, written=0.0) for depth in (1, 2, 6)])
    assert all(gradient.isfinite().all() for gradient in found.values())
    learned = {name for name, gradient in found.items() if gradient.any()}
    reading = ("encoder.W_g", "encoder.position", "encoder.layers", "encoder.attention", "retrieval_gate")
    assert not [name for name in learned if name.startswith(reading)]
    assert learned >= {"encoder.h_empty", "encoder.W_q.weight", "write_gate.a", "halting.gru.weight_hh"}


def test_gradients_against_finite_differences_of_plain_numpy() -> None:
    made, rng = router(score="cosine"), np.random.default_rng(6)
    traces = [trace(rng, depth=4, written=0.7) for _ in range(2)]
    made.zero_grad()
    evaluate(made, traces).log_prob.sum().backward()
    scalars = (
        "write_gate.a write_gate.beta write_gate.theta retrieval_gate.s retrieval_gate.b role_allocator.softmax.scale"
    )
    for name in [*scalars.split(), "encoder.h_empty", "halting.mlp.2.bias", "encoder.position", "encoder.W_g.weight"]:
        gradient = made.get_parameter(name).grad
        assert gradient is not None
        place = np.unravel_index(int(gradient.abs().argmax()), gradient.shape)
        values = []
        for shift in (1e-5, -1e-5):
            reference = Reference(made)
            reference.weights[name][place] += shift
            values.append(sum(sum(reference.walk(each).log_prob.values()) for each in traces))
        assert gradient[place].item() == pytest.approx((values[0] - values[1]) / 2e-5, rel=1e-5), name


def test_retrieval_draws_must_match_the_records() -> None:
    given = trace(np.random.default_rng(0), depth=2, written=1.0)
    first, second = given.steps
    with pytest.raises(ValueError, match=r"there are \[0\] retrieval draws at a step with \[1\] records"):
        evaluate(MADE["dot"], [replace(given, steps=(first, replace(second, retrieved=())))])
