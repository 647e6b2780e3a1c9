"""The two uses of a router's decisions: sampling them step by step, and computing them again for the update."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gmr.router import Acting, Choose, Kept, Router, State
from harness.concurrency import Batcher

# Most trajectories decided in one batch: more would save little and keep the event loop from its calls.
BATCH = 16

Vector = NDArray[np.float32]
Probabilities = NDArray[np.float64]
Rows = TypeVar("Rows", State, Acting, Kept)


class Step(NamedTuple):
    """The decisions of one step of Algorithm 1."""

    role: int  # index in the router's pool
    backbone: int  # index in the router's pool
    retrieved: tuple[bool, ...]  # for each record of S_{t-1}, in memory order, whether the agent saw it
    response: Vector  # embedding y_t of the response, shape (384,)
    written: bool  # whether the response was stored
    halted: bool | None  # the halting draw; ``None`` where none is made (t = φ, or halting switched off)


class Trace(NamedTuple):
    """One trajectory."""

    question: Vector  # embedding of the question, shape (384,)
    steps: tuple[Step, ...]  # 1 to φ
    log_prob: float  # log π as sampled


# Draws for one trajectory: an index, or one for each record, by name, log-probabilities and where there is a draw.
Draw = Callable[[str, "Probabilities | None", NDArray[np.bool_]], "int | list[int]"]


class Snapshot:
    """The router as it decides now, without gradient; what is asked for at one time is decided together."""

    @torch.inference_mode()
    def __init__(self, router: Router) -> None:
        self._router = router
        self._latents = router.latents()
        self._acting = Batcher(self._act, BATCH)
        self._keeping = Batcher(self._keep, BATCH)

    @torch.inference_mode()
    def begin(self, question: Vector) -> State:
        """The state before the first step, for the embedding of the question, shape (384,)."""
        return self._router.begin(_rows([question]))

    async def act(self, state: State, draw: Draw) -> tuple[State, Acting]:
        """Who acts next and what it sees."""
        return await self._acting.ask((state, draw))

    async def keep(self, state: State, acting: Acting, response: Vector, draw: Draw) -> tuple[State, Kept]:
        """Whether the response, an embedding of shape (384,), is stored, and whether the trajectory halts there."""
        return await self._keeping.ask((state, acting, response, draw))

    @torch.inference_mode()
    def first(self, question: Vector) -> tuple[Probabilities, Probabilities]:
        """Probabilities at the first step: of the roles, and of the backbones given the most probable role."""
        found = []

        def most_probable(name: str, log_probs: Tensor | None, mask: Tensor) -> Tensor:
            if log_probs is None:
                options = len(self._latents.roles if name == "role" else self._latents.backbones)
                log_probs = torch.full((1, options), -math.log(options))
            found.append(log_probs[0].exp().numpy())
            return log_probs.argmax(dim=-1)

        self._router.act(self.begin(question), self._latents, most_probable)
        return found[0], found[1]

    @torch.inference_mode()
    def _act(self, asked: Sequence[tuple[State, Draw]]) -> list[tuple[State, Acting]]:
        states, draws = zip(*asked, strict=True)
        state, acting = self._router.act(_concatenated(states), self._latents, _drawing(draws))
        return list(zip(_split(state), _split(acting), strict=True))

    @torch.inference_mode()
    def _keep(self, asked: Sequence[tuple[State, Acting, Vector, Draw]]) -> list[tuple[State, Kept]]:
        states, acting, responses, draws = zip(*asked, strict=True)
        state, kept = self._router.keep(
            _concatenated(states), self._latents, _concatenated(acting), _rows(responses), _drawing(draws)
        )
        return list(zip(_split(state), _split(kept), strict=True))


def _rows(vectors: Sequence[Vector]) -> Tensor:
    return torch.from_numpy(np.stack(vectors).astype(np.float64))


def _concatenated(parts: Sequence[Rows]) -> Rows:
    return parts[0] if len(parts) == 1 else type(parts[0])(*map(torch.cat, zip(*parts, strict=True)))


def _split(whole: Rows) -> list[Rows]:
    if len(whole[0]) == 1:
        return [whole]
    return [type(whole)(*row) for row in zip(*(part.split(1) for part in whole), strict=True)]


def _drawing(draws: Sequence[Draw]) -> Choose:
    def choose(name: str, log_probs: Tensor | None, mask: Tensor) -> Tensor:
        rows = [None] * len(draws) if log_probs is None else log_probs.numpy()
        each = zip(draws, rows, mask.numpy(), strict=True)
        return torch.tensor([draw(name, row, drawn) for draw, row, drawn in each])

    return choose


class Entropy(NamedTuple):
    """Entropy of one module in nats, summed over its draws, and how many draws that are."""

    total: Tensor
    draws: int


class Evaluation(NamedTuple):
    """What an update needs of n trajectories, and what its log reports."""

    log_prob: Tensor  # of each trajectory the sum of the log-probabilities of its draws, shape (n,), with gradient
    mean_entropy: Tensor  # H̄, the mean over all steps of the entropies of role, backbone and halting, with gradient
    entropies: Mapping[str, Entropy]  # by module that is on: role, backbone, retrieval (a draw a record), write, halt
    top: Mapping[str, float]  # mean over the steps of the largest probability, of role and backbone where on


def evaluate(router: Router, traces: Sequence[Trace]) -> Evaluation:
    """Walks finished trajectories again under the present parameters, with gradient; ValueError for a wrong trace."""
    latents, replay = router.latents(), _Replay()
    # The longest first, so that the trajectories with a further step are always the first ones.
    order = sorted(range(len(traces)), key=lambda index: -len(traces[index].steps))
    state = router.begin(_rows([traces[index].question for index in order]))
    log_prob = state.log_prob
    for number in range(len(traces[order[0]].steps)):
        replay.steps = [
            trace.steps[number] for trace in (traces[index] for index in order) if len(trace.steps) > number
        ]
        count = len(replay.steps)
        state, acting = router.act(state.first(count), latents, replay)
        state, _ = router.keep(state, latents, acting, _rows([step.response for step in replay.steps]), replay)
        log_prob = torch.cat([state.log_prob, log_prob[count:]])
    steps = sum(len(trace.steps) for trace in traces)
    policy = [replay.entropies[name].total for name in _POLICY if name in replay.entropies]
    return Evaluation(
        log_prob=log_prob[torch.tensor(order).argsort()],
        mean_entropy=sum(policy, start=log_prob.new_zeros(())) / steps,
        entropies=replay.entropies,
        top={name: total / steps for name, total in replay.top.items()},
    )


_POLICY = ("role", "backbone", "halt")
_NAMES = {"retrieve": "retrieval"}


class _Replay:
    steps: Sequence[Step]

    def __init__(self) -> None:
        self.entropies: dict[str, Entropy] = {}
        self.top: dict[str, float] = {}

    def __call__(self, name: str, log_probs: Tensor | None, mask: Tensor) -> Tensor:
        if log_probs is not None:
            probs = log_probs.exp()
            entropy = torch.where(mask, -(probs * log_probs).sum(dim=-1), 0.0).sum()
            total, draws = self.entropies.get(_NAMES.get(name, name), Entropy(entropy.new_zeros(()), 0))
            self.entropies[_NAMES.get(name, name)] = Entropy(total + entropy, draws + int(mask.sum()))
            if name in ("role", "backbone"):
                self.top[name] = self.top.get(name, 0.0) + probs.detach().amax(dim=-1).sum().item()
        if name == "retrieve":
            return self._retrieved(mask)
        attribute = {"role": "role", "backbone": "backbone", "write": "written", "halt": "halted"}[name]
        return torch.tensor([int(getattr(step, attribute) or 0) for step in self.steps])

    def _retrieved(self, mask: Tensor) -> Tensor:
        outcomes = torch.zeros(mask.shape, dtype=torch.int64)
        draws = [len(step.retrieved) for step in self.steps]
        records = mask.sum(dim=1).tolist()
        if draws != records:
            raise ValueError(f"there are {draws} retrieval draws at a step with {records} records")
        outcomes[mask] = torch.tensor([int(seen) for step in self.steps for seen in step.retrieved], dtype=torch.int64)
        return outcomes
