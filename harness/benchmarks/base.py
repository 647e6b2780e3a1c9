"""The interface of a benchmark, and the tools for grading."""

from __future__ import annotations

import abc
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from harness.benchmarks.items import Item, Status, Verdict
from harness.benchmarks.splits import Split, share_split
from harness.errors import UserError

if TYPE_CHECKING:
    from harness.benchmarks.math_verifier import MathVerifier
    from harness.sandbox import Sandbox


@dataclass(frozen=True, slots=True)
class Tools:
    """Sandbox and Math-Verify for grading; both start processes only when first used."""

    sandbox: Sandbox  # runs answers that are programs
    math_verify: MathVerifier  # decides symbolic equality of mathematical answers


class Benchmark(abc.ABC):
    """One benchmark: how its questions are read, divided, asked, answered and graded.

    A subclass is stateless. All methods share its one extractor and its one grader.
    """

    rule_version: ClassVar[str]  # changes whenever extraction or grading can give another verdict on the same text
    output_rules: ClassVar[str]  # the answer format as it is told to a model
    role_domain: ClassVar[str]  # the domain of the role catalogue that fits the questions

    def __init__(self, key: str, title: str) -> None:
        self.key = key  # in ``config/benchmarks.yaml``; also ``Item.benchmark`` of every item
        self.title = title  # the name tables print

    @abc.abstractmethod
    def normalise(self, records: Sequence[Mapping[str, Any]]) -> list[Item]:
        """Turn records in the upstream schema into items, in upstream order.

        Raises KeyError where a record lacks a field, ValueError where one has a value no record can have.
        """

    @abc.abstractmethod
    def present(self, item: Item, answer: str) -> str:
        """An answer written down in the format that :attr:`output_rules` demands."""

    @abc.abstractmethod
    def extract(self, item: Item, text: str) -> str | None:
        """The answer inside a model's text, ``None`` where there is none. Accepts any text."""

    @abc.abstractmethod
    def wrong_answers(self, item: Item) -> tuple[str, ...]:
        """Plausible wrong answers: distinct, always the same ones, the most plausible first.

        Programs are mutants that nobody has executed: one in a few may be equivalent to the gold program.
        """

    @abc.abstractmethod
    def same(self, item: Item, a: str, b: str) -> bool:
        """Whether two extracted answers are equal, judged cheaply and without executing anything."""

    @abc.abstractmethod
    async def judge(self, item: Item, answer: str, tools: Tools) -> Verdict:
        """The verdict on an extracted answer."""

    def split(self, items: Sequence[Item], kind: str) -> Split:
        """Divide all items of the benchmark, in any order, into training and test ids.

        ``"published"`` gives the sizes that the published percentages imply, ``"official"`` the benchmark's own test
        questions with a fifth of them set aside for training; raises UserError for any other kind.
        """
        if kind == "published":
            return self._published_split(items)
        if kind == "official":
            return self._official_split(items)
        raise UserError(f"splits: {kind!r} is unknown; choose 'published' or 'official'")

    def _published_split(self, items: Sequence[Item]) -> Split:
        return share_split([item.id for item in items], self.key)

    def _official_split(self, items: Sequence[Item]) -> Split:
        return share_split([item.id for item in items], self.key)

    async def grade(self, item: Item, text: str, tools: Tools) -> Verdict:
        """Extract the answer from a text and judge it; blank and unreadable texts are wrong, never an error."""
        if not text.strip():
            return Verdict(False, None, Status.EMPTY)
        answer = self.extract(item, text)
        if answer is None:
            return Verdict(False, None, Status.UNPARSABLE)
        return await self.judge(item, answer, tools)
