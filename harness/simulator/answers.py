"""Right and wrong answers to a question: number, letter, program or other text.

A benchmark may define its own ``wrong_answers(item)`` and ``present(item, answer)``. Wrong programs are not executed
here. They return a constant, so that they always terminate.
"""

import functools
import hashlib
import re
import string
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

from harness.benchmarks.base import Benchmark
from harness.benchmarks.catalogue import benchmark
from harness.benchmarks.items import Item
from harness.benchmarks.programs import canonical, fenced

_POOL_SIZE = 4
NUMBER = re.compile(r"-?\d+(\.\d+)?(e[+-]?\d+)?")


@dataclass(frozen=True, eq=False)
class Answers:
    """Answers to a question."""

    item: Item
    benchmark: Benchmark
    right: str  # as in replies
    wrong: Sequence[str]  # one to four, most likely first

    @functools.lru_cache(maxsize=4096)  # noqa: B019 - answers live as long as the process
    def find_answer(self, text: str) -> str | None:
        """Extract the answer from a text, normalised to an equal known answer. None if there is none."""
        answer = self.benchmark.extract(self.item, text)
        # Any word parses as a program, but does not define the function.
        if answer is None or (self.item.code is not None and self.item.code.entry_point not in answer):
            return None
        known = (self.right, *self.wrong)
        return next((each for each in known if self.benchmark.same(self.item, answer, each)), answer)


@functools.cache
def answers_to(item: Item) -> Answers:
    bench = benchmark(item.benchmark)
    right = item.gold if item.code is None else canonical(item.gold)
    return Answers(item, bench, right, wrong_answers(bench, item))


def present(bench: Benchmark, item: Item, answer: str) -> str:
    if own := getattr(bench, "present", None):
        return str(own(item, answer))
    if item.code is not None:
        return fenced(answer)
    if NUMBER.fullmatch(answer):
        return f"The answer is {format(Decimal(answer), 'f').removesuffix('.0')}"
    return f"The answer is \\boxed{{{answer}}}"


def wrong_answers(bench: Benchmark, item: Item) -> list[str]:
    wrong: list[str] = []
    for candidate in _candidates(bench, item):
        if len(wrong) < _POOL_SIZE and not any(bench.same(item, candidate, other) for other in (item.gold, *wrong)):
            wrong.append(candidate)
    return wrong


def _candidates(bench: Benchmark, item: Item) -> Sequence[str]:
    if own := getattr(bench, "wrong_answers", None):
        return tuple(own(item))
    if item.code is not None:
        redefined = f"{canonical(item.gold)}\n\ndef {item.code.entry_point}(*_):\n    return "
        return [redefined + value for value in ("None", "-1", "''", "[0]")]
    if item.options:
        others = set(string.ascii_uppercase[: len(item.options)]) - {item.gold}
        return sorted(others, key=lambda letter: hashlib.sha256(f"{item.id}/{letter}".encode()).digest())
    if NUMBER.fullmatch(item.gold):
        gold = Decimal(item.gold)
        return [format(value, "f") for value in (gold + 1, gold * 2, gold - 1, gold * 10, gold + 10, gold - 2)]
    # Other text: increase one of its numbers by 1 or 2.
    numbers = [(step, match) for step in (1, 2) for match in re.finditer(r"\d{1,15}", item.gold)]
    changed = [f"{item.gold[: at.start()]}{int(at[0]) + step}{item.gold[at.end() :]}" for step, at in numbers]
    return [*changed, "0", "1", "2", "3"]
