"""The context c_t of every decision: the question, and what is stored as the question sees it.

Paper, State encoder, in its appendix on representations; D-GMR-15.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol, cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from gmr.latents import EMBEDDING, LATENT

CONTEXT = 2 * LATENT
_HEADS = 4
_FEED_FORWARD = 256
_LAYERS = 2


class Linear(Protocol):
    """A way to compute x Wᵀ + b for x of shape (rows, k, in)."""

    def __call__(self, x: Tensor, weight: Tensor, bias: Tensor, /) -> Tensor:
        """Shape (rows, k, out)."""


def by_row(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Every row in a matrix product of its own, which has the same shape whatever the number of rows.

    A product of all rows at once rounds by their number: which kernel computes a row, and how it splits a sum, follow
    from the size of the whole. Here a row has the same bytes in any company. A few rows
    cost no more than they would together; many cost nearly twice as much.
    """
    rows, k, _ = x.shape
    return torch.baddbmm(bias.expand(rows, k, -1), x, weight.T.expand(rows, -1, -1))


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
            history = history.index_put((some,), self.history(q_hat[some], tokens[some], stored[some], F.linear))
        return torch.cat([q_hat, history], dim=1)

    def history(self, q_hat: Tensor, tokens: Tensor, stored: Tensor, linear: Linear) -> Tensor:
        """The half of the contexts that reads the memory, shape (rows, 128), for rows with one record or more."""
        x = tokens + self.position[: tokens.shape[1]]
        for layer in cast(Iterable[nn.TransformerEncoderLayer], self.layers):
            its = layer.self_attn
            query, key, value = _heads(linear(layer.norm1(x), its.in_proj_weight, its.in_proj_bias), 3)
            x = x + _attended(its, query, key, value, stored, linear)
            hidden = F.relu(linear(layer.norm2(x), layer.linear1.weight, layer.linear1.bias))
            x = x + linear(hidden, layer.linear2.weight, layer.linear2.bias)
        weight, bias = self.attention.in_proj_weight, self.attention.in_proj_bias
        (query,) = _heads(linear(q_hat.unsqueeze(1), weight[:LATENT], bias[:LATENT]), 1)
        key, value = _heads(linear(x, weight[LATENT:], bias[LATENT:]), 2)
        return _attended(self.attention, query, key, value, stored, linear).squeeze(1)


def _layer() -> nn.TransformerEncoderLayer:
    """One layer's parameters; its own pass spends as long on preparing its products as on making them."""
    return nn.TransformerEncoderLayer(
        LATENT, _HEADS, dim_feedforward=_FEED_FORWARD, dropout=0.0, batch_first=True, norm_first=True
    )


def _heads(x: Tensor, parts: int) -> tuple[Tensor, ...]:
    """Splits (rows, k, parts · 128) into its parts by head, shape (rows, heads, k, 32) each."""
    return x.unflatten(2, (parts, _HEADS, -1)).permute(2, 0, 3, 1, 4).unbind()


def _attended(
    of: nn.MultiheadAttention, query: Tensor, key: Tensor, value: Tensor, stored: Tensor, linear: Linear
) -> Tensor:
    """Attention of n queries to the stored records, all by head: shape (rows, n, 128)."""
    seen = F.scaled_dot_product_attention(query, key, value, attn_mask=stored[:, None, None, :])
    return linear(seen.transpose(1, 2).flatten(2), of.out_proj.weight, of.out_proj.bias)
