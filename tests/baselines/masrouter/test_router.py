"""Networks, decisions and updates against independent computations."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch
from scipy.special import digamma, gammaln, softmax
from scipy.stats import entropy
from torch.distributions import Normal, kl_divergence

from baselines.masrouter.method import Config, MASRouter, Pool, TeamRollout
from baselines.masrouter.router import VAE, Router, Trace, draw_noise
from baselines.masrouter.team import MODES
from harness.agents import rng
from harness.agents.code_tools import CodeTools
from harness.agents.roles import by_domain
from harness.agents.trajectory import TEST, Episode, Trajectory, sample
from harness.benchmarks.items import Item
from harness.scripted import backbones, setting
from harness.training.learning import Learning, seeded
from harness.training.loop import TrainingStep
from tests.fixtures import ITEMS, Client, embedding, graded_rollouts, log, questions, trained, walked

MODE_NAMES = [mode.key for mode in MODES]
BACKBONES = tuple(backbones().values())


def config(**changes: Any) -> Config:
    return Config(**{"epochs": {"default": 1}, "cost_weight": {"default": 200}, **changes})


def pool(domain: str = "Commonsense") -> Pool:
    return Pool(domain, by_domain(domain), BACKBONES)


def method(
    seed: int = 0,
    max_epochs: int | None = None,
    domain: str = "Commonsense",
    cost_factor: float = 1.0,
    **changes: Any,
) -> MASRouter:
    cell = setting("pool", seed=seed, benchmark="toy", domain=domain, max_epochs=max_epochs, cost_factor=cost_factor)
    return MASRouter(cell, config(**changes))


def router(seed: int = 0, domain: str = "Commonsense", moved: float = 0.0) -> Router:
    """Return a router with initial weights, randomly perturbed if ``moved``."""
    choices = method(domain=domain).choices().items()
    texts = {kind: np.stack([embedding(profile) for _, profile in pairs]) for kind, pairs in choices}
    network = seeded(lambda: Router(texts, 6), "initial weights", seed)
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in network.parameters():
            parameter += moved * torch.randn(parameter.shape, generator=generator, dtype=torch.float64)
    return network


def _unit(rows: np.ndarray) -> np.ndarray:
    return rows / np.linalg.norm(rows, axis=-1, keepdims=True)


class Reference:
    """NumPy reference: probabilities of a trace, unrounded number of agents, and log π of the choices."""

    def __init__(self, router: Router, trace: Trace) -> None:
        self._state = {name: value.numpy() for name, value in router.state_dict().items()}
        self._trace = trace
        noise, choices = trace.noise, trace.choices
        q = trace.question.astype(np.float64)
        x = _unit(self._linear("classifier.question", q))
        self.tasks = softmax(_unit(self._linear("classifier.tasks", self._state["task_texts"])) @ x / 0.5)
        modes = self._z("mode_vae", self._state["mode_texts"], noise.modes)
        self.modes = softmax(modes @ self._z("question_vae", q, noise.question[0]) / 0.8)
        difficulty = self._linear("number.head", self._z("number.vae", q, noise.number[0]))[0]
        self.n_f = 6 / (1 + math.exp(-difficulty))
        roles = self._z("role_vae", self._state["role_texts"], noise.roles)
        h, before, self.roles = np.zeros(64), np.zeros(64), []
        for role in choices.roles:
            row = h + before
            h = (row - row.mean()) / math.sqrt(row.var() + 1e-5)
            self.roles.append(self._matched("role", np.concatenate([x, modes[choices.mode], h]), roles, 0.5))
            before = roles[role]
        backbones = self._z("backbone_vae", self._state["backbone_texts"], noise.backbones)
        self.backbones = self._matched("backbone", np.concatenate([x, modes[choices.mode], h]), backbones, 1.0)
        counts = np.bincount(choices.backbones, minlength=len(backbones))
        self.log_prob = (
            math.log(self.modes[choices.mode])
            + sum(math.log(p[role]) for p, role in zip(self.roles, choices.roles, strict=True))
            + gammaln(self.n_f + 1)
            - sum(gammaln(count + 1) for count in counts)
            + sum(count * math.log(p) for count, p in zip(counts, self.backbones, strict=True))
        )

    def _linear(self, name: str, x: np.ndarray) -> np.ndarray:
        return x @ self._state[f"{name}.weight"].T + self._state[f"{name}.bias"]

    def _z(self, vae: str, x: np.ndarray, noise: Any) -> np.ndarray:
        hidden = np.maximum(self._linear(f"{vae}.encoder.0", x), 0)
        mu, logvar = self._linear(f"{vae}.mu", hidden), self._linear(f"{vae}.logvar", hidden)
        return _unit(mu + 0.1 * np.exp(0.5 * logvar) * noise.numpy())

    def _matched(self, kind: str, context: np.ndarray, choices: np.ndarray, temperature: float) -> np.ndarray:
        return softmax(choices @ _unit(self._linear(f"{kind}_matching.context", context)) / temperature)


async def walk(
    network: Any,
    client: Client,
    item: Item = ITEMS[0],
    *,
    domain: str = "Commonsense",
    seed: int = 0,
    episode: Episode = TEST,
    code_tools: CodeTools | None = None,
    **changes: Any,
) -> tuple[Trajectory, Trace]:
    rollout = TeamRollout(network, pool(domain), config(**changes))
    return await walked(rollout, client, item, seed, episode, code_tools=code_tools)


def test_direction_and_loss_of_an_autoencoder() -> None:
    torch.manual_seed(0)
    vae, texts, noise = VAE().double(), torch.randn(5, 384).double(), torch.randn(5, 64).double()
    hidden = vae.encoder(texts)
    mu, sigma = vae.mu(hidden), torch.exp(vae.logvar(hidden) / 2)
    # A sample has a tenth of the deviation of its posterior.
    z = mu + 0.1 * sigma * noise
    kl = kl_divergence(Normal(mu, sigma), Normal(0.0, 0.1)).mean()  # type: ignore[no-untyped-call]
    assert vae.loss(texts, noise).item() == pytest.approx((((vae.decoder(z) - texts) ** 2).mean() + kl).item())
    assert torch.allclose(vae.direction(texts, noise), z / z.norm(dim=1, keepdim=True))
    shapes = [tuple(value.shape) for name, value in vae.named_parameters() if "weight" in name]
    assert shapes == [(64, 384), (64, 64), (64, 64), (64, 64), (384, 64)]


async def test_training_starts_with_three_agents_and_the_loss_that_users_reported() -> None:
    """Half of six agents, and about 5 times 47.2 for the autoencoders (D-MR-6)."""
    network = router()
    for item in ITEMS:
        _, trace = await walk(network, Client(), item)
        assert len(trace.choices.roles) == 3
        assert network.evaluate([trace]).n_f.item() == pytest.approx(3, abs=0.5)
        assert network.vae_loss([trace]).item() == pytest.approx(5 * 47.2, abs=6)


async def test_every_decision_is_the_draw_by_its_key_from_the_probabilities_of_plain_numpy() -> None:
    network = router(moved=0.15)
    noises = set()
    roles, models = ([member.key for member in part] for part in (pool().roles, BACKBONES))
    for item in ITEMS:
        trajectory, trace = await walk(network, Client(), item, seed=3, episode=Episode(2, 0))
        expected, plan = Reference(network, trace), network.evaluate([trace])
        assert [plan.log_prob.item(), trace.log_prob] == pytest.approx([expected.log_prob] * 2, abs=1e-9)
        assert plan.n_f.item() == pytest.approx(expected.n_f)
        decisions = {(decision.name, decision.slot): decision for decision in trajectory.decisions}

        def check(name: str, slot: int, probabilities: np.ndarray, keys: list[str], item: str) -> None:
            index = sample(probabilities, rng.uniform("3", "2", "0", "toy", item, "0", name, str(slot)))
            decision = decisions[name, slot]  # noqa: B023
            assert (decision.step, decision.choice, decision.options) == (0, keys[index], len(keys))
            assert decision.log_prob == round(math.log(probabilities[index]), 6)

        check("mode", 0, expected.modes, MODE_NAMES, item.id)
        for agent, probabilities in enumerate(expected.roles, 1):
            check("role", agent, probabilities, roles, item.id)
            check("backbone", agent, expected.backbones, models, item.id)
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


async def test_reward_reaches_the_number_of_agents_through_one_term_alone() -> None:
    """∂ log π = ψ(n_f + 1) ∂n_f for every weight of that network, with digamma ψ."""
    network = router(moved=0.15)
    mine = list(network.number.parameters())
    for item in ITEMS[:3]:
        _, trace = await walk(network, Client(), item)
        decided = network.evaluate([trace])
        gradients = torch.autograd.grad(decided.log_prob, mine, allow_unused=True, retain_graph=True)
        of_n = torch.autograd.grad(decided.n_f, mine, allow_unused=True)
        factor = digamma(decided.n_f.item() + 1)
        for gradient, other in zip(gradients, of_n, strict=True):
            assert (gradient is None) == (other is None)
            if gradient is not None and other is not None:
                assert gradient.numpy() == pytest.approx(factor * other.numpy(), abs=1e-12)
        assert any(gradient is not None and gradient.abs().max() > 0 for gradient in gradients)


async def test_the_label_is_given_and_the_classifier_learns_it(tmp_path: Path) -> None:
    """Roles come from the domain of the benchmark whatever the classifier says (D-MR-1)."""
    for domain in ("Code", "Math"):
        folder = tmp_path / domain
        learner = method(domain=domain, epochs={"default": 4}, batch=4)
        await trained(learner, folder, Client(), questions(8, "t"))
        rows = pq.read_table(folder / "training_decisions.parquet").to_pylist()
        assert {row["choice"].split("/")[0] for row in rows if row["name"] == "role"} == {domain}
        assert log(folder, "classifier_accuracy")[-1] == 1.0
        assert log(folder, "task_loss")[-1] < log(folder, "task_loss")[0]


@pytest.mark.parametrize("bias", [0, -9])
async def test_the_loss_and_the_log_against_plain_numpy(bias: int) -> None:
    """Of teams that differ in size, or have one agent each."""
    network = router(moved=0.1)
    network.number.head.weight.data.mul_(0 if bias else 30)
    network.number.head.bias.data.add_(bias)
    walks = (walk(network, Client(), item, episode=Episode(1, 0)) for item in ITEMS)
    answered, traces = await graded_rollouts(walks)
    assert (len({len(trace.choices.roles) for trace in traces}) == 1) == (bias < 0)
    references = [Reference(network, trace) for trace in traces]
    vae = np.mean([network.vae_loss([trace]).item() for trace in traces])
    learning = Learning(network, 0.01)
    before = learning.learned()
    log = method().learn(learning, answered, traces, TrainingStep(1, 1, 1))
    still = {name for name, value in learning.learned().items() if np.array_equal(before[name], value)}
    assert still == {f"network.{kind}_texts" for kind in ("task", "mode", "role", "backbone")}
    utilities = [one.verdict.correct - 200 * sum(call.cost for call in one.trajectory.calls) for one in answered]
    policy = -np.mean([reference.log_prob * u for reference, u in zip(references, utilities, strict=True)])
    task = -np.mean([math.log(reference.tasks[1]) for reference in references])
    modes = [trace.choices.mode for trace in traces]
    expected = {
        "utility": np.mean(utilities),
        "classifier_accuracy": np.mean([reference.tasks.argmax() == 1 for reference in references]),
        **{f"share_{name}": modes.count(index) / 8 for index, name in enumerate(MODE_NAMES)},
        "agents": np.mean([len(trace.choices.roles) for trace in traces]),
        "entropy_mode": np.mean([entropy(reference.modes) for reference in references]),
        "entropy_backbone": np.mean([entropy(reference.backbones) for reference in references]),
        "task_loss": task,
        "policy_loss": policy,
        "vae_loss": vae,
        "loss": task + policy + 0.001 * vae,
    }
    assert log == pytest.approx(expected)
