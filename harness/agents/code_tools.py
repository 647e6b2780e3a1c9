"""Code tools of roles: run a reply's program on the question's examples, or read its result.

Programs run only in the sandbox (D-GEN-5). A tool sees only those tests that the question's text shows.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from harness.agents.prompts import EXAMPLES_RUN
from harness.benchmarks.items import Item
from harness.benchmarks.programs import PYTHON_FENCES, Block, fenced_blocks, outline
from harness.concurrency import gather
from harness.errors import UserError
from harness.sandbox import Execution, Outcome, Program, Sandbox

# Neither is an outcome, so neither may read like an outcome. No digits: they could be taken for an answer.
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
    """Value of a program's variable ``answer``, or why there is none. ``str()`` gives a sentence."""

    printed: str | None = None  # printed form, on one line, cut at 200 characters
    failure: str | None = None

    def __str__(self) -> str:
        return f"{VALUE_MISSING}{self.failure}." if self.printed is None else f"{VALUE_SHOWN}{self.printed}"


class CodeTools:
    """Runs the programs in texts, or looks up their recorded executions. Raises UserError if the sandbox is broken.

    Recorded executions keep later prompts equal between Python versions, whose exception messages differ.
    """

    def __init__(self, sandbox: Sandbox, recorded: Mapping[Program, Execution] | None = None) -> None:
        self._sandbox, self._recorded = sandbox, recorded or {}
        self.executions: dict[Program, Execution] = {}

    async def examples(self, item: Item, text: str) -> str:
        """Run a text's program on each visible example. Return one line per example, or why nothing was run."""
        runs = await self._on_examples(item, text)
        if not runs:
            return NO_EXAMPLE if programs(text) else NO_PROGRAM
        return "\n".join([EXAMPLES_RUN, *(_example_line(example, run) for example, run in runs)])

    async def passes(self, item: Item, text: str) -> bool | None:
        """Whether a text's program passes every visible example. None if there is no program or no example."""
        runs = await self._on_examples(item, text)
        return all(run.outcome is Outcome.PASSED for _, run in runs) if runs else None

    async def value(self, text: str) -> Value | None:
        """Run the last program that mentions ``answer`` and return that variable. None if there is no program."""
        if not programs(text):
            return None
        source = answer_program(text)
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
        source = program_defining(text, task.entry_point) or sources[0]
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
    """Extract Python programs: blocks fenced as Python, and unlabelled blocks that define a name.

    Without fences, the whole text is a program if it defines a name.
    """
    blocks = fenced_blocks(text)
    if not blocks:
        return [text] if outline(text).defined else []
    return [block.source for block in blocks if _is_program(block)]


def answer_program(text: str) -> str | None:
    return next((source for source in reversed(programs(text)) if _ANSWER.search(source)), None)


def program_defining(text: str, name: str) -> str | None:
    return next((source for source in reversed(programs(text)) if name in outline(source).defined), None)


def _is_program(block: Block) -> bool:
    if block.language:
        return block.language in PYTHON_FENCES and bool(block.source.strip())
    # A word, a number or a formula parses as Python too. Only a program defines a name.
    return bool(outline(block.source).defined)


def _example_line(example: str, run: Execution) -> str:
    line = " ".join(example.split())
    if run.outcome is Outcome.PASSED:
        return f"- example passed: {line}"
    reason = "the result differs" if run.outcome is Outcome.WRONG_ANSWER else _reason(run)
    return f"- example failed: {line} ({reason})"


def _reason(run: Execution) -> str:
    return _LINE_OF_CHECKS.sub("", run.detail) or run.outcome.replace("_", " ")
