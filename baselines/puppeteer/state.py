"""What the policy sees of a path (D-PUP-1)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

EMBEDDING = 384
STATE = 3 * EMBEDDING

Vector = NDArray[np.float32]


def state_of(question: Vector, outputs: Sequence[Vector]) -> NDArray[np.float64]:
    """The embeddings of the question, of the last output, and the mean over all outputs: shape (1152,).

    Args:
        question: Shape (384,).
        outputs: Of the path, in order, shape (384,) each; before the first there are zeros.
    """
    past = np.asarray(outputs, dtype=np.float64).reshape(-1, EMBEDDING)
    last, mean = (past[-1], past.mean(axis=0)) if len(past) else (np.zeros(EMBEDDING), np.zeros(EMBEDDING))
    return np.concatenate([question.astype(np.float64), last, mean])
