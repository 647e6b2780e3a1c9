"""A run at one moment, in numbers."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from harness.budget import Spent
from harness.config import Cell, Preset
from workflow.watching.amounts import Asked
from workflow.watching.cells import Seen, State, look
from workflow.watching.left import seconds_left, seconds_of

# Calls a second, and how many cells run side by side, are taken over the last so many seconds.
_WINDOW_S = 15.0


class _Moment(NamedTuple):
    at: float
    calls: int
    running: int


@dataclass(frozen=True, slots=True)
class Standing:
    """Where a run stands.

    Attributes:
        seen: Its cells.
        spent: What they have asked so far.
        rate: Calls a second, ``None`` after a single look.
        left_s: Seconds until all are finished, ``None`` where nothing tells.
    """

    seen: Sequence[Seen]
    spent: Spent
    rate: float | None
    left_s: float | None

    @property
    def counts(self) -> Counter[State]:
        """How many cells there are of each state."""
        return Counter(one.state for one in self.seen)

    def of(self, *states: State) -> list[Seen]:
        """The cells of some states."""
        return [one for one in self.seen if one.state in states]


class Watch:
    """Looks at the same cells again and again.

    Args:
        preset: The run.
        cells: Its cells.
    """

    def __init__(self, preset: Preset, cells: Sequence[Cell]) -> None:
        self._preset = preset
        self._cells = cells
        self._asked = Asked(preset)
        self._took: dict[Path, float] = {}
        self._past: deque[_Moment] = deque()

    def look(self, now: float) -> Standing:
        """Look at a moment, in seconds of any clock that only goes forward."""
        seen = look(self._preset, self._cells)
        for one in seen:
            if one.state is State.FINISHED and one.folder not in self._took:
                if (seconds := seconds_of(one)) is not None:
                    self._took[one.folder] = seconds
            elif one.state is not State.FINISHED:
                self._took.pop(one.folder, None)
        spent = Spent()
        for one in seen:
            spent = spent.plus(self._asked.of(one))
        self._past.append(_Moment(now, spent.calls, sum(one.state is State.RUNNING for one in seen)))
        while now - self._past[0].at > _WINDOW_S and len(self._past) > 2:
            self._past.popleft()
        # Between two cells of a process that starts them there is a moment in which fewer run.
        abreast = max(moment.running for moment in self._past)
        return Standing(seen, spent, self._rate(), seconds_left(seen, self._took, abreast))

    def _rate(self) -> float | None:
        first, last = self._past[0], self._past[-1]
        seconds = last.at - first.at
        return max(0, last.calls - first.calls) / seconds if seconds > 0 else None
