"""The keys of very many calls in little memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Set

import numpy as np

_BYTES = 32
_COMPACTED_AT = 1 << 16


class Keys(Set[str]):
    """A set of SHA-256 keys in hexadecimal, at 32 bytes each, in ascending order.

    Args:
        keys: Its first members.
    """

    def __init__(self, keys: Iterable[str] = ()) -> None:
        self._known = np.empty(0, f"V{_BYTES}")
        self._new = bytearray()
        self.update(keys)

    def update(self, keys: Iterable[str]) -> None:
        """Add keys; those that are in already change nothing."""
        for key in keys:
            self._new += bytes.fromhex(key)
            # A new part as long as what is known keeps the sorting cheap and the memory within a factor of two.
            if len(self._new) >= _BYTES * max(_COMPACTED_AT, len(self._known)):
                self._compact()

    def __len__(self) -> int:
        self._compact()
        return len(self._known)

    def __iter__(self) -> Iterator[str]:
        self._compact()
        return (key.tobytes().hex() for key in self._known)

    def __contains__(self, key: object) -> bool:
        self._compact()
        wanted = np.frombuffer(bytes.fromhex(str(key)), self._known.dtype)
        place = np.searchsorted(self._known, wanted)[0]
        return bool(place < len(self._known) and self._known[place] == wanted[0])

    def _compact(self) -> None:
        if self._new:
            new = np.frombuffer(bytes(self._new), self._known.dtype)
            self._known = np.unique(np.concatenate([self._known, new]))
            self._new.clear()
