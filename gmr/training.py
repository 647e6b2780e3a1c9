"""Update of the router: log-probabilities of finished trajectories, advantages, loss, log (paper, Optimization)."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gmr.config import Advantage, Config
from gmr.router import Router, Uniforms

Array = NDArray[np.float64]
Vector = NDArray[np.float32]
# Decisions whose entropies are in H̄; of retrieval that of every record.
_ROUTING = ("role", "backbone", "halt")


class Step(NamedTuple):
    """Decisions of one step of Algorithm 1."""

    role: int  # index in the router's pool
    backbone: int  # index in the router's pool
    retrieved: tuple[bool, ...]  # z_{t,j} of each record of S_{t-1}, in memory order
    response: Vector  # embedding y_t of the response, shape (384,)
    written: bool  # w_t
    halted: bool | None  # h_t; None if no draw is made (t = φ, or halting switched off)


class Trace(NamedTuple):
    """Decisions of one trajectory."""

    question: Vector  # embedding q of the question, shape (384,)
    steps: tuple[Step, ...]  # 1 to φ
    log_prob: float  # log π as sampled


class Evaluation(NamedTuple):
    """Terms of the loss for n trajectories, and what the training log reports of them."""

    log_prob: Tensor  # log π_i, shape (n,), with gradient
    mean_entropy: Tensor  # H̄, mean over all steps of the entropies that ``entropy_of`` counts, with gradient
    entropies: Mapping[str, float]  # mean of a draw in nats, by decision (retrieve: a draw a record)
    top: Mapping[str, float]  # mean over the steps of the largest probability of role and backbone, where on


def stack(vectors: Sequence[Vector]) -> Tensor:
    """Return embeddings as rows in float64."""
    return torch.from_numpy(np.stack(vectors).astype(np.float64))


def evaluate(router: Router, traces: Sequence[Trace]) -> Evaluation:
    """Compute log π and entropies of finished trajectories under the present parameters, with gradient."""
    latents = router.latents()
    # The longest first, so that the trajectories with a further step are always the first rows.
    order = sorted(range(len(traces)), key=lambda index: -len(traces[index].steps))
    state = router.begin(stack([traces[index].question for index in order]))
    log_prob = state.question.new_zeros(len(order))
    entropies: dict[str, Tensor] = {}
    draws, top = Counter[str](), defaultdict[str, float](float)
    for number in range(len(traces[order[0]].steps)):
        steps = [traces[index].steps[number] for index in order if len(traces[index].steps) > number]
        recorded = _recorded(steps, router.config.max_depth)
        state, agent = router.assign(state.first(len(steps)), latents, recorded)
        state, end = router.end_step(state, latents, agent, stack([step.response for step in steps]), recorded)
        of_step = log_prob[: len(steps)]
        for name, draw in {**agent, **end}.items():
            if draw.log_probs is None:
                continue
            probs = draw.log_probs.exp()
            entropy = torch.where(draw.drawn, -(probs * draw.log_probs).sum(dim=-1), 0.0).sum()
            entropies[name] = entropies.get(name, 0.0) + entropy
            draws[name] += int(draw.drawn.sum())
            if name in ("role", "backbone"):
                top[name] += probs.detach().amax(dim=-1).sum().item()
            of_step = of_step + draw.log_prob().reshape(len(steps), -1).sum(dim=1)
        log_prob = torch.cat([of_step, log_prob[len(steps) :]])
    count = sum(len(trace.steps) for trace in traces)
    counted = _ROUTING if router.config.entropy_of == "routing" else (*_ROUTING, "retrieve", "write")
    policy = [entropies[name] for name in counted if name in entropies]
    return Evaluation(
        log_prob=log_prob[torch.tensor(order).argsort()],
        mean_entropy=sum(policy, start=log_prob.new_zeros(())) / count,
        entropies={name: entropies[name].item() / number for name, number in draws.items() if number},
        top={name: total / count for name, total in top.items()},
    )


def _recorded(steps: Sequence[Step], max_depth: int) -> Uniforms:
    """Return the decisions of one step of several trajectories as indices, one trajectory a row."""
    retrieved = torch.zeros(len(steps), max_depth, dtype=torch.int64)
    for row, step in enumerate(steps):
        retrieved[row, : len(step.retrieved)] = torch.tensor(step.retrieved)
    columns = ((step.role, step.backbone, int(step.written), int(step.halted or 0)) for step in steps)
    role, backbone, write, halt = torch.tensor(list(columns)).T
    return Uniforms(role, backbone, retrieved, write, halt)


def advantages(utilities: Array, kind: Advantage = "centred") -> Array:
    """Return A_i = u_i - mean of its group, for utilities (questions, G); zero if all of a group are equal.

    ``standardised`` divides by the sample standard deviation of the group, which the paper drops on purpose.
    """
    centred: Array = utilities - utilities.mean(axis=1, keepdims=True)
    # The mean of equal numbers need not be that number in floating point, and no rounding error is to be learned from.
    equal = np.all(utilities == utilities[:, :1], axis=1, keepdims=True)
    if kind == "standardised":
        centred /= np.where(equal, 1.0, utilities.std(axis=1, ddof=1, keepdims=True))
    return np.where(equal, 0.0, centred)


def loss(evaluation: Evaluation, advantage: Array, vae: Tensor, config: Config) -> Tensor:
    """Return ℒ = -mean(log π_i A_i) + α L_VAE - c_H H̄, the mean over all B · G trajectories."""
    policy = -(evaluation.log_prob * torch.from_numpy(advantage)).mean()
    return policy + config.vae_weight * vae - config.entropy_weight * evaluation.mean_entropy


def training_log(
    rewards: Array, costs: Array, advantage: Array, traces: Sequence[Trace], evaluation: Evaluation
) -> dict[str, float]:
    """Return the measures of an update (docs/gmr.md).

    Args:
        rewards: R of each trajectory, shape (questions, G).
        costs: λ_c · Cost(τ) of each trajectory, same shape.
        advantage: A of each trajectory, same shape.
        traces: Decisions of the trajectories.
        evaluation: Entropies of the decisions, in nats.
    """
    steps = [step for trace in traces for step in trace.steps]
    retrieved = [z for step in steps for z in step.retrieved]
    log = {
        "utility": float((rewards - costs).mean()),
        # Which of the two taught: the standard deviation within a group, mean over groups.
        "reward_deviation": float(rewards.std(axis=1).mean()),
        "cost_deviation": float(costs.std(axis=1).mean()),
        "equal_reward_groups": float(np.mean(np.ptp(rewards, axis=1) == 0)),
        "zero_advantage_groups": float(np.mean(np.all(advantage == 0, axis=1))),
        "steps": float(len(steps)),
        "write_rate": float(np.mean([step.written for step in steps])),
        "empty_memory": float(np.mean([not any(step.written for step in trace.steps) for trace in traces])),
    }
    if retrieved:
        log["retrieved"] = float(np.mean(retrieved))
    names = {"retrieve": "retrieval"}
    log |= {f"entropy_{names.get(name, name)}": value for name, value in evaluation.entropies.items()}
    return log | {f"max_probability_{name}": value for name, value in evaluation.top.items()}
