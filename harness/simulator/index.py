"""Finding the question in a prompt: the longest known text that occurs in it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from harness.benchmarks.items import Item

# Block length and stride of each tier, coarse to fine. A question of at least block + stride - 1 characters contains a
# whole block at some position that is a multiple of the stride, wherever in the prompt it begins.
_TIERS = ((32, 8), (12, 4))


class Occurrence(NamedTuple):
    """A question inside a text, and where it begins and ends there."""

    item: Item
    start: int
    end: int


class _Tier:
    """Questions of one range of lengths, indexed by their first blocks at every offset below the stride."""

    def __init__(self, block: int, stride: int) -> None:
        self._block = block
        self._stride = stride
        self._entries: dict[str, list[tuple[str, int]]] = defaultdict(list)

    def add(self, question: str) -> None:
        for offset in range(self._stride):
            self._entries[question[offset : offset + self._block]].append((question, offset))

    def longest(self, text: str) -> tuple[str, int] | None:
        best: tuple[str, int] | None = None
        for position in range(0, len(text) - self._block + 1, self._stride):
            for question, offset in self._entries.get(text[position : position + self._block], ()):
                start = position - offset
                longer = best is None or len(question) > len(best[0])
                if longer and start >= 0 and text.startswith(question, start):
                    best = question, start
        return best


class QuestionIndex:
    """Looks questions up by their text in prompts of any length, in time that does not grow with their number.

    Args:
        items: Every question that may be asked. Of questions with the same text the first stands for all.
    """

    def __init__(self, items: Iterable[Item]) -> None:
        self._items: dict[str, Item] = {}
        self._tiers = [_Tier(block, stride) for block, stride in _TIERS]
        self._shortest: list[str] = []
        for item in items:
            question = item.question.strip()
            if question and question not in self._items:
                self._items[question] = item
                self._add(question)

    def _add(self, question: str) -> None:
        for (block, stride), tier in zip(_TIERS, self._tiers, strict=True):
            if len(question) >= block + stride - 1:
                tier.add(question)
                return
        self._shortest.append(question)

    def find(self, text: str) -> Occurrence | None:
        """The longest question that occurs in a text, at its first occurrence; ``None`` without one."""
        for tier in self._tiers:
            if (found := tier.longest(text)) is not None:
                return self._occurrence(*found)
        short = max((question for question in self._shortest if question in text), key=len, default=None)
        return None if short is None else self._occurrence(short, text.find(short))

    def _occurrence(self, question: str, start: int) -> Occurrence:
        return Occurrence(self._items[question], start, start + len(question))

    def find_in_conversation(self, messages: Sequence[Mapping[str, str]]) -> tuple[int, Occurrence] | None:
        """The question of a conversation and the message it stands in: the last user message that holds one."""
        for place in range(len(messages) - 1, -1, -1):
            if messages[place]["role"] == "user" and (found := self.find(messages[place]["content"])) is not None:
                return place, found
        return None
