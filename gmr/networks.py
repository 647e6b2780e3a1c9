"""The networks of a router, in the order of the paper (Method; D-GMR-1, D-GMR-2, D-GMR-3, D-GMR-15)."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from gmr.config import Score, VaeKL
from harness.training.rows import Linear, by_row

EMBEDDING = 384
LATENT = 128
CONTEXT = 2 * LATENT
_VAE_HIDDEN = 256
_HEADS = 4
_FEED_FORWARD = 256
_LAYERS = 2
_HALTING_HIDDEN = 64
_INITIAL_SCALE = 5.0
_INITIAL_SHARPNESS = 5.0


class ProfileVAE(nn.Module):
    """A variational autoencoder over profiles; policies use the mean of the posterior, the loss a sample."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(EMBEDDING, _VAE_HIDDEN), nn.ReLU())
        self.mu = nn.Linear(_VAE_HIDDEN, LATENT)
        self.logvar = nn.Linear(_VAE_HIDDEN, LATENT)
        self.decoder = nn.Sequential(nn.Linear(LATENT, _VAE_HIDDEN), nn.ReLU(), nn.Linear(_VAE_HIDDEN, EMBEDDING))

    def forward(self, profiles: Tensor) -> Tensor:
        """Posterior means, shape (pool, 128), of profiles of shape (pool, 384)."""
        return self.mu(self.encoder(profiles))

    def loss(self, profiles: Tensor, noise: Tensor, kl: VaeKL) -> Tensor:
        """Reconstruction error plus KL from N(0, I), mean over the pool (D-GMR-12), for noise (pool, 128)."""
        hidden = self.encoder(profiles)
        mu, logvar = self.mu(hidden), self.logvar(hidden)
        rebuilt = self.decoder(mu + torch.exp(0.5 * logvar) * noise)
        divergence = 0.5 * (mu**2 + logvar.exp() - 1 - logvar)
        over_dimensions = divergence.sum(dim=1) if kl == "sum" else divergence.mean(dim=1)
        return F.mse_loss(rebuilt, profiles) + over_dimensions.mean()


class StateEncoder(nn.Module):
    """Tokens of at most ``max_depth`` stored records, a transformer over them, an attention from the question to it."""

    def __init__(self, max_depth: int) -> None:
        super().__init__()
        self.W_q = Linear(EMBEDDING, LATENT, bias=False)
        self.W_g = Linear(EMBEDDING, LATENT, bias=False)
        self.position = nn.Parameter(nn.init.normal_(torch.empty(max_depth, LATENT), std=0.02))
        self.layers = nn.ModuleList(_layer() for _ in range(_LAYERS))
        self.attention = nn.MultiheadAttention(LATENT, _HEADS, batch_first=True)
        self.h_empty = nn.Parameter(torch.zeros(LATENT))

    def token(self, role: Tensor, backbone: Tensor, response: Tensor) -> Tensor:
        """Tokens u_j of records, without their positions, shape (rows, 128), for responses of shape (rows, 384)."""
        return role + backbone + torch.sigmoid(self.W_g(response))

    def forward(self, q_hat: Tensor, tokens: Tensor, stored: Tensor) -> Tensor:
        """Contexts c_t (rows, 256) for W_q q (rows, 128) and tokens (rows, φ, 128), of which a prefix is stored."""
        some = stored.any(dim=1)
        history = self.h_empty.expand(len(q_hat), LATENT)
        if some.any():
            # Rows without a record stay out: a softmax over nothing is NaN, in the gradient also where it is masked.
            history = history.index_put((some,), self._history(q_hat[some], tokens[some], stored[some]))
        return torch.cat([q_hat, history], dim=1)

    def _history(self, q_hat: Tensor, tokens: Tensor, stored: Tensor) -> Tensor:
        x = tokens + self.position
        for layer in cast(Iterable[nn.TransformerEncoderLayer], self.layers):
            its = layer.self_attn
            query, key, value = _heads(by_row(layer.norm1(x), its.in_proj_weight, its.in_proj_bias), 3)
            x = x + _attended(its, query, key, value, stored)
            hidden = F.relu(by_row(layer.norm2(x), layer.linear1.weight, layer.linear1.bias))
            x = x + by_row(hidden, layer.linear2.weight, layer.linear2.bias)
        weight, bias = self.attention.in_proj_weight, self.attention.in_proj_bias
        (query,) = _heads(by_row(q_hat.unsqueeze(1), weight[:LATENT], bias[:LATENT]), 1)
        key, value = _heads(by_row(x, weight[LATENT:], bias[LATENT:]), 2)
        return _attended(self.attention, query, key, value, stored).squeeze(1)


def _layer() -> nn.TransformerEncoderLayer:
    """One layer's parameters; its own pass shows which rows are computed together."""
    return nn.TransformerEncoderLayer(
        LATENT, _HEADS, dim_feedforward=_FEED_FORWARD, dropout=0.0, batch_first=True, norm_first=True
    )


def _heads(x: Tensor, parts: int) -> tuple[Tensor, ...]:
    """Splits (rows, k, parts · 128) into its parts by head, shape (rows, heads, k, 32) each."""
    return x.unflatten(2, (parts, _HEADS, -1)).permute(2, 0, 3, 1, 4).unbind()


def _attended(of: nn.MultiheadAttention, query: Tensor, key: Tensor, value: Tensor, stored: Tensor) -> Tensor:
    """Attention of n queries to the stored records, all by head: shape (rows, n, 128)."""
    seen = F.scaled_dot_product_attention(query, key, value, attn_mask=stored[:, None, None, :])
    return by_row(seen.transpose(1, 2).flatten(2), of.out_proj.weight, of.out_proj.bias)


class PoolSoftmax(nn.Module):
    """Softmax over latents by their match with a query: cosine with a learned scale, or dot product over √128."""

    def __init__(self, score: Score) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.tensor(_INITIAL_SCALE)) if score == "cosine" else None

    def forward(self, query: Tensor, pool: Tensor) -> Tensor:
        """Log-probabilities, shape (rows, pool), for queries (rows, 128) and latents (pool, 128)."""
        if self.scale is None:
            logits = _products(query, pool) / math.sqrt(LATENT)
        else:
            logits = self.scale * _products(F.normalize(query, dim=1), F.normalize(pool, dim=1))
        return F.log_softmax(logits, dim=1)


def _products(queries: Tensor, pool: Tensor) -> Tensor:
    return by_row(queries.unsqueeze(1), pool).squeeze(1)


class RoleAllocator(nn.Module):
    """The policy π_r over roles."""

    def __init__(self, score: Score) -> None:
        super().__init__()
        self.W_r = Linear(CONTEXT, LATENT, bias=False)
        self.softmax = PoolSoftmax(score)

    def forward(self, context: Tensor, roles: Tensor) -> Tensor:
        """Log-probabilities, shape (rows, R), for contexts (rows, 256) and the latents of all roles (R, 128)."""
        return self.softmax(self.W_r(context), roles)


class LLMRouter(nn.Module):
    """The policy π_m over backbones, given the role."""

    def __init__(self, score: Score) -> None:
        super().__init__()
        self.g = Linear(CONTEXT + LATENT, LATENT)
        self.softmax = PoolSoftmax(score)

    def forward(self, context: Tensor, role: Tensor, backbones: Tensor) -> Tensor:
        """Log-probabilities, shape (rows, M), for contexts (rows, 256) and the latents of the roles (rows, 128)."""
        return self.softmax(self.g(torch.cat([context, role], dim=1)), backbones)


class RetrievalGate(nn.Module):
    """Whether the agent of this step sees a record: a Bernoulli draw for each, by a scaled cosine."""

    def __init__(self) -> None:
        super().__init__()
        self.W_p = Linear(EMBEDDING + 2 * LATENT, LATENT, bias=False)
        self.W_v = Linear(3 * LATENT, LATENT, bias=False)
        self.W_y = Linear(EMBEDDING, LATENT, bias=False)
        self.s = nn.Parameter(torch.tensor(_INITIAL_SHARPNESS))
        self.b = nn.Parameter(torch.tensor(0.0))

    def record(self, role: Tensor, backbone: Tensor, response: Tensor) -> Tensor:
        """Directions v_j / |v_j| of records, shape (rows, 128); they never change, so one pass a record is enough."""
        return F.normalize(self.W_v(torch.cat([role, backbone, self.W_y(response)], dim=-1)), dim=-1)

    def forward(self, question: Tensor, role: Tensor, backbone: Tensor, records: Tensor) -> Tensor:
        """Log-probabilities (rows, φ, 2), for questions (rows, 384), latents (rows, 128), records (rows, φ, 128)."""
        query = F.normalize(self.W_p(torch.cat([question, role, backbone], dim=1)), dim=1)
        return bernoulli(self.s * _cosines(query, records) + self.b)


class WriteGate(nn.Module):
    """Whether a response is stored: relevance to the context against likeness to what is stored."""

    def __init__(self) -> None:
        super().__init__()
        self.P_y = Linear(EMBEDDING, LATENT, bias=False)
        self.P_c = Linear(CONTEXT, LATENT, bias=False)
        self.a = nn.Parameter(torch.tensor(0.0))  # logit of the weight λ of relevance
        # Sharpness β before softplus, which keeps it positive.
        self.beta = nn.Parameter(torch.tensor(math.log(math.expm1(_INITIAL_SHARPNESS)), dtype=torch.float64))
        self.theta = nn.Parameter(torch.tensor(0.0))

    def direction(self, response: Tensor) -> Tensor:
        """Directions of P_y y, shape (rows, 128), for responses of shape (rows, 384)."""
        return F.normalize(self.P_y(response), dim=-1)

    def forward(self, context: Tensor, response: Tensor, records: Tensor, stored: Tensor) -> Tensor:
        """Log-probabilities (rows, 2) by the logit β(ω_t − θ), for contexts before the step (rows, 256)."""
        relevance = (response * F.normalize(self.P_c(context), dim=1)).sum(dim=1)
        weight = torch.sigmoid(self.a)
        omega = weight * relevance - (1 - weight) * _closest(response, records, stored)
        return bernoulli(F.softplus(self.beta) * (omega - self.theta))


def _closest(response: Tensor, records: Tensor, stored: Tensor) -> Tensor:
    """Largest cosine to a stored record, shape (rows,); 0 where nothing is stored, so that the term is absent."""
    closest = _cosines(response, records).masked_fill(~stored, -torch.inf).amax(dim=1)
    return torch.where(stored.any(dim=1), closest, 0.0)


def _cosines(queries: Tensor, records: Tensor) -> Tensor:
    return (records * queries.unsqueeze(1)).sum(dim=2)


class Halting(nn.Module):
    """A GRU over pooled memories and the logit of halting, whose initial bias sets the depth before training."""

    def __init__(self, bias: float) -> None:
        super().__init__()
        self.gru = nn.GRUCell(LATENT, LATENT)
        output = Linear(_HALTING_HIDDEN, 1)
        nn.init.constant_(output.bias, bias)
        self.mlp = nn.Sequential(Linear(LATENT, _HALTING_HIDDEN), nn.ReLU(), output)

    def advance(self, pooled: Tensor, state: Tensor) -> Tensor:
        """The halting states after a step, shape (rows, 128), from the pooled memory S_t and the states before."""
        gru = self.gru
        of_x = by_row(pooled.unsqueeze(1), gru.weight_ih, gru.bias_ih).squeeze(1).chunk(3, dim=1)
        of_h = by_row(state.unsqueeze(1), gru.weight_hh, gru.bias_hh).squeeze(1).chunk(3, dim=1)
        reset, update = torch.sigmoid(of_x[0] + of_h[0]), torch.sigmoid(of_x[1] + of_h[1])
        return (1 - update) * torch.tanh(of_x[2] + reset * of_h[2]) + update * state

    def forward(self, state: Tensor) -> Tensor:
        """Log-probabilities of going on and of halting, shape (rows, 2), for halting states of shape (rows, 128)."""
        return bernoulli(self.mlp(state).squeeze(1))


def bernoulli(logits: Tensor) -> Tensor:
    """Log-probabilities of no and yes, shape (..., 2), for logits of yes."""
    # As a softmax, which torch computes by row: what it does entry by entry can round by the place of an entry.
    return F.log_softmax(F.pad(logits.unsqueeze(-1), (1, 0)), dim=-1)


def pool(tokens: Tensor, stored: Tensor) -> Tensor:
    """Mean of the tokens (rows, φ, 128) that each row holds, shape (rows, 128); zero where it holds none."""
    total = torch.where(stored.unsqueeze(2), tokens, 0.0).sum(dim=1)
    return total / stored.sum(dim=1, keepdim=True).clamp(min=1)
