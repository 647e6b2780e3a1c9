"""How long a run will still take, from how long its cells took that are finished."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

import orjson

from harness import layout
from workflow.watching.cells import Seen, State


def seconds_left(seen: Sequence[Seen], took: Mapping[Path, float], abreast: int) -> float | None:
    """Seconds until all cells are finished.

    A cell is expected to take as long as the finished ones of its method did on average, one of another method as long
    as all did. It is a guess: cells that learn take longer than others, and benchmarks differ.

    Args:
        seen: The cells.
        took: Seconds of finished ones, by folder.
        abreast: How many run side by side.

    Returns:
        ``None`` where nothing runs, or nothing is finished that tells; 0 where all are finished.
    """
    unfinished = [one for one in seen if one.state is not State.FINISHED]
    if not unfinished:
        return 0.0
    if not abreast or not took:
        return None
    by_method: defaultdict[str, list[float]] = defaultdict(list)
    for one in seen:
        if one.folder in took:
            by_method[one.cell.method].append(took[one.folder])
    overall = sum(took.values()) / len(took)
    expected = {method: sum(seconds) / len(seconds) for method, seconds in by_method.items()}
    each = [max(0.0, expected.get(one.cell.method, overall) - _running_for(one)) for one in unfinished]
    return max(sum(each) / abreast, *each)


def seconds_of(seen: Seen) -> float | None:
    """How long the last process of a finished cell worked; ``None`` where it did not write it down."""
    try:
        return float(orjson.loads((seen.folder / "timing.json").read_bytes())["wall_s"])
    except (OSError, ValueError, LookupError):
        return None


def _running_for(seen: Seen) -> float:
    """Its lock was written when it began."""
    if seen.state is not State.RUNNING:
        return 0.0
    try:
        return time.time() - (seen.folder / layout.CALL_LOG).with_suffix(".lock").stat().st_mtime
    except OSError:
        return 0.0
