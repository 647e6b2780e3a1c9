"""When a trajectory ends: a recurrent state that reads the stored records only, never the question.

Paper, Adaptive Halting Controller; D-GMR-2, D-GMR-3.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from gmr.latents import LATENT

_HIDDEN = 64


class Halting(nn.Module):
    """A GRU over pooled memories and the logit of halting read from its state, which is zero before the first step.

    Args:
        bias: Initial bias of the logit, which sets the depth before training.
    """

    def __init__(self, bias: float) -> None:
        super().__init__()
        self.gru = nn.GRUCell(LATENT, LATENT)
        output = nn.Linear(_HIDDEN, 1)
        nn.init.constant_(output.bias, bias)
        self.mlp = nn.Sequential(nn.Linear(LATENT, _HIDDEN), nn.ReLU(), output)

    def advance(self, pooled: Tensor, state: Tensor) -> Tensor:
        """The halting states after a step, shape (rows, 128), from the pooled memory S_t and the states before."""
        return self.gru(pooled, state)

    def forward(self, state: Tensor) -> Tensor:
        """Logits of halting, shape (rows,), for halting states of shape (rows, 128)."""
        return self.mlp(state).squeeze(1)


def pool(tokens: Tensor, stored: Tensor) -> Tensor:
    """Mean of the tokens that each row holds, shape (rows, 128); zero where it holds none.

    Args:
        tokens: Tokens without positions, shape (rows, k, 128); k may be 0.
        stored: Which of them each row holds, boolean, shape (rows, k).
    """
    total = torch.where(stored.unsqueeze(2), tokens, 0.0).sum(dim=1)
    return total / stored.sum(dim=1, keepdim=True).clamp(min=1)
