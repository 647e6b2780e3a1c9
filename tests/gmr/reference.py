"""The paper's equations (docs/gmr.md) once more: one trajectory, one record and one step at a time, without padding."""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cosine_similarity, softplus

from gmr.policy import Trace
from gmr.router import Router


class Record(NamedTuple):
    role: int
    backbone: int
    response: Tensor


def floats() -> defaultdict[str, float]:
    return defaultdict(float)


@dataclass
class Walk:
    """What one trajectory adds up to, by module: log-probability, entropy, and the number of its draws.

    Each draw is kept with its step and slot, the probabilities of its options, and its outcome.
    """

    log_prob: defaultdict[str, float] = field(default_factory=floats)
    entropy: defaultdict[str, float] = field(default_factory=floats)
    draws: defaultdict[str, float] = field(default_factory=floats)
    top: defaultdict[str, float] = field(default_factory=floats)
    outcomes: list[tuple[int, str, int, np.ndarray, int]] = field(default_factory=list)

    def add(self, module: str, probs: Tensor, outcome: int, step: int, slot: int = 0) -> None:
        self.outcomes.append((step, module, slot, probs.numpy(), int(outcome)))
        self.log_prob[module] += math.log(probs[int(outcome)])
        self.entropy[module] -= sum(p * math.log(p) for p in probs.tolist())
        self.draws[module] += 1
        self.top[module] += float(probs.max())


class Reference:
    """The decisions of a router; its layers are torch's, what is put into them is written down a second time."""

    def __init__(self, router: Router) -> None:
        self.router, self.config = router, router.config
        with torch.no_grad():
            self.r, self.m = router.role_vae(router.role_profiles), router.backbone_vae(router.backbone_profiles)

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

    @torch.no_grad()
    def walk(self, trace: Trace) -> Walk:
        """One trajectory, through the modules that the configuration switches on."""
        walk, memory, state = Walk(), list[Record](), torch.zeros(128).double()
        question = torch.tensor(trace.question).double()
        for number, step in enumerate(trace.steps, 1):
            context, response = self.context(question, memory), torch.tensor(step.response).double()
            if self.config.role_allocator:
                walk.add("role", self.roles(context), step.role, number)
            if self.config.llm_router:
                walk.add("backbone", self.backbones(context, step.role), step.backbone, number)
            if self.config.retrieval_gate:
                for slot, (record, seen) in enumerate(zip(memory, step.retrieved, strict=True)):
                    walk.add(
                        "retrieval", self.retrieval(question, step.role, step.backbone, record), seen, number, slot
                    )
            if self.config.write_gate:
                walk.add("write", self.write(context, response, memory), step.written, number)
            if step.written:
                memory = [*memory, Record(step.role, step.backbone, response)]
            if self.config.halting:
                pooled = torch.stack([self.token(record) for record in memory]).mean(dim=0) if memory else state * 0
                state = self.router.halting.gru(pooled, state)
                if step.halted is not None:
                    walk.add("halt", self.halt(state), step.halted, number)
        return walk


def total(parts: Iterable[Mapping[str, float]], module: str) -> float:
    return sum(part.get(module, 0) for part in parts)


def sigmoid(logit: Tensor) -> Tensor:
    """Probabilities of no and yes."""
    return torch.stack([1 / (1 + torch.exp(logit)), 1 / (1 + torch.exp(-logit))])
