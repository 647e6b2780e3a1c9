"""What learners with a network share: its optimiser, its place in a checkpoint, its initial weights, its batches.

Of torch, only what the caller's network needs: a method that learns without gradients does without this module.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import nn

from harness import rng
from harness.benchmarks.items import Item
from harness.errors import UserError
from harness.training.loop import Place, Training

Network = TypeVar("Network", bound=nn.Module)
Tensors = Mapping[str, NDArray[np.generic]]
_ADAM = ("exp_avg", "exp_avg_sq", "step")
_NETWORK = "network."
LOG_PROB_TOLERANCE = 1e-5


class Learning(Generic[Network]):
    """A network and the Adam that trains it, with default betas and no decay.

    Args:
        network: Its parameters are changed in place.
        lr: Learning rate.
    """

    def __init__(self, network: Network, lr: float) -> None:
        self.network = network
        self.optimiser = torch.optim.Adam(network.parameters(), lr=lr)

    def step(self, loss: torch.Tensor) -> None:
        """One optimiser step down a loss."""
        self.optimiser.zero_grad()
        loss.backward()
        self.optimiser.step()

    def learned(self) -> Tensors:
        """The network: its parameters and its buffers."""
        return {f"{_NETWORK}{name}": value.numpy().copy() for name, value in self.network.state_dict().items()}

    def moments(self) -> Tensors:
        """What Adam remembers; a parameter that never had a gradient has nothing to remember."""
        return {
            f"adam.{name}.{moment}": self.optimiser.state[parameter][moment].numpy().copy()
            for name, parameter in self.network.named_parameters()
            for moment in _ADAM
            if parameter in self.optimiser.state
        }

    def restore(self, tensors: Tensors) -> None:
        """Take over what :meth:`learned` and, to go on learning, :meth:`moments` gave.

        Raises:
            UserError: They are not those of a network of this shape.
        """
        weights = network_of(tensors)
        shapes = {name: tuple(value.shape) for name, value in self.network.state_dict().items()}
        if {name: value.shape for name, value in weights.items()} != shapes:
            raise UserError(
                "the checkpoint was trained with other modules or sizes than this configuration has; train it again"
            )
        self.network.load_state_dict({name: torch.from_numpy(value.copy()) for name, value in weights.items()})
        for name, parameter in self.network.named_parameters():
            moments = {moment: tensors.get(f"adam.{name}.{moment}") for moment in _ADAM}
            if moments["step"] is not None:
                self.optimiser.state[parameter] = {
                    moment: torch.from_numpy(value.copy()) for moment, value in moments.items() if value is not None
                }


def network_of(tensors: Tensors) -> Tensors:
    """The tensors of the network by their names in it, without what the optimiser remembers.

    Raises:
        UserError: There are none.
    """
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


def refuse_other_choices(trained: Mapping[str, Any], now: Mapping[str, list[list[str]]]) -> None:
    """Refuse choices that differ from those a network was trained with, in a name, an order or a profile.

    Args:
        trained: Facts of the checkpoint.
        now: By kind, such as ``roles``, key and profile of every choice in the order of the indices.

    Raises:
        UserError: Names the first difference.
    """
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
    """Refuse to learn from draws that another policy made.

    Args:
        again: Log-probabilities of the draws, computed for the update.
        sampled: The same as they were when the draws were made.

    Raises:
        RuntimeError: A difference above 1e-5, or one that is no number.
    """
    worst = float(np.abs(np.asarray(again) - np.asarray(sampled)).max())
    if not worst <= LOG_PROB_TOLERANCE:
        raise RuntimeError(
            f"log-probabilities computed again differ from the sampled ones by {worst:.2e} (limit "
            f"{LOG_PROB_TOLERANCE:.0e}): the update is not on-policy"
        )


class Update(NamedTuple):
    """One step of the optimiser to come: where it stands, its questions, and whether its epoch ends with it."""

    place: Place
    questions: list[Item]
    ends_epoch: bool


def updates(training: Training, done: int, epochs: int, size: int) -> Iterator[Update]:
    """The updates of the epochs that remain.

    The training questions come in an order that follows from seed and epoch; the last batch of an epoch may be
    smaller.

    Args:
        training: Gives questions and seed.
        done: Epochs that a checkpoint vouches for.
        epochs: Epochs in all.
        size: Questions of a batch.
    """
    per_epoch = -(-len(training.items) // size)
    for epoch in range(done + 1, epochs + 1):
        key = ("order of training", str(training.seed), str(epoch))
        items = sorted(training.items, key=lambda item: rng.uniform(*key, item.id))
        for number in range(per_epoch):
            place = Place(epoch, (epoch - 1) * per_epoch + number + 1, epochs * per_epoch)
            yield Update(place, items[number * size : (number + 1) * size], number == per_epoch - 1)
