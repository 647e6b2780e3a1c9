"""Programs whose return value lies, never ends, or weighs more than an answer can."""

from __future__ import annotations

from tests.harness.sandbox.battery.entry import (
    BUSY,
    CPU,
    KILLED,
    MEMORY,
    OUTPUT,
    RAISED,
    WAITING,
    WALL,
    WRONG,
    Entry,
)

THEME = "values"

_ALWAYS = """
class Always:
    def __eq__(self, other): return True
    def __ne__(self, other): return False
    def __hash__(self): return hash(42)
    def __int__(self): return 42
    __index__ = __int__
    def __lt__(self, other): return True
    __gt__ = __le__ = __ge__ = __contains__ = __lt__
    def __sub__(self, other): return self
    def __abs__(self): return 0
    __rsub__ = __add__ = __mod__ = __sub__
"""
_SUBCLASS = """
class Liar({base}):
    def __eq__(self, other): return True
    def __ne__(self, other): return False
    def __hash__(self): return hash(42)
    def __len__(self): return 3
    def __lt__(self, other): return True
    __gt__ = __le__ = __ge__ = __contains__ = startswith = isdigit = __lt__
    def __sub__(self, other): return 0
    def __abs__(self): return self
    def lower(self): return "right"
    strip = __str__ = __repr__ = lower
    __class__ = property(lambda self: int)
def f(x):
    return Liar({value})
"""
_REFLECTED = "assert not 42 != f(20) and f(20) in {42: 0} and 42 - f(20) == 0"
_TEXT = "assert f(20) == 'right' and f(20).lower() == 'right' and f(20).startswith('r')"
_BUILTINS = """
import builtins
builtins.isinstance = builtins.all = builtins.any = lambda *arguments: True
builtins.abs = builtins.len = builtins.round = lambda *arguments: 0
builtins.sorted = builtins.set = builtins.list = builtins.str = lambda *arguments: []
def f(x):
    return 41
"""
_DEEP_LIST = "def f(x):\n    v = []\n    for _ in range({depth}):\n        v = [v]\n    return v"
_LAUGHS = "def f(x):\n    v = []\n    for _ in range({levels}):\n        v = [v, v]\n    return v"
_COLLISIONS = "def f(x):\n    return dict.fromkeys(k * (2 ** 61 - 1) for k in range({count}))"
_METHODS = "class A:\n    {method}\ndef f(x):\n    return A()"
_IN_THE_MESSAGE = "assert f(20) == 42, f(20)"
_ENDLESS = "import itertools\ndef f(x):\n    return itertools.repeat(41)"
_FORGETFUL = """
answers = iter([42, 41, 42, 41])
def f(x):
    return next(answers)
"""
_ANYTHING = "from unittest import mock\ndef f(x):\n    return {value}"
_SMALL_INTEGERS = """
import ctypes
def f(x):
    return 41
ctypes.c_uint32.from_address(id(42) + 24).value = 41
"""


def _plain(name: str, source: str, checks: str = "assert f(20) == 42", right: str = "", fools: bool = True) -> Entry:
    right = right or "def f(x):\n    return 42"
    return Entry(f"plain: {name}", source, (WRONG,), checks=checks, right=right, fools=fools)


def _container(name: str, value: str, expected: str) -> Entry:
    source = f"{_ALWAYS}\ndef f(x):\n    return {value}"
    right = f"def f(x):\n    return {expected}"
    return Entry(name, source, (WRONG,), checks=f"assert f(20) == {expected}", right=right, fools=True)


PROGRAMS = (
    Entry("equal to everything", f"{_ALWAYS}\ndef f(x):\n    return Always()", (WRONG,), fools=True),
    Entry(
        "equal from the right, hashed, subtracted",
        f"{_ALWAYS}\ndef f(x):\n    return Always()",
        (WRONG, RAISED),
        checks=_REFLECTED,
        fools=True,
    ),
    _container("equal to everything, in a list", "[Always()]", "[42]"),
    _container("equal to everything, as a key", "{Always(): 1}", "{42: 1}"),
    _container("equal to everything, as an element", "{Always()}", "{42}"),
    _container("equal to everything, in a tuple in a dictionary", "{'a': (1, Always())}", "{'a': (1, 42)}"),
    Entry("equal to everything, from a library", _ANYTHING.format(value="mock.ANY"), (WRONG,), fools=True),
    Entry("anything to anybody", _ANYTHING.format(value="mock.MagicMock()"), (WRONG,)),
    _plain("integer", _SUBCLASS.format(base="int", value="41")),
    _plain("floating", _SUBCLASS.format(base="float", value="41")),
    _plain("text", _SUBCLASS.format(base="str", value="'wrong'"), _TEXT, "def f(x):\n    return 'right'"),
    _plain("bytes", _SUBCLASS.format(base="bytes", value="b'x'"), "assert f(20) == b'y'", "def f(x):\n    return b'y'"),
    _plain(
        "list", _SUBCLASS.format(base="list", value="[1]"), "assert len(f(20)) == 3", "def f(x):\n    return [1] * 3"
    ),
    _plain(
        "tuple", _SUBCLASS.format(base="tuple", value="[1]"), "assert f(20) == (1, 2)", "def f(x):\n    return 1, 2"
    ),
    _plain("set", _SUBCLASS.format(base="set", value="[1]"), "assert 2 in f(20)", "def f(x):\n    return {2}"),
    _plain(
        "dictionary", _SUBCLASS.format(base="dict", value=""), "assert f(20) == {1: 2}", "def f(x):\n    return {1: 2}"
    ),
    Entry("not a number", "def f(x):\n    return float('nan')", (WRONG,)),
    Entry(
        "the same not-a-number",
        "import math\ndef f(x):\n    return [math.nan]",
        (WRONG,),
        checks="import math\nassert f(20) == [math.nan]",
        right="",
        fools=True,
    ),
    Entry(
        "set of not-a-numbers",
        "def f(x):\n    return {float('nan') for _ in range(1000)}",
        (WRONG,),
        checks="assert len(f(20)) == 1",
        right="def f(x):\n    return {1}",
    ),
    Entry(
        "other built-ins",
        _BUILTINS,
        (WRONG, RAISED),
        checks="assert isinstance(f(20), str) and abs(len(f(20)) - 5) == 0 and all(c == 'a' for c in f(20))",
        right="def f(x):\n    return 'aaaaa'",
    ),
    Entry("generator for a value", "def f(x):\n    yield 42", (WRONG,)),
    Entry(
        "generator for a list",
        "def f(x):\n    yield 42",
        (WRONG,),
        checks="assert f(20) == [42]",
        right="def f(x):\n    return [42]",
    ),
    Entry("coroutine", "async def f(x):\n    return 42", (WRONG,)),
    Entry("class", "class f:\n    def __init__(self, x):\n        self.value = 42", (WRONG,)),
    Entry("function for a value", "def f(x):\n    return lambda: 42", (WRONG,)),
    Entry("printed only", "def f(x):\n    print(42)", (WRONG,)),
    Entry("another answer every time", _FORGETFUL, (WRONG,), checks="assert f(20) == 42\nassert f(20) == 42"),
    Entry("constants rewritten in memory", _SMALL_INTEGERS, (WRONG, KILLED), fools=True),
    Entry("list that holds itself", "def f(x):\n    v = []\n    v.append(v)\n    return v", (WRONG,)),
    Entry("dictionary that holds itself", "def f(x):\n    v = {}\n    v[0] = [v]\n    return v", (WRONG,)),
    Entry("a thousand lists deep", _DEEP_LIST.format(depth=1000), (WRONG,)),
    Entry("a hundred thousand lists deep", _DEEP_LIST.format(depth=100_000), (WRONG,)),
    Entry("a tree of a thousand lists that are one list", _LAUGHS.format(levels=10), (WRONG,)),
    Entry("a tree of 2 ** 40 lists", _LAUGHS.format(levels=40), (OUTPUT, MEMORY, CPU), limits=BUSY, lasts=True),
    Entry("text of 24 MiB", "def f(x):\n    return 'x' * (24 << 20)", (OUTPUT, MEMORY)),
    Entry("bytes of 9 MiB, twice as long on the way", "def f(x):\n    return bytes(9 << 20)", (OUTPUT,)),
    Entry("a million digits", "def f(x):\n    return 1 << 4_000_000", (WRONG,)),
    Entry("a range without an end", "def f(x):\n    return range(10 ** 100)", (WRONG,)),
    Entry(
        "a range that the checks add up",
        "def f(x):\n    return range(10 ** 15)",
        (CPU,),
        checks="assert sum(f(20)) == 42",
        right="def f(x):\n    return [42]",
        limits=BUSY,
        lasts=True,
    ),
    Entry(
        "a range that the checks sort",
        "def f(x):\n    return range(10 ** 15)",
        (MEMORY,),
        checks="assert sorted(f(20)) == [42]",
        right="def f(x):\n    return [42]",
    ),
    Entry("keys of one hash", _COLLISIONS.format(count=1500), (WRONG,)),
    Entry("text that is no text", "def f(x):\n    return '\\ud800\\udfff\\0'", (WRONG,)),
    Entry(
        "two halves of a character for the character",
        "def f(x):\n    return '\\ud83d\\ude00'",
        (WRONG,),
        checks="assert f(20) == '\\U0001f600'",
        right="def f(x):\n    return '\\U0001f600'",
    ),
    Entry(
        "not-a-numbers that are no single object",
        "def f(x):\n    return [float('nan')]",
        (WRONG,),
        checks="assert f(20) == f(20) != None",
        right="def f(x):\n    return [42.0]",
    ),
    Entry(
        "iterator without an end",
        _ENDLESS,
        (CPU, WALL, MEMORY),
        checks="assert 42 in f(20)",
        right="def f(x):\n    return [42]",
        limits=BUSY,
        lasts=True,
    ),
    Entry(
        "length below zero",
        _METHODS.format(method="__len__ = lambda s: -1"),
        (RAISED,),
        checks="assert len(f(20)) == 3",
        right="def f(x):\n    return [1] * 3",
    ),
    Entry(
        "length beyond all",
        _METHODS.format(method="__len__ = lambda s: 10 ** 30"),
        (RAISED,),
        checks="assert len(f(20)) == 3",
        right="def f(x):\n    return [1] * 3",
    ),
    Entry(
        "truth that sleeps",
        "import time\n" + _METHODS.format(method="__bool__ = lambda s: time.sleep(60)"),
        (WALL,),
        checks="assert f(20)",
        limits=WAITING,
        lasts=True,
    ),
    Entry(
        "text that raises, in the message of a check",
        _METHODS.format(method="__str__ = __repr__ = lambda s: 1 / 0"),
        (WRONG,),
        checks=_IN_THE_MESSAGE,
    ),
    Entry(
        "a million digits, in the message of a check",
        "def f(x):\n    return 1 << 4_000_000",
        (WRONG,),
        checks=_IN_THE_MESSAGE,
    ),
    Entry(
        "text that is none, in the message of a check",
        _METHODS.format(method="__str__ = __repr__ = lambda s: 42"),
        (WRONG,),
        checks=_IN_THE_MESSAGE,
    ),
    Entry(
        "text that exits, in the message of a check",
        "import os\n" + _METHODS.format(method="__str__ = __repr__ = lambda s: os._exit(0)"),
        (WRONG, RAISED),
        checks=_IN_THE_MESSAGE,
    ),
    Entry(
        "text that sleeps, in the message of a check",
        "import time\n" + _METHODS.format(method="__str__ = __repr__ = lambda s: time.sleep(60)"),
        (WRONG, WALL),
        checks=_IN_THE_MESSAGE,
        limits=WAITING,
    ),
    Entry("truth that is none", _METHODS.format(method="__bool__ = lambda s: 42"), (RAISED,), checks="assert f(20)"),
    Entry(
        "pickled it would exit",
        "import os\n" + _METHODS.format(method="__reduce__ = lambda s: (os._exit, (0,))"),
        (WRONG,),
    ),
    Entry(
        "attributes without an end",
        _METHODS.format(method="__getattr__ = lambda s, n: getattr(s, n + 'x')"),
        (RAISED, KILLED, MEMORY),
        checks="assert f(20).value == 42",
        right="class A:\n    value = 42\ndef f(x):\n    return A()",
    ),
)
