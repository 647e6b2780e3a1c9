"""Choosing one of several: by chance, or by majority."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray


def sample(probabilities: NDArray[np.float64], uniform: float) -> int:
    """The index at which the cumulative distribution passes a uniform number."""
    index = int(np.searchsorted(np.cumsum(probabilities), uniform, side="right"))
    # Rounding may leave the sum a hair below 1.
    return min(index, int(np.flatnonzero(probabilities)[-1]))


def most_frequent(choices: Sequence[str]) -> str:
    """The choice made most often; of several, the one made first.

    Args:
        choices: In order, at least one.
    """
    # Counter keeps the order of first sight, and max takes the first of equals.
    counts = Counter(choices)
    return max(counts, key=counts.__getitem__)
