"""What training maximises: utility, the group-relative advantage, and the loss (paper, Optimization)."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

from gmr.config import Config
from gmr.padded import Evaluation
from harness.results import Answered

Array = NDArray[np.float64]


def utility(answered: Answered, config: Config) -> float:
    """U = R - λ_c · Cost(τ), with R in {0, 1} and the cost in the paper's unit."""
    trajectory = answered.trajectory
    cost = trajectory.cost_total if config.reward_cost == "all" else trajectory.cost_steps
    return float(answered.verdict.correct) - config.lambda_c * cost


def advantages(utilities: Array) -> Array:
    """Utilities less the mean of their group; not divided by its standard deviation.

    Args:
        utilities: Shape (questions, G).

    Returns:
        Same shape; every row sums to zero, and is exactly zero where its utilities are equal.
    """
    centred: Array = utilities - utilities.mean(axis=1, keepdims=True)
    # The mean of equal numbers need not be that number in floating point; nothing may be learned from its rounding.
    equal = np.all(utilities == utilities[:, :1], axis=1, keepdims=True)
    return np.where(equal, 0.0, centred)


def loss(evaluation: Evaluation, advantage: Array, vae: torch.Tensor, config: Config) -> torch.Tensor:
    """ℒ = -mean(log π · A) + α · L_VAE - c_H · H̄, the mean over all B · G trajectories.

    Args:
        evaluation: Log-probabilities and entropies of the trajectories, with gradient.
        advantage: Shape (trajectories,), a constant.
        vae: Loss of the two autoencoders.
        config: Gives α and c_H.
    """
    policy = -(evaluation.log_prob * torch.from_numpy(advantage)).mean()
    return policy + config.vae_weight * vae - config.entropy_weight * evaluation.mean_entropy
