"""Methods that train a network: optimiser, initial weights, and policy-gradient training."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Generic, Protocol, TypeVar

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import nn
from torch.optim.adam import adam

from harness.agents import rng
from harness.agents.runtime import Context
from harness.agents.trajectory import Answered, Episode
from harness.benchmarks.items import Item
from harness.concurrency import gather
from harness.llm.encoder import EMBEDDING
from harness.training.checkpoint import Checkpoint
from harness.training.loop import Attempt, Training, TrainingStep

Network = TypeVar("Network", bound=nn.Module)
Trace = TypeVar("Trace")
Trace_co = TypeVar("Trace_co", covariant=True)
Tensors = Mapping[str, NDArray[np.generic]]
# Key and profile of every choice in the order of the indices, by kind such as ``roles``. Lists, as in JSON.
Choices = Mapping[str, list[list[str]]]
_ADAM = ("exp_avg", "exp_avg_sq", "step")
_NETWORK = "network."
LOG_PROB_TOLERANCE = 1e-5


class Learning(Generic[Network]):
    """Network, and Adam with default betas and no decay that trains it in place.

    Calls torch's function of Adam: its class imports torch's compiler, one to four seconds of processor time.
    """

    def __init__(self, network: Network, lr: float) -> None:
        self.network = network
        self._lr = lr
        self._moments: dict[str, torch.Tensor] = {}

    def step(self, loss: torch.Tensor) -> None:
        """Take one step of Adam for the parameters that have a gradient."""
        self.network.zero_grad()
        loss.backward()
        parameters = {name: value for name, value in self.network.named_parameters() if value.grad is not None}
        for name, value in parameters.items():
            if f"adam.{name}.step" not in self._moments:
                zeros = torch.zeros_like(value), torch.zeros_like(value), torch.zeros(())
                self._moments |= {f"adam.{name}.{moment}": zero for moment, zero in zip(_ADAM, zeros, strict=True)}
        first, second, steps = ([self._moments[f"adam.{name}.{moment}"] for name in parameters] for moment in _ADAM)
        with torch.no_grad():
            adam(
                list(parameters.values()),
                [value.grad for value in parameters.values() if value.grad is not None],
                first,
                second,
                [],
                steps,
                lr=self._lr,
                beta1=0.9,
                beta2=0.999,
                eps=1e-8,
                weight_decay=0,
                amsgrad=False,
                maximize=False,
            )

    def learned(self) -> Tensors:
        """Return parameters and buffers of the network."""
        return {f"{_NETWORK}{name}": value.numpy().copy() for name, value in self.network.state_dict().items()}

    def moments(self) -> Tensors:
        """Return the moments of Adam; none for a parameter that never had a gradient."""
        return {name: value.numpy().copy() for name, value in self._moments.items()}

    def restore(self, tensors: Tensors) -> None:
        """Load what :meth:`learned` and, to resume training, :meth:`moments` returned."""
        copies = {name: torch.from_numpy(value.copy()) for name, value in tensors.items()}
        self.network.load_state_dict(
            {name.removeprefix(_NETWORK): value for name, value in copies.items() if name.startswith(_NETWORK)}
        )
        self._moments = {name: value for name, value in copies.items() if not name.startswith(_NETWORK)}


def seeded(build: Callable[[], Network], *key: object) -> Network:
    """Build a network whose weights follow from the key alone; torch's global generator stays as it was.

    They are drawn in float64, because instruction sets round a draw in float32 differently.
    """
    usual = torch.get_default_dtype()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed_of(*key))
        torch.set_default_dtype(torch.float64)
        try:
            return build()
        finally:
            torch.set_default_dtype(usual)


def seed_of(*key: object) -> int:
    """Return a seed for torch's generators that follows from a key."""
    return int(rng.uniform(*map(str, key)) * (1 << 53))


def check_on_policy(again: ArrayLike, sampled: Sequence[float]) -> None:
    """Raise RuntimeError if log-probabilities of the update differ from the sampled ones by more than 1e-5."""
    worst = float(np.abs(np.asarray(again) - np.asarray(sampled)).max())
    if not worst <= LOG_PROB_TOLERANCE:
        raise RuntimeError(
            f"log-probabilities of the update differ from the sampled ones by {worst:.2e} (limit "
            f"{LOG_PROB_TOLERANCE:.0e}): the update is not on-policy"
        )


class Rollout(Protocol[Trace_co]):
    """One trajectory under a fixed policy."""

    async def solve(self, item: Item, context: Context) -> str:
        """Return the answer to a question."""

    @property
    def trace(self) -> Trace_co:
        """Return the decisions of the trajectory, from which the update computes log-probabilities with gradient."""


class PolicyGradient(ABC, Generic[Network, Trace]):
    """Method that learns on policy, from ``group`` rollouts of each question of a batch."""

    network: Network  # trained or loaded

    def __init__(self, *, epochs: int, batch: int, lr: float, group: int = 1) -> None:
        self._epochs, self._batch, self._lr, self._group = epochs, batch, lr, group

    @abstractmethod
    def choices(self) -> Choices:
        """Return the choices of the network, which its checkpoint names."""

    @abstractmethod
    def build(self, profiles: Mapping[str, NDArray[np.floating]]) -> Network:
        """Return a network over the embeddings of the choices' profiles, shape (choices, 384) by kind."""

    @abstractmethod
    def rollout(self, network: Network) -> Rollout[Trace]:
        """Return a rollout that samples its decisions from a network, which stays as it is until the next update."""

    @abstractmethod
    def learn(
        self, learning: Learning[Network], answered: Sequence[Answered], traces: Sequence[Trace], step: TrainingStep
    ) -> Mapping[str, float]:
        """Check that the rollouts are on policy, take one step of the optimiser, and return its training log."""

    async def begin(self, training: Training) -> Network:
        """Return the network as initialised by the training seed."""
        profiles = {
            kind: np.stack([await training.embed(profile) for _, profile in choices])
            for kind, choices in self.choices().items()
        }
        return seeded(lambda: self.build(profiles), "initial weights", training.seed)

    async def solve(self, item: Item, context: Context) -> str:
        """Return the answer of one trajectory, its decisions sampled as in training."""
        return await self.rollout(self.network).solve(item, context)

    def load(self, checkpoint: Checkpoint) -> None:
        """Load a trained network."""
        self.network = self._restored(checkpoint).network

    def _restored(self, checkpoint: Checkpoint) -> Learning[Network]:
        profiles = {kind: np.zeros((len(choices), EMBEDDING)) for kind, choices in self.choices().items()}
        learning = Learning(self.build(profiles), self._lr)
        learning.restore(checkpoint.tensors)
        return learning

    async def fit(self, training: Training) -> None:
        """Train or resume a training; write a checkpoint before the first epoch and after each."""
        checkpoint, done = training.resume(), 0
        if checkpoint is None:
            learning = Learning(await self.begin(training), self._lr)
            training.save(0, learning.learned(), learning.moments(), self.choices())
        else:
            learning, done = self._restored(checkpoint), int(checkpoint.facts["epoch"])
        self.network = learning.network
        training.plan((self._epochs - done) * len(training.items) * self._group)
        batches = range(0, len(training.items), self._batch)
        for epoch in range(done + 1, self._epochs + 1):
            key = ("order of training", str(training.seed), str(epoch))
            items = sorted(training.items, key=lambda item: rng.uniform(*key, item.id))
            for number, first in enumerate(batches, 1):
                step = TrainingStep(epoch, (epoch - 1) * len(batches) + number, self._epochs * len(batches))
                await self._update(learning, items[first : first + self._batch], step, training)
            training.save(epoch, learning.learned(), learning.moments(), self.choices())

    async def _update(
        self, learning: Learning[Network], questions: Sequence[Item], step: TrainingStep, training: Training
    ) -> None:
        async def attempt(item: Item, episode: Episode) -> tuple[Attempt, Trace]:
            rollout = self.rollout(learning.network)
            return await training.attempt(rollout.solve, item, episode), rollout.trace

        episodes = [(item, Episode(step.epoch, number)) for item in questions for number in range(self._group)]
        attempts, traces = zip(*await gather(attempt(*episode) for episode in episodes), strict=True)
        measures = self.learn(learning, [answered for _, answered in attempts], traces, step)
        training.note(step, measures, attempts)
