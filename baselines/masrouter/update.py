"""One optimiser step from the graded rollouts of a batch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from torch import Tensor

from baselines.masrouter.objective import policy_loss, task_loss
from baselines.masrouter.pool import Pool
from baselines.masrouter.router import Decided, Router
from baselines.masrouter.trace import Trace
from harness.results import Answered, Utility
from harness.training.learning import Learning, check_on_policy


def learn(
    learning: Learning[Router],
    answered: Sequence[Answered],
    traces: Sequence[Trace],
    pool: Pool,
    *,
    utility: Utility,
    vae_weight: float,
) -> dict[str, float]:
    """Take one step of the optimiser.

    Args:
        learning: The router that sampled the traces, unchanged since; it is changed here.
        answered: The graded trajectories.
        traces: Their decisions, in the same order.
        pool: What the router chooses from.
        utility: What a trajectory is worth.
        vae_weight: Weight of the autoencoders.

    Returns:
        What the training log holds of the update.

    Raises:
        RuntimeError: The log-probabilities computed again differ from those sampled.
    """
    utilities = [utility(one) for one in answered]
    decided = learning.network.again(traces)
    check_choices(decided, traces)
    check_on_policy(decided.log_prob.detach().numpy(), [trace.log_prob for trace in traces])
    task, policy = task_loss(decided, pool.label), policy_loss(decided, utilities)
    vae = learning.network.vae_loss(traces)
    total = task + policy + vae_weight * vae
    learning.step(total)
    return {
        "utility": sum(utilities) / len(utilities),
        **_of_decisions(decided, pool),
        "loss": total.item(),
        "task_loss": task.item(),
        "policy_loss": policy.item(),
        "vae_loss": vae.item(),
    }


def check_choices(decided: Decided, traces: Sequence[Trace]) -> None:
    """Refuse to learn where the pass computed again comes to other choices, such as another number of agents.

    Raises:
        RuntimeError: It does.
    """
    for choices, trace in zip(decided.choices, traces, strict=True):
        if choices != trace.choices:
            raise RuntimeError(
                f"computed again, there are {len(choices.roles)} agents where there were "
                f"{len(trace.choices.roles)}: the update is not on-policy"
            )


def _of_decisions(decided: Decided, pool: Pool) -> dict[str, float]:
    count = len(decided.choices)
    chosen = Counter(choices.mode for choices in decided.choices)
    right = int((decided.tasks.argmax(dim=1) == pool.label).sum())
    return {
        "classifier_accuracy": right / count,
        **{f"share_{mode.name}": chosen[index] / count for index, mode in enumerate(pool.modes)},
        "agents": sum(len(choices.roles) for choices in decided.choices) / count,
        "entropy_mode": _mean_entropy(decided.modes.detach()),
        "entropy_backbone": _mean_entropy(decided.backbones.detach()),
    }


def _mean_entropy(rows: Tensor) -> float:
    """Mean entropy in nats of distributions given by their log-probabilities."""
    return -(rows.exp() * rows).sum(dim=1).mean().item()
