"""Tools of roles: run the program of a reply on the examples of the question, or read its result.

Programs run in the sandbox only (D-GEN-5). Of the tests of a question, a tool sees only those that its text states.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from harness.agents.prompts import EXAMPLES_RUN
from harness.benchmarks.code_grading import PYTHON_FENCES
from harness.benchmarks.extraction import Block, fenced_blocks
from harness.benchmarks.items import Item
from harness.benchmarks.programs import completed, outline
from harness.concurrency import gather
from harness.errors import UserError
from harness.sandbox import Execution, Outcome, Program, Sandbox

# Neither speaks of an outcome, so neither may sound like one; digits could pass for an answer.
NO_PROGRAM = "Nothing was run, because there is no program in a fenced Python block."
NO_EXAMPLE = "Nothing was run, because the question states no example as code."
VALUE_SHOWN = "The program was executed; its variable answer holds "
VALUE_MISSING = "The program gave no value: "

_LONGEST_VALUE = 200
_LINE_OF_CHECKS = re.compile(r" \(checks, line \d+\)\Z")
_ADDRESS = re.compile(r"(?<= at 0x)[0-9a-fA-F]+")
_ANSWER = re.compile(r"\banswer\b")


@dataclass(frozen=True, slots=True)
class Value:
    """Value of a program's variable ``answer``, or the reason why it has none; as text, a sentence."""

    printed: str | None = None  # as ``print`` shows it, on one line, cut at 200 characters
    failure: str | None = None

    def __str__(self) -> str:
        return f"{VALUE_MISSING}{self.failure}." if self.printed is None else f"{VALUE_SHOWN}{self.printed}"


class CodeTools:
    """Runs programs of texts in a sandbox; every method raises UserError if the sandbox is broken.

    Args:
        sandbox: Runs what is not recorded.
        recorded: Executions by program, which are given instead of running the program: texts of exceptions differ
            between versions of Python, and a text that agents saw is part of later prompts.
    """

    def __init__(self, sandbox: Sandbox, recorded: Mapping[Program, Execution] | None = None) -> None:
        self._sandbox, self._recorded = sandbox, recorded or {}
        self.executions: dict[Program, Execution] = {}

    async def examples(self, item: Item, text: str) -> str:
        """Run the program of a text on each example of the question; return a line each, or one that says why not."""
        runs = await self._on_examples(item, text)
        if not runs:
            return NO_EXAMPLE if programs(text) else NO_PROGRAM
        return "\n".join([EXAMPLES_RUN, *(_example_line(example, run) for example, run in runs)])

    async def passes(self, item: Item, text: str) -> bool | None:
        """Return whether the program of a text passes every example of the question, or None without either."""
        runs = await self._on_examples(item, text)
        return all(run.outcome is Outcome.PASSED for _, run in runs) if runs else None

    async def value(self, text: str) -> Value | None:
        """Run the last program of a text that mentions ``answer``; return this variable, or None without a program."""
        if not programs(text):
            return None
        source = computing(text)
        if source is None:
            return Value(failure="it has no variable named answer")
        run = await self._run(Program(source, show="answer"))
        if run.outcome is not Outcome.PASSED:
            return Value(failure=_reason(run))
        printed = " ".join((run.shown or "").split())
        if len(printed) > _LONGEST_VALUE:
            printed = f"{printed[:_LONGEST_VALUE]}..."
        return Value(printed=_ADDRESS.sub("...", printed))

    async def _on_examples(self, item: Item, text: str) -> list[tuple[str, Execution]]:
        task, sources = item.code, programs(text)
        if task is None or not sources:
            return []
        source = defining(text, task.entry_point) or sources[0]
        runs = await gather(
            self._run(Program(source, task.setup, example, task.entry_point)) for example in task.visible
        )
        return list(zip(task.visible, runs, strict=True))

    async def _run(self, program: Program) -> Execution:
        run = self._recorded.get(program) or await self._sandbox.run(program)
        self.executions[program] = run
        if run.outcome is Outcome.SANDBOX_ERROR:
            raise UserError(
                f"the sandbox failed on a program that a role's tool ran ({run.detail}); fix the cause, then give "
                "the same command again (finished calls are kept)"
            )
        return run


def programs(text: str) -> list[str]:
    """Return the Python programs in a text: blocks fenced as Python, or unmarked ones that define a name.

    Without fences, that is the text itself if it defines one.
    """
    blocks = fenced_blocks(text)
    if not blocks:
        return [text] if outline(text).defined else []
    return [block.source for block in blocks if _is_program(block)]


def computing(text: str) -> str | None:
    """Return the last program of a text that mentions ``answer``, which :meth:`CodeTools.value` runs, or None."""
    return _last(programs(text), lambda source: bool(_ANSWER.search(source)))


def defining(text: str, name: str) -> str | None:
    """Return the last program of a text that defines a name, or None."""
    return _last(programs(text), lambda source: name in outline(source).defined)


def _last(sources: list[str], is_wanted: Callable[[str], bool]) -> str | None:
    """Return the last program that is wanted, behind what it needs of those before it, as graders do (D-GRADE-3)."""
    found = (index for index in reversed(range(len(sources))) if is_wanted(sources[index]))
    return next((completed(sources[index], sources[:index]) for index in found), None)


def _is_program(block: Block) -> bool:
    if block.language:
        return block.language in PYTHON_FENCES and bool(block.source.strip())
    # A single word, a number or a formula is Python too; giving something a name tells a program from them.
    return bool(outline(block.source).defined)


def _example_line(example: str, run: Execution) -> str:
    line = " ".join(example.split())
    if run.outcome is Outcome.PASSED:
        return f"- example passed: {line}"
    reason = "the result differs" if run.outcome is Outcome.WRONG_ANSWER else _reason(run)
    return f"- example failed: {line} ({reason})"


def _reason(run: Execution) -> str:
    return _LINE_OF_CHECKS.sub("", run.detail) or run.outcome.replace("_", " ")
