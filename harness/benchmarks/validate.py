"""Proof without a model that a benchmark grades: every gold answer right, and for every question a wrong one wrong."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from harness.benchmarks.base import Benchmark, Tools
from harness.benchmarks.items import Item, Verdict
from harness.benchmarks.loading import load_items
from harness.benchmarks.math_verifier import MathVerifier
from harness.benchmarks.registry import benchmark
from harness.concurrency import gather

MUTANTS_TRIED = 10
AT_ONCE = 64
LOG_EVERY = 500

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Report:
    """The findings of a validation, exceptions listed by id in the order of the questions."""

    title: str  # the benchmark
    data: str  # ``"embedded"`` or ``"real"``
    items: int  # number of questions
    with_examples: int  # number of questions with visible examples
    gold_wrong: tuple[str, ...]  # questions whose gold answer is graded wrong
    mutant_right: tuple[str, ...]  # questions none of whose wrong answers is graded wrong
    examples_wrong: tuple[str, ...]  # questions whose own visible examples fail on the gold program
    # For every secondary rule, the questions on whose gold or wrong answer it differs from the headline verdict.
    disagreements: Mapping[str, tuple[str, ...]]

    @property
    def passed(self) -> bool:
        """Whether every gold answer is right and every question has a wrong answer that is wrong."""
        return not self.gold_wrong and not self.mutant_right

    def to_markdown(self) -> str:
        """The report as a list, exceptions by id."""
        lines = [
            f"{self.title}, {self.data} data: {self.items} questions",
            _line("gold answer right", self.items, self.gold_wrong),
            _line("a wrong answer graded wrong", self.items, self.mutant_right),
        ]
        if self.with_examples:
            lines.append(_line("visible examples hold for gold", self.with_examples, self.examples_wrong))
        lines += [_line(f"{name} agrees", self.items, ids) for name, ids in sorted(self.disagreements.items())]
        return "\n".join(lines) + "\n"


class _Finding(NamedTuple):
    id: str
    gold: Verdict
    mutant: Verdict | None
    examples_hold: bool | None

    def disagrees(self, rule: str) -> bool:
        verdicts = [self.gold, *([self.mutant] if self.mutant else [])]
        return any(verdict.also.get(rule, verdict.correct) is not verdict.correct for verdict in verdicts)


async def validate(key: str, data: str) -> Report:
    """Validate every question of a benchmark.

    Args:
        key: The benchmark.
        data: ``"embedded"`` or ``"real"``.

    Raises:
        UserError: The data cannot be had or are not what they should be.
    """
    from harness.sandbox import Sandbox

    items = load_items(key, data).items
    async with Sandbox() as sandbox, MathVerifier() as math_verify:
        return await check(benchmark(key), items, data, Tools(sandbox, math_verify))


async def check(subject: Benchmark, items: Sequence[Item], data: str, tools: Tools) -> Report:
    """Validate the given questions."""
    slots = asyncio.Semaphore(AT_ONCE)
    findings: dict[str, _Finding] = {}

    async def one(item: Item) -> None:
        async with slots:
            gold = await subject.grade(item, subject.present(item, item.gold), tools)
            mutant = await _failing_mutant(subject, item, tools)
            findings[item.id] = _Finding(item.id, gold, mutant, await _examples_hold(item, tools))
        if len(findings) % LOG_EVERY == 0:
            logger.info("%s: %d of %d questions validated", subject.title, len(findings), len(items))

    await gather(map(one, items))
    found = [findings[item.id] for item in items]
    return Report(
        title=subject.title,
        data=data,
        items=len(found),
        with_examples=sum(one.examples_hold is not None for one in found),
        gold_wrong=tuple(one.id for one in found if not one.gold.correct),
        mutant_right=tuple(one.id for one in found if one.mutant is None),
        examples_wrong=tuple(one.id for one in found if one.examples_hold is False),
        disagreements={
            rule: tuple(one.id for one in found if one.disagrees(rule))
            for rule in sorted({rule for one in found for rule in one.gold.also})
        },
    )


async def _failing_mutant(subject: Benchmark, item: Item, tools: Tools) -> Verdict | None:
    """The verdict on the first wrong answer that is graded wrong; an equivalent mutant is passed over."""
    for answer in subject.wrong_answers(item)[:MUTANTS_TRIED]:
        verdict = await subject.grade(item, subject.present(item, answer), tools)
        if not verdict.correct:
            return verdict
    return None


async def _examples_hold(item: Item, tools: Tools) -> bool | None:
    """Whether the gold program satisfies the visible examples, ``None`` where there are none."""
    from harness.sandbox import Outcome, Program

    if item.code is None or not item.code.visible:
        return None
    task = item.code
    program = Program(item.gold, task.setup, "\n".join(task.visible), task.entry_point)
    return (await tools.sandbox.run(program)).outcome is Outcome.PASSED


def _line(what: str, items: int, exceptions: Sequence[str]) -> str:
    listed = f"; not for {', '.join(exceptions)}" if exceptions else ""
    return f"- {what}: {items - len(exceptions)} of {items}{listed}"
