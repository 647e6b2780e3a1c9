"""Who acts next: the distribution over roles, and over backbones given the role.

Paper, History-Aware Role Allocator and LLM Router; D-GMR-1 has the scale of the scores.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from gmr.config import Score
from gmr.latents import LATENT
from gmr.state_encoder import CONTEXT

_INITIAL_SCALE = 5.0


class PoolSoftmax(nn.Module):
    """A softmax over a pool of latents, by their match with a query.

    Attributes:
        scale: The learned factor of the cosine; ``None`` for the scaled dot product.
    """

    def __init__(self, score: Score) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.tensor(_INITIAL_SCALE)) if score == "cosine" else None

    def forward(self, query: Tensor, pool: Tensor) -> Tensor:
        """Log-probabilities, shape (rows, pool), for queries (rows, 128) and latents (pool, 128)."""
        if self.scale is None:
            logits = query @ pool.T / math.sqrt(LATENT)
        else:
            logits = self.scale * (F.normalize(query, dim=1) @ F.normalize(pool, dim=1).T)
        return F.log_softmax(logits, dim=1)


class RoleAllocator(nn.Module):
    """The policy π_r over roles."""

    def __init__(self, score: Score) -> None:
        super().__init__()
        self.W_r = nn.Linear(CONTEXT, LATENT, bias=False)
        self.softmax = PoolSoftmax(score)

    def forward(self, context: Tensor, roles: Tensor) -> Tensor:
        """Log-probabilities, shape (rows, R), for contexts (rows, 256) and the latents of all roles (R, 128)."""
        return self.softmax(self.W_r(context), roles)


class LLMRouter(nn.Module):
    """The policy π_m over backbones, given the role."""

    def __init__(self, score: Score) -> None:
        super().__init__()
        self.g = nn.Linear(CONTEXT + LATENT, LATENT)
        self.softmax = PoolSoftmax(score)

    def forward(self, context: Tensor, role: Tensor, backbones: Tensor) -> Tensor:
        """Log-probabilities, shape (rows, M).

        Args:
            context: Shape (rows, 256).
            role: Latent of the role of each row, shape (rows, 128).
            backbones: Latents of all backbones, shape (M, 128).
        """
        return self.softmax(self.g(torch.cat([context, role], dim=1)), backbones)
