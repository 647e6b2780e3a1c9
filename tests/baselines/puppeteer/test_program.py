"""The Python agent and programming questions: executed programs, feedback, and the answer."""

import pytest

from baselines.puppeteer.agents import AGAIN, COMPUTE, IMPLEMENT, STATE, WRITE, answer_in
from harness.agents.code_tools import NO_PROGRAM, CodeTools, Value
from harness.agents.prompts import RECORDS_HEADER
from harness.benchmarks.programs import fenced
from harness.llm.request import Message
from tests.baselines.puppeteer.fixtures import CODE, MATHS, Certain, Counting, Scripted, planned, walk
from tests.fixtures import FAILED, RULES

PROGRAM = "```python\nanswer = 6 * 7\n```"
RIGHT, WRONG = "def double(x):\n    return 2 * x\n", "def double(x):\n    return x\n"
PASSED = (
    "The program was run on every visible example of the question:\n"
    "- example passed: assert double(1) == 2\n- example passed: assert double('a') == 'aa'"
)
WENT_WRONG = (
    "The program was run on every visible example of the question:\n"
    "- example failed: assert double(1) == 2 (the result differs)\n"
    "- example failed: assert double('a') == 'aa' (the result differs)"
)


async def test_a_program_that_ran_is_followed_by_a_second_call_in_its_conversation() -> None:
    """Both calls are charged, and the final call is not."""
    client = Counting(PROGRAM, "So the answer is 42", "Seen.", "The answer is 42.")
    bench = Scripted(Value(printed="42"))
    trajectory, trace = await walk(Certain("python", "reasoning", "terminate"), client, code_tools=bench)
    question = f"Question:\n{MATHS.question}"
    opening, second, reasoning, final = client.conversations
    assert bench.given == [PROGRAM]
    assert opening[1] == Message("user", f"{question}\n\n{COMPUTE}")
    told = "The program was executed; its variable answer holds 42"
    assert second == (*opening, Message("assistant", PROGRAM), Message("user", f"{told}\n\n{STATE}"))
    assert reasoning[1].content.endswith(f"{RECORDS_HEADER}\n\n[1] Programmer:\n{told}\n\nSo the answer is 42")
    assert final[1].content.endswith("[1] Programmer:\nThe answer is 42")
    purposes = [(1, "act"), (1, "second_call"), (2, "act"), (3, "aggregate")]
    assert [(call.step, call.purpose) for call in trajectory.calls] == purposes
    # The n-th call reports 90 + n and 10 tokens.
    assert [choice.tokens for choice in trace] == [101 + 102, 103, 0]


@pytest.mark.parametrize(
    ("reply", "value", "failure"),
    [
        ("I need no program. The answer is 5", None, NO_PROGRAM),
        ('{"code": "print(42)", "answer is":', None, NO_PROGRAM),
        (PROGRAM, Value(failure="ZeroDivisionError"), "The program gave no value: ZeroDivisionError."),
    ],
)
async def test_a_program_that_did_not_run_is_told_to_later_agents_and_has_no_second_call(
    reply: str, value: Value | None, failure: str
) -> None:
    client = Counting(reply, "Then by hand. The answer is 42", "Closing.")
    trajectory = await planned("python", "reasoning", "terminate", client=client, code_tools=Scripted(value))
    assert [call.purpose for call in trajectory.calls] == ["act", "act", "aggregate"]
    assert client.users[1].endswith(f"[1] Programmer:\n{reply}\n\n{failure}")
    # Not even an answer that the reply states next to its program is a candidate.
    assert client.users[2].endswith("oldest first:\n\n[1] Reasoner:\nThe answer is 42")


async def test_a_second_call_that_fails_leaves_the_value_and_the_first_reply() -> None:
    client, bench = Counting(PROGRAM, FAILED, PROGRAM, PROGRAM), Scripted(Value(printed="42"))
    trajectory = await planned("python", "python", "terminate", client=client, code_tools=bench)
    assert [call.error for call in trajectory.calls] == [None, "gone", None, None, None]
    assert client.conversations[2][2] == Message("assistant", PROGRAM)
    assert len(client.conversations[2]) == 4
    assert client.users[2].endswith("[1] Programmer:\nThe program was executed; its variable answer holds 42")


async def test_the_programmer_runs_the_visible_examples_with_one_call(code_tools: CodeTools) -> None:
    client = Counting(fenced(WRONG), "Hm.", f"```python\n{RIGHT}```", "Fine.")
    keys = ["python", "critique", "python", "summarize", "terminate"]
    trajectory = await planned(*keys, client=client, item=CODE, code_tools=code_tools)
    assert [call.purpose for call in trajectory.calls] == ["act"] * 4
    assert client.users[0] == f"Question:\n{CODE.question}\n\n{IMPLEMENT}"
    first = f"[1] Programmer:\n```python\n{WRONG}```\n\n{WENT_WRONG}"
    assert client.users[1].endswith(f"{RECORDS_HEADER}\n\n{first}")
    assert client.users[2] == f"{AGAIN}\n\n{IMPLEMENT}\n\n{RECORDS_HEADER}\n\n{first}\n\n[2] Critic:\nHm."
    assert client.users[3].endswith(f"{first}\n\n[2] Critic:\nHm.\n\n[3] Programmer:\n{fenced(RIGHT)}\n\n{PASSED}")
    assert "hidden" not in "".join(client.users)


async def test_a_turn_without_a_program_keeps_the_last_valid_one(code_tools: CodeTools) -> None:
    broken = "```python\ndef double(x:\n```"
    other = "```python\ndef triple(x):\n    return 3 * x\n```"
    client = Counting(fenced(RIGHT), broken, other, "No program at all.")
    keys = ["reasoning", "modify", "conclude", "python", "terminate"]
    trajectory = await planned(*keys, client=client, item=CODE, code_tools=code_tools)
    assert trajectory.answer == fenced(RIGHT)
    assert len(trajectory.calls) == 4


async def test_a_path_without_a_program_ends_with_a_call_that_writes_one(code_tools: CodeTools) -> None:
    client = Counting("Words 1.", "Words 2.", fenced(RIGHT))
    trajectory = await planned("python", "critique", "terminate", client=client, item=CODE, code_tools=code_tools)
    assert trajectory.answer == fenced(RIGHT)
    *steps, last = trajectory.calls
    assert [call.purpose for call in steps] == ["act", "act"]
    assert (last.step, last.slot, last.purpose, last.role, last.is_step) == (3, 0, "aggregate", "", False)
    records = [f"[1] Programmer:\nWords 1.\n\n{NO_PROGRAM}", "[2] Critic:\nWords 2."]
    assert client.conversations[-1] == (
        Message("system", f"{WRITE}\n\n{RULES}"),
        Message("user", "\n\n".join([f"Question:\n{CODE.question}", RECORDS_HEADER, *records])),
    )


def test_an_answer_counts_only_where_it_is_stated() -> None:
    stating = {
        "The answer is 12.": "12.",
        "The answer is 3, or rather: the answer is 4": "4",
        "Thus $\\boxed{\\frac{1}{2}}$ in all.": "\\boxed{\\frac{1}{2}}",
        "The answer is \\boxed{B}": "\\boxed{B}",
        **dict.fromkeys(("Three steps, 14 items.", "The answer is", "\\boxed{}", ""), None),
    }
    assert {text: answer_in(text) for text in stating} == stating
