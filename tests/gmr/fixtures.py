"""Routers with perturbed weights, synthetic traces, trajectories over simple roles, and the paper's equations."""

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.random import Generator, default_rng
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import cosine_similarity, softplus

from gmr.config import Config, Pool
from gmr.method import GMR
from gmr.rollout import GatedRollout
from gmr.router import Router
from gmr.training import Step, Trace
from harness.agents.roles import by_key
from harness.agents.trajectory import TEST, Episode, Trajectory
from harness.benchmarks.items import Item
from harness.runner.setting import Matched
from harness.scripted import backbones, setting
from harness.training.learning import seeded
from tests.fixtures import ITEMS, embedding, walked

ROLES, BACKBONES = 7, 5
# Roles that need no tool; the third one has a second call.
KEYS = ("Commonsense/Critic", "Commonsense/Historian", "Commonsense/Reflector", "Math/Inspector")
POOL = Pool(tuple(by_key()[key] for key in KEYS), tuple(backbones().values()))
PROFILES = [np.stack([embedding(member.profile) for member in members]) for members in (POOL.roles, POOL.backbones)]
# The switches of the configuration, and the names of their draws.
MODULES = {
    "role_allocator": "role",
    "llm_router": "backbone",
    "retrieval_gate": "retrieve",
    "write_gate": "write",
    "halting": "halt",
}


def config(**changes: Any) -> Config:
    return Config(**{"epochs": {"default": 1}, "role_subset": {"Commonsense": 2}, **changes})


def method(
    seed: int = 0,
    max_epochs: int | None = None,
    matched: Matched | None = None,
    cost_factor: float = 1.0,
    **changes: Any,
) -> GMR:
    row = setting("pool", seed=seed, benchmark="toy", max_epochs=max_epochs, matched=matched, cost_factor=cost_factor)
    gmr = GMR(row, config(**changes))
    gmr.pool = POOL
    return gmr


def units(rng: Generator, *shape: int) -> NDArray[np.float32]:
    vectors = rng.normal(size=(*shape, 384))
    return (vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)).astype(np.float32)


def new_router(settings: Config, roles: Any, backbones: Any) -> Router:
    return seeded(lambda: Router(settings, roles, backbones), "initial weights", 0)


def router(profiles: Any = None, **settings: Any) -> Router:
    """Return a router with randomly perturbed parameters, so that none keeps an initial value of zero or one."""
    rng = default_rng(0)
    network = new_router(config(**settings), *(profiles or (units(rng, ROLES), units(rng, BACKBONES))))
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in network.parameters():
            parameter += 0.05 * torch.randn(parameter.shape, generator=generator, dtype=torch.float64)
    return network


def trace(rng: Generator, depth: int, *, written: float = 0.5) -> Trace:
    """Return random decisions that halt at the last step. At the sixth step there is no halting draw."""
    steps: list[Step] = []
    for number in range(1, depth + 1):
        stored = sum(step.written for step in steps)
        seen = tuple(bool(draw) for draw in rng.random(stored) < 0.5)
        halted = None if number == 6 else number == depth
        choice = int(rng.integers(ROLES)), int(rng.integers(BACKBONES))
        steps.append(Step(*choice, seen, units(rng), bool(rng.random() < written), halted))
    return Trace(units(rng), tuple(steps), 0.0)


async def walk(
    network: Router, client: Any, item: Item = ITEMS[0], seed: int = 0, episode: Episode = TEST, greedy: bool = False
) -> tuple[Trajectory, Trace]:
    return await walked(GatedRollout(network, POOL, network.config, greedy=greedy), client, item, seed, episode)


class Record(NamedTuple):
    role: int
    backbone: int
    response: Tensor


class Draw(NamedTuple):
    step: int
    name: str
    slot: int
    probabilities: np.ndarray
    outcome: int

    @property
    def log_prob(self) -> float:
        return math.log(self.probabilities[self.outcome])

    @property
    def entropy(self) -> float:
        return -sum(p * math.log(p) for p in self.probabilities.tolist())


class Reference:
    """A second implementation of the paper's equations (docs/methods.md), without batches or padding.

    It uses torch layers, with independently written inputs.
    """

    def __init__(self, network: Router) -> None:
        self.router, self.config = network, network.config
        with torch.no_grad():
            self.r = network.role_vae(network.role_profiles)
            self.m = network.backbone_vae(network.backbone_profiles)

    def token(self, record: Record) -> Tensor:
        gate = 1 / (1 + torch.exp(-self.router.encoder.W_g.weight @ record.response))
        return self.r[record.role] + self.m[record.backbone] + gate

    def context(self, question: Tensor, memory: list[Record]) -> Tensor:
        encoder = self.router.encoder
        q_hat = encoder.W_q.weight @ question
        if not memory:
            return torch.cat([q_hat, encoder.h_empty])
        x = torch.stack([self.token(record) + encoder.position[rank] for rank, record in enumerate(memory)])[None]
        for layer in encoder.layers:
            x = x + layer.self_attn(*[layer.norm1(x)] * 3)[0]
            x = x + layer.linear2(torch.relu(layer.linear1(layer.norm2(x))))
        return torch.cat([q_hat, encoder.attention(q_hat[None, None], x, x)[0][0, 0]])

    def choose(self, softmax: torch.nn.Module, query: Tensor, pool: Tensor) -> Tensor:
        if self.config.score == "cosine":
            scores = torch.stack([softmax.scale * cosine_similarity(query, latent, dim=0) for latent in pool])
        else:
            scores = torch.stack([query @ latent for latent in pool]) / math.sqrt(128)
        return torch.exp(scores) / torch.exp(scores).sum()

    def roles(self, context: Tensor) -> Tensor:
        allocator = self.router.role_allocator
        return self.choose(allocator.softmax, allocator.W_r.weight @ context, self.r)

    def backbones(self, context: Tensor, role: int) -> Tensor:
        router = self.router.llm_router
        return self.choose(router.softmax, router.g(torch.cat([context, self.r[role]])), self.m)

    def retrieval(self, question: Tensor, role: int, backbone: int, record: Record) -> Tensor:
        gate = self.router.retrieval_gate
        p = gate.W_p.weight @ torch.cat([question, self.r[role], self.m[backbone]])
        y = gate.W_y.weight @ record.response
        v = gate.W_v.weight @ torch.cat([self.r[record.role], self.m[record.backbone], y])
        return sigmoid(gate.s * cosine_similarity(p, v, dim=0) + gate.b)

    def write(self, context: Tensor, response: Tensor, memory: list[Record]) -> Tensor:
        gate = self.router.write_gate
        y, weight = gate.P_y.weight @ response, 1 / (1 + torch.exp(-gate.a))
        omega = weight * cosine_similarity(y, gate.P_c.weight @ context, dim=0)
        if memory:
            others = [gate.P_y.weight @ record.response for record in memory]
            omega = omega - (1 - weight) * max(cosine_similarity(y, other, dim=0) for other in others)
        return sigmoid(softplus(gate.beta) * (omega - gate.theta))

    def halt(self, state: Tensor) -> Tensor:
        return sigmoid(self.router.halting.mlp(state)[0])

    def walk(self, trace: Trace) -> list[Draw]:
        with torch.no_grad():
            draws = list(self._draws(trace))
        return [Draw(step, name, slot, p.numpy(), int(outcome)) for step, name, slot, p, outcome in draws]

    def _draws(self, trace: Trace) -> Iterator[tuple[int, str, int, Tensor, int | bool]]:
        config, memory, state = self.config, list[Record](), torch.zeros(128).double()
        question = torch.tensor(trace.question).double()
        for number, step in enumerate(trace.steps, 1):
            context, response = self.context(question, memory), torch.tensor(step.response).double()
            if config.role_allocator:
                yield number, "role", 0, self.roles(context), step.role
            if config.llm_router:
                yield number, "backbone", 0, self.backbones(context, step.role), step.backbone
            if config.retrieval_gate:
                for slot, (record, seen) in enumerate(zip(memory, step.retrieved, strict=True)):
                    probabilities = self.retrieval(question, step.role, step.backbone, record)
                    yield number, "retrieve", slot, probabilities, seen
            if config.write_gate:
                yield number, "write", 0, self.write(context, response, memory), step.written
            if step.written:
                memory = [*memory, Record(step.role, step.backbone, response)]
            if config.halting:
                pooled = torch.stack([self.token(record) for record in memory]).mean(dim=0) if memory else state * 0
                state = self.router.halting.gru(pooled, state)
                if step.halted is not None:
                    yield number, "halt", 0, self.halt(state), step.halted


def sigmoid(logit: Tensor) -> Tensor:
    return torch.stack([1 / (1 + torch.exp(logit)), 1 / (1 + torch.exp(-logit))])
