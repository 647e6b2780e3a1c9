"""What has become of the cells of a run, by what lies in their folders; nothing of it is locked or changed."""

from __future__ import annotations

import enum
import os
import socket
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from harness import layout
from harness.config import Cell, Preset

# A cell on another machine is taken to be at work as long as it has written something that recently.
SILENCE_S = 600.0
_LOCKS = Path("/proc/locks")
_TAIL = 8192
_FAILURE = "error: "


class State(enum.StrEnum):
    """Where a cell stands."""

    FINISHED = "finished"
    RUNNING = "running"
    FAILED = "failed"
    STOPPED = "stopped"
    MISSING = "missing"


@dataclass(frozen=True, slots=True)
class Seen:
    """A cell as it was found.

    Attributes:
        cell: Which.
        folder: Where it lies.
        state: What has become of it.
        log: What it says while it runs.
        said: The last lines of that, oldest first.
    """

    cell: Cell
    folder: Path
    state: State
    log: Path
    said: tuple[str, ...]


def look(preset: Preset, cells: Iterable[Cell]) -> list[Seen]:
    """Find out where cells stand.

    A cell without a result has *failed* where its last word is an error, and *stopped* where it has begun and neither
    runs nor failed: it was interrupted, or its process died without a word.
    """
    held = _held_locks()
    return [_look(preset.name, cell, held) for cell in cells]


def log_of(preset: str, cell: Cell) -> Path:
    """What the job of a cell says, as the DAG has it."""
    below = Path(cell.method) / cell.benchmark / cell.backbone / f"seed{cell.seed}.log"
    return layout.RESULTS / preset / "logs" / "cells" / below


def last_lines(path: Path, count: int) -> tuple[str, ...]:
    """The last lines of a file that are not blank; none where there is no such file."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - _TAIL))
            lines = file.read().decode(errors="replace").splitlines()
    except OSError:
        return ()
    return tuple(line for line in lines if line.strip())[-count:]


def _look(preset: str, cell: Cell, held: frozenset[tuple[int, int]]) -> Seen:
    folder, log = layout.cell(preset, cell), log_of(preset, cell)
    lock = (folder / layout.CALL_LOG).with_suffix(".lock")
    if (folder / "run.json").exists():
        return Seen(cell, folder, State.FINISHED, log, ())
    said = last_lines(log, 3)
    if lock.exists() and _is_held(lock, folder, log, held):
        return Seen(cell, folder, State.RUNNING, log, said)
    if said and said[-1].startswith(_FAILURE):
        return Seen(cell, folder, State.FAILED, log, said)
    return Seen(cell, folder, State.STOPPED if lock.exists() else State.MISSING, log, said)


def _is_held(lock: Path, folder: Path, log: Path, held: frozenset[tuple[int, int]]) -> bool:
    """Whether the process that a lock file names still holds it; to try the lock would stop a cell that begins."""
    words = lock.read_text(errors="replace").split()
    pid, host = (int(words[1]), words[3]) if len(words) == 4 and words[1].isdecimal() else (0, "")
    if host != socket.gethostname():
        written = [path.stat().st_mtime for path in (folder / layout.CALL_LOG, log, lock) if path.exists()]
        return bool(host) and time.time() - max(written) < SILENCE_S
    if _LOCKS.exists():
        return (pid, lock.stat().st_ino) in held
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _held_locks() -> frozenset[tuple[int, int]]:
    """Process and inode of every lock on a file that is held on this machine, where the system tells."""
    if not _LOCKS.exists():
        return frozenset()
    lines = (line.split() for line in _LOCKS.read_text().splitlines())
    return frozenset(
        (int(words[4]), int(words[5].rpartition(":")[2])) for words in lines if len(words) >= 6 and words[1] == "FLOCK"
    )
