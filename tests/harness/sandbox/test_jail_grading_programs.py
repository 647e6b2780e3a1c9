"""Checks on real programs, both in this process: what works as if the program were here, and what never goes there."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import pytest

from tests.harness.sandbox.pretended import Judge

MARK, MARKED = "8423170956", "mark-of-the-expected"
WRITTEN = (MARK.encode(), hex(int(MARK)).encode(), int(MARK).to_bytes(8, "little").rstrip(b"\0"), MARKED.encode())


@pytest.fixture
def judge(monkeypatch: pytest.MonkeyPatch) -> Iterator[Judge]:
    with monkeypatch.context() as patch, contextlib.closing(Judge(patch)) as judge:
        yield judge


CLASSES = """
class Node:
    count = 0
    def __init__(self, value, next=None):
        self.value, self.next = value, next
        Node.count += 1
    def __repr__(self):
        return f"Node({self.value})"
    def double(self):
        self.value *= 2
        return self
class Pair:
    def __init__(self, a, b):
        self.a, self.b = a, b
def longest(pairs):
    return max(pair.b - pair.a for pair in pairs)
def height(root):
    return 0 if root is None else 1 + max(height(root.left), height(root.right))
class Tree:
    def __init__(self, data):
        self.data, self.left, self.right = data, None, None
def numbers(n):
    yield from range(n)
class Bag:
    def __init__(self):
        self.held = {}
    def __getitem__(self, key): return self.held[key]
    def __setitem__(self, key, value): self.held[key] = value
    def __len__(self): return len(self.held)
    def __iter__(self): return iter(self.held)
    def __bool__(self): return 'yes' in self.held
def empty(): raise StopIteration
def fails(x): raise AssertionError(x)
def stops(x): raise StopIteration
def same(x): return x
def make(n): return lambda x: x + n
def missing(): return undefined_name
def fill(values): values.append(1)
kinds = [int, len, abs]
class Odd(Exception): pass
class Missing(KeyError): pass
def raises(name): raise {"odd": Odd, "missing": Missing, "value": ValueError, "exit": SystemExit}[name](name)
WORDS = {"b": (1, 2), "a": {3}}
"""
PASSING = {
    "attributes set from the checks": (
        "root = Tree(1)\nroot.left = Tree(2)\nroot.right = Tree(3)\nroot.left.left = Tree(4)\n"
        "assert height(root) == 3\nassert height(root.left) == 2 and height(None) == 0"
    ),
    "instances in lists": "assert longest([Pair(5, 24), Pair(15, 25), Pair(27, 40), Pair(50, 60)]) == 19",
    "methods": "n = Node(4)\nassert n.double().value == 8\nassert n.double() == n and n.double() is not n",
    "identity": "n = Node(1, None)\nm = Node(2, n)\nassert m.next == n and m != n and same(n) == n and n in [m, n]",
    "class attributes": "before = Node.count\nNode(1)\nassert Node.count == before + 1",
    "text": "assert str(Node(3)) == 'Node(3)' and f'{Node(4)}' == 'Node(4)' and '%s' % Node(5) == 'Node(5)'",
    "generators": "assert list(numbers(3)) == [0, 1, 2] and sum(numbers(4)) == 6 and 2 in numbers(3)",
    "unpacking": "a, *b = numbers(3)\nassert (a, b) == (0, [1, 2]) and {*numbers(2)} == {0, 1}",
    "next": "n = numbers(2)\nassert (next(n), next(n), next(n, 'end')) == (0, 1, 'end')",
    "truth and length": (
        "b = Bag()\nassert not b and len(b) == 0\nb['yes'] = [1]\nassert b and b['yes'] == [1] and list(b) == ['yes']"
    ),
    "functions of functions": (
        "assert make(2)(3) == 5 and [*map(make(1), [1, 2])] == [2, 3] and sorted([2, 1], key=same) == [1, 2]"
    ),
    "built-in functions": "assert [kind('3') if kind is not kinds[2] else kind(-3) for kind in kinds] == [3, 1, 3]",
    "values as they are": "assert WORDS == {'b': (1, 2), 'a': {3}} and list(WORDS) == ['b', 'a']",
    "arguments of a call in an expression are copies": "mine = [0]\n_ = fill(mine), fill(mine)\nassert mine == [0]",
    "those of a call for its own sake are not": "mine = [0]\nfill(mine)\nfill(values=mine)\nassert mine == [0, 1, 1]",
    "exceptions as their nearest built-in one": (
        "def caught(name, kind):\n    try:\n        raises(name)\n    except kind:\n        return True\n"
        "assert caught('odd', Exception) and caught('missing', KeyError) and caught('value', ValueError)\n"
        "assert caught('exit', SystemExit)"
    ),
    "modules without import": "assert math.isclose(same(0.1) + 0.2, 0.3) and sys.getsizeof(same('a')) > 1",
    "values there and back": (
        "assert same(10 ** 50) == 10 ** 50 and same(float('-inf')) < 0 and same((1, [{2}])) == (1, [{2}])"
    ),
}


@pytest.mark.parametrize("case", PASSING)
def test_what_works_as_if_the_program_were_here(judge: Judge, case: str) -> None:
    assert judge.of(CLASSES, PASSING[case]).ended == ("passed", "")


FAILING = {
    "no end of an iterator ends a check": ("assert all(map(stops, [1]))", "exception", "StopIteration (program"),
    "nor inside a generator": ("assert all(stops(x) for x in [1, 2])", "exception", "StopIteration (program"),
    "nor in a loop": ("for x in map(stops, [1]):\n    assert x\nassert True", "exception", "StopIteration (program"),
    "nor in a list": ("assert [*map(stops, [1])] == []", "exception", "StopIteration (program"),
    "nor where nothing is passed": ("assert list(iter(empty, 1)) == []", "exception", "StopIteration (program"),
    "its own assertion is no answer": ("assert fails(1) == 1", "exception", "AssertionError: 1 (program"),
    "nor is one that the checks pass on": ("fails('(checks, line 1)')\nassert True", "exception", "AssertionError"),
    "a missing name": ("assert missing() == 1", "exception", "'undefined_name' is not defined (program"),
    "a name that is nowhere": ("assert nowhere(1) == 1", "exception", "'nowhere' is not defined (checks, line 1)"),
    "what cannot cross": ("assert same(lambda: 1)", "exception", "the checks pass a function"),
    "an exit": ("raises('exit')\nassert True", "exception", "SystemExit: exit (program"),
    "an object is not its content": ("assert Node(3) == 3", "wrong_answer", "AssertionError (checks, line 1)"),
    "nor is a generator a list": ("assert numbers(2) == [0, 1]", "wrong_answer", "AssertionError (checks, line 1)"),
    "equal objects are others": ("assert Node(1) == Node(1)", "wrong_answer", "AssertionError (checks, line 1)"),
    "a failure with an object in the message": (
        "assert 0, same(Node(7))",
        "wrong_answer",
        "AssertionError: <Node of the program>",
    ),
}


@pytest.mark.parametrize("case", FAILING)
def test_what_does_not_pass(judge: Judge, case: str) -> None:
    source, outcome, detail = FAILING[case]
    judged = judge.of(CLASSES, source)
    assert judged.outcome == outcome
    assert detail in judged.ended[1]


@pytest.mark.parametrize(
    ("program", "outcome", "detail"),
    [
        ("raise SystemExit(3)", "exception", "SystemExit: 3 (program, line 1)"),
        ("raise KeyboardInterrupt", "exception", "KeyboardInterrupt (program, line 1)"),
        ("raise MemoryError", "memory_limit", "MemoryError (program, line 1)"),
        ("x = 1\nassert False, 'a\\nb'", "exception", "AssertionError: a (program, line 2)"),
        ("def f(:", "not_executable", "SyntaxError: invalid syntax (program, line 1)"),
        ("x = 1\n\0", "not_executable", "null bytes"),
        ("raise UnicodeDecodeError('utf-8', b'', 0, 1, 'no')", "exception", "UnicodeDecodeError"),
        ("class E(Exception):\n    def __str__(self):\n        raise RuntimeError\nraise E", "exception", ""),
        ("raise ExceptionGroup('several', [ValueError()])", "exception", "ExceptionGroup: several (1 sub-exception)"),
        ("x = 1", "exception", "name 'f' is not defined"),
    ],
)
def test_a_program_that_does_not_get_as_far(judge: Judge, program: str, outcome: str, detail: str) -> None:
    judged = judge.of(program, "assert f(1) == 2", entry_point="f")
    assert judged.outcome == outcome
    assert detail in judged.ended[1]


@pytest.mark.parametrize(
    ("program", "show", "outcome", "shown"),
    [
        ("x = [1, 'a']", "x", "passed", "[1, 'a']"),
        ("x = 'y' * 5000", "x", "passed", "y" * 4096),
        ("x = 1", "y", "exception", None),
        ("def x(): pass", "x", "exception", None),
        ("x = 1", "", "passed", None),
    ],
)
def test_what_is_shown(judge: Judge, program: str, show: str, outcome: str, shown: str | None) -> None:
    judged = judge.of(program, "", show=show)
    assert (judged.outcome, judged.grading.shown) == (outcome, shown)


def test_setup_and_program_share_a_namespace_and_random_is_seeded(judge: Judge) -> None:
    program = "import random\ny = a + 1\ndef f(): return random.random()"
    judged = judge.of(program, "assert (y, a) == (2, 1) and f() == random.Random(0).random()", setup="a = 1")
    assert judged.ended == ("passed", "")


RETURNING = """
class Thing:
    def __init__(self): self.value = 1
    def __iter__(self): return iter([1, 2])
    def __len__(self): return 2
    def __getitem__(self, key): return [1, 2][key]
    def __call__(self, *a): return self
    def __getattr__(self, name): return Thing()
    def __eq__(self, other): return True
    __hash__ = None
    def _any(self, *other): return True
    __lt__ = __gt__ = __le__ = __ge__ = __contains__ = __add__ = __radd__ = __sub__ = __rsub__ = __mod__ = _any
    __rmod__ = __mul__ = __rmul__ = __and__ = __rand__ = __format__ = __round__ = __pow__ = __divmod__ = _any
def f(x): return Thing()
"""
COMPARISONS = [
    *("f(1) == M", "M == f(1)", "f(1) != M", "not (M != f(1))", "M in f(1)", "f(1) in [M]", "f(1) in {M: 1}"),
    *("f(1) is M", "f(1) < M", "M > f(1)", "M <= f(1) <= M", "sorted([f(1), M])", "max(M, f(1))", "min([M], f(1))"),
    *("M - f(1)", "f(1) + M", "f(1) % M", "abs(f(1) - M) < 1", "f(1) * M", "f(1) & {M}", "{M} & set(f(1))"),
    *("math.isclose(f(1), M)", "round(f(1), M)", "pow(f(1), M)", "divmod(f(1), M)", "isinstance(f(1), type(M))"),
    *("str(f(1)) == M", "f'{f(1)}' == M", "format(f(1), T)", "'%s' % f(1) == M", "list(f(1)) == [M]", "len(f(1)) == M"),
    *("set(f(1)) == {M}", "dict(zip(f(1), [M]))  == 1", "[M].index(f(1))", "[M].count(f(1))", "f(1)[0] == M"),
    *("f(1).value == M", "f(1).value.other == M", "(f(1), M) == (M, f(1))", "{1: f(1)} == {1: M}", "M == [*f(1)][0]"),
    *("operator.eq(f(1), M)", "collections.Counter(f(1)) == {M: 1}", "hash(f(1)) == M", "f(1) and f(1) == M"),
    *("all(a == M for a in f(1))", "any(M == a for a in f(1))", "next(iter(f(1))) == M", "T.join(f(1)) == T"),
    *("copy.deepcopy(f(1)) == M", "f(1) == T", "T in f(1)", "T + f(1)", "T % f(1)", "T.startswith(f(1))"),
    *(
        "bisect.bisect([M], f(1))",
        "f(1) == M, f'{f(1)} is not {M}'",
        "repr(f(1)) == T",
        "functools.reduce(min, [M, f(1)])",
    ),
]


@pytest.mark.parametrize("comparison", COMPARISONS)
def test_no_message_to_the_program_holds_what_is_expected(judge: Judge, comparison: str) -> None:
    source = f"M, T = {MARK}, '{MARKED}'\nassert {comparison}"
    judged = judge.of(RETURNING, source, setup="import bisect, collections, copy, functools, math, operator")
    assert len(judged.asked) >= 2
    assert not [(word, message) for message in judged.asked for word in WRITTEN if word in message]


@pytest.mark.parametrize("name", ["int(M)", "T", "[M]", "{T: 1}"])
def test_what_the_checks_pass_themselves_would_be_seen(judge: Judge, name: str) -> None:
    judged = judge.of(RETURNING, f"M, T = {MARK}, '{MARKED}'\nassert f({name})")
    assert any(word in message for message in judged.asked for word in WRITTEN)


def test_a_match_compares_here(judge: Judge) -> None:
    cases = f"case {MARK} | [{MARK}, *_] | {{'a': {MARK}}}:\n        assert True\n    case _:\n        assert False"
    source = f"match f(1):\n    {cases}"
    judged = judge.of(RETURNING, source)
    assert judged.outcome == "wrong_answer"
    assert not any(word in message for message in judged.asked for word in WRITTEN)
