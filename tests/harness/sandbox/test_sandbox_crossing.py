"""Values, exceptions and changes that honest programs have and checks ask for: right ones pass, all others fail."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from harness.sandbox import Execution, Outcome, Program, Sandbox

Execute = Callable[..., Awaitable[Execution]]

# What is equal to everything, in whatever a program may put it.
EQUAL = """
import collections, dataclasses, datetime, decimal, enum, fractions, pathlib, typing
from collections import *
from dataclasses import *
from datetime import *
from decimal import Decimal
from fractions import Fraction
class Always:
    def __eq__(self, other): return True
    def __ne__(self, other): return False
    def __hash__(self): return 1
    __lt__ = __gt__ = __le__ = __ge__ = __contains__ = __eq__
"""
PERSON = "@dataclass\nclass Person:\n    name: str\n    age: int = 0\n"
NODE = "@dataclass(frozen=True)\nclass Node:\n    v: int\n    n: object\n"
COLOUR = "class Colour(enum.Enum):\n    RED = 1\n    BLUE = 2\n"
PAIR = "Pair = namedtuple('Pair', 'a b')\n"
ERRORS = (
    "class AppError(Exception):\n    pass\nclass Negative(AppError, ValueError):\n"
    "    def __init__(self, value):\n        super().__init__(f'negative: {value}')\n        self.value = value\n"
)
CATCHING = "try:\n    f(-1)\n    raised = None\nexcept {} as error:\n    raised = error\nassert {}"
LIAR = "{}class Liar({}):\n    def __eq__(self, other): return True\n    def __ne__(self, other): return False\n"
LIAR += "    def __hash__(self): return 1\n"

# Checks, a right program, a mutant of it, a hostile one.
CASES = {
    "date": (
        "import datetime\nassert f(1) == datetime.date(2024, 2, 29)\nassert f(1) < datetime.date(2024, 3, 1)",
        "def f(x):\n    return date(2024, 2, 28) + timedelta(x)",
        "def f(x):\n    return date(2024, 2, 28) - timedelta(x)",
        LIAR.format("", "date") + "def f(x):\n    return Liar(2023, 1, 1)",
    ),
    "datetime": (
        (
            "from datetime import *\nx = datetime(2024, 1, 1, tzinfo=timezone.utc)\n"
            "assert f(x) == [(timedelta(hours=1), time(3))]"
        ),
        "def f(x):\n    return [(datetime(2024, 1, 1, 1, tzinfo=timezone.utc) - x, time(3))]",
        "def f(x):\n    return [(datetime(2024, 1, 1, 2, tzinfo=timezone.utc) - x, time(3))]",
        LIAR.format("", "timedelta") + "def f(x):\n    return [(Liar(1), time(3))]",
    ),
    "numbers": (
        (
            "from decimal import Decimal\nfrom fractions import Fraction\n"
            "assert f(Decimal('0.1')) == (Decimal('0.3'), Fraction(1, 3), 1 + 2j, range(3))"
        ),
        "def f(x):\n    return 3 * x, Fraction(2, 6), 1 + 2j, range(0, 3, 1)",
        "def f(x):\n    return 2 * x, Fraction(2, 6), 1 + 2j, range(0, 3, 1)",
        LIAR.format("", "Decimal") + "def f(x):\n    return Liar(0), Fraction(2, 6), 1 + 2j, range(3)",
    ),
    "collections": (
        (
            "from collections import Counter, OrderedDict, deque\n"
            "assert f('aab')[:2] == [Counter('aab'), deque([1, 2])] and f('ab')[0]['z'] == 0\n"
            "assert f('aab')[2] == OrderedDict([(2, 1), (1, 2)]) and f('aab')[0].most_common(1) == [('a', 2)]"
        ),
        "def f(x):\n    return [Counter(x), deque([1, 2], 2), OrderedDict([(2, 1), (1, 2)])]",
        "def f(x):\n    return [Counter(x), deque([1, 2], 2), OrderedDict([(1, 2), (2, 1)])]",
        LIAR.format("", "OrderedDict") + "def f(x):\n    return [Counter(x), deque([1, 2]), Liar()]",
    ),
    "default dictionary": (
        "assert f(['ab', 'c']) == {2: ['ab'], 1: ['c']} and f([])[5] == []",
        "def f(x):\n    d = defaultdict(list)\n    for w in x:\n        d[len(w)].append(w)\n    return d",
        "def f(x):\n    d = defaultdict(list)\n    for w in x:\n        d[len(w) + 1].append(w)\n    return d",
        "def f(x):\n    return defaultdict(Always, {2: ['ab'], 1: ['c'], 0: 0})",
    ),
    "named tuple": (
        "assert f(1) == (1, 2) == Pair(1, 2)\nassert f(1).b == 2 and str(f(1)) == 'Pair(a=1, b=2)' and g(f(1)) == 2",
        PAIR + "def f(x):\n    return Pair(x, 2)\ndef g(p):\n    return p.b",
        PAIR + "def f(x):\n    return Pair(2, x)\ndef g(p):\n    return p.b",
        LIAR.format(PAIR, "Pair") + "def f(x):\n    return Liar(0, 2)\ndef g(p):\n    return 2",
    ),
    "dataclass": (
        (
            "assert f('a') == Person('a', 3) and [f('a')] == [Person('a', 3)] and f('a') != Person('b', 3)\n"
            "p = f('a')\np.age = 5\nassert p == Person('a', 5) and isinstance(p, Person) and p in [Person('a', 5)]"
        ),
        PERSON + "def f(x):\n    return Person(x, 3)",
        PERSON + "def f(x):\n    return Person(x)",
        PERSON + "    def __eq__(self, other): return True\ndef f(x):\n    return Person('', 3)",
    ),
    "dataclass in a set, holding others": (
        "assert f(1) == {Node(1, Node(2, None))} and len(f(1) | {Node(1, Node(2, None)), Node(1, None)}) == 2",
        NODE + "def f(x):\n    return {Node(x, Node(2, None))}",
        NODE + "def f(x):\n    return {Node(x, Node(3, None))}",
        (
            NODE + "    __eq__ = Always.__eq__\n    __hash__ = Always.__hash__\n"
            "def f(x):\n    return {Node(Always(), Always())}"
        ),
    ),
    "enumeration": (
        "assert f(1) == Colour.RED and f(1) != Colour.BLUE and f(1).value == 1 and f(1) in {Colour.RED}",
        COLOUR + "def f(x):\n    return Colour(x)",
        COLOUR + "def f(x):\n    return Colour(x + 1)",
        COLOUR + "    __eq__ = Always.__eq__\ndef f(x):\n    return Colour.BLUE",
    ),
    "built-in exception with its text": (
        CATCHING.format("ValueError", "str(raised) == 'no' and raised.args == ('no',)"),
        "def f(x):\n    raise ValueError('no')",
        "def f(x):\n    raise ValueError('yes')",
        "class E(ValueError):\n    __str__ = lambda self: Always()\ndef f(x):\n    raise E(Always())",
    ),
    "exception of the program's own": (
        CATCHING.format("Negative", "raised.value == -1 and str(raised) == 'negative: -1'"),
        ERRORS + "def f(x):\n    raise Negative(x)",
        ERRORS + "def f(x):\n    raise AppError(x)",
        ERRORS + "def f(x):\n    e = Negative(0)\n    e.value = Always()\n    raise e",
    ),
    "base of an exception of the program's own": (
        CATCHING.format("(AppError, KeyError)", "isinstance(raised, ValueError) and f is not None"),
        ERRORS + "def f(x):\n    raise Negative(x)",
        ERRORS + "def f(x):\n    raise ValueError(x)",
        ERRORS + "def f(x):\n    return Negative(x)",
    ),
    "exception in a test case": (
        "import unittest\nunittest.TestCase().assertRaises(Negative, f, -1)\nassert f",
        ERRORS + "def f(x):\n    raise Negative(x)",
        ERRORS + "def f(x):\n    raise ValueError(x)",
        ERRORS + "Negative = AssertionError\ndef f(x):\n    return Always()",
    ),
    "no exception of the checks is the program's": (
        "try:\n    f(-1)\n    assert False\nexcept Negative:\n    pass\nassert f",
        ERRORS + "def f(x):\n    raise Negative(x)",
        ERRORS + "def f(x):\n    return x",
        "Negative = AssertionError\ndef f(x):\n    return x",
    ),
    "exception of the standard library": (
        "import json\n"
        + CATCHING.format("json.JSONDecodeError", "raised.pos == 1 and raised.lineno == 1 and 'line 1' in str(raised)"),
        "import json\ndef f(x):\n    return json.loads('{')",
        "import json\ndef f(x):\n    return json.loads('[1')",
        (
            "import json\nclass E(json.JSONDecodeError):\n    def __init__(self): self.pos = self.lineno = Always()\n"
            "    __str__ = lambda self: Always()\ndef f(x):\n    raise E"
        ),
    ),
    "exceptions of a compiled and of a nested module": (
        (
            "import decimal, re\nfor x, kind in ((1, decimal.InvalidOperation), (2, re.error)):\n"
            "    try:\n        f(x)\n        assert False\n    except kind:\n        pass\nassert f"
        ),
        "import re\ndef f(x):\n    return Decimal('x') if x == 1 else re.compile('(')",
        "import re\ndef f(x):\n    return Decimal('1') if x == 1 else re.compile('(')",
        (
            "class E(ValueError):\n    __module__ = 're'\n    __qualname__ = 'Pattern'\n"
            "E.__name__ = 'error'\ndef f(x):\n    raise E"
        ),
    ),
    "exception below one of the standard library": (
        "import json\n" + CATCHING.format("json.JSONDecodeError", "isinstance(raised, Broken) and raised.args == (5,)"),
        (
            "from json import JSONDecodeError\nclass Broken(JSONDecodeError):\n"
            "    def __init__(self, x):\n        self.args = (x,)\ndef f(x):\n    raise Broken(5)"
        ),
        "class Broken(ValueError):\n    pass\ndef f(x):\n    raise Broken(5)",
        (
            "class Broken(ValueError):\n    __module__ = 'json.decoder'\n    __qualname__ = 'JSONDecodeError'\n"
            "def f(x):\n    raise Broken(Always())"
        ),
    ),
    "exception of the standard library by the program's name": (
        CATCHING.format("JSONDecodeError", "raised.pos == 1 and catches(JSONDecodeError)"),
        (
            "from json import JSONDecodeError, loads\ndef f(x):\n    return loads('{')\n"
            "def catches(kind):\n    return kind is JSONDecodeError"
        ),
        (
            "from json import JSONDecodeError, loads\ndef f(x):\n    return loads('1')\n"
            "def catches(kind):\n    return kind is JSONDecodeError"
        ),
        "JSONDecodeError = AssertionError\ndef f(x):\n    return Always()\ndef catches(kind):\n    return Always()",
    ),
    "list sorted in place": (
        "x = [3, 1, 2]\nassert f(x) is None\nassert x == [1, 2, 3]\nx = [2, 1]\nf(x)\nassert x == [1, 2]",
        "def f(x):\n    x.sort()",
        "def f(x):\n    sorted(x)",
        "def f(x):\n    x[:] = [Always() for _ in x]",
    ),
    "set, dictionary, queue changed in place": (
        (
            "from collections import *\ndef check(g):\n    s, d, q, b = {1}, {'a': 1}, deque([1]), bytearray(b'a')\n"
            "    g(s, d, q=q, b=b)\n    assert (s, d, q, b) == ({1, 2}, {}, deque([0, 1]), b'ab')\ncheck(f)"
        ),
        "def f(s, d, q, b):\n    s.add(2)\n    d.clear()\n    q.appendleft(0)\n    b += b'b'",
        "def f(s, d, q, b):\n    s.add(2)\n    d.clear()\n    q.append(0)\n    b += b'b'",
        "def f(s, d, q, b):\n    s.update([2, Always()])\n    d.clear()\n    q[:] = [Always()]",
    ),
    "method that changes its argument": (
        "m = [[1, 2], [3, 4]]\nRotor().turn(m)\nassert m == [[3, 1], [4, 2]]",
        "class Rotor:\n    def turn(self, m):\n        m[:] = [list(r) for r in zip(*m[::-1])]",
        "class Rotor:\n    def turn(self, m):\n        m = [list(r) for r in zip(*m[::-1])]",
        "class Rotor:\n    def turn(self, m):\n        m[:] = Always()",
    ),
}


@pytest.mark.parametrize("case", CASES)
async def test_what_is_right_passes_and_nothing_else(execute: Execute, case: str) -> None:
    checks, right, mutant, hostile = CASES[case]
    passed = await execute(EQUAL + right, checks)
    assert passed.outcome is Outcome.PASSED, passed
    for wrong in (mutant, hostile):
        failed = await execute(EQUAL + wrong, checks)
        assert failed.outcome in (Outcome.WRONG_ANSWER, Outcome.EXCEPTION), failed


# An answer that is wrong, and arguments changed so that it seems right.
EMPTYING = "def f(values):\n    values.clear()\n    return {}"


@pytest.mark.parametrize(
    ("answer", "checks"),
    [
        ("[]", "values = [3, 1, 2]\nassert f(values) == sorted(values)"),
        ("[]", "values = [3, 1, 2]\nresult = f(values)\nassert result == sorted(values)"),
        (
            "0",
            "def same(values):\n    assert f(values) == sum(values)\nvalues = [1]\nsame(values)\nassert values == [1]",
        ),
        ("None", "values = [3]\nassert f(values) == (values[0] if values else None)"),
    ],
)
async def test_no_answer_changes_what_it_is_compared_with(execute: Execute, answer: str, checks: str) -> None:
    assert (await execute(EMPTYING.format(answer), checks)).outcome is Outcome.WRONG_ANSWER


SHADOWING = "def sum(a, b):\n    return len([n for n in range(1, min(a, b)) if a % n == b % n == 0])\n"


@pytest.mark.parametrize("checks", ["assert sum(10, 15) == 2", "assert abs(sum(10, 15) - 2) < 1"])
async def test_a_function_with_the_name_of_a_built_in_one_is_what_is_checked(execute: Execute, checks: str) -> None:
    assert (await execute(SHADOWING, checks)).outcome is Outcome.PASSED
    assert (await execute(SHADOWING.replace("1, min", "2, min"), checks)).outcome is Outcome.WRONG_ANSWER


async def test_no_other_built_in_one_is(execute: Execute) -> None:
    liar = "def f(x):\n    return 41\ndef abs(x):\n    return 0\ndef isinstance(*a):\n    return True\n"
    for checks in ("assert abs(f(20) - 42) < 1", "assert isinstance(f(20), str)"):
        assert (await execute(liar, checks)).outcome is Outcome.WRONG_ANSWER


async def test_a_program_of_many_megabytes_runs() -> None:
    async with Sandbox(workers=1) as sandbox:
        execution = await sandbox.run(
            Program(f"text = '{'x' * (17 << 20)}'\nn = len(text)", checks=f"assert n == {17 << 20}")
        )
    assert execution.outcome is Outcome.PASSED, execution
