"""Programs that are no programs, or are more than one reads in a lifetime; and honest ones that look hostile."""

from __future__ import annotations

from tests.harness.sandbox.battery.entry import (
    KILLED,
    MEMORY,
    PASSED,
    RAISED,
    RIGHT_PROGRAM,
    UNREADABLE,
    WRONG,
    Entry,
)

THEME = "source text, imports, bombs"

_FENCE = "`" * 3
_MAIN = f"{RIGHT_PROGRAM}\nif __name__ == '__main__':\n    import argparse, sys\n    input()\n    sys.exit(f(1))\n"
_ARGUMENTS = "import argparse\nparser = argparse.ArgumentParser()\nparser.add_argument({name!r})\nparser.parse_args()\n"
_INSTALLED = """
import site, sys, sysconfig
sys.path += [sysconfig.get_path("purelib"), sysconfig.get_path("platlib"), *site.getsitepackages()]
site.main()
import {name}
"""
_INFLATING = """
import zlib
def f(x):
    part = zlib.compressobj(9, wbits=-15)
    piece = part.compress(bytes(1 << 20)) + part.flush(zlib.Z_FULL_FLUSH)
    return len(zlib.decompress(piece * 4096, wbits=-15))
"""
_UNPICKLING = """
import pickle
def f(x):
    return pickle.loads(b"cbuiltins\\nbytearray\\n(I1099511627776\\ntR.")
"""
_PICKLED_EXIT = """
import pickle
def f(x):
    return pickle.loads(b"cos\\n_exit\\n(I0\\ntR.")
"""
_SLOW = """
def f(x):
    total = 0
    for number in range(3_000_000):
        total += number & 1
    return total - 1_499_958
"""
_SAME = """
import datetime, os, random, time, uuid
print(random.random(), random.sample(range(100), 5), hash("text"), {*"abcdef"}, sorted(vars()), time.tzname)
def f(x):
    return [time.tzname, os.environ.get("LC_ALL"), datetime.datetime.now().astimezone().utcoffset().seconds]
"""
_UNICODE = "def ﬁ(ｘ):\n    return 2 * x + 2\nf = fi\n"
_TREE = """
import ast
def f(x):
    tree = ast.Constant(1)
    for _ in range(100_000):
        tree = ast.UnaryOp(ast.USub(), tree)
    return eval(compile(ast.fix_missing_locations(ast.Expression(tree)), "", "eval"))
"""
_NAMESPACE = "class f:\n    def __class_getitem__(cls, x): return 41\n    def __new__(cls, x): return 2 * x + 2\n"

PROGRAMS = (
    Entry("main block that asks and exits, and right", _MAIN, (PASSED,)),
    Entry("arguments it must have", _ARGUMENTS.format(name="file") + RIGHT_PROGRAM, (RAISED,)),
    Entry("arguments it may have, and right", _ARGUMENTS.format(name="--file") + RIGHT_PROGRAM, (PASSED,)),
    Entry("fence around it", f"{_FENCE}python\n{RIGHT_PROGRAM}{_FENCE}", (UNREADABLE,)),
    Entry("two blocks", f"{RIGHT_PROGRAM}{_FENCE}\n{_FENCE}python\n{RIGHT_PROGRAM}", (UNREADABLE,)),
    Entry("typographic quotes", "def f(x):\n    return int(“42”)", (UNREADABLE,)),
    Entry("no-break spaces", RIGHT_PROGRAM.replace("    ", "\xa0\xa0"), (UNREADABLE,)),
    Entry("tabs and spaces", "def f(x):\n\tif x:\n        return 42\n", (UNREADABLE,)),
    Entry("null byte in a comment", f"# \0\n{RIGHT_PROGRAM}", (UNREADABLE,)),
    Entry("lone carriage returns, and right", RIGHT_PROGRAM.replace("\n", "\r"), (PASSED,)),
    Entry("claimed encoding, and right", f"# coding: rot13\n{RIGHT_PROGRAM}", (PASSED,)),
    Entry("unknown encoding, and right", f"# coding: nothing\n{RIGHT_PROGRAM}", (PASSED,)),
    Entry("names in compatibility characters, and right", _UNICODE, (PASSED,)),
    Entry("class that returns a number, and right", _NAMESPACE, (PASSED,)),
    Entry("installed numpy, by path", _INSTALLED.format(name="numpy"), (RAISED,)),
    Entry("installed pandas", "import pandas", (RAISED,)),
    Entry("sum of a hundred thousand terms", f"x = {'+'.join(['1'] * 100_000)}", (UNREADABLE, KILLED, MEMORY)),
    Entry("ten thousand nested functions", f"x = {'lambda:' * 10_000}0", (UNREADABLE, KILLED, MEMORY)),
    Entry("number of a million digits", f"x = {'9' * 1_000_000}", (UNREADABLE,)),
    Entry("compiled in the call", "def f(x):\n    return eval('-' * 1_000_000 + '1')", (RAISED, KILLED, MEMORY)),
    Entry(
        "tree built in the call",
        _TREE,
        (RAISED, KILLED, MEMORY),
    ),
    Entry("inflated to four gigabytes", _INFLATING, (MEMORY,)),
    Entry("unpickled to a terabyte", _UNPICKLING, (MEMORY,)),
    Entry("unpickled to an exit", _PICKLED_EXIT, (RAISED,), fools=True),
    Entry(
        "chance, hashes and time zone",
        _SAME,
        (PASSED,),
        checks="assert f(0) == [('UTC', 'UTC'), 'C.UTF-8', 0]",
    ),
    Entry("slow, and right", _SLOW, (PASSED,)),
    Entry("slow, and wrong", _SLOW.replace("958", "959"), (WRONG,)),
)
