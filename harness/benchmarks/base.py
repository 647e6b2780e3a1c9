"""The interface of a benchmark, and the tools for grading."""

from __future__ import annotations

import abc
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from harness.benchmarks.extraction import before_next_question
from harness.benchmarks.items import Item, Split, Status, Verdict, keyed_order, share_split
from harness.thinking import without_thinking

if TYPE_CHECKING:
    from harness.benchmarks.math_verifier import MathVerifier
    from harness.sandbox import Sandbox


@dataclass(frozen=True, slots=True)
class Tools:
    """Sandbox and Math-Verify for grading; both start processes only when first used."""

    sandbox: Sandbox  # runs answers that are programs
    math_verify: MathVerifier  # decides symbolic equality of mathematical answers


class Benchmark(abc.ABC):
    """Rules by which questions of a benchmark are read, divided, asked, answered and graded, alike for all methods."""

    rule_version: ClassVar[str]  # changes whenever extraction or grading can give another verdict on the same text
    output_rules: ClassVar[str]  # the answer format as it is told to a model
    role_domain: ClassVar[str]  # the domain of the role catalogue that fits the questions

    def __init__(self, key: str, title: str) -> None:
        self.key = key  # in ``config/benchmarks.yaml``; also ``Item.benchmark`` of every item
        self.title = title  # the name tables print

    @abc.abstractmethod
    def normalise(self, records: Sequence[Mapping[str, Any]]) -> list[Item]:
        """Return the items of upstream's records, in order; raise KeyError or ValueError for a faulty record."""

    @abc.abstractmethod
    def read(self, item: Item, text: str, stated_only: bool) -> str | None:
        """Return the answer that a text states or, if not ``stated_only``, merely ends with; None without one."""

    def same(self, item: Item, a: str, b: str) -> bool:
        """Return whether two extracted answers are equal, judged cheaply and without executing anything."""
        return a == b

    async def judge(self, item: Item, answer: str, tools: Tools) -> Verdict:
        """Return the verdict on an extracted answer: by default, whether it is the same as the gold answer."""
        return Verdict(self.same(item, item.gold, answer), answer, Status.GRADED)

    def split(self, items: Sequence[Item], kind: str) -> Split:
        """Divide questions: ``published`` by the sizes that the paper's percentages imply, ``official``, or ``all``.

        The last has every question that the benchmark's own scores count, in a random order, for the test, and none to
        train on.
        """
        if kind == "all":
            return Split((), tuple(keyed_order(self.test_ids(items), f"{self.key}/all")))
        return self._published_split(items) if kind == "published" else self._official_split(items)

    def test_ids(self, items: Sequence[Item]) -> list[str]:
        """Return the ids of the questions that the benchmark's own scores count: by default, of all."""
        return [item.id for item in items]

    def _official_split(self, items: Sequence[Item]) -> Split:
        # The benchmark's own test questions, with a fifth of them set aside for training.
        return share_split([item.id for item in items], self.key)

    _published_split = _official_split

    def extract(self, item: Item, text: str, cut_off: bool = False) -> str | None:
        """Return the answer inside a model's text, None if there is none; accept any text.

        What comes before another question counts if it states an answer; else the reply divides its own question, and
        all of it counts. A text that was cut off, or is thinking alone, has to state it.
        """
        text = without_thinking(text, cut_off)
        is_thinking = without_thinking(text, cut_off=True) != text
        before = before_next_question(text, item.question)
        answer = self.read(item, f"{without_thinking(before)}\n", stated_only=True) if before != text else None
        return self.read(item, text, stated_only=cut_off or is_thinking) if answer is None else answer

    async def grade(self, item: Item, text: str, tools: Tools, cut_off: bool = False) -> Verdict:
        """Extract the answer from a text and judge it; blank and unreadable texts are wrong, never an error."""
        text = without_thinking(text, cut_off)
        answer = self.extract(item, text, cut_off) if text.strip() else None
        if answer is not None:
            return await self.judge(item, answer, tools)
        status = Status.UNPARSABLE if text.strip() else Status.EMPTY
        return Verdict(False, None, Status.TRUNCATED if cut_off else status)
