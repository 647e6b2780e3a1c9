"""The context c_t of every decision: the question, and what is stored as the question sees it (methods §7.4)."""

from __future__ import annotations

from typing import Self

import torch
from torch import Tensor, nn

from gmr.latents import EMBEDDING, LATENT

CONTEXT = 2 * LATENT
_HEADS = 4
_FEED_FORWARD = 256
_LAYERS = 2


class StateEncoder(nn.Module):
    """Tokens of the stored records, a transformer over them, and an attention from the question to the result.

    Args:
        max_depth: Most records a memory can hold, the size of the table of positions.
    """

    def __init__(self, max_depth: int) -> None:
        super().__init__()
        self.W_q = nn.Linear(EMBEDDING, LATENT, bias=False)
        self.W_g = nn.Linear(EMBEDDING, LATENT, bias=False)
        self.position = nn.Parameter(nn.init.normal_(torch.empty(max_depth, LATENT), std=0.02))
        self.layers = nn.ModuleList(_layer() for _ in range(_LAYERS))
        self.attention = nn.MultiheadAttention(LATENT, _HEADS, batch_first=True)
        self.h_empty = nn.Parameter(torch.zeros(LATENT))

    def train(self, mode: bool = True) -> Self:
        """Stays in training mode whatever is asked.

        Nothing here depends on the mode but torch's fused inference kernels, which round differently from the path
        that the gradient takes.
        """
        return super().train(True)

    def token(self, role: Tensor, backbone: Tensor, response: Tensor) -> Tensor:
        """Token u_j of a record, without its position: shape (..., 128).

        Args:
            role: Latent of its role, shape (..., 128).
            backbone: Latent of its backbone, shape (..., 128).
            response: Embedding of its response, shape (..., 384).
        """
        return role + backbone + torch.sigmoid(self.W_g(response))

    def forward(self, q_hat: Tensor, tokens: Tensor, stored: Tensor) -> Tensor:
        """Contexts c_t, shape (rows, 256).

        Args:
            q_hat: Projected questions W_q q, shape (rows, 128).
            tokens: Tokens of the records in memory order, shape (rows, k, 128); k may be 0.
            stored: Which of them each row holds, a prefix of each row, boolean, shape (rows, k).
        """
        some = stored.any(dim=1)
        history = self.h_empty.expand(len(q_hat), LATENT)
        if some.any():
            # Rows without a record stay out: a softmax over nothing is NaN, in the gradient also where it is masked.
            history = history.index_put((some,), self._history(q_hat[some], tokens[some], ~stored[some]))
        return torch.cat([q_hat, history], dim=1)

    def _history(self, q_hat: Tensor, tokens: Tensor, padding: Tensor) -> Tensor:
        encoded = tokens + self.position[: tokens.shape[1]]
        for layer in self.layers:
            encoded = layer(encoded, src_key_padding_mask=padding)
        query = q_hat.unsqueeze(1)
        pooled, _ = self.attention(query, encoded, encoded, key_padding_mask=padding, need_weights=False)
        return pooled.squeeze(1)


def _layer() -> nn.TransformerEncoderLayer:
    return nn.TransformerEncoderLayer(
        LATENT, _HEADS, dim_feedforward=_FEED_FORWARD, dropout=0.0, batch_first=True, norm_first=True
    )
