"""Every way to end, at every level this machine has."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from harness.sandbox import Execution, Limits, Outcome, Program, Sandbox

Execute = Callable[..., Awaitable[Execution]]

# Tried once more, alone.
TOO_LONG = Execution(Outcome.CPU_LIMIT, "more than 1 s of processor time", "", first=Outcome.CPU_LIMIT)
HONEST = "def double(x):\n    return 2 * x\n"

CASES = {
    "honest": (HONEST, "assert double(2) == 4", Outcome.PASSED, ""),
    "no checks": ("x = 1", "", Outcome.PASSED, ""),
    "wrong": (
        HONEST,
        "assert True\nassert double(2) == 5, 'not five'",
        Outcome.WRONG_ANSWER,
        "not five (checks, line 2)",
    ),
    "wrong in a function of the checks": (
        HONEST,
        "def check(f):\n    assert f(1) == 3\ncheck(double)",
        Outcome.WRONG_ANSWER,
        "AssertionError (checks, line 2)",
    ),
    "own assertion": ("def f():\n    assert False", "f()", Outcome.EXCEPTION, "AssertionError (program, line 2)"),
    "exception": ("def f():\n    return 1 / 0", "f()", Outcome.EXCEPTION, "ZeroDivisionError"),
    "exception at import": ("import numpy_that_is_not_here", "", Outcome.EXCEPTION, "ModuleNotFoundError"),
    "missing function": ("x = 1", "f()", Outcome.EXCEPTION, "NameError"),
    "syntax": ("def f(:\n    pass", "f()", Outcome.NOT_EXECUTABLE, "SyntaxError"),
    "prose": ("Sure, here is the function you asked for.", "", Outcome.NOT_EXECUTABLE, "SyntaxError"),
    "null byte": ("x = 1\0", "", Outcome.NOT_EXECUTABLE, "null "),
    "lone surrogate": ("x = '\ud800'", "", Outcome.NOT_EXECUTABLE, "UnicodeEncodeError"),
    "nested too deep": ("x = " + "(" * 5000, "", Outcome.NOT_EXECUTABLE, "SyntaxError"),
    "byte order mark": ("\ufeffx = 1", "assert x == 1", Outcome.NOT_EXECUTABLE, "SyntaxError"),
    "carriage returns": ("def f():\r\n    return 1\r\n", "assert f() == 1", Outcome.PASSED, ""),
    "memory bomb": ("x = [0]\nwhile True:\n    x = x * 2", "", Outcome.MEMORY_LIMIT, "MemoryError"),
    "one big allocation": ("x = bytearray(1 << 40)", "", Outcome.MEMORY_LIMIT, "MemoryError"),
    "recursion": ("def f(n):\n    return f(n + 1)\nf(0)", "", Outcome.EXCEPTION, "RecursionError"),
    "segmentation fault": ("import ctypes\nctypes.string_at(0)", "", Outcome.KILLED, "SIGSEGV"),
    "abort": ("import os\nos.abort()", "", Outcome.KILLED, "SIGABRT"),
    "suicide": ("import os\nos.kill(os.getpid(), 9)", "", Outcome.KILLED, "SIGKILL"),
    "signal without a name": ("import os\nos.kill(os.getpid(), 40)", "", Outcome.KILLED, "signal 40"),
    "keyboard interrupt": ("raise KeyboardInterrupt", "", Outcome.EXCEPTION, "KeyboardInterrupt"),
    "input": ("name = input()", "", Outcome.EXCEPTION, "EOFError"),
    "asyncio": (
        "import asyncio\nasync def f():\n    await asyncio.sleep(0)\n    return 3\nassert asyncio.run(f()) == 3",
        "",
        Outcome.PASSED,
        "",
    ),
    "dataclass": (
        (
            "from __future__ import annotations\nfrom dataclasses import dataclass\n@dataclass\nclass P:\n    x: int\n"
            "assert P(1) == P(1)"
        ),
        "assert P(1).x == 1",
        Outcome.PASSED,
        "",
    ),
    "pickle": (
        "import pickle\nclass P:\n    pass\nassert type(pickle.loads(pickle.dumps(P()))) is P",
        "",
        Outcome.PASSED,
        "",
    ),
    "main block": ("if __name__ == '__main__':\n    raise SystemExit(3)", "", Outcome.PASSED, ""),
    "many libraries": (
        (
            "import bisect, collections, decimal, email.message, fractions, hashlib, heapq, itertools, json, math, "
            "lzma, random, re, sqlite3, ssl, statistics, string, typing, unittest, zoneinfo, encodings.utf_16"
        ),
        "assert 'é'.encode('utf-16') and zoneinfo.ZoneInfo",
        Outcome.PASSED,
        "",
    ),
    "work directory": (
        (
            "import os, pathlib, tempfile\nempty = os.listdir('.')\npathlib.Path('a').mkdir()\n"
            "pathlib.Path('a/b.txt').write_text('x')\nwith tempfile.TemporaryFile() as f:\n    f.write(b'1')\n"
            "written = open('a/b.txt').read()"
        ),
        "assert empty == [] and written == 'x'",
        Outcome.PASSED,
        "",
    ),
    "devnull": ("import os\nprint('x', file=open(os.devnull, 'w'))", "", Outcome.PASSED, ""),
    "hostile message": (
        "class E(Exception):\n    def __str__(self):\n        raise RuntimeError\nraise E",
        "",
        Outcome.EXCEPTION,
        "",
    ),
}


# Each takes as long as the limit, so the best level alone shows them.
SLOW_CASES = {
    "big power": "x = 10 ** 10 ** 9",
    "regex": "import re\nre.match(r'(a+)+$', 'a' * 40 + 'b')",
    "caught": "while True:\n    try:\n        while True:\n            pass\n    except BaseException:\n        pass",
    "ignored": "import signal\nsignal.signal(signal.SIGXCPU, signal.SIG_IGN)\nwhile True:\n    pass",
}


@pytest.mark.parametrize("case", CASES)
async def test_outcome(execute: Execute, case: str) -> None:
    source, checks, outcome, detail = CASES[case]
    execution = await execute(source, checks)
    assert execution.outcome is outcome, execution
    assert detail in execution.detail


@pytest.mark.parametrize("case", SLOW_CASES)
async def test_no_trick_buys_processor_time(case: str) -> None:
    async with Sandbox(Limits(cpu_s=1, wall_s=20.0)) as sandbox:
        execution = await sandbox.run(Program(SLOW_CASES[case]))
    assert execution == TOO_LONG


async def test_processor_time_is_bounded(execute: Execute) -> None:
    assert (await execute("print('x', flush=True)\nwhile True:\n    pass")) == TOO_LONG


async def test_setup_runs_first_in_the_same_namespace(execute: Execute) -> None:
    execution = await execute("b = a + 1", setup="import math\na = 1", checks="assert (b, math.floor(2.5)) == (2, 2)")
    assert execution == Execution(Outcome.PASSED, "", "", assertions=1)


async def test_a_fault_of_the_setup_is_named(execute: Execute) -> None:
    execution = await execute("x = 1", setup="import nothing_like_this")
    assert execution.outcome is Outcome.EXCEPTION
    assert execution.detail.endswith("(setup, line 1)")


async def test_output_is_returned_and_invalid_bytes_are_replaced(execute: Execute) -> None:
    execution = await execute("import sys\nprint('ä')\nsys.stdout.flush()\nsys.stdout.buffer.write(b'\\xff\\x1b[31m')")
    assert execution == Execution(Outcome.PASSED, "", "ä\n\ufffd\x1b[31m")


async def test_output_of_a_failing_program_is_returned(execute: Execute) -> None:
    execution = await execute("print('seen')\nraise ValueError('gone')")
    assert (execution.outcome, execution.stdout) == (Outcome.EXCEPTION, "seen\n")


@pytest.mark.parametrize("length", [64 * 1024, 150_000, 10_000_000])
async def test_output_beyond_the_limit_is_cut_and_no_failure(execute: Execute, length: int) -> None:
    execution = await execute(f"print('x' * {length - 1})\ndef f():\n    return 1", "assert f() == 1")
    assert execution.outcome is Outcome.PASSED, execution
    assert len(execution.stdout) == 64 * 1024


async def test_errors_and_warnings_are_no_output(execute: Execute) -> None:
    execution = await execute("import sys\nfor _ in range(10_000):\n    print('x' * 100, file=sys.stderr)")
    assert execution == Execution(Outcome.PASSED, "", "")


async def test_closed_streams_are_no_failure(execute: Execute) -> None:
    assert (await execute("import os\nfor d in range(3):\n    os.close(d)")).outcome is Outcome.PASSED
    assert (await execute("import sys\nsys.stdout.close()")).outcome is Outcome.PASSED


async def test_large_programs_arrive_complete(execute: Execute) -> None:
    source = "x = 0\n" + "x += 1  # filler\n" * 20_000
    assert (await execute(source, "assert x == 20_000")).outcome is Outcome.PASSED


async def test_addresses_and_hash_order_do_not_show(execute: Execute) -> None:
    source = "words = {'a', 'b', 'c', 'd', 'e', 'f'}\nprint(words)\nraise ValueError(object())"
    first, second = await execute(source), await execute(source)
    assert first == second
    assert "0x..." in first.detail
