"""Slips of form that the outputs of real models show, each in a text of our own."""

from __future__ import annotations

import pytest

from harness.benchmarks import Tools, benchmark
from harness.benchmarks.items import Item, Status
from harness.benchmarks.programs import LONGEST_SALVAGED, salvage
from tests.harness.benchmarks.samples import ALL

GOOD = "def norm(a, b):\n    return (a * a + b * b) ** 0.5\n"
CUT = 'def other(n):\n    """Some text that never'


def item_of(key: str) -> Item:
    return benchmark(key).normalise(ALL[key])[0]


@pytest.mark.parametrize(
    ("text", "letter"),
    [
        (r"\boxed{\text{(C)}}", "C"),
        (r"\boxed{\text{\textbf{C}}}", "C"),
        (r"\boxed{\mathbf C\ }", "C"),
        (r"\boxed{**C**}", "C"),
        (r"\boxed{\text{Option C}}", "C"),
        ("The answer is: (C)", "C"),
        ("The answer is **(C)**.", "C"),
        ("**The answer is C**", "C"),
        ("The answer is **C. seven**", "C"),
        ('The answer is "C".', "C"),
        ("The answer is `C`", "C"),
        (r"The answer is \text{(C)}", "C"),
        ("The answer is choice C", "C"),
        ("The answer is\r\n\r\n(C)\r\n", "C"),
        ("**Answer:** C", "C"),
        ("**Answer**: (C)", "C"),
        ("The correct option is (C).", "C"),
        ("\ufeffThe answer is (C)\0", "C"),
        # A word is no letter.
        ("Answer: A matter of taste", None),
        ("Answer: I think so", None),
        ("The answer is not (C)", None),
        ("The correct value is C", None),
        ("The answer is not listed, but the closest is (C)", None),
        # Two options are no choice; what follows the letter may still name things.
        (r"\boxed{A and C}", None),
        (r"\boxed{A, C}", None),
        ("The answer is (A) and (C).", None),
        ("The answer is (A), (B), and (C).", None),
        ("The answer is B or D", None),
        ("The answer is (A) and (C). If one must do, the answer is (C).", "C"),
        ("The answer is (C), because A is even", "C"),
        ("The answer is C, I believe", "C"),
        (r"\boxed{C. vitamin A and B}", "C"),
        # A reply that goes on to another question; before any answer, a question is the one that was asked.
        ("The answer is (C).\n\nQuestion: Which is even?\nOptions:\nA. one\nB. two\nAnswer: The answer is (B).", "C"),
        ("\\boxed{C}\n\n**Question 2:** Which?\n\nThe answer is \\boxed{A}", "C"),
        ("The answer is (C).\n\n### Question 2\n\nThe answer is (B).", "C"),
        ("The answer is (C).\nQ: Which?\nA: The answer is (B).", "C"),
        ("The answer is (C).\n<|im_start|>user\nWhich?<|im_end|>\nThe answer is (B).", "C"),
        ("The answer is (C).\n\nThe following are multiple choice questions.\nThe answer is (B).", "C"),
        ("**Question 1:** Acid? The answer is (B).\n\n**Question 2:** Base? So the answer is \\boxed{D}", "D"),
        ("Question: Which is prime?\nQ1: Is four? No.\nThe answer is (C).", "C"),
        ("The answer is (A).\nThe question: is nine prime? No.\nThe answer is (C).", "C"),
        ("One says the answer is (A).\n\nNow, combining all the answers:\nThe answer is (C).", "C"),
    ],
)
def test_letters(text: str, letter: str | None) -> None:
    assert benchmark("mmlu_pro").extract(item_of("mmlu_pro"), text) == letter


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("**Answer: 5**", 5),
        ("**Answer:** 5 miles in 3 days", 5),
        ("Answer: let me see. There are 3 here and 5 there", 5),
        ("The answer is 520 - 480 = 40.", 40),
        ("The answer is 10 cents.", 10),
        ("The answer is: **$1,234.50**", 1234.5),
        ("The answer is 1\u202f234\u00a0567.", 1234567),
        ("The answer is 25%", 25),
        ("The final answer is:\n\n$$\n5\n$$\nfor 3 people", 5),
        # What follows a box is no answer.
        (r"They need $\boxed{310}$ ounces for 8 batches.", 310),
        (r"First \boxed{7}, then \boxed{12 + 3 = 15} in 2 weeks", 15),
        (r"\boxed{\$5.50} for 3", 5.5),
        (r"\boxed{\text{five}} and then 6", 6),
        (r"\boxed{7} but the answer is 8 for 9 people", 8),
        # An ordinary blank divides numbers.
        ("The answer is 12 100-dollar notes", 12),
    ],
)
def test_numbers(text: str, value: float) -> None:
    answer = benchmark("gsm_hard").extract(item_of("gsm_hard"), text)
    assert answer is not None
    assert float(answer) == value


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("**Answer: 5**", "5"),
        (r"Answer: \frac{1}{2}.", r"\frac{1}{2}"),
        ("Answer: let me think", None),
        ("The final answer is:\n\n$$\n\\frac12\n$$\n", r"\frac12"),
        ("The answer is\n\\[\n5\n\\]", "5"),
        (r"The answer is \[ x+1 \] for all x.", "x+1"),
        ("The answer is $5$. I hope it is right.", "5"),
        # What an option says, an ordinal counts or a clause argues is no part of the answer.
        (r"\boxed{(C) Plane}", "(C)"),
        (r"\boxed{\text{(C) Half plane}}", r"\text{(C)}"),
        (r"\boxed{\text{(C)} \text{ Plane}}", r"\text{(C)}"),
        ("\\boxed{12^{th} grade}", "12"),
        (r"\boxed{12^{\text{th}} \text{ grade}}", "12"),
        ("The answer is 23, we will see why.", "23"),
        (r"\boxed{(2, \frac{1}{2}), which is in lowest terms}", r"(2, \frac{1}{2})"),
        # Here it is.
        (r"\boxed{(A) and (B)}", "(A) and (B)"),
        (r"\boxed{(A)x}", "(A)x"),
        (r"\boxed{2^{nd}}", "2^{nd}"),
        (r"\boxed{1, 2, \text{ and } 3}", r"1, 2, \text{ and } 3"),
        (r"\boxed{\text{Ann, then Bob}}", r"\text{Ann, then Bob}"),
        (r"\boxed{5 \text{ inches}}", r"5 \text{ inches}"),
    ],
)
def test_formulas(text: str, answer: str | None) -> None:
    assert benchmark("math").extract(item_of("math"), text) == answer


@pytest.mark.parametrize(
    ("text", "program"),
    [
        (f"{GOOD}\n\n{CUT}", GOOD),  # cut off behind the function
        (f"```python\n{GOOD}\n\n{CUT}", GOOD),  # the same inside a fence that is never closed
        (f"{GOOD}\nThis is Pythagoras' theorem.\n", GOOD),  # prose behind, no fences
        (f"Here it is:\n\n{GOOD}", GOOD),
        (f"{GOOD}```\n", GOOD),  # a fence that is closed but never opened
        (f"Try this.\n\nimport math\n\nThen:\n\n{GOOD}", f"import math\n\n{GOOD}"),
        (f"1. Code:\n\n   ```python\n   {GOOD.replace(chr(10), chr(10) + '   ').rstrip()}\n   ```\n", GOOD),
        (f"\ufeff{GOOD}", GOOD),
        (GOOD.replace("\n", "\r\n"), GOOD),
        (f"```python\n{GOOD}```\n\n```python\n{CUT}", GOOD),
        (f"```python\nx = 1\n```\n\n{GOOD}\nDone.", GOOD),
        # Nothing to salvage: the function itself is cut off, or is not there.
        ("def norm(a, b):\n    return (a * a +", None),
        (f"Some prose.\n\n{CUT}", None),
        ("    return 5\n\ndef other():\n    return 1\n", None),
    ],
)
def test_programs(text: str, program: str | None) -> None:
    found = benchmark("humaneval").extract(item_of("humaneval"), text)
    assert (found and [line for line in found.splitlines() if line]) == (
        program and [line for line in program.splitlines() if line]
    )


async def test_a_program_that_is_cut_off_is_graded_by_its_complete_part(tools: Tools) -> None:
    text = f"```python\nimport math\n\ndef norm(a, b):\n    return math.hypot(a, b)\n\n{CUT}"
    verdict = await benchmark("humaneval").grade(item_of("humaneval"), text, tools)
    assert (verdict.correct, verdict.status) == (True, Status.GRADED)


def test_salvage_goes_on_behind_what_does_not_parse() -> None:
    text = "x = (1,\n\ndef f():\n    return 2\n\nand so on\n\n@cached\nclass C:\n    y = 3\n\nimport is a word\n"
    assert [line for line in salvage(text).split("\n") if line] == [
        "def f():",
        "    return 2",
        "@cached",
        "class C:",
        "    y = 3",
    ]


@pytest.mark.parametrize("text", ["", "prose only", "(" * 60, "\0", f"{GOOD}\n" + "#" * LONGEST_SALVAGED + "\n(("])
def test_nothing_to_salvage(text: str) -> None:
    assert salvage(text).strip() == ""


def test_salvage_of_a_hostile_text_ends() -> None:
    assert "def f" not in salvage("def f(:\n" * 6000)
