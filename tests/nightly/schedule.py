"""The greedy schedule of chains of calls on a server with K places, where everything but the calls takes no time."""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Sequence
from typing import NamedTuple


class Step(NamedTuple):
    """One call of a chain: what tells it from others, and how many seconds it takes."""

    key: str
    seconds: float


def greedy(chains: Sequence[Sequence[Step]], places: int) -> float:
    """Seconds from the first call to the end of the last chain.

    The first that is ready gets the next free place. A call that another chain has made takes no time, and one that
    another chain is making takes until that ends, as with one client for all.
    """
    now, free, ends = 0.0, places, 0
    running: list[tuple[float, int, str]] = []
    ready = deque((chain, 0) for chain in range(len(chains)))
    made: set[str] = set()
    under_way: dict[str, list[tuple[int, int]]] = {}
    waiting: deque[tuple[str, float]] = deque()
    while ready or running:
        while ready:
            chain, place = ready.popleft()
            while place < len(chains[chain]) and chains[chain][place].key in made:
                place += 1
            if place == len(chains[chain]):
                continue
            key, seconds = chains[chain][place]
            if key not in under_way:
                under_way[key] = []
                waiting.append((key, seconds))
            under_way[key].append((chain, place + 1))
        while waiting and free:
            key, seconds = waiting.popleft()
            free -= 1
            ends += 1
            heapq.heappush(running, (now + seconds, ends, key))
        if running:
            now, _, key = heapq.heappop(running)
            free += 1
            made.add(key)
            ready.extend(under_way.pop(key))
    return now
