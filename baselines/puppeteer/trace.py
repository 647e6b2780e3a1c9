"""What a rollout remembers of its choices, so that their log-probabilities can be computed again with gradient."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Choice:
    """One draw of the policy.

    Attributes:
        parent: Place of the choice before it on its path, ``None`` at the beginning.
        step: Steps ℓ already on the path.
        state: What the policy saw, shape (1152,).
        barred: Actions that could not be drawn: terminating at the start (D-PUP-5), those drawn just before (D-PUP-9).
        action: The action drawn.
        log_prob: Its log-probability among those that could be drawn.
        tokens: Prompt and completion tokens of the step it led to; 0 for the end of a path.
    """

    parent: int | None
    step: int
    state: NDArray[np.float64]
    barred: tuple[int, ...]
    action: int
    log_prob: float
    tokens: int = 0


# The choices of one question. Paths that share a beginning share its choices, so this is a forest; a parent stands
# before its children.
Trace = tuple[Choice, ...]
