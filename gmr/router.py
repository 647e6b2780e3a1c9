"""Router of GMR: its networks put together, and the two halves of a step, shared by sampling and update."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeVar

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
    """Latents of both pools: r_i, shape (R, 128), and m_i, shape (M, 128)."""

    roles: Tensor
    backbones: Tensor


# Choose the outcomes of one decision for all rows: by its name, the log-probabilities of its options in the last
# dimension (None: no module decides, the choice is uniform), and a mask of the places where it is made.
Choose = Callable[[str, Tensor | None, Tensor], Tensor]


class State(NamedTuple):
    """Trajectories between two steps, one a row; memories are padded to φ records."""

    question: Tensor  # q, shape (rows, 384)
    q_hat: Tensor  # W_q q, shape (rows, 128)
    tokens: Tensor  # u_j, shape (rows, φ, 128)
    retrieval_keys: Tensor  # v_j of the retrieval gate, shape (rows, φ, 128)
    projected: Tensor  # P_y y_j of the write gate, shape (rows, φ, 128)
    size: Tensor  # number of records, shape (rows,)
    context: Tensor  # c_t of the present step, shape (rows, 256)
    halting: Tensor  # h_t of the halting controller, shape (rows, 128)
    steps: Tensor  # number of finished steps, shape (rows,)
    log_prob: Tensor  # sum of the log-probabilities of the draws that a module made, shape (rows,)

    @property
    def stored(self) -> Tensor:
        """Mask of the places that hold a record, shape (rows, φ)."""
        return torch.arange(self.tokens.shape[1]) < self.size[:, None]

    def first(self, count: int) -> State:
        """Return the first ``count`` trajectories."""
        return State(*(part[:count] for part in self))

    def draw(self, choose: Choose, name: str, log_probs: Tensor | None, mask: Tensor) -> tuple[State, Tensor]:
        """Return the states with the log-probabilities of one decision added, and its outcomes.

        ``log_probs`` is None where the module is off: the draw is uniform and adds nothing to log π.
        """
        outcomes = choose(name, log_probs, mask)
        if log_probs is None:
            return self, outcomes
        drawn = torch.where(mask, log_probs.gather(-1, outcomes.unsqueeze(-1)).squeeze(-1), 0.0)
        return self._replace(log_prob=self.log_prob + drawn.reshape(len(drawn), -1).sum(dim=1)), outcomes


class Assignment(NamedTuple):
    """Indices of role and backbone, shape (rows,) each, and a mask of the records C_t they see, shape (rows, φ)."""

    role: Tensor
    backbone: Tensor
    retrieved: Tensor


class StepEnd(NamedTuple):
    """Masks of the responses that are stored and of the trajectories that halt, shape (rows,) each."""

    written: Tensor
    halted: Tensor


class Router(nn.Module):
    """All learned parameters, in float64, with the profile embeddings (R, 384) and (M, 384) as buffers."""

    role_profiles: Tensor
    backbone_profiles: Tensor

    def __init__(self, config: Config, roles: NDArray, backbones: NDArray) -> None:
        super().__init__()
        self.config = config
        self.register_buffer("role_profiles", torch.tensor(roles))
        self.register_buffer("backbone_profiles", torch.tensor(backbones))
        self.role_vae = ProfileVAE()
        self.backbone_vae = ProfileVAE()
        self.encoder = StateEncoder(config.max_depth)
        # Every module is initialised and only then dropped, so ablations of one seed start from the same weights.
        self.role_allocator = _if_on(config.role_allocator, RoleAllocator(config.score))
        self.llm_router = _if_on(config.llm_router, LLMRouter(config.score))
        self.retrieval_gate = _if_on(config.retrieval_gate, RetrievalGate())
        self.write_gate = _if_on(config.write_gate, WriteGate())
        self.halting = _if_on(config.halting, Halting(config.halting_bias))
        self.double()

    def latents(self) -> Latents:
        """Return the latents of all roles and backbones; they change with the parameters only."""
        return Latents(self.role_vae(self.role_profiles), self.backbone_vae(self.backbone_profiles))

    def vae_loss(self, noise_roles: Tensor, noise_backbones: Tensor) -> Tensor:
        """Return L_VAE, the sum over both pools, for standard normal noise of shapes (R, 128) and (M, 128)."""
        kl = self.config.vae_kl
        roles = self.role_vae.loss(self.role_profiles, noise_roles, kl)
        return roles + self.backbone_vae.loss(self.backbone_profiles, noise_backbones, kl)

    def begin(self, question: Tensor) -> State:
        """Return trajectories before their first step, for question embeddings (rows, 384)."""
        rows, memory = len(question), question.new_zeros(len(question), self.config.max_depth, LATENT)
        return State(
            question=question,
            q_hat=self.encoder.W_q(question),
            tokens=memory,
            retrieval_keys=memory,
            projected=memory,
            size=torch.zeros(rows, dtype=torch.int64),
            context=question.new_zeros(rows, CONTEXT),
            halting=question.new_zeros(rows, LATENT),
            steps=torch.zeros(rows, dtype=torch.int64),
            log_prob=question.new_zeros(rows),
        )

    def assign(self, state: State, latents: Latents, choose: Choose) -> tuple[State, Assignment]:
        """Encode the context c_t, then choose role, backbone and retrieved records of the next agent."""
        state = state._replace(context=self.encoder(state.q_hat, state.tokens, state.stored))
        everyone = torch.ones_like(state.steps, dtype=torch.bool)
        log_probs = None
        if self.role_allocator is not None:
            log_probs = self.role_allocator(state.context, latents.roles)
        state, role = state.draw(choose, "role", log_probs, everyone)
        r, log_probs = latents.roles[role], None
        if self.llm_router is not None:
            log_probs = self.llm_router(state.context, r, latents.backbones)
        state, backbone = state.draw(choose, "backbone", log_probs, everyone)
        retrieved = state.stored
        if self.retrieval_gate is not None:
            log_probs = self.retrieval_gate(state.question, r, latents.backbones[backbone], state.retrieval_keys)
            state, drawn = state.draw(choose, "retrieve", log_probs, state.stored)
            retrieved = drawn.bool() & state.stored
        return state, Assignment(role, backbone, retrieved)

    def end_step(
        self, state: State, latents: Latents, agent: Assignment, response: Tensor, choose: Choose
    ) -> tuple[State, StepEnd]:
        """Decide which responses (rows, 384) are stored and which trajectories halt; no halting at φ (D-GMR-3)."""
        r, m = latents.roles[agent.role], latents.backbones[agent.backbone]
        new = {"tokens": self.encoder.token(r, m, response)}
        written = torch.ones_like(state.steps, dtype=torch.bool)
        if self.retrieval_gate is not None:
            new["retrieval_keys"] = self.retrieval_gate.record(r, m, response)
        if self.write_gate is not None:
            new["projected"] = projected = self.write_gate.P_y(response)
            log_probs = self.write_gate(state.context, projected, state.projected, state.stored)
            state, drawn = state.draw(choose, "write", log_probs, written)
            written = drawn.bool()
        rows = written.nonzero()[:, 0]
        place = rows, state.size[rows]
        memory = {name: getattr(state, name).index_put(place, values[rows]) for name, values in new.items()}
        state = state._replace(**memory, size=state.size + written, steps=state.steps + 1)
        halted = torch.zeros_like(written)
        if self.halting is not None:
            state = state._replace(halting=self.halting.gru(pool(state.tokens, state.stored), state.halting))
            mask = state.steps < self.config.max_depth
            state, drawn = state.draw(choose, "halt", self.halting(state.halting), mask)
            halted = drawn.bool() & mask
        return state, StepEnd(written, halted)


def _if_on(switch: bool, module: Module) -> Module | None:
    return module if switch else None
