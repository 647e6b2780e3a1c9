"""Jobs share with Snakemake its Python, its settings, and its end."""

from __future__ import annotations

import fcntl
import os
import select
import signal
import socket
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from harness.errors import UserError

if TYPE_CHECKING:
    from harness.runner.config import Preset

PARENT = "GMR_PARENT"
HEAD = "# The settings of the last run of this preset, overrides included; its jobs read them.\n"


def prepare() -> None:
    """Set the environment of all jobs, the end of a run whose terminal is closed, and the time of the plan.

    Called once, where the DAG is read.
    """
    from harness.files import write_atomically
    from harness.runner import layout

    os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    # Jobs on other machines read the DAG too, while it is at work.
    if PARENT not in os.environ or not layout.PLANNED.exists():
        # Another content each time: Snakemake takes a newer file of the same content for the old one.
        write_atomically(layout.PLANNED, f"{time.time_ns()}\n")
    os.environ.setdefault(PARENT, f"{socket.gethostname()}:{os.getpid()}")
    if signal.getsignal(signal.SIGHUP) == signal.SIG_DFL:
        signal.signal(signal.SIGHUP, _stop)


def _stop(*_: object) -> None:
    """End Snakemake as Ctrl-C does, so that it releases its lock; the signal comes twice where a terminal is closed."""
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    raise KeyboardInterrupt


def settle(preset: Preset) -> BinaryIO:
    """Write the settings of a run where its jobs read them; a file that says the same already is left as it is.

    As an input or a parameter of a rule, any change of them would rerun every job. Returns what keeps other runs from
    writing other settings of this preset, until it is closed; raises UserError while such a run is under way.
    """
    import yaml

    from harness.files import write_atomically, writing
    from harness.runner import config, layout

    path = layout.settings(preset.name)
    text = HEAD + yaml.safe_dump(config.settings(preset), sort_keys=False, width=120, allow_unicode=True)
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        lock = path.with_suffix(".lock").open("ab")
    fcntl.flock(lock, fcntl.LOCK_SH)
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        take(
            lock,
            f"a run of preset {preset.name} with other settings is under way, whose jobs read {path}; wait for its "
            "end, or make a preset of your own (config/presets)",
        )
        write_atomically(path, text)
        fcntl.flock(lock, fcntl.LOCK_SH)
    return lock


def take(lock: BinaryIO, refusal: str) -> None:
    """Keep runs of a preset from starting, by what :func:`settle` gave; UserError while one is under way."""
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        lock.close()
        raise UserError(refusal) from None


def begin_no_more() -> None:
    """Let Snakemake on this host begin nothing else: with ``keep-going``, every job would end for the same reason."""
    host, _, pid = os.environ.get(PARENT, "").rpartition(":")
    if host == socket.gethostname() and int(pid) != os.getpid():
        # Snakemake takes it for the wish to end when the jobs that run have come to theirs.
        os.kill(int(pid), signal.SIGTERM)


def die_with_parent() -> None:
    """End this process when Snakemake on this host does; a signal on a parent's death stops at the shell between."""
    host, _, pid = os.environ.get(PARENT, "").rpartition(":")
    if host != socket.gethostname() or not hasattr(os, "pidfd_open"):
        return
    try:
        handle = os.pidfd_open(int(pid))
    except ProcessLookupError:
        os._exit(1)
    threading.Thread(target=_end_with, args=(handle,), daemon=True).start()


def _end_with(handle: int) -> None:
    select.select([handle], [], [])
    os._exit(1)
