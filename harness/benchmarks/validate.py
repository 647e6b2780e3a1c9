"""Validate grading without a model: every gold answer must be right, and a wrong answer to each question wrong."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tqdm import tqdm

from harness.benchmarks.base import Benchmark, Tools
from harness.benchmarks.catalogue import benchmark
from harness.benchmarks.items import Item
from harness.benchmarks.math_verifier import MathVerifier
from harness.benchmarks.prepare import load_items
from harness.concurrency import gather
from harness.sandbox import Outcome, Program, Sandbox
from harness.simulator.answers import present, wrong_answers

GOLD, WRONG, EXAMPLES = "gold answer right", "a wrong answer graded wrong", "visible examples hold for gold"


@dataclass(frozen=True, slots=True)
class ValidationReport:
    """Results of the checks, by question id and check."""

    title: str
    checks: Mapping[str, Mapping[str, bool]]

    @property
    def passed(self) -> bool:
        """Whether every gold answer is right, and a wrong answer to each question wrong. Visible examples may fail."""
        return not self.exceptions(GOLD) and not self.exceptions(WRONG)

    def exceptions(self, check: str) -> list[str]:
        return [id_ for id_, checks in self.checks.items() if not checks.get(check, True)]

    def to_markdown(self) -> str:
        lines = [f"{self.title}: {len(self.checks)} questions"]
        for name in dict.fromkeys(name for checks in self.checks.values() for name in checks):
            total, exceptions = sum(name in checks for checks in self.checks.values()), self.exceptions(name)
            listed = f"; not for {', '.join(exceptions)}" if exceptions else ""
            lines.append(f"- {name}: {total - len(exceptions)} of {total}{listed}")
        return "\n".join(lines) + "\n"


async def validate(key: str, data: str) -> ValidationReport:
    """Validate every question of a benchmark's ``"embedded"`` or ``"real"`` data. Raises like :func:`load_items`."""
    items = load_items(key, data).items
    async with Sandbox() as sandbox, MathVerifier() as math_verify:
        return await validate_items(benchmark(key), items, data, Tools(sandbox, math_verify))


async def validate_items(subject: Benchmark, items: Sequence[Item], data: str, tools: Tools) -> ValidationReport:
    async def is_right(item: Item, answer: str) -> bool:
        return (await subject.grade(item, present(subject, item, answer), tools)).correct

    async def check(item: Item) -> dict[str, bool]:
        checks = {GOLD: await is_right(item, item.gold), WRONG: False}
        for answer in wrong_answers(subject, item):
            # A changed program may still be right.
            if not await is_right(item, answer):
                checks[WRONG] = True
                break
        if item.code is not None and item.code.visible:
            examples = Program(item.gold, item.code.setup, "\n".join(item.code.visible), item.code.entry_point)
            checks[EXAMPLES] = (await tools.sandbox.run(examples)).outcome is Outcome.PASSED
        progress.update()
        return checks

    with tqdm(total=len(items), desc=subject.title, disable=None) as progress:
        results = await gather(map(check, items))
    by_id = {item.id: checks for item, checks in zip(items, results, strict=True)}
    return ValidationReport(f"{subject.title}, {data} data", by_id)
