"""Validate grading without a model: every gold answer must be right, and a wrong answer to each question wrong."""

import ast
from collections.abc import Sequence

from tqdm import tqdm

from harness.benchmarks.base import Benchmark, Tools
from harness.benchmarks.catalogue import benchmark, entry
from harness.benchmarks.items import CodeTask, Item
from harness.benchmarks.math_verifier import MathVerifier
from harness.benchmarks.prepare import load_items
from harness.benchmarks.programs import parse
from harness.concurrency import gather
from harness.errors import UserError
from harness.sandbox import Outcome, Program, Sandbox
from harness.simulator.answers import present, wrong_answers

GOLD, WRONG = "gold answer right", "a wrong answer graded wrong"
# Characters of a gold answer shown in a message.
_SHOWN = 80


async def validate(key: str, data: str) -> tuple[str, bool]:
    """Validate a benchmark's ``"embedded"`` or ``"real"`` data. Raises UserError like :func:`load_items`.

    Returns:
        A summary that lists the exceptions, and whether there are none.
    """
    subject, items = benchmark(key), load_items(key, data).items
    async with Sandbox() as sandbox, MathVerifier() as math_verify:
        exceptions = await find_exceptions(subject, items, Tools(sandbox, math_verify))
    lines = [f"{subject.title}, {data} data: {len(items)} questions"]
    for check, ids in exceptions.items():
        listed = f"; not for {', '.join(ids)}" if ids else ""
        lines.append(f"- {check}: {len(items) - len(ids)} of {len(items)}{listed}")
    return "\n".join(lines), not any(exceptions.values())


async def find_exceptions(subject: Benchmark, items: Sequence[Item], tools: Tools) -> dict[str, list[str]]:
    """Return the ids of the questions that fail, by check."""

    async def is_right(item: Item, answer: str) -> bool:
        return (await subject.grade(item, present(subject, item, answer), tools)).correct

    async def failures(item: Item) -> list[str]:
        failed = [] if await is_right(item, item.gold) else [GOLD]
        for answer in wrong_answers(subject, item):
            # A changed program may still be right.
            if not await is_right(item, answer):
                break
        else:
            failed.append(WRONG)
        progress.update()
        return failed

    with tqdm(total=len(items), desc=subject.title, disable=None) as progress:
        results = await gather(map(failures, items))
    by_id = {item.id: failed for item, failed in zip(items, results, strict=True)}
    return {check: [id_ for id_, failed in by_id.items() if check in failed] for check in (GOLD, WRONG)}


async def check_gold(key: str, data: str) -> None:
    """Grade the gold answers of a user's benchmark. Raises UserError for the first that is not graded right."""
    loaded, subject = load_items(key, data), benchmark(key)
    if subject.names_models:
        return  # Its file has a verdict of each model, and no gold answer.

    async def fault(item: Item) -> str:
        try:
            verdict = await subject.grade(item, reply := present(subject, item, item.gold), tools)
        except Exception as error:  # code of the user
            return f"{type(error).__name__}: {error}"
        found = verdict.detail or f"{verdict.answer!r} was found in the reply {reply!r}"
        return "" if verdict.correct else found

    async with Sandbox() as sandbox, MathVerifier() as math_verify:
        tools = Tools(sandbox, math_verify)
        faults = await gather(map(fault, loaded.items))
        for item, line, found in zip(loaded.items, loaded.lines, faults, strict=True):
            if found:
                gold, others = item.gold[:_SHOWN], f"in all {sum(map(bool, faults))} of {len(faults)}"
                cure = f"correct it, or `find_answer`, `same` or `present` of {entry(key).module}.py"
                if item.code is not None:
                    found += f" by the check {await _failing_check(item, item.code, sandbox)!r}"
                    cure = "correct it, or the check: the program gets plain values alone (docs/sandbox.md)"
                where = f"{loaded.source}, {line}"
                raise UserError(f"{where}: the gold answer {gold!r} is not graded as right ({found}); {others}", cure)


async def _failing_check(item: Item, task: CodeTask, sandbox: Sandbox) -> str:
    """Return the first statement of the checks that the gold program does not pass."""
    statements = [ast.unparse(node) for node in getattr(parse(task.checks), "body", ())]
    for number, statement in enumerate(statements, 1):
        program = Program(item.gold, task.setup, "\n".join(statements[:number]), task.entry_point)
        if (await sandbox.run(program)).outcome is not Outcome.PASSED:
            return statement
    return task.checks
