"""The router of Gated-Memory Routing: its networks put together, and its decisions one step at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from gmr.config import Config
from gmr.networks import (
    LATENT,
    Halting,
    LLMRouter,
    ProfileVAE,
    RetrievalGate,
    RoleAllocator,
    StateEncoder,
    WriteGate,
    by_row,
    pool,
)
from harness.concurrency import Batcher

# Trajectories whose contexts are computed together: more would save little and keep the event loop from its calls.
TOGETHER = 16

Vector = NDArray[np.float32]
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
        kl = self.config.vae_kl
        roles = self.role_vae.loss(self.role_profiles, noise_roles, kl)
        return roles + self.backbone_vae.loss(self.backbone_profiles, noise_backbones, kl)

    def snapshot(self) -> Snapshot:
        """The router as it decides now; make a new one after every change of the parameters."""
        return Snapshot(self)


@dataclass(frozen=True, slots=True)
class Memory:
    """A trajectory between two steps, as one row.

    Attributes:
        question: Embedding of the question, shape (1, 384).
        q_hat: Its projection, shape (1, 128).
        tokens: Tokens of the records, shape (1, k, 128).
        records: Their directions for the retrieval gate, shape (1, k, 128); none where the gate is off.
        responses: Directions of their responses for the write gate, shape (1, k, 128); none where the gate is off.
        halting: Halting state, shape (1, 128).
        context: Context of these records, shape (1, 256); ``None`` as long as nobody needed it.
        steps: How many steps are done.
    """

    question: Tensor
    q_hat: Tensor
    tokens: Tensor
    records: Tensor
    responses: Tensor
    halting: Tensor
    context: Tensor | None = None
    steps: int = 0


class State(NamedTuple):
    """A trajectory before its next decision: its memory, and the context c_t, shape (1, 256)."""

    memory: Memory
    context: Tensor


class Snapshot:
    """The decisions of many trajectories, step by step and without gradient, with both pools' latents computed once.

    Nothing is drawn here: probabilities go out, the caller's draws come back as arguments. A snapshot keeps nothing of
    a trajectory, so they can be interleaved at will. Every decision has the same bytes in any company: contexts, half
    of the work, are computed for all trajectories that wait for one, each by products of its own; all else is computed
    for one trajectory at a time.
    """

    @torch.inference_mode()
    def __init__(self, router: Router) -> None:
        self._router = router
        self._latents = router.latents()
        self._contexts = Batcher(self._contexts_of, TOGETHER)

    @torch.inference_mode()
    def begin(self, question: Vector) -> State:
        """The state before the first step, for the embedding of the question, shape (384,)."""
        row = _row(question)
        q_hat = self._router.encoder.W_q(row)
        nothing = row.new_zeros(1, 0, LATENT)
        context = self._router.encoder(q_hat, nothing, _all(nothing))
        return State(Memory(row, q_hat, nothing, nothing, nothing, halting=row.new_zeros(1, LATENT)), context)

    async def state(self, memory: Memory) -> State:
        """The state before the next step, with the context of the memory."""
        context = memory.context
        if context is None:
            context = await self._contexts.ask(memory)
        return State(memory, context)

    @torch.inference_mode()
    def roles(self, state: State) -> Probabilities:
        """Probabilities of the roles, shape (R,); uniform where the role allocator is off."""
        if self._router.role_allocator is None:
            return _uniform(self._latents.roles)
        return _probabilities(self._router.role_allocator(state.context, self._latents.roles))

    @torch.inference_mode()
    def backbones(self, state: State, role: int) -> Probabilities:
        """Probabilities of the backbones given the role, shape (M,); uniform where the LLM router is off."""
        if self._router.llm_router is None:
            return _uniform(self._latents.backbones)
        roles, backbones = self._latents
        return _probabilities(self._router.llm_router(state.context, roles[role, None], backbones))

    @torch.inference_mode()
    def retrieval(self, state: State, role: int, backbone: int) -> Probabilities | None:
        """Probability of seeing each of the k records, shape (k,); ``None`` where the retrieval gate is off."""
        if self._router.retrieval_gate is None:
            return None
        question, records = state.memory.question, state.memory.records
        return torch.sigmoid(self._router.retrieval_gate(question, *self._pair(role, backbone), records))[0].numpy()

    @torch.inference_mode()
    def write(self, state: State, response: Vector) -> float | None:
        """Probability of storing the response, an embedding of shape (384,); ``None`` where the write gate is off."""
        gate = self._router.write_gate
        if gate is None:
            return None
        direction, responses = gate.direction(_row(response)), state.memory.responses
        return torch.sigmoid(gate(state.context, direction, responses, _all(responses))).item()

    @torch.inference_mode()
    def advance(
        self, state: State, role: int, backbone: int, response: Vector, written: bool
    ) -> tuple[Memory, float | None]:
        """The memory after a step with its response of shape (384,), and the probability of halting there.

        That is ``None`` where no draw is made: after the last step that the configuration allows (D-GMR-3), or with
        halting off.
        """
        memory = replace(state.memory, context=state.context, steps=state.memory.steps + 1)
        if written:
            memory = self._store(memory, role, backbone, _row(response))
        halting = self._router.halting
        if halting is None or memory.steps == self._router.config.max_depth:
            return memory, None
        hidden = halting.advance(pool(memory.tokens, _all(memory.tokens)), memory.halting)
        return replace(memory, halting=hidden), torch.sigmoid(halting(hidden)).item()

    @torch.inference_mode()
    def _contexts_of(self, memories: Sequence[Memory]) -> Sequence[Tensor]:
        """Contexts of memories with one record or more, padded to the deepest there can be: one shape for all."""
        depth = self._router.config.max_depth
        counts = [memory.tokens.shape[1] for memory in memories]
        pairs = zip(memories, counts, strict=True)
        tokens = torch.cat([F.pad(memory.tokens, (0, 0, 0, depth - count)) for memory, count in pairs])
        stored = torch.arange(depth) < torch.tensor(counts)[:, None]
        q_hat = torch.cat([memory.q_hat for memory in memories])
        return torch.cat([q_hat, self._router.encoder.history(q_hat, tokens, stored, by_row)], dim=1).split(1)

    def _pair(self, role: int, backbone: int) -> tuple[Tensor, Tensor]:
        return self._latents.roles[role, None], self._latents.backbones[backbone, None]

    def _store(self, memory: Memory, role: int, backbone: int, response: Tensor) -> Memory:
        router, pair = self._router, self._pair(role, backbone)
        tokens = _append(memory.tokens, router.encoder.token(*pair, response))
        records, responses = memory.records, memory.responses
        if router.retrieval_gate is not None:
            records = _append(records, router.retrieval_gate.record(*pair, response))
        if router.write_gate is not None:
            responses = _append(responses, router.write_gate.direction(response))
        return replace(memory, tokens=tokens, records=records, responses=responses, context=None)


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
