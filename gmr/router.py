"""The router of GMR: its networks put together, and the two functions by which sampling and update decide."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from gmr.config import Config
from gmr.networks import (
    CONTEXT,
    LATENT,
    Halting,
    LLMRouter,
    ProfileVAE,
    RetrievalGate,
    RoleAllocator,
    StateEncoder,
    WriteGate,
    pool,
)

Module = TypeVar("Module", bound=nn.Module)


class Latents(NamedTuple):
    """Latents of both pools: shapes (R, 128) and (M, 128)."""

    roles: Tensor
    backbones: Tensor


# Outcomes for the rows of a decision, by its name, the log-probabilities of its options in the last dimension, and in
# which rows it is made; log-probabilities are ``None`` where no module decides and the choice is uniform.
Choose = Callable[[str, Tensor | None, Tensor], Tensor]


class State(NamedTuple):
    """Trajectories between two steps, a row each; what is said of records is padded to φ of them."""

    question: Tensor  # embeddings of the questions, shape (rows, 384)
    q_hat: Tensor  # projected questions W_q q, shape (rows, 128)
    tokens: Tensor  # of the records, shape (rows, φ, 128)
    records: Tensor  # their directions for the retrieval gate, shape (rows, φ, 128)
    responses: Tensor  # directions of their responses for the write gate, shape (rows, φ, 128)
    stored: Tensor  # number of records, shape (rows,)
    changed: Tensor  # whether the last step stored one, so that the context is out of date, shape (rows,)
    context: Tensor  # c_t, shape (rows, 256)
    halting: Tensor  # halting state, shape (rows, 128)
    steps: Tensor  # number of steps done, shape (rows,)
    log_prob: Tensor  # sum of the log-probabilities of the draws that a module made so far, shape (rows,)

    @property
    def holds(self) -> Tensor:
        """Which of the φ places hold a record, boolean, shape (rows, φ)."""
        return torch.arange(self.tokens.shape[1]) < self.stored[:, None]

    def first(self, count: int) -> State:
        """The first ``count`` trajectories."""
        return State(*(part[:count] for part in self))

    def draw(self, choose: Choose, name: str, log_probs: Tensor | None, mask: Tensor) -> tuple[State, Tensor]:
        """The outcomes of one decision, and the states with their log-probabilities added."""
        chosen = choose(name, log_probs, mask)
        if log_probs is None:
            return self, chosen
        taken = torch.where(mask, log_probs.gather(-1, chosen.unsqueeze(-1)).squeeze(-1), 0.0)
        return self._replace(log_prob=self.log_prob + taken.reshape(len(taken), -1).sum(dim=1)), chosen


class Acting(NamedTuple):
    """Indices of role and backbone, shape (rows,) each, and which records are seen, shape (rows, φ)."""

    role: Tensor
    backbone: Tensor
    seen: Tensor


class Kept(NamedTuple):
    """Whether the response is stored, and whether the trajectory halts, shape (rows,) each."""

    written: Tensor
    halted: Tensor


class Router(nn.Module):
    """All that is learned, in float64, with the profile embeddings (R, 384) and (M, 384) as buffers."""

    role_profiles: Tensor
    backbone_profiles: Tensor

    def __init__(self, config: Config, roles: NDArray[np.floating], backbones: NDArray[np.floating]) -> None:
        super().__init__()
        self.config = config
        self.register_buffer("role_profiles", torch.tensor(roles))
        self.register_buffer("backbone_profiles", torch.tensor(backbones))
        self.role_vae = ProfileVAE()
        self.backbone_vae = ProfileVAE()
        self.encoder = StateEncoder(config.max_depth)
        # Every module is drawn and only then dropped, so ablations of one seed start from the same weights.
        self.role_allocator = _kept(config.role_allocator, RoleAllocator(config.score))
        self.llm_router = _kept(config.llm_router, LLMRouter(config.score))
        self.retrieval_gate = _kept(config.retrieval_gate, RetrievalGate())
        self.write_gate = _kept(config.write_gate, WriteGate())
        self.halting = _kept(config.halting, Halting(config.halting_bias))
        self.double()

    def latents(self) -> Latents:
        """Latents of all roles and backbones, which do not change while the parameters do not."""
        return Latents(self.role_vae(self.role_profiles), self.backbone_vae(self.backbone_profiles))

    def vae_loss(self, noise_roles: Tensor, noise_backbones: Tensor) -> Tensor:
        """The sum of the losses of both autoencoders, for standard normal noise of shapes (R, 128) and (M, 128)."""
        kl = self.config.vae_kl
        roles = self.role_vae.loss(self.role_profiles, noise_roles, kl)
        return roles + self.backbone_vae.loss(self.backbone_profiles, noise_backbones, kl)

    def begin(self, questions: Tensor) -> State:
        """Trajectories before their first step, for embeddings of the questions, shape (rows, 384)."""
        rows, depth = len(questions), self.config.max_depth
        return State(
            question=questions,
            q_hat=self.encoder.W_q(questions),
            tokens=questions.new_zeros(rows, depth, LATENT),
            records=questions.new_zeros(rows, depth, LATENT),
            responses=questions.new_zeros(rows, depth, LATENT),
            stored=questions.new_zeros(rows, dtype=torch.int64),
            changed=questions.new_ones(rows, dtype=torch.bool),
            context=questions.new_zeros(rows, CONTEXT),
            halting=questions.new_zeros(rows, LATENT),
            steps=questions.new_zeros(rows, dtype=torch.int64),
            log_prob=questions.new_zeros(rows),
        )

    def act(self, state: State, latents: Latents, choose: Choose) -> tuple[State, Acting]:
        """Who acts next and what it sees: role, backbone, and a gate for each record; the states gain their c_t."""
        state = state._replace(context=self._context(state), changed=torch.zeros_like(state.changed))
        everyone, stored = torch.ones_like(state.changed), state.holds
        log_probs = None
        if self.role_allocator is not None:
            log_probs = self.role_allocator(state.context, latents.roles)
        state, role = state.draw(choose, "role", log_probs, everyone)
        log_probs, its_role = None, latents.roles[role]
        if self.llm_router is not None:
            log_probs = self.llm_router(state.context, its_role, latents.backbones)
        state, backbone = state.draw(choose, "backbone", log_probs, everyone)
        seen = stored
        if self.retrieval_gate is not None:
            log_probs = self.retrieval_gate(state.question, its_role, latents.backbones[backbone], state.records)
            state, drawn = state.draw(choose, "retrieve", log_probs, stored)
            seen = drawn.bool() & stored
        return state, Acting(role, backbone, seen)

    def keep(
        self, state: State, latents: Latents, acting: Acting, response: Tensor, choose: Choose
    ) -> tuple[State, Kept]:
        """Whether the responses (rows, 384) are stored and the trajectories halt; not at the last step (D-GMR-3)."""
        everyone = torch.ones_like(state.changed)
        written, direction = everyone, None
        if self.write_gate is not None:
            direction = self.write_gate.direction(response)
            log_probs = self.write_gate(state.context, direction, state.responses, state.holds)
            state, drawn = state.draw(choose, "write", log_probs, everyone)
            written = drawn.bool()
        state = self._store(state, latents, acting, response, direction, written)
        state = state._replace(steps=state.steps + 1)
        halted = torch.zeros_like(written)
        if self.halting is not None:
            hidden = self.halting.advance(pool(state.tokens, state.holds), state.halting)
            mask = state.steps < self.config.max_depth
            state, drawn = state._replace(halting=hidden).draw(choose, "halt", self.halting(hidden), mask)
            halted = drawn.bool() & mask
        return state, Kept(written, halted)

    def _context(self, state: State) -> Tensor:
        rows = state.changed
        if not rows.any():
            return state.context
        fresh = self.encoder(state.q_hat[rows], state.tokens[rows], state.holds[rows])
        return state.context.index_put((rows,), fresh)

    def _store(
        self,
        state: State,
        latents: Latents,
        acting: Acting,
        response: Tensor,
        direction: Tensor | None,
        written: Tensor,
    ) -> State:
        rows = written.nonzero()[:, 0]
        place = rows, state.stored[rows]
        role, backbone = latents.roles[acting.role[rows]], latents.backbones[acting.backbone[rows]]
        tokens, records, responses = state.tokens, state.records, state.responses
        tokens = tokens.index_put(place, self.encoder.token(role, backbone, response[rows]))
        if self.retrieval_gate is not None:
            records = records.index_put(place, self.retrieval_gate.record(role, backbone, response[rows]))
        if direction is not None:
            responses = responses.index_put(place, direction[rows])
        stored = state.stored + written
        return state._replace(tokens=tokens, records=records, responses=responses, stored=stored, changed=written)


def _kept(switch: bool, module: Module) -> Module | None:
    return module if switch else None
