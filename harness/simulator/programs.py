"""Right and wrong programs for questions that ask for one: the sandbox has seen the wrong ones fail."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from harness.benchmarks import Benchmark
from harness.benchmarks.code_grading import canonical, task_of
from harness.benchmarks.items import CodeTask, Item
from harness.errors import UserError
from harness.sandbox import Outcome, Sandbox
from harness.simulator.answers import POOL_SIZE, WrongProgram
from harness.simulator.trial import Attempt, read_trial, trial


@dataclass(frozen=True, slots=True)
class Programs:
    """The programs that replies to one question hold.

    Attributes:
        right: The reference program, without comments and docstrings where it passes without them too.
        wrong: Up to four programs that fail quickly, most plausible first; at least one.
    """

    right: str
    wrong: Sequence[WrongProgram]


async def programs_for(item: Item, benchmark: Benchmark, sandbox: Sandbox) -> Programs:
    """Try the reference program and its mutants.

    Args:
        item: A question that asks for a program.
        benchmark: Gives the mutants.
        sandbox: Executes them.
    """
    task = task_of(item)
    bare = canonical(item.gold)
    hollow = f"def {task.entry_point}(*args, **kwargs):\n    return None"
    mutants = dict.fromkeys(canonical(mutant) for mutant in benchmark.wrong_answers(item))
    sources = list(dict.fromkeys([bare, *mutants, hollow]))
    attempts = dict(zip(sources, await _attempts(sources, task, sandbox), strict=True))
    failing = [
        WrongProgram(source, attempt.passes_visible)
        for source, attempt in attempts.items()
        if attempt is not None and attempt.checks == "failed" and source != bare
    ]
    first = attempts[bare]
    right = bare if first is not None and first.checks == "passed" else item.gold
    # Nothing satisfies checks that even the empty function passes; it is the wrong answer all the same.
    return Programs(right, _chosen(failing) or [WrongProgram(hollow, passes_visible=False)])


def _chosen(failing: Sequence[WrongProgram]) -> list[WrongProgram]:
    """The first few; a later one that passes the visible examples takes the last place if none of them does."""
    first, later = list(failing[:POOL_SIZE]), failing[POOL_SIZE:]
    deceptive = next((program for program in later if program.passes_visible), None)
    if deceptive is not None and not any(program.passes_visible for program in first):
        first[-1] = deceptive
    return first


async def _attempts(sources: Sequence[str], task: CodeTask, sandbox: Sandbox) -> list[Attempt | None]:
    """How each program did; ``None`` for one that takes its process down."""
    together = await _tried(sources, task, sandbox)
    if together is not None:
        return list(together)
    alone = await asyncio.gather(*(_tried([source], task, sandbox) for source in sources))
    return [None if attempts is None else attempts[0] for attempts in alone]


async def _tried(sources: Sequence[str], task: CodeTask, sandbox: Sandbox) -> list[Attempt] | None:
    execution = await sandbox.run(trial(sources, task))
    if execution.outcome in (Outcome.SANDBOX_ERROR, Outcome.WALL_LIMIT):
        raise UserError(
            f"the sandbox cannot try programs now ({execution.outcome}: {execution.detail}); mend the cause or "
            "give the machine some rest, then give the same command again"
        )
    return read_trial(execution, task)
