"""Two uses of a router's decisions: sample them step by step, and evaluate finished trajectories for the update."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gmr.config import Entropies
from gmr.router import Assignment, Choose, Router, State, StepEnd
from harness.concurrency import Batcher

# Most trajectories decided in one batch: more would save little and keep the event loop from its calls.
BATCH = 16

Vector = NDArray[np.float32]
Probabilities = NDArray[np.float64]
Rows = TypeVar("Rows", State, Assignment, StepEnd)
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


# Draw the index of an option for one trajectory, by the name of the decision, the log-probabilities of its options
# (None: uniform) and, for retrieval, the place of the record in memory.
Draw = Callable[..., int]


class Snapshot:
    """Router with its present parameters, without gradient; batches concurrent requests."""

    @torch.inference_mode()
    def __init__(self, router: Router) -> None:
        self._router = router
        self._latents = router.latents()
        self._assignments = Batcher(self._assign, BATCH)
        self._step_ends = Batcher(self._end_step, BATCH)

    @torch.inference_mode()
    def begin(self, question: Vector) -> State:
        """Return the state before the first step, for a question embedding of shape (384,)."""
        return self._router.begin(_stack([question]))

    async def assign(self, state: State, draw: Draw) -> tuple[State, Assignment]:
        """Choose role, backbone and retrieved records of the next agent."""
        return await self._assignments.submit((state, draw))

    async def end_step(self, state: State, agent: Assignment, response: Vector, draw: Draw) -> tuple[State, StepEnd]:
        """Decide whether the response, an embedding of shape (384,), is stored and whether the trajectory halts."""
        return await self._step_ends.submit((state, agent, response, draw))

    @torch.inference_mode()
    def first_probabilities(self, question: Vector) -> tuple[Probabilities, Probabilities]:
        """Return the probabilities of roles at the first step, and of backbones given the most probable role."""
        probabilities = []

        def most_probable(name: str, log_probs: Tensor | None, mask: Tensor) -> Tensor:
            if log_probs is None:
                options = len(self._latents.roles if name == "role" else self._latents.backbones)
                log_probs = torch.full((1, options), -math.log(options))
            probabilities.append(log_probs[0].exp().numpy())
            return log_probs.argmax(dim=-1)

        self._router.assign(self.begin(question), self._latents, most_probable)
        return probabilities[0], probabilities[1]

    @torch.inference_mode()
    def _assign(self, requests: Sequence[tuple[State, Draw]]) -> list[tuple[State, Assignment]]:
        states, draws = zip(*requests, strict=True)
        state, agent = self._router.assign(_concatenate(states), self._latents, _choose_by(draws))
        return list(zip(_split(state), _split(agent), strict=True))

    @torch.inference_mode()
    def _end_step(self, requests: Sequence[tuple[State, Assignment, Vector, Draw]]) -> list[tuple[State, StepEnd]]:
        states, agents, responses, draws = zip(*requests, strict=True)
        state, end = self._router.end_step(
            _concatenate(states), self._latents, _concatenate(agents), _stack(responses), _choose_by(draws)
        )
        return list(zip(_split(state), _split(end), strict=True))


def _stack(vectors: Sequence[Vector]) -> Tensor:
    return torch.from_numpy(np.stack(vectors).astype(np.float64))


def _concatenate(parts: Sequence[Rows]) -> Rows:
    return type(parts[0])(*map(torch.cat, zip(*parts, strict=True)))


def _split(batch: Rows) -> list[Rows]:
    return [type(batch)(*row) for row in zip(*(part.split(1) for part in batch), strict=True)]


def _choose_by(draws: Sequence[Draw]) -> Choose:
    """Return a function that lets the draw of each row choose at the row's places in the mask."""

    def choose(name: str, log_probs: Tensor | None, mask: Tensor) -> Tensor:
        outcomes = np.zeros(mask.shape, dtype=np.int64)
        for place in map(tuple, mask.nonzero().tolist()):
            row, *slot = place
            outcomes[place] = draws[row](name, None if log_probs is None else log_probs[place].numpy(), *slot)
        return torch.from_numpy(outcomes)

    return choose


class Evaluation(NamedTuple):
    """Terms of the loss for n trajectories, and what the training log reports of them."""

    log_prob: Tensor  # log π_i, shape (n,), with gradient
    mean_entropy: Tensor  # H̄, mean over all steps of the entropies that ``entropy_of`` counts, with gradient
    # Mean entropy of a draw in nats, by module: role, backbone, retrieval (a draw a record), write, halt.
    entropies: Mapping[str, float]
    top: Mapping[str, float]  # mean over the steps of the largest probability of role and backbone, where on


def evaluate(router: Router, traces: Sequence[Trace]) -> Evaluation:
    """Compute log π and entropies of finished trajectories under the present parameters, with gradient.

    Raises ValueError if a trace holds another number of retrieval draws than of stored records.
    """
    latents, replay = router.latents(), _Replay()
    # The longest first, so that the trajectories with a further step are always the first rows.
    order = sorted(range(len(traces)), key=lambda index: -len(traces[index].steps))
    state = router.begin(_stack([traces[index].question for index in order]))
    log_prob = state.log_prob
    for number in range(len(traces[order[0]].steps)):
        replay.steps = [traces[index].steps[number] for index in order if len(traces[index].steps) > number]
        count = len(replay.steps)
        state, agent = router.assign(state.first(count), latents, replay)
        state, _ = router.end_step(state, latents, agent, _stack([step.response for step in replay.steps]), replay)
        log_prob = torch.cat([state.log_prob, log_prob[count:]])
    steps = sum(len(trace.steps) for trace in traces)
    policy = [replay.entropy[name] for name in _COUNTED[router.config.entropy_of] if name in replay.entropy]
    return Evaluation(
        log_prob=log_prob[torch.tensor(order).argsort()],
        mean_entropy=sum(policy, start=log_prob.new_zeros(())) / steps,
        entropies={name: replay.entropy[name].item() / draws for name, draws in replay.draws.items() if draws},
        top={name: total / steps for name, total in replay.top.items()},
    )


# Attribute of a step by the name of its decision.
_FIELDS = {"role": "role", "backbone": "backbone", "write": "written", "halt": "halted"}


class _Replay:
    """Repeats the decisions of ``steps`` and sums up entropies and largest probabilities."""

    steps: Sequence[Step]

    def __init__(self) -> None:
        self.entropy: dict[str, Tensor] = {}
        self.draws: defaultdict[str, int] = defaultdict(int)
        self.top: defaultdict[str, float] = defaultdict(float)

    def __call__(self, name: str, log_probs: Tensor | None, mask: Tensor) -> Tensor:
        """Return the recorded outcomes of one decision, and add its entropy and top probability to the sums.

        Raises ValueError if a step has another number of retrieval draws than of records.
        """
        if log_probs is not None:
            module, probs = "retrieval" if name == "retrieve" else name, log_probs.exp()
            entropy = torch.where(mask, -(probs * log_probs).sum(dim=-1), 0.0).sum()
            self.entropy[module] = self.entropy.get(module, 0.0) + entropy
            self.draws[module] += int(mask.sum())
            if name in ("role", "backbone"):
                self.top[name] += probs.detach().amax(dim=-1).sum().item()
        if name != "retrieve":
            return torch.tensor([int(getattr(step, _FIELDS[name]) or 0) for step in self.steps])
        draws, records = [len(step.retrieved) for step in self.steps], mask.sum(dim=1).tolist()
        if draws != records:
            raise ValueError(f"there are {draws} retrieval draws at a step with {records} records")
        padded = torch.zeros(mask.shape, dtype=torch.int64)
        padded[mask] = torch.tensor([int(z) for step in self.steps for z in step.retrieved], dtype=torch.int64)
        return padded
