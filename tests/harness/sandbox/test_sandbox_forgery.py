"""Programs that want to pass without being right."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from harness.sandbox import Execution, Outcome

Execute = Callable[..., Awaitable[Execution]]

CHECKS = "assert answer() == 42"
WRONG = "def answer():\n    return 41\n"

TRICKS = {
    "sys.exit": "import sys\nsys.exit(0)",
    "sys.exit in the function": "import sys\ndef answer():\n    sys.exit(0)",
    "os._exit": "import os\nos._exit(0)",
    "os._exit in the function": "import os\ndef answer():\n    os._exit(0)",
    "exit in a thread": "import os, threading\n" + WRONG + "threading.Thread(target=os._exit, args=(0,)).start()",
    "exit in atexit": "import atexit, os\n" + WRONG + "atexit.register(os._exit, 0)",
    "exit in a finaliser": WRONG + "import os\nclass T:\n    def __del__(self):\n        os._exit(0)\nt = T()",
    "exit when the exception is shown": (
        "import os\nclass E(AssertionError):\n    def __str__(self):\n        os._exit(0)\ndef answer():\n    raise E"
    ),
    "exit in the exception hook": "import os, sys\n" + WRONG + "sys.excepthook = lambda *a: os._exit(0)",
    "markers on the streams": "import sys\nprint('PASSED', True, 0)\nprint('passed', file=sys.stderr)\n" + WRONG,
    "writing to every descriptor": (
        "import os\n" + WRONG + "for d in range(3, 256):\n    try:\n        os.write(d, b'passed' * 8)\n"
        "    except OSError:\n        pass\nos._exit(0)"
    ),
    "claiming success": (
        "import os\nfor d in range(3, 256):\n    try:\n        os.write(d, b'passed\\n')\n    except OSError:\n"
        "        pass\nos._exit(0)"
    ),
    "new built-ins": (
        "import builtins, os\n" + WRONG + "builtins.AssertionError = builtins.BaseException = Exception\n"
        "builtins.isinstance = lambda *a: os._exit(0)\nbuiltins.type = builtins.getattr = builtins.isinstance"
    ),
    "new system calls": "import os\n" + WRONG + "os._exit = os.write = os.read = lambda *a: 0",
    "swallowing the exit": "import os\n" + WRONG + "os._exit = lambda status: os.kill(os.getpid(), 9)",
    "searching frames for a secret": (
        "import os, sys\n" + WRONG + "frame = sys._getframe()\nfound = []\nwhile frame:\n"
        "    found += [v for v in frame.f_locals.values() if isinstance(v, bytes)]\n    frame = frame.f_back\n"
        "for d in range(3, 256):\n    for value in found:\n        try:\n            os.write(d, value)\n"
        "        except OSError:\n            pass\nos._exit(0)"
    ),
    "emptying the stages": (
        "import sys\n" + WRONG + "frame = sys._getframe()\nwhile frame:\n    for value in frame.f_locals.values():\n"
        "        if isinstance(value, list):\n            value.clear()\n    frame = frame.f_back"
    ),
    "endless recursion": "import sys\nsys.setrecursionlimit(10 ** 9)\ndef answer():\n    return answer()",
    "closing every descriptor": "import os\nos.closerange(3, 256)\n" + WRONG,
}


@pytest.mark.parametrize("trick", TRICKS)
async def test_a_trick_does_not_pass(execute: Execute, trick: str) -> None:
    execution = await execute(TRICKS[trick], CHECKS)
    assert execution.outcome not in (Outcome.PASSED, Outcome.SANDBOX_ERROR), execution


# Checks that go on, or stop early, where they are told to in the way their own library does it; what would tell them.
SIGNALS = {
    "skipped": (
        (
            "import unittest\nclass Case(unittest.TestCase):\n    def test(self):\n"
            "        self.assertEqual(answer(), 42)\nresult = unittest.TestResult()\nCase('test').run(result)\n"
            "assert result.wasSuccessful()"
        ),
        "unittest.case",
        "SkipTest",
    ),
    "skipped under another name": (
        "import unittest\ntry:\n    answer()\nexcept unittest.SkipTest:\n    assert answer",
        "unittest",
        "SkipTest",
    ),
    "cancelled": (
        (
            "import asyncio\nasync def case():\n    assert answer() == 42\nasync def main():\n"
            "    task = asyncio.ensure_future(case())\n    await asyncio.wait([task])\n"
            "    assert task.cancelled()\nasyncio.run(main())"
        ),
        "asyncio.exceptions",
        "CancelledError",
    ),
    "ended": (
        "for value in map(lambda _: answer(), [1]):\n    assert False\nassert answer",
        "builtins",
        "StopIteration",
    ),
    "no exception": ("try:\n    answer()\nexcept (ValueError, TypeError):\n    assert answer", "json", "JSONDecoder"),
    "not what the library calls it": (
        "import json\ntry:\n    answer()\nexcept json.JSONDecodeError:\n    assert answer",
        "json",
        "JSONDecodeError",
    ),
    "another kind of error": (
        "import json\ntry:\n    answer()\nexcept ValueError:\n    assert answer",
        "json.decoder",
        "JSONDecodeError",
    ),
    "not loaded": (
        "try:\n    answer()\nexcept Exception as e:\n    import sys\n    assert 'antigravity' in sys.modules",
        "antigravity",
        "Error",
    ),
    "of the sandbox": (
        (
            "import sys\nkind = next(vars(m)['Dismissed'] for m in [*sys.modules.values()] if 'Dismissed' in vars(m))\n"
            "try:\n    answer()\nexcept kind:\n    assert answer"
        ),
        "harness.sandbox.jail.values",
        "Dismissed",
    ),
}


@pytest.mark.parametrize("signal", SIGNALS)
@pytest.mark.parametrize("base", ["Exception", "BaseException"])
async def test_a_class_that_lies_about_its_module_is_none_that_tells_checks_how_to_go_on(
    execute: Execute, signal: str, base: str
) -> None:
    checks, module, name = SIGNALS[signal]
    liar = f"class Liar({base}):\n    __module__ = {module!r}\n    __qualname__ = {name!r}\nLiar.__name__ = {name!r}\n"
    execution = await execute(liar + "def answer():\n    raise Liar", checks)
    assert execution.outcome in (Outcome.WRONG_ANSWER, Outcome.EXCEPTION), execution


@pytest.mark.parametrize("signal", ["skipped", "cancelled"])
async def test_nor_is_the_class_itself(execute: Execute, signal: str) -> None:
    checks, module, name = SIGNALS[signal]
    execution = await execute(f"from {module} import {name}\ndef answer():\n    raise {name}", checks)
    assert execution.outcome in (Outcome.WRONG_ANSWER, Outcome.EXCEPTION), execution


async def test_no_class_of_the_library_is_made_from_what_a_program_passes_it(execute: Execute) -> None:
    # Its own constructor would count lines with a method of the second argument.
    program = (
        "class Text:\n    def count(self, *a): return 41\n    rindex = count\n"
        "class E(ValueError):\n    __module__ = 'json.decoder'\n    __qualname__ = 'JSONDecodeError'\n"
        "def answer():\n    raise E('x', Text(), 1)"
    )
    checks = (
        "import json\ntry:\n    answer()\nexcept json.JSONDecodeError as error:\n"
        "    assert error.args[::2] == ('x', 1)\n    assert 'lineno' not in vars(error)"
    )
    assert (await execute(program, checks)).outcome is Outcome.PASSED


async def test_an_early_exit_is_named(execute: Execute) -> None:
    execution = await execute("import os\nos._exit(0)", CHECKS)
    assert execution.outcome is Outcome.EXCEPTION
    assert execution.detail == "exit with status 0 before the last check"


async def test_one_program_leaves_no_trace_for_the_next(execute: Execute) -> None:
    first = "import builtins, sys\nbuiltins.answer = lambda: 42\nsys.modules['math'] = None\nopen('trace', 'w').close()"
    assert (await execute(first)).outcome is Outcome.PASSED
    execution = await execute("import math, os\nfiles = os.listdir('.')", "assert files == []\n" + CHECKS)
    assert execution.outcome is Outcome.EXCEPTION
    assert "NameError" in execution.detail
