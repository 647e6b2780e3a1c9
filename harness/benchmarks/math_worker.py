"""The process in which Math-Verify runs: a pair of gold and answer in, a verdict out, both JSON.

Third-party parsers get a model's text and may run for ever, exhaust memory, kill the interpreter or evaluate what they
read. So every pair is decided in a confined child of its own, forked after the imports, whose processor time and memory
the kernel limits. What it says besides one of three words is no verdict.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import signal
import sys
import sysconfig

from harness.sandbox.jail import confinement, linux
from harness.sandbox.jail.protocol import Channel

CPU_LIMIT_S = 4
# Nothing here waits, so it takes a machine that gives a child less than a thirtieth of a core to meet this limit.
WALL_LIMIT_S = 120
MEMORY_LIMIT_MIB = 2 << 10
OPEN_FILES = 64
VERDICTS = (b"true", b"false", b"null")
# Parsed before the first fork, as the parsers build up tables on their first texts.
WARMING = (
    (r"\frac{\sqrt{2}}{2} + 3^{10}", r"0.5x^2 - \sin(\pi) \cdot 7"),
    (r"(1, 2] \cup [3, \infty)", r"\left\{1, -2\right\}"),
    (r"\begin{pmatrix} 1 & 2 \\ 3 & 4 \end{pmatrix}", r"x = 5,\ y = 12\%"),
    (r"\text{Evelyn}", r"1,234.5"),
)


def main() -> None:
    """Answer requests until the connection ends."""
    for gold, answer in WARMING:
        _equal(gold, answer)
    devnull = os.open(os.devnull, os.O_RDWR)
    _confine_files()
    gc.freeze()
    channel = Channel(0)
    with contextlib.suppress(EOFError):
        while True:
            gold, answer = json.loads(channel.receive())
            channel.send(_decide(gold, answer, devnull))


def _confine_files() -> None:
    """Let this process and its children read Python's own files and open nothing else, if the kernel can do so."""
    sys.dont_write_bytecode = True
    paths = {*sys.path, *(sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib"))}
    readable = [(path, "tree" if os.path.isdir(path) else "file") for path in sorted(paths) if os.path.exists(path)]
    with contextlib.suppress(OSError):
        rules = linux.landlock_rules(readable, None)
        linux.forbid_new_privileges()
        linux.apply_landlock(rules)


def _decide(gold: str, answer: str, devnull: int) -> bytes:
    """Return the verdict of a child process; a child that ends without one has decided nothing."""
    reading, writing = os.pipe()
    parent = os.getpid()
    child = os.fork()
    if child == 0:
        _end_with_verdict(gold, answer, writing, devnull, parent)
    os.close(writing)
    with open(reading, "rb") as replies:
        reply = replies.read(max(map(len, VERDICTS)) + 1)
    os.waitpid(child, 0)
    return reply if reply in VERDICTS else b"null"


def _end_with_verdict(gold: str, answer: str, writing: int, devnull: int, parent: int) -> None:
    try:
        for standard in (0, 1, 2):
            os.dup2(devnull, standard)
        signal.alarm(WALL_LIMIT_S)
        confinement.set_rlimits(
            {"cpu_s": CPU_LIMIT_S, "memory_mib": MEMORY_LIMIT_MIB, "file_mib": 0, "open_files": OPEN_FILES}
        )
        # Where the kernel has none of this, as on another system than Linux, the first call raises OSError.
        with contextlib.suppress(OSError):
            linux.die_with_parent(parent)
            linux.drop_capabilities()
            linux.forbid_new_privileges()
            linux.filter_calls()
        os.write(writing, json.dumps(_equal(gold, answer)).encode())
    finally:
        os._exit(0)


def _equal(gold: str, answer: str) -> bool | None:
    from math_verify import parse, verify

    try:
        expected, given = (
            parse(f"\\boxed{{{text}}}", parsing_timeout=None, raise_on_error=True) for text in (gold, answer)
        )
        return bool(verify(expected, given, timeout_seconds=None, raise_on_error=True))
    except Exception:  # whatever a parser makes of arbitrary text is no verdict on it
        return None


if __name__ == "__main__":
    main()
