"""What can be answered to a question, right and wrong, and what a text says about it."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from harness.benchmarks import Benchmark
from harness.benchmarks.items import Item

POOL_SIZE = 4
_QUOTED = re.compile(r"`([^`\n]+)`")


@dataclass(frozen=True, slots=True)
class WrongProgram:
    """A program that fails the checks of its question, as the sandbox found.

    Attributes:
        source: The program.
        passes_visible: Whether it passes the visible examples all the same.
    """

    source: str
    passes_visible: bool


class Stance(NamedTuple):
    """What a text says about a question.

    Attributes:
        answer: The answer it holds.
        right: Whether that is the right one.
        final: Whether the text commits to it in the format of the benchmark, rather than mentioning it on the way.
    """

    answer: str
    right: bool
    final: bool


@dataclass(frozen=True, eq=False)
class Answers:
    """The answers to one question.

    Attributes:
        item: The question.
        benchmark: Its benchmark.
        right: The right answer as replies give it.
        wrong: Plausible wrong answers, most plausible first; never empty for a question of a benchmark.
        passes_visible: For each wrong answer whether it passes the visible examples (programs only).
    """

    item: Item
    benchmark: Benchmark
    right: str
    wrong: Sequence[str]
    passes_visible: Sequence[bool]

    def stance(self, text: str) -> Stance | None:
        """What a text says: its final answer, else the answer it mentions last; ``None`` where it says nothing."""
        answer = self.benchmark.extract(self.item, text)
        # Any word or blank text is a Python program, but not one that a colleague offers.
        if answer is not None and (self.item.code is None or self.item.code.entry_point in answer):
            return Stance(answer, self._is_right(answer), final=True)
        return self._mentioned(text)

    def _is_right(self, answer: str) -> bool:
        same = self.benchmark.same
        return same(self.item, answer, self.right) or same(self.item, answer, self.item.gold)

    def _mentioned(self, text: str) -> Stance | None:
        if self.item.code is not None:
            quoted = [line for line in _QUOTED.findall(text) if line in self._telling_lines]
            answer = self._telling_lines[quoted[-1]] if quoted else None
        else:
            last = max((self._last_mention(text, answer), answer) for answer in (self.right, *self.wrong))
            answer = last[1] if last[0] >= 0 else None
        return None if answer is None else Stance(answer, answer == self.right, final=False)

    def _last_mention(self, text: str, answer: str) -> int:
        # The blank keeps a result of 4 apart from one of 42.
        return text.rfind(f"{self.mention(answer)} ")

    def mention(self, answer: str) -> str:
        """How an answer is named in running text, before anyone commits to it; a blank follows it there."""
        if self.item.code is not None:
            return f"the line `{self._line_of(answer)}`"
        if self.item.options:
            return f"option ({answer})"
        return f"a result of {answer}"

    def _line_of(self, program: str) -> str:
        lines = [line for line, owner in self._telling_lines.items() if owner == program]
        return lines[0] if lines else program.strip().splitlines()[-1].strip()

    @functools.cached_property
    def _telling_lines(self) -> Mapping[str, str]:
        """Lines by which a program of the pool is told from the right one, and the program each speaks for."""
        right = _lines(self.right)
        telling: dict[str, str] = {}
        for program in self.wrong:
            telling.update({line: program for line in _lines(program) if line not in right and line not in telling})
        missing = {line: self.right for program in self.wrong for line in right if line not in _lines(program)}
        return {**telling, **missing}


def _lines(program: str) -> dict[str, None]:
    return dict.fromkeys(line.strip() for line in program.splitlines() if "`" not in line and line.strip())
