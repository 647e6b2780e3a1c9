"""What jobs inherit from the Snakemake that starts them: its Python, its overrides, and its end."""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

PARENT = "GMR_PARENT"
OVERRIDES = "GMR_OVERRIDES"


def prepare(overrides: Mapping[str, Any]) -> None:
    """Set the environment of all jobs; called once, where the DAG is read.

    Overrides travel here because, as a parameter of a rule, any one of them would rerun every job.

    Args:
        overrides: Preset keys that hold instead of the preset's own values.
    """
    os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    os.environ[OVERRIDES] = json.dumps(overrides)
    os.environ.setdefault(PARENT, f"{socket.gethostname()}:{os.getpid()}")


def inherited_overrides() -> dict[str, Any]:
    """The overrides of the Snakemake that started this job; none where it was started by hand."""
    given: dict[str, Any] = json.loads(os.environ.get(OVERRIDES, "{}"))
    return given


def begin_no_more() -> None:
    """Let the announced process, if it is Snakemake on this host, end what is running and begin nothing else.

    With ``keep-going``, every job to come would only say once more why this one has ended.
    """
    host, _, pid = os.environ.get(PARENT, "").rpartition(":")
    if host == socket.gethostname() and int(pid) != os.getpid():
        # Snakemake takes it for the wish to end when the jobs that run have come to theirs.
        os.kill(int(pid), signal.SIGTERM)


def die_with_parent() -> None:
    """Watch the announced process, if it runs on this host, and end this one at once when it is gone.

    A signal on the parent's death would not do: between Snakemake and a job stands a shell.
    """
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
