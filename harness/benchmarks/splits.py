"""Dividing a benchmark into training and test questions, reproducibly on any machine.

Nothing here draws from a random generator. An id's place in the order is a hash of the id, so neither the order in
which files were read nor the version of a library can move a question from one side to the other.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

SPLIT_SEED = 1234


@dataclass(frozen=True, slots=True)
class Split:
    """Ids of the training and the test questions, each in the order in which a limit cuts them."""

    train: tuple[str, ...]
    test: tuple[str, ...]

    @property
    def checksum(self) -> str:
        """SHA-256 over both id lists in order."""
        lines = ["train", *self.train, "test", *self.test]
        return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def keyed_order(ids: Iterable[str], purpose: str) -> list[str]:
    """The ids in an order that looks random and depends on nothing but the ids and the purpose."""

    def place(id_: str) -> tuple[bytes, str]:
        return hashlib.sha256(f"{SPLIT_SEED}/{purpose}/{id_}".encode()).digest(), id_

    return sorted(ids, key=place)


def share_split(ids: Sequence[str], key: str) -> Split:
    """A fifth of the questions, rounded down, for training; the others for the test."""
    order = keyed_order(ids, f"{key}/split")
    n_train = len(order) // 5
    return Split(tuple(order[:n_train]), tuple(order[n_train:]))


def tenth_of_each(strata: Mapping[str, str], key: str) -> list[str]:
    """A tenth of every stratum, rounded up, in order of stratum, of ids with the stratum of each."""
    return _sample(strata, {name: -(-count // 10) for name, count in Counter(strata.values()).items()}, key)


def proportional_sample(strata: Mapping[str, str], total: int, key: str) -> list[str]:
    """A sample of ``total`` ids in which every stratum has its share, by the largest-remainder rule."""
    return _sample(strata, largest_remainder(Counter(strata.values()), total), key)


def largest_remainder(counts: Mapping[str, int], total: int) -> dict[str, int]:
    """Seats for every name, proportional to its count and adding up to ``total``.

    Remainders that tie go to the name that comes first in the alphabet.
    """
    population = sum(counts.values())
    seats = {name: total * count // population for name, count in counts.items()}
    by_remainder = sorted(counts, key=lambda name: (-(total * counts[name] % population), name))
    for name in by_remainder[: total - sum(seats.values())]:
        seats[name] += 1
    return seats


def _sample(strata: Mapping[str, str], sizes: Mapping[str, int], key: str) -> list[str]:
    order = keyed_order(strata, f"{key}/sample")
    return [id_ for name in sorted(sizes) for id_ in [one for one in order if strata[one] == name][: sizes[name]]]
