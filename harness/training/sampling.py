"""Decisions of a policy for many rows at once, drawn by uniform numbers or repeated as recorded."""

from __future__ import annotations

import torch
from torch import Tensor

from harness.agents.trajectory import DRAWN_DECIMALS, sample


def choose(log_probs: Tensor, uniforms: Tensor, *, greedy: bool = False) -> Tensor:
    """Choose an option for each row of log-probabilities (rows, options); return the indices, shape (rows,).

    ``uniforms`` are uniform numbers, which a greedy choice leaves aside, or recorded indices, which are returned.
    """
    if not uniforms.is_floating_point():
        return uniforms
    probabilities = log_probs.exp().numpy()
    if greedy:
        return torch.from_numpy(probabilities.round(DRAWN_DECIMALS).argmax(axis=-1))
    return torch.from_numpy(sample(probabilities, uniforms.numpy()))


def open_gates(log_probs: Tensor, uniforms: Tensor, *, greedy: bool = False) -> Tensor:
    """Open gates with log-probabilities of no and yes in the last dimension; return 1 where one is open, else 0.

    ``uniforms`` are as for :func:`choose`; a greedy gate opens above one half.
    """
    if not uniforms.is_floating_point():
        return uniforms
    threshold = torch.full_like(uniforms, 0.5) if greedy else uniforms
    return (threshold < log_probs[..., 1].exp().round(decimals=DRAWN_DECIMALS)).long()
