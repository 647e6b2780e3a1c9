"""Batched decisions of a policy: sampled with given uniform numbers, or replayed from recorded indices."""

import torch
from torch import Tensor

from harness.agents.trajectory import DRAWN_DECIMALS, sample


def choose(log_probs: Tensor, uniforms: Tensor, *, greedy: bool = False) -> Tensor:
    """Choose one option per row of ``log_probs`` (rows, options). Returns indices (rows,).

    ``uniforms`` (rows,) are uniform numbers, ignored if greedy, or integer indices to replay.
    """
    if not uniforms.is_floating_point():
        return uniforms
    probabilities = log_probs.exp().numpy()
    if greedy:
        return torch.from_numpy(probabilities.round(DRAWN_DECIMALS).argmax(axis=-1))
    return torch.from_numpy(sample(probabilities, uniforms.numpy()))


def open_gates(log_probs: Tensor, uniforms: Tensor, *, greedy: bool = False) -> Tensor:
    """Sample Bernoulli gates from log P(closed, open) of shape (..., 2). Returns 1 for open, shape (...).

    ``uniforms`` (...) are as for :func:`choose`. A greedy gate opens above probability 0.5.
    """
    if not uniforms.is_floating_point():
        return uniforms
    threshold = torch.full_like(uniforms, 0.5) if greedy else uniforms
    return (threshold < log_probs[..., 1].exp().round(decimals=DRAWN_DECIMALS)).long()
