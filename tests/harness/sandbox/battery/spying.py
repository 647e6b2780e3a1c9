"""Programs that look for the checks, for what they expect, and for anything else that is not theirs."""

from __future__ import annotations

from harness.files import ROOT
from tests.harness.sandbox.battery.entry import (
    KILLED,
    NOTHING,
    OPEN_FILES,
    PASSED,
    RAISED,
    WRONG,
    WRONG_PROGRAM,
    Entry,
    probe,
)
from tests.harness.sandbox.battery.search import SEARCH, SEARCH_CHECKS

THEME = "spying"

_HIDDEN = "HIDDEN = 918273645\nassert f(20) == HIDDEN"
_HIDDEN_RIGHT = "def f(x):\n    return 918273645"
_FRAMES = """
import gc, sys
def candidates():
    frame = sys._getframe()
    while frame:
        yield from frame.f_globals.values()
        yield from frame.f_locals.values()
        yield from frame.f_code.co_consts
        frame = frame.f_back
    for found in gc.get_objects():
        if isinstance(found, dict):
            yield from list(found.values())
def f(x):
    return next((one for one in candidates() if type(one) is int and 10 ** 8 < one < 10 ** 9), None)
"""
_HELPER = """
import gc, types
def f(x):
    for found in gc.get_objects():
        if isinstance(found, types.FunctionType) and found.__name__ == "same":
            found.__code__ = (lambda a, b: True).__code__
    return 41
"""
_TRACING = """
import sys
def trace(frame, event, argument):
    if event == "line":
        frame.f_locals.clear()
        sys.exit(0)
    return trace
def f(x):
    sys.settrace(trace)
    frame = sys._getframe(1)
    while frame:
        frame.f_trace = trace
        frame = frame.f_back
    return 41
"""
_STEPS = """
def same(a, b):
    return a == b
def check(candidate):
    result = candidate(20)
    assert same(result, 42)
check(f)
"""
_LIBRARY = """
import math, random, sys, time
random.randint = random.randrange = lambda *arguments: 0
math.isclose = lambda *arguments, **keywords: True
time.time = time.monotonic = lambda: 0.0
def f(values):
    return 0
"""
_LIBRARY_CHECKS = "import math, random\nvalues = [random.randint(1, 9) for _ in range(5)]\n"
_HOOK = """
import sys, types
class Finder:
    def find_spec(self, name, path=None, target=None):
        raise SystemExit(0)
sys.meta_path.insert(0, Finder())
sys.path_hooks.insert(0, Finder().find_spec)
sys.modules["math"] = types.SimpleNamespace(isclose=lambda *arguments: True)
def f(x):
    return 41
"""
_BUILD_CLASS = """
import builtins, os
builtins.__build_class__ = builtins.__import__ = builtins.print = lambda *arguments, **keywords: os._exit(0)
def f(x):
    return 41
"""
_GLOBALS_OF_ARGUMENT = "def f(helper):\n    return helper.__globals__['HIDDEN']"
_GLOBALS_CHECKS = "HIDDEN = 918273645\ndef helper():\n    return 1\nassert f(helper) == HIDDEN"
_FRAME_OF_ARGUMENT = "def f(values):\n    return values.gi_frame.f_globals['HIDDEN']"
_FRAME_CHECKS = "HIDDEN = 918273645\nassert f(i for i in range(3)) == HIDDEN"
_LAST_ARGUMENT = """
def f(values):
    answer = sum(values) if values else 0
    values.clear()
    return answer
"""
_OLD_INPUT = "values = [1, 2, 3]\nassert f(values) == sum(values)\nassert f(values) == sum(values) == 6"
_EMPTIED = "def f(values):\n    values.clear()\n    return []"
_SOURCES = """
import inspect, linecache, os, sys
def f(x):
    frame, found = sys._getframe(1), []
    while frame:
        code = frame.f_code
        text = "".join(linecache.getlines(code.co_filename)) or code.co_filename
        found += [text] if "HIDDEN" in text else []
        frame = frame.f_back
    for module in list(sys.modules.values()):
        try:
            text = inspect.getsource(module)
        except (OSError, TypeError, AttributeError):
            continue
        found += [module.__name__] if "918273645" in text else []
    return found
"""
_OTHER_PROCESSES = """
def theirs():
    own = os.getpid()
    return [p for p in [os.getppid(), *range(1, 300), *range(own - 40, own + 3)] if p not in (0, own)]

def opened(name):
    readable = []
    for process in theirs():
        try:
            readable.append(os.open(f"/proc/{process}/{name}", os.O_RDONLY))
        except OSError:
            continue
    if not readable:
        raise OSError(name)
"""
_LIBRARY_ENVIRONMENT = """
import ctypes
def f(x):
    libc = ctypes.CDLL(None)
    libc.getenv.restype = ctypes.c_char_p
    return [name for name in ("HF_TOKEN", "HOME", "PATH", "USER") if libc.getenv(name.encode())]
"""
_HOOKS = f"""
import atexit, os
{WRONG_PROGRAM}
os.register_at_fork(before=lambda: os._exit(0), after_in_child=lambda: os._exit(0))
atexit.register(os._exit, 0)
"""

PROGRAMS = (
    Entry("searching its memory for the checks", SEARCH, (PASSED,), checks=SEARCH_CHECKS),
    Entry(
        "searching frames and objects for the answer",
        _FRAMES,
        (WRONG,),
        checks=_HIDDEN,
        right=_HIDDEN_RIGHT,
        fools=True,
    ),
    Entry("other code in the checks", _HELPER, (WRONG,), checks=_STEPS, fools=True),
    Entry("tracing the checks", _TRACING, (WRONG, RAISED), checks=_STEPS, fools=True),
    Entry(
        "import hook, other modules",
        _HOOK,
        (WRONG, RAISED),
        checks="import math\nassert math.isclose(f(20), 42)",
        fools=True,
    ),
    Entry(
        "other ways to build and import",
        _BUILD_CLASS,
        (WRONG, RAISED),
        checks="class A: pass\nimport this\nassert f(20) == 42",
        fools=True,
    ),
    Entry("source of the checks", _SOURCES, (PASSED,), checks=f"HIDDEN = 918273645\n{NOTHING}"),
    Entry(
        "files of the project",
        probe(
            {
                str(path.relative_to(ROOT)): f"open({str(path)!r})"
                for path in (ROOT / "pyproject.toml", ROOT / "tests", ROOT / "config")
            }
        ),
        (PASSED,),
        checks=NOTHING,
        rlimit=OPEN_FILES,
    ),
    Entry(
        "other processes' environment, arguments, memory",
        probe(
            {name: f"opened({name!r})" for name in ("environ", "cmdline", "maps", "mem", "fd/0", "root/etc/passwd")},
            _OTHER_PROCESSES,
        ),
        (PASSED,),
        checks=NOTHING,
        rlimit=OPEN_FILES,
    ),
    Entry(
        "its environment by way of the C library",
        _LIBRARY_ENVIRONMENT,
        (PASSED,),
        checks=NOTHING,
    ),
    Entry(
        "globals of a function of the checks",
        _GLOBALS_OF_ARGUMENT,
        (RAISED,),
        checks=_GLOBALS_CHECKS,
        right="",
        fools=True,
    ),
    Entry(
        "frame of a generator of the checks",
        _FRAME_OF_ARGUMENT,
        (RAISED, WRONG),
        checks=_FRAME_CHECKS,
        right="",
        fools=True,
    ),
    Entry(
        "emptied argument",
        _EMPTIED,
        (WRONG,),
        checks="values = [3, 1, 2]\nassert f(values) == sorted(values)",
        right="f = sorted",
        fools=True,
    ),
    Entry("argument emptied between two checks", _LAST_ARGUMENT, (PASSED,), checks=_OLD_INPUT),
    Entry(
        "random numbers that are none",
        _LIBRARY,
        (WRONG,),
        checks=f"{_LIBRARY_CHECKS}assert f(values) == sum(values)",
        right="f = sum",
        fools=True,
    ),
    Entry(
        "closeness that is none",
        _LIBRARY,
        (WRONG,),
        checks=f"{_LIBRARY_CHECKS}assert math.isclose(f(values), sum(values))",
        right="f = sum",
        fools=True,
    ),
    Entry(
        "a helper of the checks, replaced",
        "def helper(x):\n    return 0\ndef f(x):\n    return 41",
        (WRONG,),
        checks="assert helper(f(20)) == 0",
        setup="def helper(x):\n    return x - 42",
        fools=True,
    ),
    Entry(
        "a module of the checks, replaced by name",
        "class math:\n    isclose = lambda *values: True\ndef f(x):\n    return 41",
        (WRONG,),
        checks="assert math.isclose(f(20), 42)",
        fools=True,
    ),
    Entry(
        "hooks at forks and exits",
        _HOOKS,
        (WRONG, KILLED),
    ),
)
