"""The answers of a cell, kept on the disk while the cell is at work."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from harness.agents.trajectory import Call, Decision, Trajectory
from harness.benchmarks.items import Item, Status, Verdict
from harness.keys import Keys
from harness.results import Answered
from harness.spool import Spool

_MISSING = -1


class Answers:
    """Graded answers, given in any order and read in the order of their questions.

    Args:
        items: The questions.
        folder: On whose disk the answers wait.

    Attributes:
        keys: Of all calls behind the answers.

    Raises:
        UserError: The folder cannot be written.
    """

    def __init__(self, items: Sequence[Item], folder: Path) -> None:
        self.keys = Keys()
        self._items = items
        self._spool = Spool(folder)
        self._places = array("q", [_MISSING]) * len(items)

    def __len__(self) -> int:
        return len(self._spool)

    def __iter__(self) -> Iterator[Answered]:
        for position, place in enumerate(self._places):
            if place != _MISSING:
                yield _unpacked(self._items[position], self._spool[place])

    def add(self, position: int, answered: Answered) -> None:
        """Keep the answer to one question.

        Args:
            position: Of the question.
            answered: The answer.

        Raises:
            UserError: The disk is full.
        """
        self._places[position] = len(self._spool)
        self._spool.add(_packed(answered))
        self.keys.update(call.key for call in answered.trajectory.calls)


def _packed(answered: Answered) -> tuple[Any, ...]:
    made, verdict = answered
    return made.answer, made.calls, made.decisions, made.embedded, made.truncated, verdict


def _unpacked(item: Item, record: Any) -> Answered:
    answer, calls, decisions, embedded, truncated, verdict = record
    trajectory = Trajectory(
        item,
        answer,
        tuple(Call(**call) for call in calls),
        tuple(Decision(**decision) for decision in decisions),
        embedded,
        truncated,
    )
    return Answered(trajectory, Verdict(**{**verdict, "status": Status(verdict["status"])}))
