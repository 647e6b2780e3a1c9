"""What training maximises: utility, and the loss made of it (D-MR-3, D-MR-5)."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812

from baselines.masrouter.router import Decided
from harness.results import Answered


def utility(answered: Answered, kappa: float) -> float:
    """What an attempt is worth: u = correct - κ · cost, with the cost of all its calls, the final one included.

    Args:
        answered: A graded trajectory.
        kappa: Weight κ of cost, which is in the paper's unit.
    """
    return float(answered.verdict.correct) - kappa * answered.trajectory.cost_total


def policy_loss(decided: Decided, utilities: Sequence[float]) -> Tensor:
    """mean(-log π · u): REINFORCE without a baseline."""
    return -(decided.log_prob * torch.tensor(utilities, dtype=decided.log_prob.dtype)).mean()


def task_loss(decided: Decided, label: int) -> Tensor:
    """Cross-entropy of the classifier, on its logits (D-MR-3).

    Args:
        decided: A pass over questions of one benchmark.
        label: Index of the task of all of them.
    """
    return F.cross_entropy(decided.tasks, torch.full((len(decided.tasks),), label))
