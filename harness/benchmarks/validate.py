"""Proof without a model that a benchmark grades: every gold answer right, and for every question a wrong one wrong."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tqdm import tqdm

from harness.benchmarks.base import Benchmark, Tools
from harness.benchmarks.catalogue import benchmark
from harness.benchmarks.items import Item, Verdict
from harness.benchmarks.math_verifier import MathVerifier
from harness.benchmarks.prepare import load_items
from harness.concurrency import gather
from harness.sandbox import Outcome, Program, Sandbox

MUTANTS_TRIED = 10
AT_ONCE = 64
GOLD, WRONG, EXAMPLES = "gold answer right", "a wrong answer graded wrong", "visible examples hold for gold"


@dataclass(frozen=True, slots=True)
class ValidationReport:
    """Of every question by id, in their order, which checks hold; a secondary rule should agree with the headline."""

    title: str
    checked: Mapping[str, Mapping[str, bool]]

    @property
    def passed(self) -> bool:
        """Whether every gold answer is right and every question has a wrong answer that is wrong."""
        return not self.exceptions(GOLD) and not self.exceptions(WRONG)

    def exceptions(self, check: str) -> list[str]:
        """The questions of which a check does not hold."""
        return [id_ for id_, holds in self.checked.items() if not holds.get(check, True)]

    def to_markdown(self) -> str:
        """The report as a list, exceptions by id."""
        lines = [f"{self.title}: {len(self.checked)} questions"]
        for name in dict.fromkeys(name for holds in self.checked.values() for name in holds):
            found = [holds[name] for holds in self.checked.values() if name in holds]
            listed = f"; not for {', '.join(self.exceptions(name))}" if not all(found) else ""
            lines.append(f"- {name}: {sum(found)} of {len(found)}{listed}")
        return "\n".join(lines) + "\n"


async def validate(key: str, data: str) -> ValidationReport:
    """Validate every question of a benchmark, ``"embedded"`` or ``"real"``; raises as :func:`load_items`."""
    items = load_items(key, data).items
    async with Sandbox() as sandbox, MathVerifier() as math_verify:
        return await check(benchmark(key), items, data, Tools(sandbox, math_verify))


async def check(subject: Benchmark, items: Sequence[Item], data: str, tools: Tools) -> ValidationReport:
    """Validate the given questions."""
    slots = asyncio.Semaphore(AT_ONCE)

    async def one(item: Item) -> dict[str, bool]:
        async with slots:
            found = await _checked(subject, item, tools)
        progress.update()
        return found

    with tqdm(total=len(items), desc=subject.title, disable=None) as progress:
        checked = await gather(map(one, items))
    by_id = {item.id: checks for item, checks in zip(items, checked, strict=True)}
    return ValidationReport(f"{subject.title}, {data} data", by_id)


async def _checked(subject: Benchmark, item: Item, tools: Tools) -> dict[str, bool]:
    gold = await subject.grade(item, subject.present(item, item.gold), tools)
    mutant = await _failing_mutant(subject, item, tools)
    checked = {GOLD: gold.correct, WRONG: mutant is not None}
    task = item.code
    if task is not None and task.visible:
        examples = Program(item.gold, task.setup, "\n".join(task.visible), task.entry_point)
        checked[EXAMPLES] = (await tools.sandbox.run(examples)).outcome is Outcome.PASSED
    verdicts = [gold] if mutant is None else [gold, mutant]
    for rule in sorted({rule for one in verdicts for rule in one.also}):
        checked[f"{rule} agrees"] = all(one.also.get(rule, one.correct) is one.correct for one in verdicts)
    return checked


async def _failing_mutant(subject: Benchmark, item: Item, tools: Tools) -> Verdict | None:
    # The first wrong answer may be equivalent to gold, where it is a mutant.
    for answer in subject.wrong_answers(item)[:MUTANTS_TRIED]:
        verdict = await subject.grade(item, subject.present(item, answer), tools)
        if not verdict.correct:
            return verdict
    return None
