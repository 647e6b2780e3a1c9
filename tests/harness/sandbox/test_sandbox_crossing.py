"""Values, exceptions and changes that honest programs have and checks ask for: right ones pass, all others fail."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from harness.sandbox import Execution, Outcome

Execute = Callable[..., Awaitable[Execution]]

SHADOWING = "def sum(a, b):\n    return len([n for n in range(1, min(a, b)) if a % n == b % n == 0])\n"


@pytest.mark.parametrize("checks", ["assert sum(10, 15) == 2", "assert abs(sum(10, 15) - 2) < 1"])
async def test_a_function_with_the_name_of_a_built_in_one_is_what_is_checked(execute: Execute, checks: str) -> None:
    assert (await execute(SHADOWING, checks)).outcome is Outcome.PASSED
    assert (await execute(SHADOWING.replace("1, min", "2, min"), checks)).outcome is Outcome.WRONG_ANSWER


async def test_no_other_built_in_one_is(execute: Execute) -> None:
    liar = "def f(x):\n    return 41\ndef abs(x):\n    return 0\ndef isinstance(*a):\n    return True\n"
    for checks in ("assert abs(f(20) - 42) < 1", "assert isinstance(f(20), str)"):
        assert (await execute(liar, checks)).outcome is Outcome.WRONG_ANSWER
