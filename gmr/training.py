"""One update: utility, group-relative advantage, loss and training log (paper, Optimization)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from gmr.config import Advantage, Config
from gmr.policy import Evaluation, Trace, evaluate
from gmr.router import Router
from harness.agents.trajectory import Answered
from harness.training.learning import Learning, check_on_policy, seed_of

Array = NDArray[np.float64]


def utility(answered: Answered, config: Config) -> float:
    """Return u = R - λ_c · Cost(τ), with R in {0, 1} and the cost of the ``charged`` calls (D-GMR-7)."""
    trajectory = answered.trajectory
    cost = trajectory.cost_steps if config.charged == "steps" else trajectory.cost_total
    return float(answered.verdict.correct) - config.lambda_c * cost


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


def loss(evaluation: Evaluation, advantage: Array, vae: torch.Tensor, config: Config) -> torch.Tensor:
    """Return ℒ = -mean(log π_i A_i) + α L_VAE - c_H H̄, the mean over all B · G trajectories."""
    policy = -(evaluation.log_prob * torch.from_numpy(advantage)).mean()
    return policy + config.vae_weight * vae - config.entropy_weight * evaluation.mean_entropy


def training_log(
    utilities: Array, rewards: Array, advantage: Array, traces: Sequence[Trace], evaluation: Evaluation
) -> dict[str, float]:
    """Return shares and mean entropies in nats of an update, for arrays of shape (questions, G)."""
    steps = [step for trace in traces for step in trace.steps]
    retrieved = [z for step in steps for z in step.retrieved]
    log = {
        "utility": float(utilities.mean()),
        "equal_reward_groups": float(np.mean(np.ptp(rewards, axis=1) == 0)),
        "zero_advantage_groups": float(np.mean(np.all(advantage == 0, axis=1))),
        "steps": float(len(steps)),
        "write_rate": float(np.mean([step.written for step in steps])),
        "empty_memory": float(np.mean([not any(step.written for step in trace.steps) for trace in traces])),
    }
    if retrieved:
        log["retrieved"] = float(np.mean(retrieved))
    log |= {f"entropy_{name}": value for name, value in evaluation.entropies.items()}
    return log | {f"max_probability_{name}": value for name, value in evaluation.top.items()}


def vae_noise(router: Router, seed: int, update: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the standard normal noise of one update for both autoencoders, shapes (R, 128) and (M, 128)."""
    generator = torch.Generator().manual_seed(seed_of("vae", seed, update))
    shapes = [latents.shape for latents in router.latents()]
    roles, backbones = (torch.randn(shape, generator=generator, dtype=torch.float64) for shape in shapes)
    return roles, backbones


def learn(
    learning: Learning[Router],
    answered: Sequence[Answered],
    traces: Sequence[Trace],
    config: Config,
    seed: int,
    update: int,
) -> dict[str, float]:
    """Take one step of the optimiser and return the training log; the noise of L_VAE is fixed by seed and update.

    Raises:
        RuntimeError: if the rollouts were sampled by another policy.
    """
    utilities = np.array([utility(rollout, config) for rollout in answered]).reshape(-1, config.group)
    rewards = np.array([float(rollout.verdict.correct) for rollout in answered]).reshape(-1, config.group)
    advantage = advantages(utilities, config.advantage)
    evaluation = evaluate(learning.network, traces)
    check_on_policy(evaluation.log_prob.detach().numpy(), [trace.log_prob for trace in traces])
    vae = learning.network.vae_loss(*vae_noise(learning.network, seed, update))
    total = loss(evaluation, advantage.ravel(), vae, config)
    learning.step(total)
    log = training_log(utilities, rewards, advantage, traces, evaluation)
    return {**log, "loss": total.item(), "vae_loss": vae.item()}
