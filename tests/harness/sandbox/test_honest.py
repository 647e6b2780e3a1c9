"""Right programs of many kinds, as plain Python runs them; and each with one mistake, which its checks find.

``honest.txt`` has them: ``## name | part of the program | the mistake in its place``, the program (or ``@`` and the
name of the one that has it), its checks behind ``-- ``.
"""

from pathlib import Path
from typing import Any

from harness.sandbox import Outcome, Program
from harness.sandbox.jail.confinement import FULL
from tests.harness.sandbox.conftest import Execute

KINDS = ("right", "wrong")


def cases() -> dict[str, tuple[Program, Program]]:
    """Return the right program and the wrong one by name."""
    programs: dict[str, tuple[Program, Program]] = {}
    for block in Path(__file__).with_name("honest.txt").read_text().removeprefix("## ").split("\n## "):
        head, _, body = block.partition("\n")
        name, right, wrong = head.split(" | ")
        source, _, checks = body.partition("\n-- ")
        source = programs[source[2:]][0].source if source.startswith("@ ") else source
        programs[name] = (Program(source, checks=checks), Program(source.replace(right, wrong), checks=checks))
    return programs


def passes_here(program: Program) -> bool:
    """Return whether checks pass as plain Python in this process, where everything is what it is."""
    namespace: dict[str, Any] = {}
    try:
        exec(program.source, namespace)  # noqa: S102 - our own statements
        exec(program.checks, namespace)  # noqa: S102
    except Exception:
        return False
    return True


async def test_right_programs_pass_and_wrong_ones_do_not(execute: Execute, level: str) -> None:
    # With limits of resources alone there is one thread.
    pairs = {name: pair for name, pair in cases().items() if level == FULL or "threads" not in name}
    programs = {
        f"{name}, {kind}": program for name, pair in pairs.items() for kind, program in zip(KINDS, pair, strict=True)
    }
    expected = {name: passes_here(program) for name, program in programs.items()}
    assert list(expected.values()) == [True, False] * len(pairs)
    executions = await execute(programs)
    assert {name: execution.outcome is Outcome.PASSED for name, execution in executions.items()} == expected
