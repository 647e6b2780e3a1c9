"""Right programs of many kinds, as plain Python runs them; and each with one mistake, which its checks find.

``honest.txt`` has them: ``## name | part of the program | the mistake in its place``, the program, its checks behind
``-- ``.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from harness.sandbox import Outcome, Program
from tests.harness.sandbox.conftest import Execute

KINDS = ("right", "wrong")


def cases() -> dict[str, tuple[Program, Program]]:
    """The right program and the wrong one by name."""
    found = {}
    for block in Path(__file__).with_name("honest.txt").read_text().removeprefix("## ").split("\n## "):
        head, _, body = block.partition("\n")
        name, right, wrong = head.split(" | ")
        source, _, checks = body.partition("\n-- ")
        found[name] = (Program(source, checks=checks), Program(source.replace(right, wrong), checks=checks))
    return found


def passes_here(program: Program) -> bool:
    """Whether checks pass as plain Python in this process, where everything is what it is."""
    namespace: dict[str, Any] = {}
    try:
        exec(program.source, namespace)  # noqa: S102 - our own statements
        exec(program.checks, namespace)  # noqa: S102
    except Exception:
        return False
    return True


async def test_right_programs_pass_and_wrong_ones_do_not(execute: Execute) -> None:
    programs = {f"{name}, {kind}": one for name, two in cases().items() for kind, one in zip(KINDS, two, strict=True)}
    expected = {name: passes_here(one) for name, one in programs.items()}
    assert list(expected.values()) == [True, False] * len(cases())
    found = await execute(programs)
    assert {name: one for name, one in found.items() if (one.outcome is Outcome.PASSED) is not expected[name]} == {}


@pytest.mark.parametrize(
    ("checks", "said"),
    [
        ("assert Anything(1) == Anything(2)", "do not agree"),
        ("assert Nothing(1) == Nothing(2)", "do not agree"),
        ("assert Anything(1) < Anything(2)", "less and greater"),
        ("assert Anything(1) <= 2", "not supported"),
        ("assert Anything(1) + 2 == 3", "unsupported operand"),
        ("assert Anything(1) == 1", ""),
    ],
)
async def test_no_object_is_equal_to_or_less_than_everything(execute: Execute, checks: str, said: str) -> None:
    source = """
class Nothing:
    def __init__(self, *a): pass
    def always(self, o): return True
    __eq__ = __lt__ = __gt__ = __le__ = __ge__ = always
    def __add__(self, o): return 3
class Anything(Nothing):
    def __init__(self, a): self.a = a
"""
    (found,) = (await execute({"": Program(source, checks=checks)})).values()
    assert found.outcome in (Outcome.WRONG_ANSWER, Outcome.EXCEPTION)
    assert said in found.detail


async def test_what_a_function_of_the_checks_asserts_is_final(execute: Execute) -> None:
    source = "def f(g):\n    try: g(41)\n    except BaseException: return 42"
    checks = "def g(x):\n    assert x == 42\ntry:\n    f(g)\nexcept AssertionError:\n    pass\nassert True"
    (found,) = (await execute({"": Program(source, checks=checks)})).values()
    assert (found.outcome, found.detail) == (Outcome.WRONG_ANSWER, "AssertionError (checks, line 2)")
