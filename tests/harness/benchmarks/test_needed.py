"""What of a program is graded: the part that its function needs."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.benchmarks import Tools, benchmark
from harness.benchmarks.needed import needed
from harness.benchmarks.programs import LONGEST_PROGRAM
from tests.harness.benchmarks.samples import ALL

NORM = "def norm(a, b):\n    return (a * a + b * b) ** 0.5\n"
# Lines that begin with a minus are left out, the others stay.
TRIALS = """
 \"\"\"What it does.\"\"\"
 from __future__ import annotations
-import pytest
-from tests import cases
 from decimal import *
 import sys
 sys.setrecursionlimit(10**6)
 getcontext().prec = 50
 def f(n):
     return Decimal(n) if n < sys.maxsize else None
-assert f(1) == 2
-print(f(1))
-sys.stdout.write(str(f(1)))
-sys.setrecursionlimit(f(10))
-result = f(1)
-print(result)
-n = int(input())
-for i in range(n):
-    assert f(i)
-@pytest.mark.slow
-@pytest.mark.parametrize(
-    ("n", "m"), cases
-)
-def test_f():
-    assert f(1) == 3
-test_f()
-class Tests:
-    def test(self):
-        f(1)
-def main():
-    test_f()
-try:
-    main()
-except AssertionError:
-    raise
-if __name__ == "__main__":
-    main()
"""
# Its names are told while it runs.
BY_NAME = """
 five = 5
 def f(n):
     return eval("five") + n
 six = five
-print(six)
-assert f(1) == 6
"""
# The tests use a class that the function never names.
BY_THE_TESTS = """
 class Node:
     pass
-class Other:
-    pass
 def f(node):
     return node.left
-assert f(Node()) is None
"""


def parts(marked: str) -> tuple[str, list[str]]:
    """The program, and its lines that stay."""
    lines = marked.strip("\n").split("\n")
    return "\n".join(line[1:] for line in lines), [line[1:] for line in lines if line[0] == " "]


@pytest.mark.parametrize(
    ("marked", "checks"),
    [(TRIALS, ""), (BY_NAME, ""), (BY_THE_TESTS, "node = Node()\nassert f(node) is None\n")],
)
def test_what_the_function_needs_stays(marked: str, checks: str) -> None:
    source, stays = parts(marked)
    lines = needed(source, "f", checks).split("\n")
    assert len(lines) == len(source.split("\n"))
    assert [line for line in lines if line.strip() not in ("", "pass")] == [
        line for line in stays if line.strip() != "pass"
    ]


@pytest.mark.parametrize(
    ("source", "rest"),
    [
        ("def f(): return 1; x = 2\nprint(\n  f()); y = 3; f.n = 4", "def f(): return 1; x = 2\n\npass; pass; f.n = 4"),
        ("s = 'é'; print(f)\r\ndef f(): return s", "s = 'é'; pass\r\ndef f(): return s"),
        ("# @a\n@b  # é\n@c(\n1)\ndef g(): 0  # g\ndef f(): 0", "# @a\n\n\n\npass  # g\ndef f(): 0"),
    ],
)
def test_the_rest_keeps_its_place(source: str, rest: str) -> None:
    assert needed(source, "f") == rest


@pytest.mark.parametrize(
    "source",
    [
        "def g(): 0\nassert g()",  # does not bind the function
        "def f(): 0\nreturn 1",  # a syntax tree that is no program
        "def f(): 0\nx = 1 if f else 2\n" + "y = x\n" * LONGEST_PROGRAM,
    ],
)
def test_what_cannot_be_read_stays_as_it_is(source: str) -> None:
    assert needed(source, "f") == source


STATEMENTS = """a = 1|a += 1|b = [a]|b.append(a)|for i in range(3): b += [i]|def g(): b.insert(0, a)|g()
|def h(x): return g|h(1)()|c = b|c.pop()|del b[0]|if a: b = c|h(b)
|print(a)|assert f()|x = f()|print(f())|def test(): assert f() == 0""".replace("\n", "").split("|")


@given(st.lists(st.sampled_from(STATEMENTS), max_size=14))
def test_the_function_returns_what_it_did(statements: list[str]) -> None:
    before = "a, b, c = 5, [6], [7]\ndef g(): pass\ndef h(x): return g\ndef f(): return a, b, c\n"
    source = before + "\n".join(statements)
    whole: dict[str, Any] = {"print": str}
    try:
        exec(source, whole)  # noqa: S102 - our own statements
    except (AssertionError, IndexError):
        return
    alone: dict[str, Any] = {}
    exec(needed(source, "f"), alone)  # noqa: S102 - our own statements
    assert alone["f"]() == whole["f"]()
    assert alone.keys().isdisjoint({"x", "test"})


# Ways of a program to prepare what its function uses.
PREPARED = {
    "registry": """
OPS = {}
def register(name):
    return lambda function: OPS.setdefault(name, function)
@register("add")
def add(a, b): return a + b
def f(): return OPS["add"](1, 2)
""",
    "subclasses": """
class Shape: pass
class Square(Shape): pass
def f(): return [shape.__name__ for shape in Shape.__subclasses__()]
""",
    "alias in a function": """
trie = {}
def insert(word):
    node = trie
    for letter in word:
        node = node.setdefault(letter, {})
insert("ab")
def f(): return trie
""",
    "inside of expressions": """
d, e = [], {}
list(map(d.append, range(3)))
any(e.update({k: k}) for k in range(2))
True and d.append(5)
def f(): return d, e
""",
    "settings": """
import sys
from decimal import Context, Decimal, setcontext
if hasattr(sys, "set_int_max_str_digits"):
    sys.set_int_max_str_digits(0)
setcontext(Context(prec=5))
def f(): return len(str(10**5000)), Decimal(1) / 3
""",
    "loop over itself": "data = [1, 2]; out = []\nfor data in data: out.append(data)\ndef f(): return out",
}


@pytest.mark.parametrize("how", PREPARED)
def test_whatever_prepares_a_value_of_the_function_stays(how: str) -> None:
    whole: dict[str, Any] = {}
    alone: dict[str, Any] = {}
    exec(PREPARED[how], whole)  # noqa: S102 - our own statements
    exec(needed(PREPARED[how] + "\nassert f() == 'wrong'\nprint(f())\n", "f"), alone)  # noqa: S102
    assert alone["f"]() == whole["f"]()


async def test_a_right_program_is_right_whatever_its_own_trials_say(tools: Tools) -> None:
    item = benchmark("humaneval").normalise(ALL["humaneval"])[0]
    answer = f"{NORM}\ndef test_norm():\n    assert norm(3, 4) == 6\n\ntest_norm()\nimport no_such_module\n"
    verdict = await benchmark("humaneval").grade(item, f"```python\n{answer}```", tools)
    assert (verdict.correct, verdict.answer) == (True, answer)


@pytest.mark.parametrize(
    "hostile",
    [
        "".join(f"a{number} = a{number + 1}\n" for number in reversed(range(9000))),
        "".join(f"def g{number}(): g{number + 1}(); a0.add(1)\n" for number in range(5000)) + "g0()\n" * 5000,
        "a0 = " + "(" * 5000 + ")" * 5000,
        "a0 = " + "1 + " * 40_000 + "1",
    ],
)
def test_long_programs_end(hostile: str) -> None:
    """In quadratic time this would go on for a good part of an hour."""
    assert len(hostile) < LONGEST_PROGRAM
    needed(f"def f(): return a0, eval\n{hostile}", "f")
