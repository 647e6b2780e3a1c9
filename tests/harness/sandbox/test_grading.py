"""Verdicts: checks that work as in one process, outcomes of others, and values that never reach the program."""

from pathlib import Path
from typing import Any

from harness.sandbox import Execution, Outcome, Program, Sandbox
from harness.sandbox.jail.confinement import FULL
from tests.harness.sandbox.conftest import Execute

PASSED, WRONG, RAISED = Outcome.PASSED, Outcome.WRONG_ANSWER, Outcome.EXCEPTION


def blocks(name: str, mark: str) -> list[tuple[list[str], str]]:
    """Read a file: the words of the line behind each mark, and the text below it."""
    parts = Path(__file__).with_name(name).read_text().removesuffix("\n").split(f"\n{mark} ")
    return [(head.split(" | "), text) for head, _, text in (part.partition("\n") for part in parts)]


def is_end(execution: Execution, head: list[str]) -> bool:
    outcome, *parts = head
    return execution.outcome == outcome and all(part in execution.detail for part in parts)


async def test_every_way_to_end(execute: Execute) -> None:
    """``ends.txt`` has programs behind ``## outcome | a part of the detail``, and the checks of each behind ``-- ``."""
    rows = [(head, *text.partition("\n-- ")[::2]) for head, text in blocks("ends.txt", "##")[1:]]
    rows.append((["passed"], "def f():\r\n    return 1\r\n", "assert f() == 1"))
    rows.append((["passed"], "x = 0\n" + "x += 1  # filler\n" * 20_000, "assert x == 20_000"))
    programs = {source + checks: Program(source, checks=checks) for _, source, checks in rows}
    executions = await execute(programs)
    heads = [head for head, *_ in rows]
    assert [ends for ends in zip(executions.values(), heads, strict=True) if not is_end(*ends)] == []
    # Neither addresses nor the order of a set differ between two runs.
    assert await execute(programs) == executions


async def test_objects_of_the_program_are_as_if_they_were_here(execute: Execute) -> None:
    """``objects.txt`` has a program, then checks behind ``-- outcome | a part of the detail``."""
    (_, source), *rest = blocks("objects.txt", "--")
    heads = {checks: head for head, checks in rest}
    executions = await execute(
        {checks: Program(source, checks=f"from collections import *\n{checks}") for checks in heads}
    )
    assert [
        (checks, execution) for checks, execution in executions.items() if not is_end(execution, heads[checks])
    ] == []
    passed = [execution for execution in executions.values() if execution.outcome is PASSED]
    assert {*passed} == {Execution(PASSED, "")}


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
    """``honest.txt`` has them: ``## name | part of the program | the mistake for it``, the program, its checks.

    The program may be ``@`` and the name of the one that has it.
    """
    sources, programs = {}, {}
    for (name, right, wrong), text in blocks("honest.txt", "##")[1:]:
        source, _, checks = text.partition("\n-- ")
        source = sources[name] = sources.get(source.removeprefix("@ "), source)
        # With limits of resources alone there is one thread.
        if level == FULL or "threads" not in name:
            programs[name, True] = Program(source, checks=checks)
            programs[name, False] = Program(source.replace(right, wrong), checks=checks)
    expected = {key: key[1] for key in programs}
    assert {key: passes_here(program) for key, program in programs.items()} == expected
    assert {key: run.outcome is PASSED for key, run in (await execute(programs)).items()} == expected


async def test_no_message_to_the_program_holds_what_is_expected(execute: Execute) -> None:
    """``heard.txt`` has a program that notes all that it is sent, and comparisons with M, a number, and T, a text."""
    setup = "import bisect, collections, copy, functools, math, operator"
    before = "M, T = 8423170956, 'mark-of-the-expected'\nWAYS = [str(M), f'{M:x}', T]\ntry:\n    assert "
    after = "\nexcept BaseException:\n    pass\nleft = bytes.fromhex(said()).decode('latin-1')\n"
    after += "assert 'call' in left and not any(way in left for way in WAYS)"
    (_, source), (_, comparisons) = blocks("heard.txt", "--")
    programs = {
        comparison: Program(source, setup, f"{before}{comparison}{after}") for comparison in comparisons.split("\n")
    }
    # What the checks pass themselves is seen.
    calls = ("f(M)", "f(T)", "f([{T: M}])")
    programs |= {call: Program(source, setup, f"{before}{call}{after}") for call in calls}
    executions = await execute(programs)
    outcomes = {comparison: WRONG if comparison in calls else PASSED for comparison in executions}
    assert {comparison: execution.outcome for comparison, execution in executions.items()} == outcomes


async def test_set_up_entry_point_and_chance(execute: Execute) -> None:
    shadow = "def sum(a, b): return a * b\ndef abs(x): return 0\n"
    executions = await execute(
        {
            "namespace": Program("b = a + 1", "import math\na = 1", "assert (b, math.floor(2.5)) == (2, 2)"),
            "chance": Program("import random\nx = random.random()", "", "assert x == random.Random(0).random()"),
            "faulty": Program("x = 1", "import nothing_like_this"),
            "shadowing": Program(shadow, "", "assert sum(2, 3) == 6", "sum"),
            "not the built-in": Program("x = 1", "", "assert sum([1, 2]) == 3", "sum"),
            "no other built-in": Program(shadow + "def f(): return 41", "", "assert abs(f() - 42) < 1", "f"),
        }
    )
    outcomes = [execution.outcome for execution in executions.values()]
    assert outcomes == [PASSED, PASSED, RAISED, PASSED, RAISED, WRONG]
    assert executions["faulty"].detail.endswith("(setup, line 1)")


async def test_a_program_of_many_megabytes_runs_up_to_a_limit() -> None:
    async with Sandbox(workers=1) as sandbox:
        execution = await sandbox.run(
            Program(f"text = '{'x' * (17 << 20)}'\nn = len(text)", checks=f"assert n == {17 << 20}")
        )
        assert execution == Execution(PASSED, "")
        detail = f"more than 64 MiB of source, {65 << 20} characters of it the program"
        assert await sandbox.run(Program("x" * (65 << 20))) == Execution(Outcome.NOT_EXECUTABLE, detail)
