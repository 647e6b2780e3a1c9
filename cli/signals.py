"""Ctrl-C, SIGTERM and a closed terminal: cancel the work, save it, and exit with one line.

The exit status is 130, 143 or 129, even if the work has just finished. On a second signal the process exits at once.

Snakemake is the parent of jobs: it sets their environment, and both stop together.
"""

from __future__ import annotations

import logging
import os
import select
import shutil
import signal
import socket
import sys
import threading
import time
from collections.abc import Coroutine
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import Any, TypeVar

from filelock import FileLock, Timeout

from harness.errors import StoppedError

T = TypeVar("T")

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_AGAIN = "run the same command again"
PARENT = "GMR_PARENT"
# Snakemake's lock of a folder, and in it host, process and start of the run that holds it.
_HOLDER = Path(".snakemake", "locks", "holder")
_own_lock = FileLock(".snakemake/gmr.lock")


def stop_cleanly() -> None:
    """Exit with one line if a signal arrives outside of :func:`run`."""
    for number in _handled_signals():
        signal.signal(number, _end)


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine. On a signal, cancel it, log one line and raise SystemExit."""
    import asyncio

    from harness.files import exit_now

    received: list[int] = []

    async def start() -> T:
        loop, task = asyncio.get_running_loop(), asyncio.current_task()

        def cancel(number: int, _: FrameType | None) -> None:
            if not received:
                received.append(number)
                # A direct cancel() would not wake the event loop.
                loop.call_soon_threadsafe(task.cancel)  # type: ignore[union-attr]
            elif number != signal.SIGHUP:  # The kernel and the shell of a closed terminal both send it.
                _say(number, f"second signal, exited at once; {_AGAIN}")
                exit_now(128 + number)

        before = {number: signal.signal(number, cancel) for number in _handled_signals()}
        try:
            return await work
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    try:
        result = asyncio.run(start())
    except BaseException as error:
        if not received:
            raise
        # Another error during cancellation is not reported. It recurs if it has another cause.
        _say(received[0], str(error) if isinstance(error, StoppedError) else _AGAIN)
        sys.exit(128 + received[0])
    if received:
        # The signal arrived after the work. The caller must not go on.
        _end(received[0], None)
    return result


def _handled_signals() -> list[signal.Signals]:
    """Signals that stop a process. `nohup` ignores SIGHUP."""
    return [number for number in _SIGNALS if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN]


def _end(number: int, frame: FrameType | None) -> None:
    _say(number, _AGAIN)
    sys.exit(128 + number)


def _say(number: int, what: str) -> None:
    logging.error("stopped by %s; %s", signal.Signals(number).name, what)


def prepare_jobs() -> None:
    """Set the environment of jobs, and handle a closed terminal like Ctrl-C. Called when Snakemake reads the rules."""
    os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    os.environ.setdefault(PARENT, f"{socket.gethostname()}:{os.getpid()}")
    for number, usual in ((signal.SIGHUP, signal.SIG_DFL), (signal.SIGINT, signal.default_int_handler)):
        if signal.getsignal(number) == usual:
            signal.signal(number, _interrupt)


def note_holder() -> None:
    """Write beside Snakemake's lock who holds it. Snakemake deletes both."""
    with suppress(OSError):
        _HOLDER.write_text(f"{socket.gethostname()} {os.getpid()} {time.strftime('%F %T')}")


def release_dead_lock() -> None:
    """Release Snakemake's lock if its holder was killed on this host, where the kernel released our own lock."""
    with suppress(Timeout, OSError):
        _own_lock.acquire(blocking=False)
        host, process, start = _HOLDER.read_text().split(maxsplit=2)
        if host == socket.gethostname() and any(_HOLDER.parent.glob("*.lock")):
            shutil.rmtree(_HOLDER.parent)
            text = f"released the lock of process {process}, begun {start}, which was killed"
            logging.getLogger("snakemake.logging").warning(text)


def _interrupt(number: int, _: object) -> None:
    """Raise KeyboardInterrupt once, so that Snakemake releases its lock. A second Ctrl-C goes to the jobs only."""
    signal.signal(number, signal.SIG_IGN)
    raise KeyboardInterrupt


def stop_scheduling() -> None:
    """Let Snakemake on this host start no further jobs. With ``keep-going``, each would fail for the same reason."""
    if parent := _parent():
        # Snakemake waits for running jobs after SIGTERM.
        os.kill(parent, signal.SIGTERM)


def end_with_parent() -> None:
    """Exit when Snakemake on this host exits. PR_SET_PDEATHSIG would watch the shell between them."""
    parent = _parent()
    if parent is None or not hasattr(os, "pidfd_open"):
        return
    try:
        handle = os.pidfd_open(parent)
    except ProcessLookupError:
        sys.exit(1)
    except OSError:
        return  # not supported by the kernel or container

    def wait() -> None:
        from harness.files import exit_now

        select.select([handle], [], [])
        exit_now(1)

    threading.Thread(target=wait, daemon=True).start()


def _parent() -> int | None:
    """Process of the Snakemake that started this job, if on this host."""
    host, _, process = os.environ.get(PARENT, "").rpartition(":")
    return int(process) if host == socket.gethostname() else None
