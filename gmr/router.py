"""The router of Gated-Memory Routing: its networks put together, and its decisions one step at a time (methods §7)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from gmr.allocation import LLMRouter, RoleAllocator
from gmr.config import Config
from gmr.gates import RetrievalGate, WriteGate
from gmr.halting import Halting, pool
from gmr.latents import LATENT, ProfileVAE
from gmr.state_encoder import StateEncoder
from gmr.trace import Vector

Probabilities = NDArray[np.float64]
Module = TypeVar("Module", bound=nn.Module)


class Latents(NamedTuple):
    """Latents of both pools: shapes (R, 128) and (M, 128)."""

    roles: Tensor
    backbones: Tensor


class Router(nn.Module):
    """All that is learned, in float64, with the profile embeddings of both pools as buffers.

    Initial weights come from torch's global generator. Every module is drawn and only then dropped where the
    configuration switches it off (its attribute is ``None``), so ablations of one seed start from the same weights.
    The autoencoders and the state encoder serve several decisions and always stay.

    Args:
        config: Which modules exist, and their shapes and starting values.
        roles: Embeddings of the role profiles, shape (R, 384).
        backbones: Embeddings of the backbone profiles, shape (M, 384).
    """

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
        roles = self.role_vae.loss(self.role_profiles, noise_roles)
        return roles + self.backbone_vae.loss(self.backbone_profiles, noise_backbones)

    def snapshot(self) -> Snapshot:
        """The router as it decides now; make a new one after every change of the parameters."""
        return Snapshot(self)


@dataclass(frozen=True, slots=True)
class State:
    """A trajectory before its next decision, as one row.

    Attributes:
        question: Embedding of the question, shape (1, 384).
        q_hat: Its projection, shape (1, 128).
        context: c_t, shape (1, 256).
        tokens: Tokens of the records, shape (1, k, 128).
        records: Their directions for the retrieval gate, shape (1, k, 128); none where the gate is off.
        responses: Directions of their responses for the write gate, shape (1, k, 128); none where the gate is off.
        halting: Halting state, shape (1, 128).
        steps: How many steps are done.
    """

    question: Tensor
    q_hat: Tensor
    context: Tensor
    tokens: Tensor
    records: Tensor
    responses: Tensor
    halting: Tensor
    steps: int = 0


class Snapshot:
    """The decisions of one trajectory, step by step and without gradient, with both pools' latents computed once.

    Nothing is drawn here: probabilities go out, the caller's draws come back as arguments. A snapshot keeps no state
    of its own, so trajectories can be interleaved at will.
    """

    @torch.no_grad()
    def __init__(self, router: Router) -> None:
        self._router = router
        self._latents = router.latents()

    @torch.no_grad()
    def begin(self, question: Vector) -> State:
        """The state before the first step, for the embedding of the question, shape (384,)."""
        row = _row(question)
        q_hat = self._router.encoder.W_q(row)
        nothing = row.new_zeros(1, 0, LATENT)
        context = self._context(q_hat, nothing)
        return State(row, q_hat, context, nothing, nothing, nothing, halting=row.new_zeros(1, LATENT))

    @torch.no_grad()
    def roles(self, state: State) -> Probabilities:
        """Probabilities of the roles, shape (R,); uniform where the role allocator is off."""
        if self._router.role_allocator is None:
            return _uniform(self._latents.roles)
        return _probabilities(self._router.role_allocator(state.context, self._latents.roles))

    @torch.no_grad()
    def backbones(self, state: State, role: int) -> Probabilities:
        """Probabilities of the backbones given the role, shape (M,); uniform where the LLM router is off."""
        if self._router.llm_router is None:
            return _uniform(self._latents.backbones)
        roles, backbones = self._latents
        return _probabilities(self._router.llm_router(state.context, roles[role, None], backbones))

    @torch.no_grad()
    def retrieval(self, state: State, role: int, backbone: int) -> Probabilities | None:
        """Probability of seeing each of the k records, shape (k,); ``None`` where the retrieval gate is off."""
        if self._router.retrieval_gate is None:
            return None
        latents = self._pair(role, backbone)
        return torch.sigmoid(self._router.retrieval_gate(state.question, *latents, state.records))[0].numpy()

    @torch.no_grad()
    def write(self, state: State, response: Vector) -> float | None:
        """Probability of storing the response, an embedding of shape (384,); ``None`` where the write gate is off."""
        gate = self._router.write_gate
        if gate is None:
            return None
        direction = gate.direction(_row(response))
        return torch.sigmoid(gate(state.context, direction, state.responses, _all(state.responses))).item()

    @torch.no_grad()
    def advance(
        self, state: State, role: int, backbone: int, response: Vector, written: bool
    ) -> tuple[State, float | None]:
        """The state after a step, and the probability of halting there.

        Args:
            state: The state in which the step was decided.
            role: Index of the role that acted.
            backbone: Index of its backbone.
            response: Embedding of its response, shape (384,).
            written: Whether the response is stored.

        Returns:
            The new state; the probability of halting, ``None`` where no draw is made: after the last step that the
            configuration allows (D-GMR-3), or with halting off.
        """
        if written:
            state = self._store(state, role, backbone, _row(response))
        steps = state.steps + 1
        halting = self._router.halting
        if halting is None or steps == self._router.config.max_depth:
            return replace(state, steps=steps), None
        hidden = halting.advance(pool(state.tokens, _all(state.tokens)), state.halting)
        return replace(state, steps=steps, halting=hidden), torch.sigmoid(halting(hidden)).item()

    def _context(self, q_hat: Tensor, tokens: Tensor) -> Tensor:
        return self._router.encoder(q_hat, tokens, _all(tokens))

    def _pair(self, role: int, backbone: int) -> tuple[Tensor, Tensor]:
        return self._latents.roles[role, None], self._latents.backbones[backbone, None]

    def _store(self, state: State, role: int, backbone: int, response: Tensor) -> State:
        router, pair = self._router, self._pair(role, backbone)
        tokens = _append(state.tokens, router.encoder.token(*pair, response))
        records, responses = state.records, state.responses
        if router.retrieval_gate is not None:
            records = _append(records, router.retrieval_gate.record(*pair, response))
        if router.write_gate is not None:
            responses = _append(responses, router.write_gate.direction(response))
        context = self._context(state.q_hat, tokens)
        return replace(state, context=context, tokens=tokens, records=records, responses=responses)


def _kept(switch: bool, module: Module) -> Module | None:
    return module if switch else None


def _row(vector: Vector) -> Tensor:
    return torch.tensor(vector, dtype=torch.float64)[None]


def _append(memory: Tensor, row: Tensor) -> Tensor:
    return torch.cat([memory, row[None]], dim=1)


def _all(memory: Tensor) -> Tensor:
    return torch.ones(memory.shape[:2], dtype=torch.bool)


def _probabilities(log_probs: Tensor) -> Probabilities:
    return log_probs[0].exp().numpy()


def _uniform(options: Tensor) -> Probabilities:
    return np.full(len(options), 1 / len(options))
