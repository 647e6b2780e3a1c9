"""Latents of roles and backbones, learned from the embeddings of their profiles (paper, Role and backbone latents)."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from gmr.config import VaeKL

EMBEDDING = 384
LATENT = 128
_HIDDEN = 256


class ProfileVAE(nn.Module):
    """A variational autoencoder over the profile embeddings of one pool, roles or backbones.

    The policies use the mean of the posterior and never a sample: rollouts of one question must differ in their
    drawn decisions only. The sample feeds the decoder, in ``loss``.
    """

    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(EMBEDDING, _HIDDEN), nn.ReLU())
        self.mu = nn.Linear(_HIDDEN, LATENT)
        self.logvar = nn.Linear(_HIDDEN, LATENT)
        self.decoder = nn.Sequential(nn.Linear(LATENT, _HIDDEN), nn.ReLU(), nn.Linear(_HIDDEN, EMBEDDING))

    def forward(self, profiles: Tensor) -> Tensor:
        """Posterior means, shape (pool, 128), of profiles of shape (pool, 384)."""
        return self.mu(self.encoder(profiles))

    def loss(self, profiles: Tensor, noise: Tensor, kl: VaeKL) -> Tensor:
        """Mean squared reconstruction error plus KL divergence from N(0, I), the mean over the pool.

        The error is a mean over the 384 entries of a profile, the divergence a sum over the 128 latent dimensions
        (Kingma and Welling) or, with ``mean``, their mean (D-GMR-12).

        Args:
            profiles: Shape (pool, 384).
            noise: Standard normal draws of the reparameterised sample, shape (pool, 128).
            kl: Reduction of the divergence over the latent dimensions.
        """
        hidden = self.encoder(profiles)
        mu, logvar = self.mu(hidden), self.logvar(hidden)
        rebuilt = self.decoder(mu + torch.exp(0.5 * logvar) * noise)
        divergence = 0.5 * (mu**2 + logvar.exp() - 1 - logvar)
        over_dimensions = divergence.sum(dim=1) if kl == "sum" else divergence.mean(dim=1)
        return F.mse_loss(rebuilt, profiles) + over_dimensions.mean()
