"""One optimiser step from the graded rollouts of a batch (methods §7.10)."""

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
from harness.learning import Learning
from harness.results import Answered

LOG_PROB_TOLERANCE = 1e-5

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
    check_log_probs(evaluation.log_prob.detach().numpy(), traces)
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


def check_log_probs(again: Array, traces: Sequence[Trace]) -> None:
    """Refuse to learn from rollouts that another policy sampled.

    Args:
        again: Log-probabilities of the trajectories, computed in the padded pass.
        traces: The trajectories, with their log-probabilities as sampled.

    Raises:
        RuntimeError: A difference above 1e-5.
    """
    sampled = np.array([sum(step.log_prob for step in trace.steps) for trace in traces])
    worst = float(np.abs(again - sampled).max())
    if not worst <= LOG_PROB_TOLERANCE:
        raise RuntimeError(
            f"log-probabilities computed again differ from the sampled ones by {worst:.2e} (limit "
            f"{LOG_PROB_TOLERANCE:.0e}): the update is not on-policy"
        )


def _grouped(values: Sequence[float], config: Config) -> Array:
    return np.array(values, dtype=np.float64).reshape(-1, config.group)
