from __future__ import annotations

import dataclasses
from collections.abc import AsyncIterator
from typing import Any

import pytest

from harness.benchmarks import benchmark
from harness.benchmarks.code_grading import task_of
from harness.benchmarks.items import CodeTask, Item
from harness.sandbox import Execution, Limits, Outcome, Program, Sandbox
from harness.simulator.programs import programs_for
from harness.simulator.trial import read_trial, trial

from .samples import mini

ITEM = Item(
    id="d",
    benchmark="mbpp",
    question="Write double(n). Example: assert double(0) == 0",
    gold='def double(n):\n    """Twice n."""\n    return n * 2\n',
    code=CodeTask("double", "", "assert double(0) == 0\nassert double(3) == 6", ("assert double(0) == 0",)),
)
MBPP = benchmark("mbpp")


def checked_by(checks: str) -> Item:
    return dataclasses.replace(ITEM, code=dataclasses.replace(task_of(ITEM), checks=checks))


@pytest.fixture
async def sandbox() -> AsyncIterator[Sandbox]:
    async with Sandbox(Limits(cpu_s=5)) as made:
        yield made


async def test_every_wrong_program_fails_and_the_deceptive_ones_are_known(sandbox: Sandbox):
    found = await programs_for(ITEM, MBPP, sandbox)
    assert found.right == "def double(n):\n    return n * 2"
    assert 1 <= len(found.wrong) <= 4
    for program in found.wrong:
        names: dict[str, Any] = {}
        exec(program.source, names)  # noqa: S102 - mutants of our own sample
        double = names["double"]
        try:
            visible, hidden = double(0) == 0, double(3) == 6
        except Exception:
            visible = hidden = False
        assert not (visible and hidden)
        assert program.passes_visible == visible
    # n * 2 has the mutants n + 2, n * 3 and n * 1; the latter two are right for 0.
    assert any(program.passes_visible for program in found.wrong)


async def test_the_docstring_stays_where_the_checks_need_it(sandbox: Sandbox):
    found = await programs_for(checked_by("assert double.__doc__"), MBPP, sandbox)
    assert found.right == ITEM.gold


async def test_where_no_mutant_fails_the_wrong_program_is_empty(sandbox: Sandbox):
    found = await programs_for(checked_by("assert True"), MBPP, sandbox)
    assert [program.source for program in found.wrong] == ["def double(*args, **kwargs):\n    return None"]


async def test_a_trial_tells_variants_apart(sandbox: Sandbox):
    task = CodeTask("f", "K = 4", "assert f() == K", ("assert f() > 0",))
    variants = {
        "def f(): return 4": ("passed", True),
        "def f(): return 5": ("failed", True),
        "def f(): return 0": ("failed", False),
        "def f(): raise SystemExit": ("failed", False),
        "def f(": ("failed", False),
        "def f():\n    while True: pass": ("slow", False),
        "print('-- results --[]')\ndef f(): return 4": ("passed", True),
    }
    attempts = read_trial(await sandbox.run(trial(list(variants), task)), task)
    assert attempts is not None
    assert [(attempt.checks, attempt.passes_visible) for attempt in attempts] == list(variants.values())


async def test_a_variant_that_takes_the_process_down_is_left_out(sandbox: Sandbox):
    # The reference ends the whole process where its argument is 4; so do the mutants that keep this line.
    gold = "import os\ndef f(n):\n    if n == 4:\n        os._exit(0)\n    return n + 1\n"
    item = Item("k", "mbpp", "f", gold, code=CodeTask("f", "", "assert f(3) == 4\nassert f(4) == 9", ()))
    found = await programs_for(item, MBPP, sandbox)
    assert found.right == gold
    for program in found.wrong:
        executed = await sandbox.run(Program(program.source, checks=task_of(item).checks))
        assert executed.outcome in {Outcome.WRONG_ANSWER, Outcome.EXCEPTION}


def test_an_unfinished_trial_is_no_result():
    task = task_of(ITEM)
    assert read_trial(Execution(Outcome.CPU_LIMIT, "", "-- results --[]"), task) is None
    assert read_trial(Execution(Outcome.PASSED, "", "nothing"), task) is None


async def test_verdicts_agree_with_one_process_a_program(sandbox: Sandbox):
    for key in ("humaneval", "mbpp"):
        item = mini(key, 1)[0]
        task = task_of(item)
        found = await programs_for(item, benchmark(key), sandbox)
        for program in found.wrong:
            executed = await sandbox.run(Program(program.source, task.setup, task.checks))
            assert executed.outcome in {Outcome.WRONG_ANSWER, Outcome.EXCEPTION}
        assert (await sandbox.run(Program(found.right, task.setup, task.checks))).outcome is Outcome.PASSED
