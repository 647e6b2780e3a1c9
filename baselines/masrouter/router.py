"""The router of MASRouter: task, mode, number of agents, roles and backbones of a team, in one pass (methods §6.1)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from baselines.masrouter.networks import (
    HIDDEN,
    VAE,
    Matching,
    NumberOfAgents,
    TaskClassifier,
    log_softmax,
    team_size,
)
from baselines.masrouter.trace import Choices, Noise, Trace

MODE_TEMPERATURE = 0.8
ROLE_TEMPERATURE = 0.5
BACKBONE_TEMPERATURE = 1.0

Embeddings = NDArray[np.floating]
# Chooses an index by name of the decision, number of the agent (0: the team) and log-probabilities, shape (choices,).
Choose = Callable[[str, int, Tensor], int]


class Texts(NamedTuple):
    """Embeddings of what the router chooses from, shape (rows, 384) each."""

    tasks: Embeddings
    modes: Embeddings
    roles: Embeddings
    backbones: Embeddings


@dataclass(frozen=True, slots=True)
class Decided:
    """A pass of the router over one question.

    Attributes:
        choices: What was chosen.
        log_prob: log π of the choices, a scalar.
        tasks: Logits of the tasks, shape (tasks,).
        n_f: The number of agents before it was rounded, a scalar.
        modes: Log-probabilities of the modes.
        backbones: Log-probabilities of the backbones.
    """

    choices: Choices
    log_prob: Tensor
    tasks: Tensor
    n_f: Tensor
    modes: Tensor
    backbones: Tensor


class Router(nn.Module):
    """All that is learned, in float64, with the embeddings of all texts as buffers.

    Initial weights come from torch's global generator. Noise and choices come from the caller, so a pass is a function
    of its arguments: the one that samples and the one that is differentiated are the same code.

    Args:
        texts: What there is to choose from.
        max_agents: Most agents of a team.
    """

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

    def decide(self, question: Embeddings, noise: Noise, choose: Choose) -> Decided:
        """All decisions on one question, with gradient unless the caller switches it off.

        Args:
            question: Its embedding, shape (384,).
            noise: Draws of the autoencoders.
            choose: Makes the choices ``mode``, ``role`` and ``backbone``.
        """
        q = _row(question)
        projected = self.classifier.project(q)
        tasks = self.classifier(projected, self.task_texts).squeeze(0)
        modes, mode, mode_direction = self._mode(q, noise, choose)
        n_f = self.number(q, noise.number)
        agents = team_size(n_f.item(), self.max_agents)
        context = torch.cat([projected, mode_direction], dim=1)
        roles, log_roles, history = self._roles(context, agents, noise, choose)
        directions = self.backbone_vae.direction(self.backbone_texts, noise.backbones)
        log_backbones = self.backbone_matching(torch.cat([context, history], dim=1), directions)
        backbones = tuple(choose("backbone", agent, log_backbones) for agent in range(1, agents + 1))
        log_prob = modes[mode] + log_roles + log_multinomial(n_f, log_backbones, backbones)
        return Decided(Choices(mode, roles, backbones), log_prob, tasks, n_f, modes, log_backbones)

    def again(self, trace: Trace) -> Decided:
        """The pass behind a trace, with the same noise and the same choices, and with gradient."""
        choices = trace.choices
        made = {"role": choices.roles, "backbone": choices.backbones}

        def replay(name: str, agent: int, _: Tensor) -> int:
            # An agent that the sampled team did not have cannot be replayed; the check of log π refuses the trace.
            return choices.mode if name == "mode" else made[name][min(agent, len(made[name])) - 1]

        return self.decide(trace.question, trace.noise, replay)

    def vae_loss(self, trace: Trace) -> Tensor:
        """The sum of the five autoencoders' losses on one question; it starts near 5 · 47."""
        q, noise = _row(trace.question), trace.noise
        return (
            self.mode_vae.loss(self.mode_texts, noise.modes)
            + self.question_vae.loss(q, noise.question)
            + self.number.vae.loss(q, noise.number)
            + self.role_vae.loss(self.role_texts, noise.roles)
            + self.backbone_vae.loss(self.backbone_texts, noise.backbones)
        )

    def _mode(self, q: Tensor, noise: Noise, choose: Choose) -> tuple[Tensor, int, Tensor]:
        """Log-probabilities of the modes, the one chosen, and its direction, shape (1, 64)."""
        directions = self.mode_vae.direction(self.mode_texts, noise.modes)
        log_probs = log_softmax(self.question_vae.direction(q, noise.question), directions, MODE_TEMPERATURE)
        chosen = choose("mode", 0, log_probs)
        return log_probs, chosen, directions[chosen : chosen + 1]

    def _roles(
        self, context: Tensor, agents: int, noise: Noise, choose: Choose
    ) -> tuple[tuple[int, ...], Tensor, Tensor]:
        """Roles with replacement, their joint log-probability, and the history that the backbones are chosen by.

        The history takes a role in when the next one is chosen, so the last role is missing from it, and with a single
        agent it is exactly zero. That is so in the released code (D-MR-6).
        """
        directions = self.role_vae.direction(self.role_texts, noise.roles)
        history = last = context.new_zeros(1, HIDDEN)
        log_prob = context.new_zeros(())
        chosen: list[int] = []
        for agent in range(1, agents + 1):
            history = F.layer_norm(history + last, (HIDDEN,))
            log_probs = self.role_matching(torch.cat([context, history], dim=1), directions)
            chosen.append(choose("role", agent, log_probs))
            log_prob = log_prob + log_probs[chosen[-1]]
            last = directions[chosen[-1] : chosen[-1] + 1]
        return tuple(chosen), log_prob, history


def log_multinomial(n_f: Tensor, log_probs: Tensor, chosen: tuple[int, ...]) -> Tensor:
    """lnΓ(n_f + 1) - Σ_m lnΓ(c_m + 1) + Σ_m c_m log p_m, with c_m = how many agents have backbone m.

    The first term holds the number before it is rounded: no other part of log π leads back to it.

    Args:
        n_f: The number of agents before it was rounded.
        log_probs: log p_m, shape (backbones,).
        chosen: Index of the backbone of each agent.
    """
    counts = torch.bincount(torch.tensor(chosen), minlength=len(log_probs)).to(log_probs.dtype)
    return torch.lgamma(n_f + 1) - torch.lgamma(counts + 1).sum() + (counts * log_probs).sum()


def _row(question: Embeddings) -> Tensor:
    return torch.tensor(question, dtype=torch.float64).unsqueeze(0)
