"""Fixtures for MASRouter: a client that answers by role, perturbed routers, a NumPy router, scripted decisions."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from scipy.special import gammaln, softmax

from baselines.masrouter.method import Config, MASRouter, Pool, TeamRollout
from baselines.masrouter.router import Choices, Router, TeamPlan, Trace
from baselines.masrouter.team import MODES
from harness.agents.code_tools import CodeTools
from harness.agents.roles import by_domain, catalogue
from harness.agents.trajectory import TEST, Episode, Trajectory
from harness.benchmarks.items import Item
from harness.llm.request import Request
from harness.scripted import backbones, setting
from harness.training.learning import seeded
from tests.fixtures import ITEMS, Client, embedding, walked

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


class Planned:
    """Fake router with scripted decisions."""

    def __init__(self, mode: str, roles: Sequence[str], llms: Sequence[str], domain: str = "Commonsense") -> None:
        names = [role.name for role in by_domain(domain)]
        keys = [backbone.key for backbone in BACKBONES]
        self.choices = Choices(
            MODE_NAMES.index(mode), tuple(map(names.index, roles)), tuple(keys.index(key) for key in llms)
        )

    def decide(self, question: Any, noise: Any, uniforms: Any) -> TeamPlan:
        zero, roles = torch.zeros(1), torch.zeros(1, 6, 12)
        return TeamPlan((self.choices,), zero, torch.zeros(1, 3), zero, torch.zeros(1, 6), roles, torch.zeros(1, 2))


def role_of(request: Request) -> str:
    opening = request.messages[0].content
    return next((role.name for role in catalogue() if opening.startswith(role.description)), "")


def by_role(backbone: str, request: Request) -> str:
    """Return a reply that names its role and turn."""
    name = role_of(request)
    if not name:
        return "the end"
    turn = "second" if len(request.messages) > 2 else "first"
    late = " later" if "previous round" in request.messages[1].content else ""
    return f"{name} {turn}{late}"


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
