"""Tools of roles: run the program of a reply on the examples of the question, or read its result.

Programs run in the sandbox only (D-GEN-5). Of the tests of a question, a tool sees those that stand in the
question itself and no others.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from harness.agents.prompts import EXAMPLES_RUN
from harness.benchmarks.code_grading import PYTHON_FENCES
from harness.benchmarks.extraction import Block, fenced_blocks
from harness.benchmarks.items import CodeTask, Item
from harness.benchmarks.programs import definitions, parse
from harness.concurrency import gather
from harness.errors import UserError
from harness.sandbox import Execution, Outcome, Program, Sandbox

# Neither speaks of an outcome, so neither may sound like one; digits could pass for an answer.
NO_PROGRAM = "Nothing was run, because there is no program in a fenced Python block."
NO_EXAMPLE = "Nothing was run, because the question states no example as code."

_LONGEST_VALUE = 200
_PLACE_IN_CHECKS = re.compile(r" \(checks, line \d+\)\Z")
_ADDRESS = re.compile(r"(?<= at 0x)[0-9a-fA-F]+")
_ANSWER = re.compile(r"\banswer\b")


@dataclass(frozen=True, slots=True)
class Value:
    """The value of a program's variable ``answer``, or the error; exactly one of the two is set."""

    printed: str | None = None  # the value as ``print`` shows it, on one line, cut at 200 characters
    failure: str | None = None  # why there is none, in a few words


class CodeTools:
    """Runs programs of texts.

    Args:
        sandbox: Where they run; one that remembers, for roles often run what was run before.
    """

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox

    async def examples(self, item: Item, text: str) -> str:
        """Run the program of a text on the examples of the question, each in a process of its own.

        Returns:
            A heading and one line for each example; a single line where there is no program or no example.

        Raises:
            UserError: The sandbox is broken.
        """
        sources = programs(text)
        if not sources:
            return NO_PROGRAM
        if item.code is None or not item.code.visible:
            return NO_EXAMPLE
        runs = await self._on_examples(item.code, sources)
        lines = [_example_line(example, run) for example, run in zip(item.code.visible, runs, strict=True)]
        return "\n".join([EXAMPLES_RUN, *lines])

    async def passes(self, item: Item, text: str) -> bool | None:
        """Whether the program of a text passes every example of the question.

        Returns:
            ``None`` where there is no program or no example.

        Raises:
            UserError: The sandbox is broken.
        """
        sources = programs(text)
        if not sources or item.code is None or not item.code.visible:
            return None
        return all(run.outcome is Outcome.PASSED for run in await self._on_examples(item.code, sources))

    async def value(self, text: str) -> Value | None:
        """Run the last program of a text that speaks of ``answer`` and read this variable.

        Returns:
            The value or what went wrong; ``None`` where the text holds no program at all.

        Raises:
            UserError: The sandbox is broken.
        """
        if not programs(text):
            return None
        source = computing(text)
        if source is None:
            return Value(failure="it has no variable named answer")
        return _read_value(await self._run(Program(source, show="answer")))

    async def _on_examples(self, task: CodeTask, sources: list[str]) -> list[Execution]:
        source = _first_that_defines(task.entry_point, sources)
        return await gather(
            self._run(Program(source, task.setup, example, task.entry_point)) for example in task.visible
        )

    async def _run(self, program: Program) -> Execution:
        run = await self._sandbox.run(program)
        if run.outcome is Outcome.SANDBOX_ERROR:
            raise UserError(
                f"the sandbox failed on a program that a role's tool ran ({run.detail}); mend the cause, then "
                "give the same command again (finished calls are kept)"
            )
        return run


def programs(text: str) -> list[str]:
    """The programs in a text: fenced blocks that say they are Python, or that say nothing and read like it.

    A text without fenced blocks may be a program as a whole.
    """
    blocks = fenced_blocks(text)
    if not blocks:
        return [text] if _reads_like_python(text) else []
    return [block.source for block in blocks if _is_program(block)]


def computing(text: str) -> str | None:
    """The last program of a text that speaks of ``answer``, which :meth:`CodeTools.value` runs."""
    speaking = [source for source in programs(text) if _ANSWER.search(source)]
    return speaking[-1] if speaking else None


def fenced(program: str) -> str:
    """A program in a fence that nothing inside it can close."""
    longest = max((len(run) for run in re.findall("`+", program)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}python\n{program.rstrip()}\n{fence}"


def _is_program(block: Block) -> bool:
    if block.language:
        return block.language in PYTHON_FENCES and bool(block.source.strip())
    return _reads_like_python(block.source)


def _reads_like_python(text: str) -> bool:
    """A single word, a number or a formula is Python too; giving something a name tells a program from them."""
    tree = parse(text)
    return tree is not None and bool(definitions(tree))


def _first_that_defines(name: str, sources: list[str]) -> str:
    for source in sources:
        tree = parse(source)
        if tree is not None and name in definitions(tree):
            return source
    return sources[0]


def _example_line(example: str, run: Execution) -> str:
    shown = " ".join(example.split())
    if run.outcome is Outcome.PASSED:
        return f"- example passed: {shown}"
    reason = "the result differs" if run.outcome is Outcome.WRONG_ANSWER else _reason(run)
    return f"- example failed: {shown} ({reason})"


def _read_value(run: Execution) -> Value:
    if run.outcome is not Outcome.PASSED:
        return Value(failure=_reason(run))
    printed = " ".join((run.shown or "").split())
    shown = printed if len(printed) <= _LONGEST_VALUE else f"{printed[:_LONGEST_VALUE]}..."
    return Value(printed=_ADDRESS.sub("...", shown))


def _reason(run: Execution) -> str:
    return _PLACE_IN_CHECKS.sub("", run.detail) or run.outcome.replace("_", " ")
