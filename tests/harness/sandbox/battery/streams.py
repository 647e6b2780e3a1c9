"""Programs that print, warn, read, close and write where they should not."""

from __future__ import annotations

from tests.harness.sandbox.battery.entry import (
    BUSY,
    CPU,
    KILLED,
    OUTPUT,
    PASSED,
    RAISED,
    WRONG,
    WRONG_PROGRAM,
    Entry,
)

THEME = "streams and descriptors"

_MARKERS = f"""
import json, os, sys
{WRONG_PROGRAM}
for text in ("passed", json.dumps(["passed", "", 1, None]), json.dumps(dict(outcome="passed")), "\\r\\nOK\\0", "+"):
    print(text, flush=True)
    print(text, file=sys.stderr, flush=True)
"""
_EVERY_DESCRIPTOR = """
import json, os
def f(x):
    report = json.dumps(["passed", "", 1, None]).encode()
    for content in (report, len(report).to_bytes(4, "little") + report, b"passed" * 8):
        for descriptor in range(3, 1024):
            try:
                os.write(descriptor, content)
            except OSError:
                pass
    os._exit(0)
"""
_DISPLACED = """
import os
nothing = os.open(os.devnull, os.O_RDWR)
def f(x):
    for descriptor in range(3, 256):
        if descriptor != nothing:
            os.dup2(nothing, descriptor)
    return 41
"""
_JUNK = """
import os, sys
def f(x):
    os.write(1, bytes(range(256)) * 4 + "\\x1b]0;title\\x07\\x1b[2J\\u202e\\ufeff".encode())
    print("\\udcff", file=sys.stderr)
    return 2 * x + 2
"""
_FLOOD_OF_WARNINGS = """
import warnings
warnings.simplefilter("always")
def f(x):
    for number in range(5000):
        warnings.warn(f"number {number}")
    return 2 * x + 2
"""
_FLOOD_BY_THREAD = """
import os, threading
def flood():
    while True:
        os.write(1, b"x" * 4096)
def f(x):
    thread = threading.Thread(target=flood)
    thread.start()
    thread.join()
"""
_NO_DESCRIPTOR_LEFT = """
import os
kept = []
def f(x):
    try:
        while True:
            kept.append(os.open(os.devnull, os.O_RDONLY))
    except OSError:
        return 2 * x + 2
"""
_STREAM = """
import io, sys
class Stream(io.TextIOBase):
    def write(self, text):
        raise SystemExit(0)
    flush = close = __del__ = write
sys.stdout = sys.stderr = sys.__stdout__ = sys.__stderr__ = Stream()
def f(x):
    return 41
"""
# What stays open beyond the three streams is one way to the checks.
_INHERITED = """
import os, stat
def f(x):
    found = []
    for descriptor in range(3, 1024):
        try:
            mode = os.fstat(descriptor).st_mode
        except OSError:
            continue
        if not stat.S_ISDIR(mode):
            found.append(stat.filemode(mode)[0])
    return found
"""
_READ_BACK = "import os\ndef f(x):\n    return os.read({descriptor}, 100)"

PROGRAMS = (
    Entry(
        "flood in the call",
        "def f(x):\n    while True:\n        print('x' * 1000)",
        (CPU,),
        limits=BUSY,
        lasts=True,
    ),
    Entry("flood by a thread", _FLOOD_BY_THREAD, (CPU,), rlimit=(CPU, RAISED), limits=BUSY, lasts=True),
    Entry("one endless line", "import os\ndef f(x):\n    os.write(1, b'x' * 10_000_000)", (WRONG,)),
    Entry("bytes that are no text", _JUNK, (PASSED,)),
    Entry("markers of success", _MARKERS, (WRONG,)),
    Entry("reports to every descriptor", _EVERY_DESCRIPTOR, (RAISED, KILLED, OUTPUT), fools=True),
    Entry("every descriptor closed in the call", "import os\ndef f(x):\n    os.closerange(0, 1024)", (RAISED,)),
    Entry("every descriptor led to nothing", _DISPLACED, (RAISED,)),
    Entry("no descriptor left, and right", _NO_DESCRIPTOR_LEFT, (PASSED,)),
    Entry("question on standard input", "def f(x):\n    return input('?')", (RAISED,)),
    Entry(
        "standard input read to its end",
        "import sys\ndef f(x):\n    return sys.stdin.buffer.read() + open(0, 'rb').read()",
        (PASSED,),
        checks="assert f(0) == b''",
    ),
    Entry("output read back", _READ_BACK.format(descriptor=1), (RAISED,)),
    Entry("errors read back", _READ_BACK.format(descriptor=2), (WRONG, RAISED)),
    Entry("flood of warnings, and right", _FLOOD_OF_WARNINGS, (PASSED,)),
    Entry("streams that raise", _STREAM, (WRONG, RAISED)),
    Entry("descriptors it was born with", _INHERITED, (PASSED,), checks="assert f(0) == ['s'], f(0)"),
)
