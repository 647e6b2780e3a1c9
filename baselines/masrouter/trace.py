"""What a walk remembers of its decisions, so that their log-probability can be computed again with gradient."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from baselines.masrouter.networks import HIDDEN

Vector = NDArray[np.float32]


class Noise(NamedTuple):
    """The standard normal draws of the five autoencoders in one trajectory, shape (rows, 64) each."""

    modes: Tensor
    question: Tensor
    number: Tensor
    roles: Tensor
    backbones: Tensor


def draw_noise(uniform: float, modes: int, roles: int, backbones: int) -> Noise:
    """All noise of one trajectory, which follows from one number alone (D-MR-4).

    Args:
        uniform: Between 0 and 1, the seed.
        modes: How many modes there are.
        roles: How many roles.
        backbones: How many backbones.
    """
    generator = torch.Generator().manual_seed(int(uniform * (1 << 53)))
    rows = (modes, 1, 1, roles, backbones)
    return Noise(*(torch.randn(count, HIDDEN, generator=generator, dtype=torch.float64) for count in rows))


@dataclass(frozen=True, slots=True)
class Choices:
    """What was decided, as indices.

    Attributes:
        mode: Index of the mode.
        roles: Index of the role of each agent.
        backbones: Index of the backbone of each agent.
    """

    mode: int
    roles: tuple[int, ...]
    backbones: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Trace:
    """One trajectory: embedding of the question, shape (384,), noise, choices, and their log π as sampled."""

    question: Vector
    noise: Noise
    choices: Choices
    log_prob: float
