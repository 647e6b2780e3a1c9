"""What training maximises: utility, and the loss made of it (methods §6.4)."""

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


def policy_loss(decided: Sequence[Decided], utilities: Sequence[float]) -> Tensor:
    """mean(-log π · u): REINFORCE without a baseline."""
    log_probs = torch.stack([one.log_prob for one in decided])
    return -(log_probs * torch.tensor(utilities, dtype=log_probs.dtype)).mean()


def task_loss(decided: Sequence[Decided], label: int) -> Tensor:
    """Cross-entropy of the classifier, on its logits (D-MR-3).

    Args:
        decided: Passes over questions of one benchmark.
        label: Index of the task of all of them.
    """
    logits = torch.stack([one.tasks for one in decided])
    return F.cross_entropy(logits, torch.full((len(decided),), label))
