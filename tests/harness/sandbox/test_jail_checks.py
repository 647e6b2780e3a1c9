"""What is read off checks before they run, against what running them shows."""

from __future__ import annotations

import ast
import builtins
import textwrap
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.sandbox.jail.checks import IN_PLACE, PASSED, prepare


def itself(function: Any) -> Any:
    return function


class Anything:
    """Stands for whatever the program would give, in any place of the checks."""

    def __call__(self, *_: object, **__: object) -> Any:
        return self

    def __iter__(self) -> Any:
        return iter([self])

    def __getattr__(self, name: str) -> Any:
        return self

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return 1


class Recording(dict[str, Any]):
    """Built-in names; what is looked up here and is none was bound nowhere."""

    def __init__(self) -> None:
        super().__init__(vars(builtins))
        self.asked: set[str] = set()

    def __missing__(self, name: str) -> Any:
        self.asked.add(name)
        return Anything()


def asked_for(source: str) -> set[str]:
    """The names a run takes from outside; it has to reach all that reads one."""
    found = Recording()
    exec(compile(source, "<any>", "exec", dont_inherit=True), {"__builtins__": found, "__name__": "any"})  # noqa: S102
    return found.asked


# Each reads `f` from outside, or binds what it reads; all of it runs.
PIECES = [
    "assert f(1) == 2",
    "x = f(1)\nassert x",
    "for i in f(2):\n    assert i == g\nelse:\n    k(i)",
    "with f(1) as held:\n    assert held",
    "def local(a, b=g):\n    inner = a\n    return f(inner, k(a, len([b])))\nlocal(1)",
    (
        "def outer():\n    seen = f\n    def within():\n        nonlocal seen\n        seen = g\n        return seen\n"
        "    return within()\nouter()"
    ),
    "def counts():\n    global total\n    total = f(1)\ncounts()\nassert total",
    "class Case:\n    value = g(1)\n    def run(self):\n        return self.value == k\nassert Case().run()",
    "assert [f(one) for one in [1, 2] if one] == [g for _ in 'ab']",
    "assert {a: b for a, b in [(1, f)]} and {c for c in [k]}",
    "assert all(f(n) for n in range(2))",
    "assert (lambda a: f(a, g))(1)",
    "try:\n    raise ValueError(f)\nexcept ValueError as error:\n    assert str(error)",
    "import math\nassert math.floor(2.5) == 2 and f",
    "from math import floor as down, ceil\nassert down(2.5) == 2 and ceil(1) and g",
    "import os.path\nassert os.path.join('a', 'b') and f",
    "if (n := 5) > 4:\n    assert f(n)",
    "first, *rest = [1, 2]\nassert rest and k",
    "match [1, 2]:\n    case [int(one), *others] if f:\n        assert one and others",
    "@f\ndef decorated(one=g):\n    pass",
    "def check(candidate):\n    assert candidate(1) == f\ncheck(g)",
    (
        "async def later():\n    assert f\n    return [one async for one in some()]\nasync def some():\n    yield g\n"
        "import asyncio\nasyncio.run(later())"
    ),
    "values = {}\nvalues['a'] = f\nvalues['a'].b = 1\ndel values",
    "assert abs(f(1) is None) == 0 or sum or print",
]


@given(st.lists(st.sampled_from(PIECES), min_size=1, max_size=5))
@settings(max_examples=60, deadline=None)
def test_names_are_those_that_a_run_takes_from_outside(pieces: list[str]) -> None:
    source = "\n".join(pieces)
    prepared = prepare("", source, "")
    # What a function binds globally is not known to be bound without running it.
    assert set(prepared.names) - {"total"} == asked_for(source)
    assert prepared.names == sorted(prepared.names)
    assert prepared.modules == []


@pytest.mark.parametrize("piece", PIECES)
def test_names_of_each_piece(piece: str) -> None:
    assert set(prepare("", piece, "").names) - {"total"} == asked_for(piece) != set()


def test_a_class_may_read_a_name_that_it_binds() -> None:
    source = "class Case:\n    f = staticmethod(f)\nassert Case.f(1)"
    assert asked_for(source) == {"f"} == set(prepare("", source, "").names)


@pytest.mark.parametrize(
    ("source", "modules", "names"),
    [
        ("assert math.floor(f(1)) == 2", ["math"], ["f"]),
        ("assert f(1) == collections.Counter('a') and re.match('a', 'a')", ["collections", "re"], ["f"]),
        ("def check(c):\n    assert c == string.digits", ["string"], []),
        ("assert math(1) == 2", [], ["math"]),
        ("assert math.pi and math", [], ["math"]),
        ("import math\nassert math.pi", [], []),
        ("math = f\nassert math.pi", [], ["f"]),
        ("assert solution.f(1)", [], ["solution"]),
        ("def check(math):\n    assert math.pi\ncheck(f)", [], ["f"]),
        ("assert sum.x", [], []),
        ("string.x = 1", ["string"], []),
    ],
)
def test_modules_are_names_of_the_library_that_a_dot_follows(source: str, modules: list[str], names: list[str]) -> None:
    prepared = prepare("", source, "")
    assert (prepared.modules, prepared.names) == (modules, names)


@pytest.mark.parametrize(
    ("source", "entry_point", "names", "found"),
    [
        ("assert sum([1]) == f", "sum", ["f", "sum"], "sum"),
        ("assert sum([1]) == f", "f", ["f"], "f"),
        ("assert string.x == 1", "string", ["string"], "string"),
        ("def sum(a): return a\nassert sum(1)", "sum", [], ""),
        ("assert g(1)", "f", ["g"], ""),
        ("assert g(1)", "", ["g"], ""),
        ("assert sum(1, 2) == abs(3)", "", ["sum"], ""),
        ("assert set(sum(1, 2)) == set([3])", "", ["sum"], ""),
        ("x = len('ab')\nassert abs(sum(x, 2) - 3) < 1", "", ["sum"], ""),
        ("assert abs(f(1) - 3) < 1", "", ["f"], ""),
        ("assert abs(sum(1, 2) - 3) < 1", "f", [], ""),
        ("assert True", "", [], ""),
    ],
)
def test_the_entry_point_is_the_programs_even_where_a_built_in_has_its_name(
    source: str, entry_point: str, names: list[str], found: str
) -> None:
    prepared = prepare("", source, entry_point)
    assert (prepared.names, prepared.entry_point, prepared.modules) == (names, found, [])


# How many assertions a run passes.
COUNTED = {
    "plain": (2, "assert 1\nassert 2"),
    "message": (1, "assert 1, 'no'"),
    "if": (
        2,
        ("if 1:\n    assert 1\nelse:\n    assert 0\nif 0:\n    assert 0\nelif 1:\n    assert 1\nelse:\n    assert 0"),
    ),
    "for": (4, "for i in range(3):\n    assert 1\nelse:\n    assert 1"),
    "while": (3, "n = 2\nwhile n:\n    assert 1\n    n -= 1\nelse:\n    assert 1"),
    "with": (1, "import contextlib\nwith contextlib.nullcontext():\n    assert 1"),
    "try": (
        4,
        (
            "try:\n    assert 1\n    raise ValueError\nexcept ValueError:\n    assert 1\nfinally:\n"
            "    assert 1\ntry:\n    pass\nexcept ValueError:\n    assert 0\nelse:\n    assert 1"
        ),
    ),
    "try groups": (1, "try:\n    raise ExceptionGroup('', [ValueError()])\nexcept* ValueError:\n    assert 1"),
    "match": (1, "match 1:\n    case 1:\n        assert 1\n    case _:\n        assert 0"),
    "function": (4, "def f():\n    assert 1\n    assert 1\nf()\nf()"),
    "function never called": (0, "def f():\n    assert 1"),
    "class": (2, "class A:\n    assert 1\n    def f(self):\n        assert 1\nA().f()"),
    "nested": (
        2,
        (
            "def f():\n    for _ in 'ab':\n        if 1:\n            with g():\n                assert 1\n"
            "import contextlib\ng = contextlib.nullcontext\nf()"
        ),
    ),
    "async": (
        3,
        (
            "import asyncio, contextlib\nasync def a():\n    yield 1\nasync def f():\n    assert 1\n"
            "    async for _ in a():\n"
            "        assert 1\n    async with contextlib.nullcontext():\n        assert 1\nasyncio.run(f())"
        ),
    ),
    "generator": (1, "def f():\n    yield 1\n    assert 1\nlist(f())"),
    "caught": (0, "try:\n    assert 0\nexcept AssertionError:\n    pass"),
    "raised": (0, "try:\n    raise AssertionError\nexcept AssertionError:\n    pass"),
    "none": (0, "x = 1\nx == 2"),
    "last in a body": (1, "if 1:\n    pass\n    assert 1"),
}


@pytest.mark.parametrize("case", COUNTED)
def test_every_assertion_that_holds_is_counted(case: str) -> None:
    held = 0

    def count() -> None:
        nonlocal held
        held += 1

    expected, source = COUNTED[case]
    prepared = prepare("", source, "")
    exec(prepared.code, {PASSED: count, IN_PLACE: itself})  # noqa: S102
    assert held == expected
    assert prepared.asserts == any(isinstance(node, ast.Assert) for node in ast.walk(ast.parse(source)))


@pytest.mark.parametrize("lines", range(1, 5))
def test_what_fails_keeps_its_line(lines: int) -> None:
    source = "assert 1\n" * (lines - 1) + "assert 1 == 2, 'no'\nassert 1"
    with pytest.raises(AssertionError, match="no") as caught:
        exec(prepare("", source, "").code, {PASSED: lambda: None, IN_PLACE: itself})  # noqa: S102
    assert caught.tb.tb_next is not None
    frame = caught.tb.tb_next
    assert (frame.tb_lineno, frame.tb_frame.f_code.co_filename) == (lines, "<checks>")


def test_values_and_results_are_those_of_the_same_source() -> None:
    source = textwrap.dedent(
        """
        from __future__ import annotations
        import asyncio
        seen = []
        def f(x: undefined) -> int:
            "What it says."
            assert x
            return x + 1
        async def g():
            assert f(1)
            return [f(n) for n in (1, 2)]
        seen.append((f.__doc__, f.__annotations__, asyncio.run(g())))
        """
    )
    spaces: list[dict[str, Any]] = [{PASSED: lambda: None, IN_PLACE: itself}, {}]
    exec(prepare("", source, "").code, spaces[0])  # noqa: S102
    exec(compile(source, "", "exec", dont_inherit=True), spaces[1])  # noqa: S102
    assert spaces[0]["seen"] == spaces[1]["seen"] == [("What it says.", {"x": "undefined", "return": "int"}, [2, 3])]


def test_neither_setup_nor_checks_are_read_as_this_file_is() -> None:
    source = "def f(x: int) -> str:\n    pass"
    prepared = prepare(source, source, "")
    for code in (prepared.setup, prepared.code):
        space: dict[str, Any] = {}
        exec(code, space)  # noqa: S102
        assert space["f"].__annotations__ == {"x": int, "return": str}


def test_the_setup_is_ready_to_run_and_counts_nothing() -> None:
    space: dict[str, Any] = {}
    exec(prepare("assert 1\na = __file__ if 0 else 2", "assert a", "").setup, space)  # noqa: S102
    assert space["a"] == 2
    assert not prepare("assert 1", "x = 1", "").asserts


@pytest.mark.parametrize(("setup", "source"), [("", "assert ("), ("def", ""), ("", "x = 1\0"), ("\0", "")])
def test_what_is_no_python_is_refused(setup: str, source: str) -> None:
    with pytest.raises((SyntaxError, ValueError)):
        prepare(setup, source, "")


def test_no_source_can_name_the_counter() -> None:
    assert not PASSED.isidentifier()
