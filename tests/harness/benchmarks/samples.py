"""A few questions of our own in each upstream schema."""

from typing import Any

from harness.benchmarks import benchmark
from harness.benchmarks.items import Item

MATH = [
    {"problem": "What is $1+1$?", "level": "Level 1", "type": "Algebra", "solution": r"Add: $\boxed{2}$."},
    {
        "problem": "Name the probability of heads.",
        "level": "Level 2",
        "type": "Counting & Probability",
        "solution": r"One of two sides, so $\boxed{\frac{1}{2}}$.",
    },
    {
        "problem": "Solve $x^2=4$ for the negative root.",
        "level": "Level 3",
        "type": "Intermediate Algebra",
        "solution": r"First \boxed{4}, then $\boxed{-2}$.",
    },
]
GSM_HARD = [
    {
        "input": "Ten boxes hold 20 nails each. How many nails?",
        "code": "def solution():\n    return 200",
        "target": 200,
    },
    {"input": "She owes 2.5 euros. Balance?", "code": "def solution():\n    return -2.5", "target": -2.5},
    {"input": "A huge sum?", "code": "def solution():\n    return 9.3e12", "target": 9300000000000.5},
]
MBPP = [
    {
        "task_id": 11,
        "text": "Write a function that doubles a number.",
        "code": "def twice(n):\r\n    return n + n",
        "test_setup_code": "",
        "test_list": ["assert twice(2) == 4", "assert twice(0) == 0", "assert twice(-3) == -6"],
        "challenge_test_list": [],
    },
    {
        "task_id": 601,
        "text": "Write a function that reads the value of a box.",
        "code": "class Box:\r\n    def __init__(self, v):\r\n        self.v = v\r\ndef value(box):\r\n    return box.v",
        "test_setup_code": "box = Box(7)\r\nother = Box(8)",
        "test_list": ["assert value(box) == 7", "assert value(other) == 8", "assert not value(Box(0))"],
        "challenge_test_list": [],
    },
    {
        "task_id": 3,
        "text": "A few-shot prompt that nothing here uses.",
        "code": "def one():\n    return 1",
        "test_setup_code": "",
        "test_list": ["assert one() == 1"] * 3,
        "challenge_test_list": [],
    },
]
HUMANEVAL = [
    {
        "task_id": "mini/0",
        "prompt": (
            "import math\n\n\ndef helper(x: float) -> float:\n    return x * x\n\n\n"
            'def norm(a: float, b: float) -> float:\n    """Length of the vector (a, b).\n\n'
            "    >>> norm(3.0, 4.0)\n    5.0\n    >>> norm(0.0, 0.0) == 0.0\n    >>> norm('a', 1)\n"
            '    Traceback (most recent call last):\n    """\n'
        ),
        "entry_point": "norm",
        "canonical_solution": "    return math.sqrt(helper(a) + helper(b))\n",
        "test": "def check(candidate):\n    assert candidate(3.0, 4.0) == 5.0\n    assert candidate(6.0, 8.0) == 10\n",
    }
]
MMLU_PRO = [
    {
        "question_id": 70,
        "question": "Which of these is a prime number?",
        "options": ["four", "six", "seven", "nine"],
        "answer": "C",
        "answer_index": 2,
        "category": "math",
        "src": "own",
    },
    {
        "question_id": 71,
        "question": "Which planet is the largest?",
        "options": ["Mars", "Jupiter", "Venus"],
        "answer": "B",
        "answer_index": 0,  # disagrees with the letter, as upstream's question 3983 does
        "category": "physics",
        "src": "own",
    },
]
ALL: dict[str, list[dict[str, Any]]] = {
    "math": MATH,
    "gsm_hard": GSM_HARD,
    "mbpp": MBPP,
    "humaneval": HUMANEVAL,
    "mmlu_pro": MMLU_PRO,
}


def item_of(key: str, index: int = 0) -> Item:
    """One of the questions in normalised form."""
    return benchmark(key).normalise(ALL[key])[index]
