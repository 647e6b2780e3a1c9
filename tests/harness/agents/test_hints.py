"""Which candidate answers are found in records."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from harness.agents.code_tools import CodeTools
from harness.agents.hints import candidates
from harness.agents.prompts import Record
from harness.sandbox import Limits, Sandbox


@pytest.fixture
async def code_tools() -> AsyncIterator[CodeTools]:
    async with Sandbox(Limits(cpu_s=1, wall_s=6.0)) as sandbox:
        yield CodeTools(sandbox)


# fmt: off
OFFERED = [
    ("Take 3 of them and 4 more.", []), ("The answer is 42.", ["42"]),
    ("The answer is: **-42.50** apples", ["-42.50"]), ("The answer is 3 + 4 = 7", ["7"]),
    ("The answer is $1,234,567.89", ["1,234,567.89"]), ("The answer is −5", ["-5"]),
    ("The answer is 3/4", ["3/4"]), (r"The answer is \frac{3}{4}", []),
    (r"The answer is \boxed{ \frac{3}\n{4} }".replace(r"\n", "\n"), [r"\frac{3} {4}"]),
    ("The answer is 8.\nNo, wait. The answer is 9.", ["9"]),
    ("The answer is 8.\nI am not sure the answer is right.", ["8"]),
    (r"First \boxed{1}, then \boxed{2}. The answer is 3", ["2"]), (r"The answer is \boxed{C}", ["C"]),
    (r"\boxed{" + "x" * 81 + "}", []), (r"\boxed{}", []), ("```python\nanswer = 6 * 7\n```", ["42"]),
    ("```python\nanswer = 6 * 7\n```\nThe answer is 41.", ["41", "42"]),
    ("```python\nanswer = 6 * 7\n```\nThe answer is 42.0", ["42.0"]), ("```python\nanswer = None\n```", []),
    ("```python\nanswer = 1 / 0\n```", []),
]
# fmt: on


@pytest.mark.parametrize(("text", "found"), OFFERED)
async def test_what_one_record_offers(code_tools: CodeTools, text: str, found: list[str]) -> None:
    assert await candidates([Record("A", text)], code_tools) == tuple(found)


async def test_each_value_is_listed_once_in_order_of_appearance(code_tools: CodeTools) -> None:
    texts = [
        "The answer is 1,000.",
        "A plan without numbers.",
        r"\boxed{x+1}",
        "```python\nanswer = 1000.0\n```",
        "The answer is 7",
        r"\boxed{x+1}",
        "The answer is 9007199254740993",
        "The answer is 9007199254740992",
        r"\boxed{NaN}",
        r"\boxed{NaN}",
    ]
    found = await candidates([Record(str(n), text) for n, text in enumerate(texts)], code_tools)
    assert found == ("1,000", "x+1", "7", "9007199254740993", "9007199254740992", "NaN")
    assert await candidates([], code_tools) == ()
