"""The networks behind the five decisions (D-MR-6)."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

EMBEDDING = 384
HIDDEN = 64
# Standard deviation of the prior, and beside it the factor by which a sample's own deviation is shrunk.
PRIOR_SD = 0.1


class Posterior(NamedTuple):
    """Means and logarithms of variances, shape (rows, 64) each."""

    mu: Tensor
    logvar: Tensor


class VAE(nn.Module):
    """A variational autoencoder of embeddings, whose samples are what decisions compare.

    Two oddities of the released code are kept, since the size of its loss rests on them: a sample is
    μ + 0.1·σ·ε, although its divergence is that of σ, and the prior is N(0, 0.1²), so that a posterior of unit variance
    starts with a divergence of 47.2 (D-MR-6).
    """

    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(EMBEDDING, HIDDEN), nn.ReLU())
        self.mu = nn.Linear(HIDDEN, HIDDEN)
        self.logvar = nn.Linear(HIDDEN, HIDDEN)
        self.decoder = nn.Sequential(nn.Linear(HIDDEN, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, EMBEDDING))

    def direction(self, texts: Tensor, noise: Tensor) -> Tensor:
        """Samples of unit length, shape (..., rows, 64).

        Args:
            texts: Embeddings, shape (rows, 384), or (..., rows, 384) where they are not the same for all.
            noise: Standard normal draws ε, shape (..., rows, 64).
        """
        return F.normalize(sampled(self._posterior(texts), noise), dim=-1)

    def loss(self, texts: Tensor, noise: Tensor) -> Tensor:
        """Mean squared error of the reconstruction plus the divergence from the prior, for the same arguments."""
        posterior = self._posterior(texts)
        rebuilt = self.decoder(sampled(posterior, noise))
        return F.mse_loss(rebuilt, texts.expand_as(rebuilt)) + divergence(posterior)

    def _posterior(self, texts: Tensor) -> Posterior:
        hidden = self.encoder(texts)
        return Posterior(self.mu(hidden), self.logvar(hidden))


def sampled(posterior: Posterior, noise: Tensor) -> Tensor:
    """μ + 0.1·σ·ε."""
    return posterior.mu + PRIOR_SD * torch.exp(0.5 * posterior.logvar) * noise


def divergence(posterior: Posterior) -> Tensor:
    """Kullback-Leibler divergence from N(0, 0.1²), the mean over all entries."""
    ratio = (posterior.mu**2 + posterior.logvar.exp()) / PRIOR_SD**2
    return 0.5 * (ratio - 1 - posterior.logvar + 2 * math.log(PRIOR_SD)).mean()


class TaskClassifier(nn.Module):
    """Tells the task of a question; its projection of the question serves the later decisions as well."""

    temperature = 0.5

    def __init__(self) -> None:
        super().__init__()
        self.question = nn.Linear(EMBEDDING, HIDDEN)
        self.tasks = nn.Linear(EMBEDDING, HIDDEN)

    def project(self, question: Tensor) -> Tensor:
        """The directions of questions, shape (n, 64), for embeddings of shape (n, 384)."""
        return F.normalize(self.question(question), dim=1)

    def forward(self, projected: Tensor, tasks: Tensor) -> Tensor:
        """Logits, shape (n, tasks), for projected questions and the embeddings of the tasks."""
        return projected @ F.normalize(self.tasks(tasks), dim=1).T / self.temperature


class Matching(nn.Module):
    """A softmax over directions by their cosine with a context.

    Args:
        temperature: What cosines are divided by.
    """

    def __init__(self, temperature: float) -> None:
        super().__init__()
        self.temperature = temperature
        self.context = nn.Linear(3 * HIDDEN, HIDDEN)

    def forward(self, context: Tensor, directions: Tensor) -> Tensor:
        """Log-probabilities, shape (n, choices).

        Args:
            context: Question, mode and history of roles side by side, shape (n, 192).
            directions: Of unit length, shape (n, choices, 64).
        """
        return log_softmax(F.normalize(self.context(context), dim=1), directions, self.temperature)


def log_softmax(direction: Tensor, directions: Tensor, temperature: float) -> Tensor:
    """Log-probabilities, shape (n, choices), of directions (n, choices, 64) by their products with one (n, 64)."""
    return F.log_softmax((directions @ direction.unsqueeze(2)).squeeze(2) / temperature, dim=1)


class NumberOfAgents(nn.Module):
    """How many agents a question needs, as a number strictly between 0 and ``max_agents``.

    Args:
        max_agents: Most agents of a team.
    """

    def __init__(self, max_agents: int) -> None:
        super().__init__()
        self.max_agents = max_agents
        self.vae = VAE()
        self.head = nn.Linear(HIDDEN, 1)

    def forward(self, question: Tensor, noise: Tensor) -> Tensor:
        """n_f, shape (n,), for questions (n, 1, 384) and noise (n, 1, 64)."""
        return self.max_agents * torch.sigmoid(self.head(self.vae.direction(question, noise))).flatten()


def team_size(n_f: float, max_agents: int) -> int:
    """N: n_f to the nearest whole number, within 1 and ``max_agents``."""
    return min(max(round(n_f), 1), max_agents)
