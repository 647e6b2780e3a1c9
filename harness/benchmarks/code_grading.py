"""Grading of MBPP and HumanEval, the two benchmarks that ask for programs."""

from __future__ import annotations

import ast
import textwrap
from dataclasses import replace

from harness.benchmarks.base import Benchmark, Tools
from harness.benchmarks.extraction import before_fences, fenced, fenced_blocks
from harness.benchmarks.items import CodeTask, Item, Status, Verdict
from harness.benchmarks.mutants import mutants
from harness.benchmarks.programs import canonical, completed, definitions, parse, salvage, without_trials

PYTHON_FENCES = frozenset({"", "py", "python", "python3"})


class CodeBenchmark(Benchmark):
    """A benchmark whose answers are programs, judged by the tests of the question in the sandbox."""

    rule_version = "4"
    role_domain = "Code"
    output_rules = (
        "Finish with exactly one fenced Python block, opened by ```python and closed by ```. The block holds the "
        "whole program: its imports, the requested function under its given name and with its given parameters, and "
        "every helper it calls. Only Python's standard library can be imported. Put no example calls, tests or input "
        "reading into it."
    )

    def present(self, item: Item, answer: str) -> str:
        """Write one fenced Python block."""
        return fenced(answer)

    def read(self, item: Item, text: str, stated_only: bool) -> str | None:
        """Return the last block that defines the function, with what it lacks; else the last that parses.

        A block that nothing closes may end anywhere in a text that is cut off, so it then comes after the others.
        """
        text = text.removeprefix("\ufeff")
        blocks = [block for block in fenced_blocks(text) if block.language in PYTHON_FENCES]
        sources = [textwrap.dedent(block.source) for block in blocks]
        order = sorted(range(len(blocks)), key=lambda place: (stated_only and not blocks[place].closed, -place))
        candidates = [*((place, sources[place]) for place in order), (0, text)]
        broken = [(place, salvage(source)) for place, source in candidates if _program(source) is None]
        for place, source in [*candidates, *broken]:
            tree = _program(source)
            if tree is not None and task_of(item).entry_point in definitions(tree):
                return completed(source, [salvage(before_fences(text)), *sources[:place]])
        if stated_only:
            return None
        return next((source for _, source in candidates if _program(source) is not None), None)

    def wrong_answers(self, item: Item) -> tuple[str, ...]:
        """Return mutants of the gold program."""
        return mutants(item.gold, task_of(item).entry_point)

    def same(self, item: Item, a: str, b: str) -> bool:
        """Return whether two programs differ in layout, comments and docstrings at most."""
        return a == b or canonical(a) == canonical(b)

    async def judge(self, item: Item, answer: str, tools: Tools) -> Verdict:
        """Run the question's tests on the program; a second time, without its trials, where it does not load."""
        from harness.sandbox import Outcome, Program

        task = task_of(item)
        program = Program(answer, task.setup, task.checks, task.entry_point)
        execution = await tools.sandbox.run(program)
        if not execution.is_loaded and (source := without_trials(answer)) != answer:
            execution = await tools.sandbox.run(replace(program, source=source))
        outcome, detail = execution.outcome, execution.detail
        status = Status.SANDBOX_ERROR if outcome is Outcome.SANDBOX_ERROR else Status.GRADED
        return Verdict(outcome is Outcome.PASSED, answer, status, f"{outcome}: {detail}" if detail else str(outcome))


def _program(source: str) -> ast.Module | None:
    tree = parse(source)
    return tree if tree is not None and tree.body else None


def task_of(item: Item) -> CodeTask:
    """Return the execution data of a programming question; raise ValueError for any other."""
    if item.code is None:
        raise ValueError(f"item {item.id} of {item.benchmark} has no tests to run")
    return item.code
