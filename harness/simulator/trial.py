"""Trying many variants of one reference program in a single confined process.

The variants are mutants of a program that is known to be harmless, so they need no process each; what matters is that
thousands of them are tried in little time. Nothing that a model wrote is ever tried here.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from harness.benchmarks.items import CodeTask
from harness.sandbox import Execution, Outcome, Program

Result = Literal["passed", "failed", "slow"]

# Processor seconds for one variant. A wrong program is graded again with every reply that holds it, so it must fail
# fast; the limit of the process has to leave room for all variants of a question.
VARIANT_S = 0.2

_MARK = "-- results --"
_TRIAL = f"""
import contextlib, io, json, signal

class OutOfTime(BaseException):
    pass

def give_up(signum, frame):
    raise OutOfTime

def attempt(*sources):
    names = {{"__name__": "solution"}}
    signal.setitimer(signal.ITIMER_VIRTUAL, {VARIANT_S})
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            for source in sources:
                exec(compile(source, "<variant>", "exec"), names)
        return "passed"
    except OutOfTime:
        return "slow"
    except BaseException:
        return "failed"
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)

signal.signal(signal.SIGVTALRM, give_up)
results = [[attempt(setup, source, checks), attempt(setup, source, visible)] for source in sources]
print({_MARK!r} + json.dumps(results))
"""


@dataclass(frozen=True, slots=True)
class Attempt:
    """How one variant did.

    Attributes:
        checks: On the checks of the question; ``slow`` where time ran out.
        passes_visible: Whether it passed the visible examples; false where there are none.
    """

    checks: Result
    passes_visible: bool


def trial(sources: Sequence[str], task: CodeTask) -> Program:
    """A program that tries variants one after the other and prints how each did."""
    values = {
        "sources": list(sources),
        "setup": task.setup,
        "checks": task.checks,
        "visible": "\n".join(task.visible),
    }
    return Program("".join(f"{name} = {value!r}\n" for name, value in values.items()) + _TRIAL)


def read_trial(execution: Execution, task: CodeTask) -> list[Attempt] | None:
    """What a trial found, in the order of its sources; ``None`` where it did not come to its end."""
    _, mark, results = execution.stdout.rpartition(_MARK)
    if execution.outcome is not Outcome.PASSED or not mark:
        return None
    return [Attempt(checks, bool(task.visible) and visible == "passed") for checks, visible in json.loads(results)]
