"""Grading of MBPP and HumanEval, the two benchmarks that ask for programs."""

from __future__ import annotations

import re
import textwrap
from dataclasses import replace

from harness.benchmarks import programs
from harness.benchmarks.base import Benchmark, Tools
from harness.benchmarks.extraction import before_fences, fenced_blocks
from harness.benchmarks.items import CodeTask, Item, Status, Verdict
from harness.benchmarks.programs import canonical, completed, outline, salvage

_MOST_INDENTED = 3
PYTHON_FENCES = frozenset({"", "py", "python", "python3"})


class CodeBenchmark(Benchmark):
    """A benchmark whose answers are programs, judged by the tests of the question in the sandbox."""

    rule_version = "8"
    role_domain = "Code"
    output_rules = (
        "Finish with exactly one fenced Python block, opened by ```python and closed by ```. The block holds the "
        "whole program: its imports, the requested function under its given name and with its given parameters, and "
        "every helper it calls. Only Python's standard library can be imported. Put no example calls, tests or input "
        "reading into it."
    )

    def read(self, item: Item, text: str, stated_only: bool) -> str | None:
        """Return the last block that defines the function, with what it lacks; else the last that parses.

        A block that nothing closes may end anywhere in a text that is cut off, so it then comes after the others.
        """
        # A byte-order mark, and those of Llama.
        text, entry_point = re.sub(r"\ufeff|<\|python_\w+\|>", "\n", text), task_of(item).entry_point
        blocks = [block for block in fenced_blocks(text) if block.language in PYTHON_FENCES]
        sources = [textwrap.dedent(block.source) for block in blocks]
        found = [(index, sources[index], block.closed) for index, block in enumerate(blocks)][::-1]
        # Not out of a program: what a condition or a class of it defines is no program by itself.
        is_program = any(outline(source).has_statement for source in [*sources, text])
        stretches = [] if is_program else programs.INDENTED.findall(text)
        marked = [stretch for stretch in stretches if f"def {entry_point}" in stretch]
        found += [(0, text, False), *((0, textwrap.dedent(stretch), False) for stretch in marked[-_MOST_INDENTED:])]
        # What nothing ends may go on where a text is cut off, so it comes last.
        for group in [(True,), (False,)] if stated_only else [(True, False)]:
            candidates = [(index, source) for index, source, is_closed in found if is_closed in group]
            broken = [(index, salvage(source)) for index, source in candidates if outline(source).error_line]
            for index, source in [*candidates, *broken]:
                if entry_point in outline(source).defined:
                    if group == (False,):
                        source = programs.without_redefinition(source, entry_point)
                    return completed(source, [salvage(before_fences(text)), *sources[:index]])
        if stated_only:
            return None
        return next((source for _, source, _ in found if outline(source).has_statement), None)

    def same(self, item: Item, a: str, b: str) -> bool:
        """Return whether two programs differ in layout, comments and docstrings at most."""
        return a == b or canonical(a) == canonical(b)

    async def judge(self, item: Item, answer: str, tools: Tools) -> Verdict:
        """Run the question's tests on the program; again, its trials aside, where it does not load."""
        from harness.sandbox import Outcome, Program

        task = task_of(item)
        program = Program(answer, task.setup, task.checks, task.entry_point)
        execution = await tools.sandbox.run(program)
        # Trials that raise may fail; those that end the process or meet a limit are left out.
        for run in (True, False):
            source = programs.without_trials(answer, run=run)
            if not execution.is_loaded and source != answer and (execution.outcome is Outcome.EXCEPTION or not run):
                execution = await tools.sandbox.run(replace(program, source=source))
        outcome, detail = execution.outcome, execution.detail
        status = Status.SANDBOX_ERROR if outcome is Outcome.SANDBOX_ERROR else Status.GRADED
        return Verdict(outcome is Outcome.PASSED, answer, status, f"{outcome}: {detail}" if detail else str(outcome))


def task_of(item: Item) -> CodeTask:
    """Return the execution data of a programming question; raise ValueError for any other."""
    if item.code is None:
        raise ValueError(f"item {item.id} of {item.benchmark} has no tests to run")
    return item.code
