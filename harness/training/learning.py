"""Learners with a network: optimiser, checkpoint, initial weights, and the loop of policy-gradient training.

Of torch, only what the caller's network needs: a method that learns without gradients does without this module.
"""

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
from harness.agents.trajectory import Answered, Context, Episode
from harness.benchmarks.items import Item
from harness.concurrency import gather
from harness.errors import UserError
from harness.training.checkpoint import Checkpoint
from harness.training.loop import Attempt, Training, TrainingStep

Network = TypeVar("Network", bound=nn.Module)
Policy = TypeVar("Policy")
Trace = TypeVar("Trace")
Trace_co = TypeVar("Trace_co", covariant=True)
Tensors = Mapping[str, NDArray[np.generic]]
# By kind, such as ``roles``, key and profile of every choice in the order of the indices. Lists, as JSON has them.
Choices = Mapping[str, list[list[str]]]
_STEP = "step"
_ADAM = ("exp_avg", "exp_avg_sq", _STEP)
_NETWORK = "network."
LOG_PROB_TOLERANCE = 1e-5


class Learning(Generic[Network]):
    """A network and the Adam that trains it in place, with default betas and no decay.

    Of Adam, the function of torch is called: its class imports torch's compiler, one to four seconds of a processor.
    """

    def __init__(self, network: Network, lr: float) -> None:
        self.network = network
        self._lr = lr
        self._moments: dict[str, dict[str, torch.Tensor]] = {}

    def step(self, loss: torch.Tensor) -> None:
        """One step of Adam down a loss, for the parameters that have a gradient."""
        self.network.zero_grad()
        loss.backward()
        moved = {name: one for name, one in self.network.named_parameters() if one.grad is not None}
        for name, one in moved.items():
            if name not in self._moments:
                self._moments[name] = {moment: torch.zeros_like(one) for moment in _ADAM[:2]} | {_STEP: torch.zeros(())}
        first, second, steps = ([self._moments[name][moment] for name in moved] for moment in _ADAM)
        with torch.no_grad():
            adam(
                list(moved.values()),
                [one.grad for one in moved.values() if one.grad is not None],
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
        """The network: its parameters and its buffers."""
        return {f"{_NETWORK}{name}": value.numpy().copy() for name, value in self.network.state_dict().items()}

    def moments(self) -> Tensors:
        """The moments of Adam; none for a parameter that never had a gradient."""
        return {
            f"adam.{name}.{moment}": value.numpy().copy()
            for name, _ in self.network.named_parameters()
            for moment, value in self._moments.get(name, {}).items()
        }

    def restore(self, tensors: Tensors) -> None:
        """Take over what :meth:`learned` and, to resume learning, :meth:`moments` gave; UserError on other shapes."""
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
    """The tensors of the network by their names in it, without those of the optimiser; UserError where none are."""
    found = {name.removeprefix(_NETWORK): value for name, value in tensors.items() if name.startswith(_NETWORK)}
    if not found:
        raise UserError("the file holds what the optimiser remembers and no network; name one without .optimiser")
    return found


def seeded(build: Callable[[], Network], *key: object) -> Network:
    """A network as initialised, a function of the key alone; torch's global generator stays as it was."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed_of(*key))
        return build()


def seed_of(*key: object) -> int:
    """A seed for torch's generators that follows from a key."""
    return int(rng.uniform(*map(str, key)) * (1 << 53))


def refuse_other_choices(trained: Mapping[str, Any], now: Choices) -> None:
    """Raise UserError with the first choice that differs from a checkpoint's in its name, place or profile."""
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
    """Raise RuntimeError where log-probabilities computed again differ from the sampled ones by more than 1e-5."""
    worst = float(np.abs(np.asarray(again) - np.asarray(sampled)).max())
    if not worst <= LOG_PROB_TOLERANCE:
        raise RuntimeError(
            f"log-probabilities computed again differ from the sampled ones by {worst:.2e} (limit "
            f"{LOG_PROB_TOLERANCE:.0e}): the update is not on-policy"
        )


class Update(NamedTuple):
    """One step of the optimiser to come: where it stands, its questions, and whether its epoch ends with it."""

    step: TrainingStep
    questions: list[Item]
    ends_epoch: bool


def updates(training: Training, done: int, epochs: int, size: int) -> Iterator[Update]:
    """The updates of the epochs not done, in batches of ``size`` questions in an order of seed and epoch."""
    per_epoch = -(-len(training.items) // size)
    for epoch in range(done + 1, epochs + 1):
        key = ("order of training", str(training.seed), str(epoch))
        items = sorted(training.items, key=lambda item: rng.uniform(*key, item.id))
        for number in range(per_epoch):
            step = TrainingStep(epoch, (epoch - 1) * per_epoch + number + 1, epochs * per_epoch)
            yield Update(step, items[number * size : (number + 1) * size], number == per_epoch - 1)


class Rollout(Protocol[Trace_co]):
    """One question walked by a policy that does not change meanwhile."""

    async def solve(self, item: Item, context: Context) -> str:
        """The answer."""

    @property
    def trace(self) -> Trace_co:
        """The decisions made, so that their log-probabilities can be computed again with gradient."""


class PolicyGradient(ABC, Generic[Network, Policy, Trace]):
    """A method that learns on policy, from so many rollouts (``group``) of each question of a batch."""

    def __init__(self, *, epochs: int, batch: int, lr: float, group: int = 1) -> None:
        self._epochs, self._batch, self._lr, self._group = epochs, batch, lr, group
        self._policy: Policy | None = None

    @abstractmethod
    async def begin(self, training: Training) -> Network:
        """The network as initialised by the training seed."""

    @abstractmethod
    def like(self, checkpoint: Checkpoint) -> Network:
        """A network of the shape that the checkpoint should have, with any weights."""

    @abstractmethod
    def choices(self) -> Choices:
        """What a trained network is bound to."""

    @abstractmethod
    def rollout(self, policy: Policy) -> Rollout[Trace]:
        """A rollout that samples its decisions."""

    @abstractmethod
    def learn(
        self, learning: Learning[Network], answered: Sequence[Answered], traces: Sequence[Trace], step: TrainingStep
    ) -> Mapping[str, float]:
        """Take one step of the optimiser; returns what the training log holds of it. Checks that it is on policy."""

    def frozen(self, network: Network) -> Policy:
        """The policy of a network that does not change meanwhile."""
        return network  # type: ignore[return-value]

    async def solve(self, item: Item, context: Context) -> str:
        """One trajectory, its decisions sampled as in training."""
        return await self.rollout(self.policy).solve(item, context)

    def facts(self) -> Mapping[str, Any]:
        """Facts of a checkpoint besides the weights."""
        return self.choices()

    @property
    def policy(self) -> Policy:
        """The policy as it decides now, once trained or loaded."""
        if self._policy is None:
            raise RuntimeError("the network has no weights yet: call fit or load first")
        return self._policy

    def load(self, checkpoint: Checkpoint) -> None:
        """Take over a trained network; raises UserError as :meth:`restored`."""
        self._policy = self.frozen(self.restored(checkpoint).network)

    def restored(self, checkpoint: Checkpoint) -> Learning[Network]:
        """The network as a checkpoint left it; raises UserError where that has other choices or configuration."""
        refuse_other_choices(checkpoint.facts, self.choices())
        learning = Learning(self.like(checkpoint), self._lr)
        learning.restore(checkpoint.tensors)
        return learning

    async def fit(self, training: Training) -> None:
        """Train, a checkpoint before the first epoch and after each; an interrupted training resumes."""

        def save(epoch: int) -> None:
            training.save(epoch, learning.learned(), learning.moments(), self.facts())

        async def attempt(item: Item, episode: Episode) -> tuple[Attempt, Trace]:
            rollout = self.rollout(policy)
            return await training.attempt(rollout.solve, item, episode), rollout.trace

        found = training.resume()
        learning = Learning(await self.begin(training), self._lr) if found is None else self.restored(found)
        if found is None:
            save(0)
        done = int(found.facts["epoch"]) if found else 0
        training.plan((self._epochs - done) * len(training.items) * self._group)
        for step, questions, ends_epoch in updates(training, done, self._epochs, self._batch):
            with training.timed("rollouts"):
                policy = self.frozen(learning.network)
                episodes = [(item, Episode(step.epoch, number)) for item in questions for number in range(self._group)]
                made = await gather(attempt(item, episode) for item, episode in episodes)
            attempts, traces = [one for one, _ in made], [trace for _, trace in made]
            with training.timed("update"):
                measures = self.learn(learning, [one.answered for one in attempts], traces, step)
            training.note(step, measures, attempts)
            if ends_epoch:
                save(step.epoch)
        self._policy = self.frozen(learning.network)
