"""Sets rebuilt in the order they had: a program that depends on the order of a set ends as with that very set."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Iterator
from types import NoneType
from typing import Any

_PLAIN = frozenset({int, float, complex, bool, str, bytes, NoneType})
_TRIES = 30
# Beyond, an exact order is not worth its time; two usual ways of making a set are tried all the same.
_MOST_SEARCHED = 64


def set_in_order(kind: type, elements: list[Any]) -> Any:
    """Return a set or frozenset that iterates in the order of the elements if one is found, else in any order.

    The order follows from the size of the table and, where elements collide, from who came first. Neither is seen from
    outside, so sizes and sequences are tried, the usual ones first.
    """
    first = kind(elements)
    # Whether objects of the program are equal is for the program to say, each time.
    if not all(map(_is_plain, elements)):
        return first
    for candidate in itertools.chain((first, kind(set(elements))), _candidates(kind, elements)):
        if len(candidate) == len(elements) and all(map(operator.is_, candidate, elements)):
            return candidate
    return first


def _is_plain(element: object) -> bool:
    return type(element) in _PLAIN or (type(element) is tuple and all(map(_is_plain, element)))


def _candidates(kind: type, elements: list[Any]) -> Iterator[Any]:
    if not 1 < len(elements) <= _MOST_SEARCHED:
        return
    smallest = max(8, 1 << (2 * len(elements) - 1).bit_length())
    for size in (smallest, 2 * smallest, 4 * smallest) if kind is set else (smallest,):
        # Added last, so they displace nobody; they only make the table as large.
        extra = [object() for _ in range(size // 4 - len(elements))] if kind is set else []
        for number in range(_TRIES):
            # The first time in the given order, then in pseudorandom ones.
            places = sorted((hash((number, place)) if number else place, place) for place in range(len(elements)))
            # A dictionary's length is known, so the table has its size from the beginning.
            candidate = kind(dict.fromkeys([*(elements[place] for _, place in places), *extra]))
            if extra:
                candidate.difference_update(extra)
            yield candidate
