"""Programs that use more than they may: processor time, wall time, memory, threads, depth."""

from __future__ import annotations

from tests.harness.sandbox.battery.entry import (
    BUSY,
    CPU,
    KILLED,
    MEMORY,
    PASSED,
    RAISED,
    WAITING,
    WALL,
    WRONG,
    Entry,
)

THEME = "time, memory, threads"

_FORK_BOMB = """
import os
def f(x):
    failures = 0
    while failures < 1000:
        try:
            os.fork()
        except OSError:
            failures += 1
    return os.getpid()
first = os.getpid()
"""
_THREAD_BOMB = """
import threading, time
def f(x):
    started = 0
    try:
        while True:
            threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
            started += 1
    except (RuntimeError, MemoryError):
        return started
"""
_SPINNING_THREADS = """
import hashlib, threading
def spin():
    data = bytes(1 << 20)
    while True:
        hashlib.sha256(data).digest()
def f(x):
    threads = [threading.Thread(target=spin) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
"""
_DOUBLING = """
def f(x):
    values = [0]
    while True:
        values = values * 2
"""
_DOUBLING_CAUGHT = """
def f(x):
    values = [0]
    try:
        while True:
            values = values * 2
    except MemoryError:
        return 41
"""
_LIBRARY_MEMORY = """
import ctypes
def f(x):
    libc = ctypes.CDLL(None)
    libc.malloc.restype = ctypes.c_void_p
    size, count = 1 << 20, 0
    while place := libc.malloc(ctypes.c_size_t(size)):
        ctypes.memset(place, 1, size)
        count += 1
    return count
"""
_ALL_SIGNALS_IGNORED = """
import signal, time
for number in range(1, 65):
    try:
        signal.signal(number, signal.SIG_IGN)
    except (OSError, ValueError):
        pass
def f(x):
    {wait}
"""
_PENDING = """
import signal
signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))
def f(x):
    while True:
        pass
"""
_DEEP = """
import sys, threading
sys.setrecursionlimit(10 ** 9)
class Deep:
    def __getattr__(self, name):
        return getattr(self, name + "x")
    def __eq__(self, other):
        return self == other
    def __repr__(self):
        return repr(self)
"""
_SELF_LIMITED = """
import resource
def f(x):
    resource.setrlimit(resource.RLIMIT_{name}, (0, 0))
    {then}
"""

PROGRAMS = (
    Entry("fork bomb in the call", _FORK_BOMB, (PASSED,), checks="assert f(0) == first"),
    Entry("thread bomb in the call", _THREAD_BOMB, (PASSED,), checks="assert f(0) <= 64"),
    Entry(
        "threads with enormous stacks",
        f"import threading\nthreading.stack_size(1 << 40){_THREAD_BOMB}",
        (PASSED,),
        checks="assert f(0) == 0",
    ),
    Entry("list doubling in the call", _DOUBLING, (MEMORY,)),
    Entry("memory error caught", _DOUBLING_CAUGHT, (WRONG,)),
    Entry("one allocation in the call", "def f(x):\n    return bytearray(1 << 40)", (MEMORY,)),
    Entry("anonymous map", "import mmap\ndef f(x):\n    mmap.mmap(-1, 1 << 40)", (RAISED, MEMORY)),
    Entry("memory of the C library", _LIBRARY_MEMORY, (PASSED,), checks="assert 0 < f(0) < 256"),
    Entry(
        "yielding the processor",
        "import os\ndef f(x):\n    while True:\n        os.sched_yield()",
        (CPU, WALL),
        limits=BUSY,
        lasts=True,
    ),
    Entry("threads that spin without the lock", _SPINNING_THREADS, (CPU,), limits=BUSY, lasts=True),
    Entry(
        "sleep in the call",
        "import time\ndef f(x):\n    time.sleep(60)",
        (WALL,),
        limits=WAITING,
        lasts=True,
    ),
    Entry(
        "every signal ignored, asleep",
        _ALL_SIGNALS_IGNORED.format(wait="time.sleep(60)"),
        (WALL,),
        limits=WAITING,
        lasts=True,
    ),
    Entry("every signal blocked, busy", _PENDING, (CPU,), limits=BUSY, lasts=True),
    Entry(
        "recursion of the interpreter in the call",
        f"{_DEEP}\ndef f(x):\n    return Deep().name",
        (KILLED, MEMORY, RAISED),
    ),
    Entry(
        "recursion of the interpreter in a thread",
        f"{_DEEP}\ndef f(x):\n    t = threading.Thread(target=repr, args=(Deep(),))\n    t.start()\n    t.join()",
        (KILLED, MEMORY, RAISED, WRONG),
    ),
    Entry(
        "object that recurses in its comparison and its text",
        f"{_DEEP}\ndef f(x):\n    return Deep()",
        (WRONG,),
        checks="assert f(20) == 42, repr(f(20))",
    ),
    Entry(
        "exception that recurses in its text",
        "class E(Exception):\n    def __str__(self):\n        return str(self)\ndef f(x):\n    raise E",
        (RAISED,),
    ),
    Entry("no more memory, by its own choice", _SELF_LIMITED.format(name="AS", then="bytes(1 << 24)"), (MEMORY,)),
    Entry(
        "no more processor time, by its own choice",
        _SELF_LIMITED.format(name="CPU", then="sum(range(10 ** 9))"),
        (CPU, KILLED),
    ),
    Entry("no more files, by its own choice", _SELF_LIMITED.format(name="NOFILE", then="open('x', 'w')"), (RAISED,)),
)
