"""Methods that train a network: optimiser, initial weights, checks of checkpoints, and policy-gradient training."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

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
from harness.errors import UserError
from harness.llm.encoder import EMBEDDING
from harness.training.checkpoint import Checkpoint
from harness.training.loop import Attempt, Training, TrainingStep

Network = TypeVar("Network", bound=nn.Module)
Policy = TypeVar("Policy")
Trace = TypeVar("Trace")
Trace_co = TypeVar("Trace_co", covariant=True)
Tensors = Mapping[str, NDArray[np.generic]]
# Key and profile of every choice in the order of the indices, by kind such as ``roles``. Lists, as in JSON.
Choices = Mapping[str, list[list[str]]]
_STEP = "step"
_ADAM = ("exp_avg", "exp_avg_sq", _STEP)
_NETWORK = "network."
LOG_PROB_TOLERANCE = 1e-5


class Learning(Generic[Network]):
    """Network, and Adam with default betas and no decay that trains it in place.

    Calls torch's function of Adam: its class imports torch's compiler, one to four seconds of processor time.
    """

    def __init__(self, network: Network, lr: float) -> None:
        self.network = network
        self._lr = lr
        self._moments: dict[str, dict[str, torch.Tensor]] = {}

    def step(self, loss: torch.Tensor) -> None:
        """Take one step of Adam for the parameters that have a gradient."""
        self.network.zero_grad()
        loss.backward()
        parameters = {name: value for name, value in self.network.named_parameters() if value.grad is not None}
        for name, value in parameters.items():
            if name not in self._moments:
                zeros = {moment: torch.zeros_like(value) for moment in _ADAM[:2]}
                self._moments[name] = zeros | {_STEP: torch.zeros(())}
        first, second, steps = ([self._moments[name][moment] for name in parameters] for moment in _ADAM)
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
        return {
            f"adam.{name}.{moment}": value.numpy().copy()
            for name, _ in self.network.named_parameters()
            for moment, value in self._moments.get(name, {}).items()
        }

    def restore(self, tensors: Tensors) -> None:
        """Load what :meth:`learned` and, to resume training, :meth:`moments` returned; UserError on other shapes."""
        weights = network_of(tensors)
        shapes = {name: tuple(value.shape) for name, value in self.network.state_dict().items()}
        if {name: value.shape for name, value in weights.items()} != shapes:
            raise UserError(
                "the checkpoint was trained with other modules or sizes than this configuration has; train it again"
            )
        self.network.load_state_dict({name: torch.from_numpy(value.copy()) for name, value in weights.items()})
        self._moments = {
            name: {moment: torch.from_numpy(tensors[f"adam.{name}.{moment}"].copy()) for moment in _ADAM}
            for name in weights
            if f"adam.{name}.step" in tensors
        }


def network_of(tensors: Tensors) -> Tensors:
    """Return the tensors of the network by their names in it; UserError if there are those of the optimiser only."""
    weights = {name.removeprefix(_NETWORK): value for name, value in tensors.items() if name.startswith(_NETWORK)}
    if not weights:
        raise UserError("the file holds the state of the optimiser and no network; name one without .optimiser")
    return weights


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


def refuse_other_choices(trained: Mapping[str, Any], now: Choices) -> None:
    """Raise UserError if names, order or profiles of choices differ from those of a checkpoint."""
    for kind, choices in now.items():
        for (old, old_profile), (new, new_profile) in zip(trained[kind], choices, strict=False):
            if old != new:
                raise UserError(
                    f"the checkpoint was trained with {old!r} where its {kind} now have {new!r}; train it again"
                )
            if old_profile != new_profile:
                raise UserError(
                    f"the profile of {new!r} is not the one the checkpoint was trained with; train it again"
                )
        if len(trained[kind]) != len(choices):
            raise UserError(
                f"the checkpoint was trained with {len(trained[kind])} {kind} and is given {len(choices)}; train it "
                f"again, or give the same {kind}"
            )


def check_on_policy(again: ArrayLike, sampled: Sequence[float]) -> None:
    """Raise RuntimeError if log-probabilities of the update differ from the sampled ones by more than 1e-5."""
    worst = float(np.abs(np.asarray(again) - np.asarray(sampled)).max())
    if not worst <= LOG_PROB_TOLERANCE:
        raise RuntimeError(
            f"log-probabilities of the update differ from the sampled ones by {worst:.2e} (limit "
            f"{LOG_PROB_TOLERANCE:.0e}): the update is not on-policy"
        )


class Update(NamedTuple):
    """Questions of one step of the optimiser; ``ends_epoch`` is true for the last one of an epoch."""

    step: TrainingStep
    questions: list[Item]
    ends_epoch: bool


def updates(training: Training, done: int, epochs: int, size: int) -> Iterator[Update]:
    """Iterate over the updates after ``done`` epochs, ``size`` questions each, in an order of seed and epoch."""
    per_epoch = -(-len(training.items) // size)
    for epoch in range(done + 1, epochs + 1):
        key = ("order of training", str(training.seed), str(epoch))
        items = sorted(training.items, key=lambda item: rng.uniform(*key, item.id))
        for number in range(per_epoch):
            step = TrainingStep(epoch, (epoch - 1) * per_epoch + number + 1, epochs * per_epoch)
            yield Update(step, items[number * size : (number + 1) * size], number == per_epoch - 1)


class Rollout(Protocol[Trace_co]):
    """One trajectory under a fixed policy."""

    async def solve(self, item: Item, context: Context) -> str:
        """Return the answer to a question."""

    @property
    def trace(self) -> Trace_co:
        """Decisions of the trajectory, from which the update computes log-probabilities with gradient."""


class PolicyGradient(ABC, Generic[Network, Policy, Trace]):
    """Method that learns on policy, from ``group`` rollouts of each question of a batch."""

    def __init__(self, *, epochs: int, batch: int, lr: float, group: int = 1) -> None:
        self._epochs, self._batch, self._lr, self._group = epochs, batch, lr, group
        self._policy: Policy | None = None

    @abstractmethod
    def choices(self) -> Choices:
        """Return the choices that a trained network is bound to."""

    @abstractmethod
    def build(self, profiles: Mapping[str, NDArray[np.floating]]) -> Network:
        """Return a network over the embeddings of the choices' profiles, shape (choices, 384) by kind."""

    @abstractmethod
    def rollout(self, policy: Policy) -> Rollout[Trace]:
        """Return a rollout that samples its decisions."""

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

    def frozen(self, network: Network) -> Policy:
        """Return the policy of a network that stays as it is until the next update."""
        return network  # type: ignore[return-value]

    async def solve(self, item: Item, context: Context) -> str:
        """Return the answer of one trajectory, its decisions sampled as in training."""
        return await self.rollout(self.policy).solve(item, context)

    def facts(self) -> Mapping[str, Any]:
        """Return the facts that a checkpoint holds beside the weights."""
        return self.choices()

    @property
    def policy(self) -> Policy:
        """Trained or loaded policy; RuntimeError before."""
        if self._policy is None:
            raise RuntimeError("the network has no weights yet: call fit or load first")
        return self._policy

    def load(self, checkpoint: Checkpoint) -> None:
        """Load a trained network; UserError as :meth:`restored`."""
        self._policy = self.frozen(self.restored(checkpoint).network)

    def restored(self, checkpoint: Checkpoint) -> Learning[Network]:
        """Return network and optimiser of a checkpoint; UserError if it has other choices or another configuration."""
        refuse_other_choices(checkpoint.facts, self.choices())
        profiles = {kind: np.zeros((len(choices), EMBEDDING)) for kind, choices in self.choices().items()}
        learning = Learning(self.build(profiles), self._lr)
        learning.restore(checkpoint.tensors)
        return learning

    async def fit(self, training: Training) -> None:
        """Train or resume a training; write a checkpoint before the first epoch and after each."""

        def save(epoch: int) -> None:
            training.save(epoch, learning.learned(), learning.moments(), self.facts())

        async def attempt(item: Item, episode: Episode) -> tuple[Attempt, Trace]:
            rollout = self.rollout(policy)
            return await training.attempt(rollout.solve, item, episode), rollout.trace

        checkpoint, done = training.resume(), 0
        if checkpoint is None:
            learning = Learning(await self.begin(training), self._lr)
            save(0)
        else:
            learning, done = self.restored(checkpoint), int(checkpoint.facts["epoch"])
        training.plan((self._epochs - done) * len(training.items) * self._group)
        for step, questions, ends_epoch in updates(training, done, self._epochs, self._batch):
            with training.timed("rollouts"):
                policy = self.frozen(learning.network)
                episodes = [(item, Episode(step.epoch, number)) for item in questions for number in range(self._group)]
                attempts, traces = zip(*await gather(attempt(*episode) for episode in episodes), strict=True)
            with training.timed("update"):
                measures = self.learn(learning, [answered for _, answered in attempts], traces, step)
            training.note(step, measures, attempts)
            if ends_epoch:
                save(step.epoch)
        self._policy = self.frozen(learning.network)
