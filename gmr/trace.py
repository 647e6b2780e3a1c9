"""What a rollout remembers of its decisions, so that their log-probabilities can be computed again with gradient."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Step:
    """The decisions of one step of Algorithm 1.

    Attributes:
        role: Index of the role in the router's pool.
        backbone: Index of the backbone in the router's pool.
        retrieved: For each record of S_{t-1}, in memory order, whether the agent saw it.
        response: Embedding y_t of the response, shape (384,).
        written: Whether the response was stored.
        halted: The halting draw; ``None`` where none is made (t = φ, or halting switched off).
        log_prob: Sum of the log-probabilities of the draws of this step, as sampled.
    """

    role: int
    backbone: int
    retrieved: tuple[bool, ...]
    response: Vector
    written: bool
    halted: bool | None
    log_prob: float


@dataclass(frozen=True, slots=True)
class Trace:
    """One trajectory: the embedding of the question, shape (384,), and its 1 to φ steps."""

    question: Vector
    steps: tuple[Step, ...]
