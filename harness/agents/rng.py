"""Stateless random numbers: each is a function of its key, the same in every process and order."""

import hashlib
from collections.abc import Sequence
from statistics import NormalDist

_NORMAL = NormalDist()
_RANGE = 1 << 53


def uniform(*key: str) -> float:
    """Draw from U(0, 1), endpoints excluded: 53 bits of the SHA-256 of the key."""
    digest = hashlib.sha256("\x1f".join(key).encode("utf-8", "surrogatepass")).digest()
    return ((int.from_bytes(digest[:8], "big") >> 11) + 0.5) / _RANGE


def normal(*key: str) -> float:
    return _NORMAL.inv_cdf(uniform(*key))


def index(count: int, *key: str) -> int:
    return int(uniform(*key) * count)


def weighted(weights: Sequence[float], *key: str) -> int:
    """Draw an index in proportion to ``weights``, which need not sum to 1."""
    point = uniform(*key) * sum(weights)
    for position, weight in enumerate(weights):
        point -= weight
        if point < 0:
            return position
    return len(weights) - 1
