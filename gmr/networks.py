"""Networks of the router in the paper's order (Methodology; appendix on representations; D-GMR-1, 2, 3 and 15)."""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from gmr.config import Score, VaeKL
from harness.llm.encoder import EMBEDDING

LATENT = 128
CONTEXT = 2 * LATENT
_VAE_HIDDEN = 256
_HEADS = 4
_HALTING_HIDDEN = 64
_INITIAL_SHARPNESS = 5.0  # initial scale of cosine scores and of both gates


class ProfileVAE(nn.Module):
    """Variational autoencoder of profile embeddings. Policies use the posterior mean, the loss a sample."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(EMBEDDING, _VAE_HIDDEN), nn.ReLU())
        self.mu = nn.Linear(_VAE_HIDDEN, LATENT)
        self.logvar = nn.Linear(_VAE_HIDDEN, LATENT)
        self.decoder = nn.Sequential(nn.Linear(LATENT, _VAE_HIDDEN), nn.ReLU(), nn.Linear(_VAE_HIDDEN, EMBEDDING))

    def forward(self, profiles: Tensor) -> Tensor:
        """Map profiles (pool, 384) to posterior means (pool, 128)."""
        return self.mu(self.encoder(profiles))

    def loss(self, profiles: Tensor, generator: torch.Generator, kl: VaeKL) -> Tensor:
        """Compute the mean reconstruction error plus KL divergence from N(0, I) of profiles (pool, 384) (D-GMR-12)."""
        hidden = self.encoder(profiles)
        mu, logvar = self.mu(hidden), self.logvar(hidden)
        noise = torch.randn(mu.shape, generator=generator, dtype=mu.dtype)
        reconstruction = self.decoder(mu + torch.exp(0.5 * logvar) * noise)
        divergence = 0.5 * (mu**2 + logvar.exp() - 1 - logvar)
        per_profile = divergence.sum(dim=1) if kl == "sum" else divergence.mean(dim=1)
        return F.mse_loss(reconstruction, profiles) + per_profile.mean()


class StateEncoder(nn.Module):
    """Context c_t = [q̂ ‖ h_t]: a transformer over the stored records, then attention from the question to them."""

    def __init__(self, max_depth: int) -> None:
        super().__init__()
        self.W_q = nn.Linear(EMBEDDING, LATENT, bias=False)
        self.W_g = nn.Linear(EMBEDDING, LATENT, bias=False)
        self.position = nn.Parameter(nn.init.normal_(torch.empty(max_depth, LATENT), std=0.02))
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(
                LATENT, _HEADS, dim_feedforward=256, dropout=0.0, batch_first=True, norm_first=True
            )
            for _ in range(2)
        )
        self.attention = nn.MultiheadAttention(LATENT, _HEADS, batch_first=True)
        self.h_empty = nn.Parameter(torch.zeros(LATENT))

    def token(self, role: Tensor, backbone: Tensor, response: Tensor) -> Tensor:
        """Map latents r_j and m_j (rows, 128) and responses y_j (rows, 384) to tokens u_j (rows, 128)."""
        return role + backbone + torch.sigmoid(self.W_g(response))

    def forward(self, q_hat: Tensor, tokens: Tensor, stored: Tensor) -> Tensor:
        """Map q̂ = W_q q (rows, 128) and tokens (rows, φ, 128) to contexts c_t (rows, 256).

        ``stored`` (rows, φ) masks the filled slots, which come first.
        """
        history = self.h_empty.expand_as(q_hat)
        rows = stored.any(dim=1)
        # Attention over an empty memory is NaN.
        if rows.any():
            history = history.index_put((rows,), self._history(q_hat[rows], tokens[rows], stored[rows]))
        return torch.cat([q_hat, history], dim=1)

    def _history(self, q_hat: Tensor, tokens: Tensor, stored: Tensor) -> Tensor:
        longest = int(stored.sum(dim=1).max())
        x = (tokens + self.position)[:, :longest]
        padding = ~stored[:, :longest]
        for layer in self.layers:
            x = layer(x, src_key_padding_mask=padding)
        history, _ = self.attention(q_hat.unsqueeze(1), x, x, key_padding_mask=padding, need_weights=False)
        return history.squeeze(1)


class PoolSoftmax(nn.Module):
    """Softmax over the latents of a pool: cosine with a learned scale, or dot product over √128 (D-GMR-1)."""

    def __init__(self, score: Score) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.tensor(_INITIAL_SHARPNESS)) if score == "cosine" else None

    def forward(self, query: Tensor, pool: Tensor) -> Tensor:
        """Map queries (rows, 128) and latents (pool, 128) to log-probabilities (rows, pool)."""
        if self.scale is None:
            logits = query @ pool.T / math.sqrt(LATENT)
        else:
            logits = self.scale * F.normalize(query, dim=1) @ F.normalize(pool, dim=1).T
        return F.log_softmax(logits, dim=1)


class RoleAllocator(nn.Module):
    """Policy π_r over roles (History-Aware Role Allocator)."""

    def __init__(self, score: Score) -> None:
        super().__init__()
        self.W_r = nn.Linear(CONTEXT, LATENT, bias=False)
        self.softmax = PoolSoftmax(score)

    def forward(self, context: Tensor, roles: Tensor) -> Tensor:
        """Map contexts (rows, 256) and role latents (R, 128) to log π_r (rows, R)."""
        return self.softmax(self.W_r(context), roles)


class LLMRouter(nn.Module):
    """Policy π_m over backbones, given the role."""

    def __init__(self, score: Score) -> None:
        super().__init__()
        self.g = nn.Linear(CONTEXT + LATENT, LATENT)
        self.softmax = PoolSoftmax(score)

    def forward(self, context: Tensor, role: Tensor, backbones: Tensor) -> Tensor:
        """Map contexts (rows, 256), chosen roles (rows, 128) and backbones (M, 128) to log π_m (rows, M)."""
        return self.softmax(self.g(torch.cat([context, role], dim=1)), backbones)


class RetrievalGate(nn.Module):
    """Bernoulli gate per stored record: z_j ~ σ(s cos(p_t, v_j) + b)."""

    def __init__(self) -> None:
        super().__init__()
        self.W_p = nn.Linear(EMBEDDING + 2 * LATENT, LATENT, bias=False)
        self.W_v = nn.Linear(3 * LATENT, LATENT, bias=False)
        self.W_y = nn.Linear(EMBEDDING, LATENT, bias=False)
        self.s = nn.Parameter(torch.tensor(_INITIAL_SHARPNESS))
        self.b = nn.Parameter(torch.tensor(0.0))

    def record(self, role: Tensor, backbone: Tensor, response: Tensor) -> Tensor:
        """Compute record embeddings v_j = W_v [r_j ‖ m_j ‖ W_y y_j], shape (rows, 128)."""
        return self.W_v(torch.cat([role, backbone, self.W_y(response)], dim=1))

    def forward(self, question: Tensor, role: Tensor, backbone: Tensor, records: Tensor) -> Tensor:
        """Map q (rows, 384), r_t and m_t (rows, 128) and v_j (rows, φ, 128) to log P(closed, open) (rows, φ, 2)."""
        p = self.W_p(torch.cat([question, role, backbone], dim=1))
        return bernoulli(self.s * F.cosine_similarity(p.unsqueeze(1), records, dim=2) + self.b)


class WriteGate(nn.Module):
    """Bernoulli gate of a response: w_t ~ σ(β(ω_t − θ)), where ω_t trades relevance against redundancy."""

    def __init__(self) -> None:
        super().__init__()
        self.P_y = nn.Linear(EMBEDDING, LATENT, bias=False)
        self.P_c = nn.Linear(CONTEXT, LATENT, bias=False)
        self.a = nn.Parameter(torch.tensor(0.0))  # λ = σ(a)
        # β = softplus(beta), so that it stays positive.
        self.beta = nn.Parameter(torch.tensor(math.log(math.expm1(_INITIAL_SHARPNESS)), dtype=torch.float64))
        self.theta = nn.Parameter(torch.tensor(0.0))

    def forward(self, context: Tensor, projected: Tensor, records: Tensor, stored: Tensor) -> Tensor:
        """Map contexts (rows, 256), P_y y_t (rows, 128), ``records`` (rows, φ, 128) to log P(closed, open) (rows, 2).

        ``records`` are P_y y_j of the stored responses. ``stored`` (rows, φ) masks the filled slots.
        """
        relevance = F.cosine_similarity(projected, self.P_c(context), dim=1)
        similarity = F.cosine_similarity(projected.unsqueeze(1), records, dim=2).masked_fill(~stored, -torch.inf)
        redundancy = torch.where(stored.any(dim=1), similarity.amax(dim=1), 0.0)
        weight = torch.sigmoid(self.a)
        omega = weight * relevance - (1 - weight) * redundancy
        return bernoulli(F.softplus(self.beta) * (omega - self.theta))


class Halting(nn.Module):
    """GRU over mean-pooled memories with a halting logit. Its initial bias sets the untrained depth (D-GMR-2)."""

    def __init__(self, bias: float) -> None:
        super().__init__()
        self.gru = nn.GRUCell(LATENT, LATENT)
        output = nn.Linear(_HALTING_HIDDEN, 1)
        nn.init.constant_(output.bias, bias)
        self.mlp = nn.Sequential(nn.Linear(LATENT, _HALTING_HIDDEN), nn.ReLU(), output)

    def forward(self, state: Tensor) -> Tensor:
        """Map states h_t (rows, 128) to log-probabilities of continuing and halting (rows, 2)."""
        return bernoulli(self.mlp(state).squeeze(1))


def bernoulli(logits: Tensor) -> Tensor:
    """Map the logits of Bernoulli variables to log-probabilities of 0 and 1, shape (..., 2)."""
    return torch.stack([F.logsigmoid(-logits), F.logsigmoid(logits)], dim=-1)


def mean_token(tokens: Tensor, stored: Tensor) -> Tensor:
    """Average the stored tokens (rows, φ, 128) of each memory, shape (rows, 128). Zero if the memory is empty."""
    total = torch.where(stored.unsqueeze(2), tokens, 0.0).sum(dim=1)
    return total / stored.sum(dim=1, keepdim=True).clamp(min=1)
