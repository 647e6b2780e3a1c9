"""From what a worker reported to how the execution ended."""

from __future__ import annotations

import os
import re
import signal
from typing import Any

from harness.sandbox.jail import grader, nursery
from harness.sandbox.jail.channel import LONGEST_ORDER
from harness.sandbox.model import Execution, Limits, Outcome, Program
from harness.sandbox.orders import BOX_BYTES, BOX_ENTRIES

# Ends at a moment that differs between runs, and with it the amount of output.
_CUT_ANYWHERE = {Outcome.CPU_LIMIT, Outcome.WALL_LIMIT, Outcome.KILLED, Outcome.SANDBOX_ERROR}
_ADDRESS = re.compile(r"\b0x[0-9a-fA-F]{6,}\b")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]+")
_LONGEST_DETAIL = 300


def judge(found: dict[str, Any], limits: Limits) -> Execution:
    """The execution a worker's report amounts to, without anything that differs between two runs of one program.

    Args:
        found: From :meth:`harness.sandbox.jail.grader.Grader.grade`.
        limits: What was allowed.
    """
    outcome, detail = _ended(found, limits)
    stdout = "" if outcome in _CUT_ANYWHERE else found["stdout"].decode("utf-8", "replace")
    shown = _writable(found["shown"]) if outcome is Outcome.PASSED and found["shown"] is not None else None
    return Execution(outcome, _line(detail), stdout, shown, found["assertions"])


def _writable(text: str) -> str:
    """The text with nothing in it that a file cannot hold."""
    return text.encode("utf-8", "replace").decode()


def _line(detail: str) -> str:
    """One line for people; a program may have worded it."""
    return _writable(_ADDRESS.sub("0x...", _CONTROL.sub(" ", detail))[:_LONGEST_DETAIL])


def failed(reason: object) -> Execution:
    """The execution that did not take place because the sandbox failed."""
    return Execution(Outcome.SANDBOX_ERROR, _line(str(reason)), "")


def _ended(found: dict[str, Any], limits: Limits) -> tuple[Outcome, str]:
    if found["cut"] == nursery.WALL:
        return Outcome.WALL_LIMIT, f"more than {limits.wall_s:g} s of wall time"
    if found["cut"] == nursery.CROWDED:
        return Outcome.OUTPUT_LIMIT, f"more than {BOX_ENTRIES} files or {BOX_BYTES >> 20} MiB of them"
    match found["outcome"]:
        case grader.FAILURE:
            return Outcome.SANDBOX_ERROR, found["detail"]
        case grader.GONE:
            return _program_ended(found["status"], found["cpu_s"], limits)
        case outcome:
            return Outcome(outcome), found["detail"]


def out_of_time(limits: Limits) -> Execution:
    """The execution whose checks took too long: only with what a program returns can they."""
    return Execution(Outcome.CPU_LIMIT, f"more than {limits.cpu_s} s of processor time in the checks", "")


def too_long(program: Program) -> Execution:
    """The execution of a text that no worker takes."""
    told = f"more than {LONGEST_ORDER >> 20} MiB of source, {len(program.source)} characters of it the program"
    return Execution(Outcome.NOT_EXECUTABLE, told, "")


def _program_ended(status: int, cpu_s: float, limits: Limits) -> tuple[Outcome, str]:
    if not os.WIFSIGNALED(status):
        return Outcome.EXCEPTION, f"exit with status {os.WEXITSTATUS(status)} before the last check"
    number = os.WTERMSIG(status)
    # A program that ignores the first signal at the limit is killed by the second one.
    if number == signal.SIGXCPU or (number == signal.SIGKILL and cpu_s >= limits.cpu_s):
        return Outcome.CPU_LIMIT, f"more than {limits.cpu_s} s of processor time"
    names = {known.value: known.name for known in signal.Signals}
    return Outcome.KILLED, names.get(number, f"signal {number}")
