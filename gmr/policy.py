"""Two uses of a router's decisions: sample them step by step, and evaluate finished trajectories for the update."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gmr.config import Entropies
from gmr.router import Assignment, Chance, Router, State, StepEnd
from harness.concurrency import Batcher

# Most trajectories decided in one batch: more would save little and keep the event loop from its calls.
BATCH = 16

Vector = NDArray[np.float32]
# Modules whose entropies are in H̄, of retrieval that of every record.
_ROUTING = ("role", "backbone", "halt")
_COUNTED: Mapping[Entropies, Sequence[str]] = {"routing": _ROUTING, "all": (*_ROUTING, "retrieval", "write")}


class Step(NamedTuple):
    """Decisions of one step of Algorithm 1."""

    role: int  # index in the router's pool
    backbone: int  # index in the router's pool
    retrieved: tuple[bool, ...]  # z_{t,j} of each record of S_{t-1}, in memory order
    response: Vector  # embedding y_t of the response, shape (384,)
    written: bool  # w_t
    halted: bool | None  # h_t; None if no draw is made (t = φ, or halting switched off)


class Trace(NamedTuple):
    """Decisions of one trajectory."""

    question: Vector  # embedding q of the question, shape (384,)
    steps: tuple[Step, ...]  # 1 to φ
    log_prob: float  # log π as sampled


class Snapshot:
    """Router with its present parameters, without gradient; batches concurrent requests of one trajectory each."""

    @torch.inference_mode()
    def __init__(self, router: Router, *, greedy: bool = False) -> None:
        self._router = router
        self._is_greedy = greedy
        self._latents = router.latents()
        self._assignments = Batcher(self._assign, BATCH)
        self._step_ends = Batcher(self._end_step, BATCH)

    @cached_property
    def greedy(self) -> Snapshot:
        """Return the same router, which takes the most probable option everywhere."""
        return Snapshot(self._router, greedy=True)

    @torch.inference_mode()
    def begin(self, question: Vector) -> State:
        """Return the state before the first step, for a question embedding of shape (384,)."""
        return self._router.begin(_stack([question]))

    async def assign(self, state: State, chance: Chance) -> tuple[State, Assignment]:
        """Choose role, backbone and retrieved records of the next agent."""
        return await self._assignments.submit((state, chance))

    async def end_step(self, state: State, response: Vector, chance: Chance) -> tuple[State, StepEnd]:
        """Decide whether the response, an embedding of shape (384,), is stored and whether the trajectory halts."""
        return await self._step_ends.submit((state, response, chance))

    @torch.inference_mode()
    def _assign(self, requests: Sequence[tuple[State, Chance]]) -> list[tuple[State, Assignment]]:
        states, chances = zip(*requests, strict=True)
        state, agent = self._router.assign(_concatenate(states), self._latents, _concatenate(chances), self._is_greedy)
        return [(_row(state, row), _row(agent, row)) for row in range(len(requests))]

    @torch.inference_mode()
    def _end_step(self, requests: Sequence[tuple[State, Vector, Chance]]) -> list[tuple[State, StepEnd]]:
        states, responses, chances = zip(*requests, strict=True)
        state, end = self._router.end_step(
            _concatenate(states), self._latents, _stack(responses), _concatenate(chances), self._is_greedy
        )
        return [(_row(state, row), _row(end, row)) for row in range(len(requests))]


def _stack(vectors: Sequence[Vector]) -> Tensor:
    return torch.from_numpy(np.stack(vectors).astype(np.float64))


def _concatenate(rows: Sequence[Any]) -> Any:
    """Return the tensors of many trajectories as those of one batch."""
    return type(rows[0])(*map(torch.cat, zip(*rows, strict=True)))


def _row(batch: Any, row: int) -> Any:
    """Return the tensors of one trajectory of a batch, each with one row."""
    if isinstance(batch, Tensor):
        return batch[row : row + 1]
    if batch is None:
        return None
    return type(batch)(*(_row(member, row) for member in batch))


class Evaluation(NamedTuple):
    """Terms of the loss for n trajectories, and what the training log reports of them."""

    log_prob: Tensor  # log π_i, shape (n,), with gradient
    mean_entropy: Tensor  # H̄, mean over all steps of the entropies that ``entropy_of`` counts, with gradient
    # Mean entropy of a draw in nats, by module: role, backbone, retrieval (a draw a record), write, halt.
    entropies: Mapping[str, float]
    top: Mapping[str, float]  # mean over the steps of the largest probability of role and backbone, where on


def evaluate(router: Router, traces: Sequence[Trace]) -> Evaluation:
    """Compute log π and entropies of finished trajectories under the present parameters, with gradient."""
    latents = router.latents()
    # The longest first, so that the trajectories with a further step are always the first rows.
    order = sorted(range(len(traces)), key=lambda index: -len(traces[index].steps))
    state = router.begin(_stack([traces[index].question for index in order]))
    log_prob = state.question.new_zeros(len(order))
    entropies: dict[str, Tensor] = {}
    draws, top = Counter[str](), defaultdict[str, float](float)
    for number in range(len(traces[order[0]].steps)):
        steps = [traces[index].steps[number] for index in order if len(traces[index].steps) > number]
        recorded = _recorded(steps, router.config.max_depth)
        state, agent = router.assign(state.first(len(steps)), latents, recorded)
        state, end = router.end_step(state, latents, _stack([step.response for step in steps]), recorded)
        modules = {"role": agent.role, "backbone": agent.backbone, "retrieval": agent.retrieve}
        of_step = log_prob[: len(steps)]
        for module, draw in {**modules, "write": end.write, "halt": end.halt}.items():
            if draw.log_probs is None:
                continue
            probs = draw.log_probs.exp()
            entropy = torch.where(draw.drawn, -(probs * draw.log_probs).sum(dim=-1), 0.0).sum()
            entropies[module] = entropies.get(module, 0.0) + entropy
            draws[module] += int(draw.drawn.sum())
            if module in ("role", "backbone"):
                top[module] += probs.detach().amax(dim=-1).sum().item()
            of_step = of_step + draw.log_prob().reshape(len(steps), -1).sum(dim=1)
        log_prob = torch.cat([of_step, log_prob[len(steps) :]])
    count = sum(len(trace.steps) for trace in traces)
    policy = [entropies[module] for module in _COUNTED[router.config.entropy_of] if module in entropies]
    return Evaluation(
        log_prob=log_prob[torch.tensor(order).argsort()],
        mean_entropy=sum(policy, start=log_prob.new_zeros(())) / count,
        entropies={module: entropies[module].item() / number for module, number in draws.items() if number},
        top={module: total / count for module, total in top.items()},
    )


def _recorded(steps: Sequence[Step], max_depth: int) -> Chance:
    """Return the decisions of one step of several trajectories as indices, one trajectory a row."""
    retrieved = torch.zeros(len(steps), max_depth, dtype=torch.int64)
    for row, step in enumerate(steps):
        retrieved[row, : len(step.retrieved)] = torch.tensor(step.retrieved)
    columns = ((step.role, step.backbone, int(step.written), int(step.halted or 0)) for step in steps)
    role, backbone, write, halt = torch.tensor(list(columns)).T
    return Chance(role, backbone, retrieved, write, halt)
