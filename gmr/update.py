"""One optimiser step from the graded rollouts of a batch (paper, Optimization)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from gmr import measures
from gmr.config import Config
from gmr.learning import vae_noise
from gmr.objective import advantages, loss, utility
from gmr.padded import evaluate
from gmr.router import Router
from gmr.trace import Trace
from harness.results import Answered
from harness.training.learning import Learning, check_on_policy

Array = NDArray[np.float64]


def learn(
    learning: Learning[Router],
    answered: Sequence[Answered],
    traces: Sequence[Trace],
    config: Config,
    noise: tuple[int, int],
) -> dict[str, float]:
    """Take one step of the optimiser.

    Args:
        learning: The router that sampled the traces, unchanged since; it is changed here.
        answered: The graded trajectories, those of one question together.
        traces: Their decisions, in the same order.
        config: Group size and weights.
        noise: Training seed and number of the update, which fix the draws of the autoencoders.

    Returns:
        What the training log holds of the update.

    Raises:
        RuntimeError: The log-probabilities computed again differ from those sampled.
    """
    utilities = _grouped([utility(one, config) for one in answered], config)
    rewards = _grouped([float(one.verdict.correct) for one in answered], config)
    advantage = advantages(utilities)
    evaluation = evaluate(learning.network, traces)
    sampled = [sum(step.log_prob for step in trace.steps) for trace in traces]
    check_on_policy(evaluation.log_prob.detach().numpy(), sampled)
    vae = learning.network.vae_loss(*vae_noise(learning.network, *noise))
    total = loss(evaluation, advantage.ravel(), vae, config)
    learning.step(total)
    return {
        **measures.of_rewards(utilities, rewards, advantage),
        **measures.of_traces(traces),
        **measures.of_policy(evaluation),
        "loss": total.item(),
        "vae_loss": vae.item(),
    }


def _grouped(values: Sequence[float], config: Config) -> Array:
    return np.array(values, dtype=np.float64).reshape(-1, config.group)
