"""Programs that end, or make others end, at a moment of their choice."""

from __future__ import annotations

from tests.harness.sandbox.battery.entry import (
    CPU,
    KILLED,
    OPEN_PROCESSES,
    PASSED,
    RAISED,
    WAITING,
    WALL,
    WRONG,
    WRONG_PROGRAM,
    Entry,
)

THEME = "exits, signals, processes left behind"

_TWICE = "assert f(20) == 42\nassert f(20) == 42"
_LEAVING_LATER = """
import os
calls = []
def f(x):
    calls.append(x)
    if len(calls) == 2:
        os._exit(0)
    return 2 * x + 2
"""
_LEAVING_AT_THE_LAST = f"""
import os, weakref
class Last:
    def __del__(self):
        os._exit(0)
last = Last()
weakref.finalize(last, os._exit, 0)
{WRONG_PROGRAM}
"""
_QUITTER = """
import os
class Quitter:
    def __del__(self):
        os._exit(0)
    def __eq__(self, other):
        os._exit(0)
    __bool__ = __len__ = __iter__ = __repr__ = __hash__ = __reduce__ = __class_getitem__ = __eq__
def f(x):
    return Quitter()
"""
_STARTED = """
import ctypes, os
def started(action):
    try:
        child = action()
    except OSError:
        return False
    if child == 0:
        os._exit(0)
    return child != -1
def f(x):
    libc = ctypes.CDLL(None)
    actions = [
        os.fork,
        os.forkpty,
        libc.fork,
        lambda: os.posix_spawn("/bin/true", ["true"], {}),
        lambda: libc.syscall(ctypes.c_long(CLONE), 17, 0, 0, 0, 0),
    ]
    return [number for number, action in enumerate(actions) if started(action)]
CLONE = 220 if os.uname().machine == "aarch64" else 56
"""
_NEW_SESSION = """
import os, time
def f(x):
    for leave in (os.setsid, lambda: os.setpgid(0, 0), lambda: os.fork() and os._exit(0)):
        try:
            leave()
        except OSError:
            pass
    time.sleep(60)
"""
_SIGNAL_ITSELF = "import os, signal\ndef f(x):\n    os.kill(os.getpid(), signal.{name})\n    return 41"
_FAULT = "import ctypes, signal\n{before}\ndef f(x):\n    ctypes.string_at(0)"
_WATCHDOG = (
    "import faulthandler\ndef f(x):\n    faulthandler.dump_traceback_later(0.05, exit=True)\n    while True: pass"
)
_CLASS = "class {name}({base}):\n    pass\ndef f(x):\n    raise {name}('x')"
_METACLASS = """
class M(type):
    def __getattribute__(cls, name):
        raise SystemExit(0)
class E(BaseException, metaclass=M):
    pass
def f(x):
    raise E
"""
_LYING_CLASS = """
class E(Exception):
    __class__ = property(lambda self: AssertionError)
    args = property(lambda self: 1 / 0)
E.__name__ = E.__qualname__ = "{name}"
E.__module__ = "builtins"
def f(x):
    raise E
"""
_INTO_THE_LOOP = """
import _thread, ctypes, threading
def f(x):
    main = ctypes.c_ulong(threading.main_thread().ident)
    ctypes.pythonapi.PyThreadState_SetAsyncExc(main, ctypes.py_object({error}))
    return 41
"""
_EMPTYING = "def f(x):\n    raise StopIteration"

PROGRAMS = (
    Entry("exit between two checks", _LEAVING_LATER, (RAISED,), checks=_TWICE, fools=True),
    Entry("SystemExit raised in the call", "def f(x):\n    raise SystemExit(0)", (RAISED,), fools=True),
    Entry(
        "exit by the interpreter's interface",
        "import ctypes\ndef f(x):\n    ctypes.pythonapi.Py_Exit(0)",
        (RAISED,),
        fools=True,
    ),
    Entry("exit when the last reference goes", _LEAVING_AT_THE_LAST, (WRONG,)),
    Entry("object that exits whatever is done with it", _QUITTER, (WRONG, RAISED), fools=True),
    Entry("processes by every way there is", _STARTED, (PASSED,), checks="assert f(0) == []"),
    Entry("a session of its own, asleep", _NEW_SESSION, (WALL,), limits=WAITING, lasts=True),
    Entry("fault in the call", _FAULT.format(before=""), (KILLED,)),
    Entry("fault ignored", _FAULT.format(before="signal.signal(signal.SIGSEGV, signal.SIG_IGN)"), (KILLED,)),
    Entry("fault reported", _FAULT.format(before="import faulthandler\nfaulthandler.enable()"), (KILLED,)),
    Entry("killing itself in the call", _SIGNAL_ITSELF.format(name="SIGKILL"), (KILLED,)),
    Entry("ending itself by the signal of the limit", _SIGNAL_ITSELF.format(name="SIGXCPU"), (CPU, KILLED)),
    Entry("stopping itself", _SIGNAL_ITSELF.format(name="SIGSTOP"), (WALL,), limits=WAITING, lasts=True),
    Entry(
        "signals to all it can reach",
        "import os\ndef f(x):\n    os.kill(-1, 0)",
        (RAISED,),
        rlimit=OPEN_PROCESSES,
    ),
    Entry("exit by watchdog", _WATCHDOG, (RAISED,)),
    Entry("class named AssertionError", _CLASS.format(name="AssertionError", base="Exception"), (RAISED,)),
    Entry("class named passed", _CLASS.format(name="passed", base="BaseException"), (RAISED,)),
    Entry("class derived from AssertionError", _CLASS.format(name="E", base="AssertionError"), (RAISED,)),
    Entry("class derived from SystemExit", _CLASS.format(name="E", base="SystemExit"), (RAISED,)),
    Entry("class whose class cannot be asked", _METACLASS, (RAISED,), fools=False),
    Entry("class that calls itself AssertionError", _LYING_CLASS.format(name="AssertionError"), (RAISED,)),
    Entry("class that calls itself SystemExit", _LYING_CLASS.format(name="SystemExit"), (RAISED,)),
    Entry("class that calls itself StopIteration", _LYING_CLASS.format(name="StopIteration"), (RAISED,)),
    Entry(
        "StopIteration in a loop of the checks",
        _EMPTYING,
        (RAISED,),
        checks="assert all(map(f, [20]))",
        right="def f(x):\n    return True",
        fools=True,
    ),
    Entry(
        "GeneratorExit in a loop of the checks",
        "def f(x):\n    raise GeneratorExit",
        (RAISED,),
        checks="assert all(f(x) == 42 for x in [20])",
    ),
    Entry(
        "message of ten million characters",
        "def f(x):\n    raise ValueError('x' * 10_000_000)",
        (RAISED,),
    ),
    Entry("message that is no text", "def f(x):\n    raise ValueError('\\ud800\\x00\\x1b[2J')", (RAISED,)),
    Entry(
        "group of exceptions, nested",
        "def f(x):\n    e = ValueError()\n    for _ in range(500):\n        e = ExceptionGroup('g', [e])\n    raise e",
        (RAISED,),
    ),
    Entry("exception into the waiting loop", _INTO_THE_LOOP.format(error="SystemExit"), (RAISED, WRONG)),
    Entry(
        "interrupt into the waiting loop",
        "import _thread\ndef f(x):\n    _thread.interrupt_main()\n    return 41",
        (RAISED, WRONG),
    ),
)
