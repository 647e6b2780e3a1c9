"""Log-probabilities of whole batches of finished trajectories, computed again with gradient (paper, Optimization).

Rows are the steps of all trajectories, one after the other. Records are the written ones among them, so the records of
a trajectory lie together and in memory order, and a memory is a place to begin and a count. A context depends on the
memory only: it is computed once for all steps in a row that see the same memory.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812

from gmr.networks import LATENT, Halting, RetrievalGate, WriteGate, pool
from gmr.rollout import Step, Trace
from gmr.router import Latents, Router, Vector

_POLICY = ("role", "backbone", "halt")


class Entropy(NamedTuple):
    """Entropy of one module in nats, summed over its draws, and how many draws that are."""

    total: Tensor
    draws: int


@dataclass(frozen=True, slots=True)
class Evaluation:
    """What an update needs of a batch, and what its log reports.

    Attributes:
        log_prob: For each trajectory the sum of the log-probabilities of its draws, shape (n,), with gradient.
        mean_entropy: H̄, the mean over all steps of the entropies of role, backbone and halting, with gradient.
        entropies: By module that is switched on: role, backbone, retrieval (a draw for each record), write, halt.
        top: Mean over the steps of the largest probability, of role and backbone where switched on.
    """

    log_prob: Tensor
    mean_entropy: Tensor
    entropies: Mapping[str, Entropy]
    top: Mapping[str, float]


def evaluate(router: Router, traces: Sequence[Trace]) -> Evaluation:
    """Evaluates the stored decisions of one or more trajectories under the router's present parameters.

    Draws of modules that the router lacks do not count.

    Raises:
        ValueError: A step has another number of retrieval draws than records before it.
    """
    rows = _Rows.of(traces)
    draws = _draws(router, rows)
    log_prob = rows.questions.new_zeros(len(traces))
    for found in draws.values():
        log_prob = log_prob.index_add(0, rows.trajectory[found.row], found.log_prob)
    entropies = {name: Entropy(found.entropy.sum(), len(found.row)) for name, found in draws.items()}
    policy = [entropies[name].total for name in _POLICY if name in entropies]
    return Evaluation(
        log_prob=log_prob,
        mean_entropy=sum(policy, start=log_prob.new_zeros(())) / len(rows.trajectory),
        entropies=entropies,
        top={name: found.top for name, found in draws.items() if found.top is not None},
    )


class _Draws(NamedTuple):
    """Draws of one module: the row of each, its log-probability and its entropy, all of shape (draws,)."""

    row: Tensor
    log_prob: Tensor
    entropy: Tensor
    top: float | None = None


@dataclass(frozen=True, slots=True)
class _Rows:
    """The steps of a batch, as one value for each row where no other shape is named.

    Attributes:
        questions: Embeddings by trajectory, shape (n, 384).
        responses: Embeddings by row, shape (rows, 384).
        trajectory: Which trajectory the row belongs to.
        step: Its place there, from 0.
        role: Index of the role.
        backbone: Index of the backbone.
        retrieved: The retrieval draws of all rows, one after the other, shape (pairs of row and record,).
        written: Whether the response is stored.
        halted: Outcome of the halting draw.
        halting: Whether there is one.
        first: Index of the first record of the trajectory among all records.
        before: How many records the trajectory has before the step.
    """

    questions: Tensor
    responses: Tensor
    trajectory: Tensor
    step: Tensor
    role: Tensor
    backbone: Tensor
    retrieved: Tensor
    written: Tensor
    halted: Tensor
    halting: Tensor
    first: Tensor
    before: Tensor

    @classmethod
    def of(cls, traces: Sequence[Trace]) -> _Rows:
        steps = [step for trace in traces for step in trace.steps]
        lengths = torch.tensor([len(trace.steps) for trace in traces])
        trajectory = torch.arange(len(traces)).repeat_interleave(lengths)
        begin = (lengths.cumsum(0) - lengths)[trajectory]
        written = torch.tensor([step.written for step in steps])
        earlier = F.pad(written.cumsum(0), (1, 0))
        before = earlier[:-1] - earlier[begin]
        _check(steps, before)
        return cls(
            questions=_vectors([trace.question for trace in traces]),
            responses=_vectors([step.response for step in steps]),
            trajectory=trajectory,
            step=torch.arange(len(steps)) - begin,
            role=torch.tensor([step.role for step in steps]),
            backbone=torch.tensor([step.backbone for step in steps]),
            retrieved=torch.tensor([seen for step in steps for seen in step.retrieved], dtype=torch.bool),
            written=written,
            halted=torch.tensor([step.halted is True for step in steps]),
            halting=torch.tensor([step.halted is not None for step in steps]),
            first=earlier[begin],
            before=before,
        )

    def memory(self, count: Tensor) -> _Memory:
        """The first ``count`` records of the trajectory of each row, padded to the largest count."""
        offset = torch.arange(int(count.max()))
        last = max(int(self.written.sum()) - 1, 0)
        return _Memory((self.first[:, None] + offset).clamp(max=last), offset < count[:, None])


class _Memory(NamedTuple):
    """For each row the indices of its records and which of them are real, both of shape (rows, k)."""

    record: Tensor
    stored: Tensor


@dataclass(frozen=True, slots=True)
class _Inputs:
    """What several decisions of a row read: latents of its role and backbone, its memory and context, the tokens."""

    latents: Latents
    role: Tensor
    backbone: Tensor
    tokens: Tensor
    memory: _Memory
    context: Tensor

    @classmethod
    def of(cls, router: Router, rows: _Rows) -> _Inputs:
        latents = router.latents()
        role, backbone = latents.roles[rows.role], latents.backbones[rows.backbone]
        written = rows.written
        tokens = router.encoder.token(role[written], backbone[written], rows.responses[written])
        memory = rows.memory(rows.before)
        return cls(latents, role, backbone, tokens, memory, _contexts(router, rows, tokens, memory))


def _contexts(router: Router, rows: _Rows, tokens: Tensor, memory: _Memory) -> Tensor:
    changed = (rows.step == 0) | rows.written.roll(1)
    q_hat = router.encoder.W_q(rows.questions)[rows.trajectory[changed]]
    contexts = router.encoder(q_hat, tokens[memory.record[changed]], memory.stored[changed])
    return contexts[changed.cumsum(0) - 1]


def _draws(router: Router, rows: _Rows) -> dict[str, _Draws]:
    inputs = _Inputs.of(router, rows)
    draws = {}
    if router.role_allocator is not None:
        draws["role"] = _categorical(router.role_allocator(inputs.context, inputs.latents.roles), rows.role)
    if router.llm_router is not None:
        log_probs = router.llm_router(inputs.context, inputs.role, inputs.latents.backbones)
        draws["backbone"] = _categorical(log_probs, rows.backbone)
    if router.retrieval_gate is not None:
        draws["retrieval"] = _retrieval(router.retrieval_gate, rows, inputs)
    if router.write_gate is not None:
        draws["write"] = _write(router.write_gate, rows, inputs)
    if router.halting is not None:
        draws["halt"] = _halting(router.halting, rows, inputs.tokens)
    return draws


def _retrieval(gate: RetrievalGate, rows: _Rows, inputs: _Inputs) -> _Draws:
    stored, written = inputs.memory.stored, rows.written
    records = gate.record(inputs.role[written], inputs.backbone[written], rows.responses[written])
    question = rows.questions[rows.trajectory]
    logits = gate(question, inputs.role, inputs.backbone, records[inputs.memory.record])
    return _bernoulli(stored.nonzero()[:, 0], logits[stored], rows.retrieved)


def _write(gate: WriteGate, rows: _Rows, inputs: _Inputs) -> _Draws:
    directions = gate.direction(rows.responses)
    records = directions[rows.written][inputs.memory.record]
    logits = gate(inputs.context, directions, records, inputs.memory.stored)
    return _bernoulli(torch.arange(len(logits)), logits, rows.written)


def _halting(halting: Halting, rows: _Rows, tokens: Tensor) -> _Draws:
    """The GRU runs over all trajectories side by side; what it does past the end of a short one is never read."""
    after = rows.memory(rows.before + rows.written)
    pooled = pool(tokens[after.record], after.stored)
    steps = pooled.new_zeros(int(rows.step.max()) + 1, len(rows.questions), LATENT)
    hidden, states = torch.zeros_like(steps[0]), []
    for step in steps.index_put((rows.step, rows.trajectory), pooled):
        hidden = halting.advance(step, hidden)
        states.append(hidden)
    row = rows.halting.nonzero()[:, 0]
    logits = halting(torch.stack(states)[rows.step[row], rows.trajectory[row]])
    return _bernoulli(row, logits, rows.halted[row])


def _categorical(log_probs: Tensor, choice: Tensor) -> _Draws:
    row = torch.arange(len(choice))
    probs = log_probs.exp()
    top = probs.detach().amax(dim=1).mean().item()
    return _Draws(row, log_probs[row, choice], -(probs * log_probs).sum(dim=1), top)


def _bernoulli(row: Tensor, logits: Tensor, outcome: Tensor) -> _Draws:
    log_prob = F.logsigmoid(torch.where(outcome, logits, -logits))
    probs = torch.sigmoid(logits)
    entropy = -(probs * F.logsigmoid(logits) + (1 - probs) * F.logsigmoid(-logits))
    return _Draws(row, log_prob, entropy)


def _vectors(vectors: Sequence[Vector]) -> Tensor:
    return torch.from_numpy(np.stack(vectors).astype(np.float64))


def _check(steps: Sequence[Step], before: Tensor) -> None:
    for number, (step, records) in enumerate(zip(steps, before.tolist(), strict=True)):
        if len(step.retrieved) != records:
            raise ValueError(
                f"step {number} of the batch has {len(step.retrieved)} retrieval draws for {records} records"
            )
