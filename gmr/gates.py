"""The two gates of the memory: what an agent sees of it, and what is stored in it.

Paper, Retrieval Gate and Memory Write Gate; both logits in full are in its appendix on representations.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from gmr.latents import EMBEDDING, LATENT
from gmr.state_encoder import CONTEXT

_INITIAL_SHARPNESS = 5.0


class RetrievalGate(nn.Module):
    """Whether the agent of this step sees a record: a Bernoulli draw for each, by a scaled cosine.

    Attributes:
        s: Learned scale of the cosine.
        b: Learned offset.
    """

    def __init__(self) -> None:
        super().__init__()
        self.W_p = nn.Linear(EMBEDDING + 2 * LATENT, LATENT, bias=False)
        self.W_v = nn.Linear(3 * LATENT, LATENT, bias=False)
        self.W_y = nn.Linear(EMBEDDING, LATENT, bias=False)
        self.s = nn.Parameter(torch.tensor(_INITIAL_SHARPNESS))
        self.b = nn.Parameter(torch.tensor(0.0))

    def record(self, role: Tensor, backbone: Tensor, response: Tensor) -> Tensor:
        """Directions v_j / |v_j| of records, shape (..., 128); they never change, so one pass a record is enough.

        Args:
            role: Latents of their roles, shape (..., 128).
            backbone: Latents of their backbones, shape (..., 128).
            response: Embeddings of their responses, shape (..., 384).
        """
        return F.normalize(self.W_v(torch.cat([role, backbone, self.W_y(response)], dim=-1)), dim=-1)

    def forward(self, question: Tensor, role: Tensor, backbone: Tensor, records: Tensor) -> Tensor:
        """Logits l_tj, shape (rows, k).

        Args:
            question: Embeddings of the questions, shape (rows, 384).
            role: Latents of the acting roles, shape (rows, 128).
            backbone: Latents of the acting backbones, shape (rows, 128).
            records: Directions of the records before the step, shape (rows, k, 128); k may be 0.
        """
        query = F.normalize(self.W_p(torch.cat([question, role, backbone], dim=1)), dim=1)
        return self.s * _cosines(query, records) + self.b


class WriteGate(nn.Module):
    """Whether a response is stored: relevance to the context against likeness to what is stored.

    Attributes:
        a: Logit of the weight λ of relevance.
        beta: Sharpness β before softplus, which keeps it positive.
        theta: Threshold θ.
    """

    def __init__(self) -> None:
        super().__init__()
        self.P_y = nn.Linear(EMBEDDING, LATENT, bias=False)
        self.P_c = nn.Linear(CONTEXT, LATENT, bias=False)
        self.a = nn.Parameter(torch.tensor(0.0))
        self.beta = nn.Parameter(torch.tensor(math.log(math.expm1(_INITIAL_SHARPNESS)), dtype=torch.float64))
        self.theta = nn.Parameter(torch.tensor(0.0))

    def direction(self, response: Tensor) -> Tensor:
        """Directions of P_y y, shape (..., 128), for responses of shape (..., 384)."""
        return F.normalize(self.P_y(response), dim=-1)

    def forward(self, context: Tensor, response: Tensor, records: Tensor, stored: Tensor) -> Tensor:
        """Logits β(ω_t − θ), shape (rows,).

        Args:
            context: Contexts *before* the step, shape (rows, 256).
            response: Directions of the responses of the step, shape (rows, 128).
            records: Directions of the responses of the records, shape (rows, k, 128); k may be 0.
            stored: Which of them each row holds, boolean, shape (rows, k).
        """
        relevance = (response * F.normalize(self.P_c(context), dim=1)).sum(dim=1)
        weight = torch.sigmoid(self.a)
        omega = weight * relevance - (1 - weight) * _closest(response, records, stored)
        return F.softplus(self.beta) * (omega - self.theta)


def _closest(response: Tensor, records: Tensor, stored: Tensor) -> Tensor:
    """Largest cosine to a stored record, shape (rows,); 0 where nothing is stored, so that the term is absent."""
    if records.shape[1] == 0:
        return torch.zeros_like(response[:, 0])
    closest = _cosines(response, records).masked_fill(~stored, -torch.inf).amax(dim=1)
    return torch.where(stored.any(dim=1), closest, 0.0)


def _cosines(queries: Tensor, records: Tensor) -> Tensor:
    return (records @ queries.unsqueeze(2)).squeeze(2)
