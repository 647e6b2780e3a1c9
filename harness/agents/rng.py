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


class Stream:
    """Stream of small random integers from one key. Cheaper than one key per number."""

    def __init__(self, *key: str) -> None:
        self._seed = hashlib.sha256("\x1f".join(key).encode("utf-8", "surrogatepass")).digest()
        self._block = 0
        self._numbers: list[int] = []

    def below(self, count: int) -> int:
        """Draw from ``range(count)``. Nearly uniform only if ``count`` is far below 65536."""
        if not self._numbers:
            digest = hashlib.sha512(self._seed + self._block.to_bytes(4, "big")).digest()
            self._numbers = [int.from_bytes(digest[at : at + 2], "big") for at in range(0, len(digest), 2)]
            self._block += 1
        return self._numbers.pop() * count >> 16
