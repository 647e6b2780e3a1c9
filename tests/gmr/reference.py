"""The paper's equations (docs/gmr.md) once more, in plain NumPy: one vector, one record and one step at a time."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gmr.policy import Trace
from gmr.router import Router

Array = NDArray[np.float64]


class Record(NamedTuple):
    role: int
    backbone: int
    response: Array


@dataclass
class Walk:
    """What one trajectory adds up to, by module: log-probability, entropy, and the number of its draws.

    Each draw is kept with its step and slot, the probabilities of its options, and its outcome.
    """

    log_prob: dict[str, float] = field(default_factory=dict)
    entropy: dict[str, float] = field(default_factory=dict)
    draws: dict[str, int] = field(default_factory=dict)
    top: dict[str, float] = field(default_factory=dict)
    made: list[tuple[int, str, int, Array, int]] = field(default_factory=list)

    def add(self, module: str, probs: Array, outcome: int, step: int, slot: int = 0) -> None:
        self.made.append((step, module, slot, probs, int(outcome)))
        self.log_prob[module] = self.log_prob.get(module, 0.0) + math.log(probs[int(outcome)])
        self.entropy[module] = self.entropy.get(module, 0.0) - sum(p * math.log(p) for p in probs)
        self.draws[module] = self.draws.get(module, 0) + 1
        self.top[module] = self.top.get(module, 0.0) + max(probs)


class Reference:
    """The router's decisions, computed from its weights alone; ``weights`` may be changed between calls."""

    def __init__(self, router: Router) -> None:
        self.config = router.config
        self.weights: dict[str, Array] = {name: value.numpy().copy() for name, value in router.state_dict().items()}

    def linear(self, name: str, x: Array) -> Array:
        bias = self.weights.get(f"{name}.bias", 0.0)
        return self.weights[f"{name}.weight"] @ x + bias

    def latent(self, kind: str, index: int) -> Array:
        profile = self.weights[f"{kind}_profiles"][index]
        return self.linear(f"{kind}_vae.mu", relu(self.linear(f"{kind}_vae.encoder.0", profile)))

    def token(self, record: Record) -> Array:
        gate = sigmoid(self.linear("encoder.W_g", record.response))
        return self.latent("role", record.role) + self.latent("backbone", record.backbone) + gate

    def context(self, question: Array, memory: list[Record]) -> Array:
        q_hat = self.linear("encoder.W_q", question)
        if not memory:
            return np.concatenate([q_hat, self.weights["encoder.h_empty"]])
        x = np.stack([self.token(e) + self.weights["encoder.position"][rank] for rank, e in enumerate(memory)])
        for layer in ("encoder.layers.0", "encoder.layers.1"):
            normed = self.layer_norm(f"{layer}.norm1", x)
            x = x + self.attention(f"{layer}.self_attn", normed, normed)
            normed = self.layer_norm(f"{layer}.norm2", x)
            x = x + np.stack(
                [self.linear(f"{layer}.linear2", relu(self.linear(f"{layer}.linear1", u))) for u in normed]
            )
        return np.concatenate([q_hat, self.attention("encoder.attention", q_hat[None], x)[0]])

    def layer_norm(self, name: str, x: Array) -> Array:
        centred = x - x.mean(axis=1, keepdims=True)
        normed = centred / np.sqrt((centred**2).mean(axis=1, keepdims=True) + 1e-5)
        return normed * self.weights[f"{name}.weight"] + self.weights[f"{name}.bias"]

    def attention(self, name: str, queries: Array, records: Array, heads: int = 4) -> Array:
        matrices = np.split(self.weights[f"{name}.in_proj_weight"], 3)
        offsets = np.split(self.weights[f"{name}.in_proj_bias"], 3)
        q, k, v = (
            x @ matrix.T + offset
            for x, matrix, offset in zip((queries, records, records), matrices, offsets, strict=True)
        )
        parts = []
        for one in np.split(np.arange(q.shape[1]), heads):
            weights = np.stack([softmax(row) for row in q[:, one] @ k[:, one].T / math.sqrt(len(one))])
            parts.append(weights @ v[:, one])
        return np.stack([self.linear(f"{name}.out_proj", row) for row in np.concatenate(parts, axis=1)])

    def choose(self, module: str, query: Array, pool: Iterable[Array]) -> Array:
        if self.config.score == "cosine":
            return softmax(self.weights[f"{module}.softmax.scale"] * np.array([cosine(query, x) for x in pool]))
        return softmax(np.array([query @ x for x in pool]) / math.sqrt(128))

    def roles(self, context: Array) -> Array:
        count = len(self.weights["role_profiles"])
        query = self.linear("role_allocator.W_r", context)
        return self.choose("role_allocator", query, (self.latent("role", i) for i in range(count)))

    def backbones(self, context: Array, role: int) -> Array:
        count = len(self.weights["backbone_profiles"])
        g = self.linear("llm_router.g", np.concatenate([context, self.latent("role", role)]))
        return self.choose("llm_router", g, (self.latent("backbone", i) for i in range(count)))

    def retrieval(self, question: Array, role: int, backbone: int, record: Record) -> float:
        acting = [question, self.latent("role", role), self.latent("backbone", backbone)]
        p = self.linear("retrieval_gate.W_p", np.concatenate(acting))
        y = self.linear("retrieval_gate.W_y", record.response)
        parts = [self.latent("role", record.role), self.latent("backbone", record.backbone), y]
        v = self.linear("retrieval_gate.W_v", np.concatenate(parts))
        return float(sigmoid(self.weights["retrieval_gate.s"] * cosine(p, v) + self.weights["retrieval_gate.b"]))

    def write(self, context: Array, response: Array, memory: list[Record]) -> float:
        y = self.linear("write_gate.P_y", response)
        weight = sigmoid(self.weights["write_gate.a"])
        omega = weight * cosine(y, self.linear("write_gate.P_c", context))
        if memory:
            omega -= (1 - weight) * max(cosine(y, self.linear("write_gate.P_y", e.response)) for e in memory)
        beta = math.log1p(math.exp(self.weights["write_gate.beta"]))
        return float(sigmoid(beta * (omega - self.weights["write_gate.theta"])))

    def pool(self, memory: list[Record]) -> Array:
        return np.mean([self.token(e) for e in memory], axis=0) if memory else np.zeros(128)

    def gru(self, x: Array, h: Array) -> Array:
        of_x = np.split(self.weights["halting.gru.weight_ih"] @ x + self.weights["halting.gru.bias_ih"], 3)
        of_h = np.split(self.weights["halting.gru.weight_hh"] @ h + self.weights["halting.gru.bias_hh"], 3)
        reset, update = sigmoid(of_x[0] + of_h[0]), sigmoid(of_x[1] + of_h[1])
        return (1 - update) * np.tanh(of_x[2] + reset * of_h[2]) + update * h

    def halt(self, state: Array) -> float:
        return float(sigmoid(self.linear("halting.mlp.2", relu(self.linear("halting.mlp.0", state))))[0])

    def walk(self, trace: Trace) -> Walk:
        """One trajectory, through the modules that the configuration switches on."""
        walk, memory, state = Walk(), list[Record](), np.zeros(128)
        question = trace.question.astype(np.float64)
        for number, step in enumerate(trace.steps, 1):
            context, response = self.context(question, memory), step.response.astype(np.float64)
            if self.config.role_allocator:
                walk.add("role", self.roles(context), step.role, number)
            if self.config.llm_router:
                walk.add("backbone", self.backbones(context, step.role), step.backbone, number)
            if self.config.retrieval_gate:
                for slot, (record, seen) in enumerate(zip(memory, step.retrieved, strict=True)):
                    probability = self.retrieval(question, step.role, step.backbone, record)
                    walk.add("retrieval", pair(probability), seen, number, slot)
            if self.config.write_gate:
                walk.add("write", pair(self.write(context, response, memory)), step.written, number)
            if step.written:
                memory = [*memory, Record(step.role, step.backbone, response)]
            if self.config.halting:
                state = self.gru(self.pool(memory), state)
                if step.halted is not None:
                    walk.add("halt", pair(self.halt(state)), step.halted, number)
        return walk


def total(parts: Iterable[Mapping[str, float]], module: str) -> float:
    return sum(part.get(module, 0) for part in parts)


def pair(probability: float) -> Array:
    return np.array([1 - probability, probability])


def relu(x: Array) -> Array:
    return np.maximum(x, 0)


def sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def softmax(x: Array) -> Array:
    weights = np.exp(x - x.max())
    return weights / weights.sum()


def cosine(x: Array, y: Array) -> float:
    return float(x @ y / math.sqrt((x @ x) * (y @ y)))
