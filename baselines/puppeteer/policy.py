"""Who acts next: a multi-layer perceptron over the state of a path (D-PUP-1)."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from baselines.puppeteer.actions import ACTIONS
from baselines.puppeteer.state import STATE
from baselines.puppeteer.trace import Choice

_SIZES = (STATE, 512, 128, 32, len(ACTIONS))

Array = NDArray[np.float64]


class Evaluation(NamedTuple):
    """Choices as a policy sees them now, with gradient; both of shape (choices,).

    Attributes:
        log_prob: Log-probability of what was drawn.
        entropy: Entropy, in nats, of the distribution it was drawn from.
    """

    log_prob: Tensor
    entropy: Tensor


class Policy(nn.Module):
    """1152-512-128-32-10, ReLU between, in double precision."""

    def __init__(self) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        for inputs, outputs in itertools.pairwise(_SIZES):
            layers += [nn.Linear(inputs, outputs, dtype=torch.float64), nn.ReLU()]
        self.layers = nn.Sequential(*layers[:-1])

    def forward(self, states: Tensor, barred: Tensor) -> Tensor:
        """Log-probabilities, shape (rows, 10); minus infinity for barred actions.

        Args:
            states: Shape (rows, 1152).
            barred: Boolean, shape (rows, 10); no row may bar everything.
        """
        return torch.log_softmax(self.layers(states).masked_fill(barred, -torch.inf), dim=1)

    def evaluate(self, choices: Sequence[Choice]) -> Evaluation:
        """Log-probabilities and entropies of choices."""
        states = torch.from_numpy(np.stack([choice.state for choice in choices]))
        barred = torch.stack([_barred(choice.barred) for choice in choices])
        log_probs = self(states, barred)
        drawn = torch.tensor([[choice.action] for choice in choices])
        # Zero times minus infinity is no number, in the gradient neither.
        surprise = log_probs.masked_fill(barred, 0.0)
        return Evaluation(log_probs.gather(1, drawn).squeeze(1), -(log_probs.exp() * surprise).sum(dim=1))

    def snapshot(self) -> Snapshot:
        """The policy as it is now, which later updates do not change."""
        return Snapshot(self)


class Snapshot:
    """A frozen policy, one state at a time and without gradient."""

    def __init__(self, policy: Policy) -> None:
        self._policy = copy.deepcopy(policy).requires_grad_(False)

    def log_probs(self, state: Array, barred: Sequence[int] = ()) -> Array:
        """Log-probabilities of the actions, shape (10,); minus infinity for barred ones.

        Args:
            state: Shape (1152,).
            barred: Actions that cannot be drawn.
        """
        with torch.no_grad():
            return self._policy(torch.from_numpy(state)[None], _barred(barred)[None])[0].numpy()


def _barred(actions: Sequence[int]) -> Tensor:
    mask = torch.zeros(len(ACTIONS), dtype=torch.bool)
    mask[list(actions)] = True
    return mask
