"""MASRouter's networks and the pass that decides on teams, sampled or recomputed (D-MR-1, D-MR-6)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from harness.llm.encoder import EMBEDDING

HIDDEN = 64
# Standard deviation of the prior, and beside it the factor by which a sample's own deviation is shrunk.
PRIOR_SD = 0.1
MODE_TEMPERATURE = 0.8
ROLE_TEMPERATURE = 0.5
BACKBONE_TEMPERATURE = 1.0

Vector = NDArray[np.float32]
Embeddings = NDArray[np.floating]


class Noise(NamedTuple):
    """The standard normal draws of the five autoencoders in one trajectory, shape (rows, 64) each."""

    modes: Tensor
    question: Tensor
    number: Tensor
    roles: Tensor
    backbones: Tensor


def draw_noise(uniform: float, modes: int, roles: int, backbones: int) -> Noise:
    """All noise of one trajectory, which follows from one uniform number alone (D-MR-4)."""
    generator = torch.Generator().manual_seed(int(uniform * (1 << 53)))
    rows = (modes, 1, 1, roles, backbones)
    return Noise(*(torch.randn(count, HIDDEN, generator=generator, dtype=torch.float64) for count in rows))


class Choices(NamedTuple):
    """What was decided, as indices: of the mode, and of the role and the backbone of each agent."""

    mode: int
    roles: tuple[int, ...]
    backbones: tuple[int, ...]


class Trace(NamedTuple):
    """One trajectory: embedding of the question, shape (384,), noise, choices, and their log π as sampled."""

    question: Vector
    noise: Noise
    choices: Choices
    log_prob: float


class VAE(nn.Module):
    """A variational autoencoder with sample μ + 0.1·σ·ε and prior N(0, 0.1²), as in the released code (D-MR-6)."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(EMBEDDING, HIDDEN), nn.ReLU())
        self.mu = nn.Linear(HIDDEN, HIDDEN)
        self.logvar = nn.Linear(HIDDEN, HIDDEN)
        self.decoder = nn.Sequential(nn.Linear(HIDDEN, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, EMBEDDING))

    def forward(self, texts: Tensor, noise: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Samples, means and logarithms of variances, shape (..., rows, 64), for texts (rows, 384) and such noise."""
        hidden = self.encoder(texts)
        mu, logvar = self.mu(hidden), self.logvar(hidden)
        return mu + PRIOR_SD * torch.exp(0.5 * logvar) * noise, mu, logvar

    def direction(self, texts: Tensor, noise: Tensor) -> Tensor:
        """Samples of unit length."""
        return F.normalize(self(texts, noise)[0], dim=-1)

    def loss(self, texts: Tensor, noise: Tensor) -> Tensor:
        """Mean squared error of the reconstruction plus the divergence from the prior, means over all entries."""
        sample, mu, logvar = self(texts, noise)
        rebuilt = self.decoder(sample)
        error = F.mse_loss(rebuilt, texts.expand_as(rebuilt))
        ratio = (mu**2 + logvar.exp()) / PRIOR_SD**2
        return error + 0.5 * (ratio - 1 - logvar + 2 * math.log(PRIOR_SD)).mean()


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
        """Logits, shape (n, tasks)."""
        return projected @ F.normalize(self.tasks(tasks), dim=1).T / self.temperature


class Matching(nn.Module):
    """A softmax over directions by their cosine with a context, at a temperature."""

    def __init__(self, temperature: float) -> None:
        super().__init__()
        self.temperature = temperature
        self.context = nn.Linear(3 * HIDDEN, HIDDEN)

    def forward(self, context: Tensor, directions: Tensor) -> Tensor:
        """Log-probabilities, shape (n, choices), for contexts (n, 192) and unit directions (n, choices, 64)."""
        return log_softmax(F.normalize(self.context(context), dim=1), directions, self.temperature)


def log_softmax(direction: Tensor, directions: Tensor, temperature: float) -> Tensor:
    """Log-probabilities, shape (n, choices), of directions (n, choices, 64) by their products with one (n, 64)."""
    return F.log_softmax((directions * direction.unsqueeze(1)).sum(dim=2) / temperature, dim=1)


class NumberOfAgents(nn.Module):
    """How many agents a question needs, as a number strictly between 0 and ``max_agents``."""

    def __init__(self, max_agents: int) -> None:
        super().__init__()
        self.max_agents = max_agents
        self.vae = VAE()
        self.head = nn.Linear(HIDDEN, 1)

    def forward(self, question: Tensor, noise: Tensor) -> Tensor:
        """n_f, shape (n,), for questions (n, 1, 384) and noise (n, 1, 64)."""
        return self.max_agents * torch.sigmoid(self.head(self.vae.direction(question, noise)).flatten())


def team_size(n_f: float, max_agents: int) -> int:
    """Return N, n_f to the nearest whole number, within 1 and ``max_agents``."""
    return min(max(round(n_f), 1), max_agents)


# Chooses an index for each row by name of the decision, number of the agent (0: the team) and log-probabilities, shape
# (n, choices).
Choose = Callable[[str, int, Tensor], Sequence[int]]


class Texts(NamedTuple):
    """Embeddings of what the router chooses from, shape (rows, 384) each."""

    tasks: Embeddings
    modes: Embeddings
    roles: Embeddings
    backbones: Embeddings


class Decided(NamedTuple):
    """A pass of the router over n questions."""

    choices: tuple[Choices, ...]
    log_prob: Tensor  # log π of the choices, shape (n,)
    tasks: Tensor  # logits of the tasks, shape (n, tasks)
    n_f: Tensor  # numbers of agents before they were rounded, shape (n,)
    modes: Tensor  # log-probabilities, shape (n, modes)
    backbones: Tensor  # log-probabilities, shape (n, backbones)


class Router(nn.Module):
    """All that is learned, in float64; noise and choices come from the caller, sampled or replayed."""

    task_texts: Tensor
    mode_texts: Tensor
    role_texts: Tensor
    backbone_texts: Tensor

    def __init__(self, texts: Texts, max_agents: int) -> None:
        super().__init__()
        for name, embeddings in zip(("task", "mode", "role", "backbone"), texts, strict=True):
            self.register_buffer(f"{name}_texts", torch.tensor(embeddings))
        self.max_agents = max_agents
        self.classifier = TaskClassifier()
        self.mode_vae = VAE()
        self.question_vae = VAE()
        self.number = NumberOfAgents(max_agents)
        self.role_vae = VAE()
        self.role_matching = Matching(ROLE_TEMPERATURE)
        self.backbone_vae = VAE()
        self.backbone_matching = Matching(BACKBONE_TEMPERATURE)
        self.double()

    def decide(self, questions: Embeddings, noises: Sequence[Noise], choose: Choose) -> Decided:
        """All decisions on n questions (n, 384), with gradient unless the caller switches it off."""
        # ``choose`` is asked for as many agents as the largest team has; for smaller ones the rest is ignored.
        q, noise = _rows(questions), _stacked(noises)
        projected = self.classifier.project(q)
        n_f = self.number(q.unsqueeze(1), noise.number)
        agents = torch.tensor([team_size(each, self.max_agents) for each in n_f.tolist()])
        log_modes, mode, mode_direction = self._mode(q, noise, choose)
        context = torch.cat([projected, mode_direction], dim=1)
        roles, log_roles, history = self._roles(context, agents, noise, choose)
        directions = self.backbone_vae.direction(self.backbone_texts[None], noise.backbones)
        log_backbones = self.backbone_matching(torch.cat([context, history], dim=1), directions)
        backbones = [choose("backbone", agent, log_backbones) for agent in range(1, len(roles) + 1)]
        teams = zip(mode, agents.tolist(), zip(*roles, strict=True), zip(*backbones, strict=True), strict=True)
        counts = _counts(backbones, agents, log_backbones)
        return Decided(
            choices=tuple(Choices(of_mode, its[:size], their[:size]) for of_mode, size, its, their in teams),
            log_prob=_taken(log_modes, mode) + log_roles + log_multinomial(n_f, log_backbones, counts),
            tasks=self.classifier(projected, self.task_texts),
            n_f=n_f,
            modes=log_modes,
            backbones=log_backbones,
        )

    def again(self, traces: Sequence[Trace]) -> Decided:
        """The passes behind traces, with the same noise and the same choices, and with gradient."""
        made: dict[str, list[tuple[int, ...]]] = {
            "mode": [(trace.choices.mode,) for trace in traces],
            "role": [trace.choices.roles for trace in traces],
            "backbone": [trace.choices.backbones for trace in traces],
        }

        def replay(name: str, agent: int, _: Tensor) -> Sequence[int]:
            # An agent that the sampled team did not have cannot be replayed; where it counts, the trace is refused.
            return [row[max(min(agent, len(row)), 1) - 1] for row in made[name]]

        return self.decide(np.stack([trace.question for trace in traces]), [trace.noise for trace in traces], replay)

    def vae_loss(self, traces: Sequence[Trace]) -> Tensor:
        """The sum of the five autoencoders' losses, the mean over questions; it starts near 5 · 47."""
        q = _rows(np.stack([trace.question for trace in traces])).unsqueeze(1)
        noise = _stacked([trace.noise for trace in traces])
        return (
            self.mode_vae.loss(self.mode_texts[None], noise.modes)
            + self.question_vae.loss(q, noise.question)
            + self.number.vae.loss(q, noise.number)
            + self.role_vae.loss(self.role_texts[None], noise.roles)
            + self.backbone_vae.loss(self.backbone_texts[None], noise.backbones)
        )

    def _mode(self, q: Tensor, noise: Noise, choose: Choose) -> tuple[Tensor, Sequence[int], Tensor]:
        """Log-probabilities of the modes, shape (n, modes), those chosen, and their directions, shape (n, 64)."""
        directions = self.mode_vae.direction(self.mode_texts[None], noise.modes)
        direction = self.question_vae.direction(q.unsqueeze(1), noise.question).squeeze(1)
        log_probs = log_softmax(direction, directions, MODE_TEMPERATURE)
        chosen = choose("mode", 0, log_probs)
        return log_probs, chosen, directions[_each(chosen), chosen]

    def _roles(
        self, context: Tensor, agents: Tensor, noise: Noise, choose: Choose
    ) -> tuple[list[Sequence[int]], Tensor, Tensor]:
        """Roles agent by agent, their log-probability, and a history that lacks the last one, as released (D-MR-6)."""
        directions = self.role_vae.direction(self.role_texts[None], noise.roles)
        history = last = context.new_zeros(len(context), HIDDEN)
        log_prob = context.new_zeros(len(context))
        chosen: list[Sequence[int]] = []
        for agent in range(1, int(agents.max()) + 1):
            there = agents >= agent
            history = torch.where(there[:, None], F.layer_norm(history + last, (HIDDEN,)), history)
            log_probs = self.role_matching(torch.cat([context, history], dim=1), directions)
            chosen.append(choose("role", agent, log_probs))
            log_prob = log_prob + torch.where(there, _taken(log_probs, chosen[-1]), 0.0)
            last = directions[_each(chosen[-1]), chosen[-1]]
        return chosen, log_prob, history


def log_multinomial(n_f: Tensor, log_probs: Tensor, counts: Tensor) -> Tensor:
    """lnΓ(n_f + 1) - Σ_m lnΓ(c_m + 1) + Σ_m c_m log p_m, shape (n,); n_f is not rounded, for its gradient."""
    return torch.lgamma(n_f + 1) - torch.lgamma(counts + 1).sum(dim=1) + (counts * log_probs).sum(dim=1)


def _counts(chosen: Sequence[Sequence[int]], agents: Tensor, like: Tensor) -> Tensor:
    there = torch.arange(len(chosen))[:, None] < agents
    return torch.zeros_like(like).scatter_add(1, torch.tensor(chosen).T, there.T.to(like.dtype))


def _taken(log_probs: Tensor, chosen: Sequence[int]) -> Tensor:
    return log_probs[_each(chosen), chosen]


def _each(chosen: Sequence[int]) -> Tensor:
    return torch.arange(len(chosen))


def _rows(questions: Embeddings) -> Tensor:
    return torch.from_numpy(questions.astype(np.float64))


def _stacked(noises: Sequence[Noise]) -> Noise:
    return Noise(*(torch.stack(parts) for parts in zip(*noises, strict=True)))
