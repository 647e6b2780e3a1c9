"""Batched decisions of a policy: sampled with given uniform numbers, or replayed from recorded indices."""

from __future__ import annotations

import torch
from torch import Tensor

from harness.agents.trajectory import DRAWN_DECIMALS, sample


def choose(log_probs: Tensor, uniforms: Tensor, *, greedy: bool = False) -> Tensor:
    """Choose one option per row.

    Args:
        log_probs: Shape (rows, options).
        uniforms: Uniform numbers, shape (rows,), or integer indices to replay.
        greedy: Take the argmax and ignore ``uniforms``.

    Returns:
        Indices, shape (rows,).
    """
    if not uniforms.is_floating_point():
        return uniforms
    probabilities = log_probs.exp().numpy()
    if greedy:
        return torch.from_numpy(probabilities.round(DRAWN_DECIMALS).argmax(axis=-1))
    return torch.from_numpy(sample(probabilities, uniforms.numpy()))


def open_gates(log_probs: Tensor, uniforms: Tensor, *, greedy: bool = False) -> Tensor:
    """Sample Bernoulli gates. A greedy gate opens above probability 0.5.

    Args:
        log_probs: Log-probabilities of closed and open, shape (..., 2).
        uniforms: Uniform numbers, shape (...), or integer outcomes to replay.
        greedy: Compare with 0.5 instead of ``uniforms``.

    Returns:
        1 for open, 0 for closed, shape (...).
    """
    if not uniforms.is_floating_point():
        return uniforms
    threshold = torch.full_like(uniforms, 0.5) if greedy else uniforms
    return (threshold < log_probs[..., 1].exp().round(decimals=DRAWN_DECIMALS)).long()
