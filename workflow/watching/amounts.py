"""What cells have asked so far: of finished ones by their tables, of running ones by what has come to their logs."""

from __future__ import annotations

from pathlib import Path

import orjson

from harness import layout
from harness.backbones import load
from harness.budget import Prices, Spent
from harness.config import Preset
from harness.files import ROOT
from harness.llm import log_lines
from harness.llm.log_lines import DAMAGE
from workflow.watching.cells import Seen, State

_TABLES = ("calls.parquet", "training_calls.parquet")
_CALL = b'{"key"'


class Asked:
    """What the cells of a run have asked, looked at again and again: nothing is read twice.

    Calls count as :func:`harness.ledger.ledger` counts them, once a cell, and those that failed for nothing. A call
    that one cell had from the log of another therefore counts in both.

    Args:
        preset: The run.
    """

    def __init__(self, preset: Preset) -> None:
        self._prices = Prices(load(ROOT / "config" / "backbones.yaml", preset.weights).values())
        self._finished: dict[Path, Spent] = {}
        self._running: dict[Path, RunningCalls] = {}

    def of(self, seen: Seen) -> Spent:
        """What one cell has asked so far."""
        if seen.state is State.FINISHED:
            if seen.folder not in self._finished:
                self._finished[seen.folder] = finished(seen.folder)
            return self._finished[seen.folder]
        # Its result is being made anew, or was taken away.
        self._finished.pop(seen.folder, None)
        log = seen.folder / layout.CALL_LOG
        if log not in self._running:
            self._running[log] = RunningCalls(log, self._prices)
        return self._running[log].spent()


class RunningCalls:
    """The calls of a log that another process writes; each look reads what was added since the last.

    Args:
        path: The running log; it need not be there.
        prices: What calls cost.
    """

    def __init__(self, path: Path, prices: Prices) -> None:
        self._path = path
        self._prices = prices
        self._end = 0
        self._spent = Spent()

    def spent(self) -> Spent:
        """What its calls took; as before where the log is gone, for then it is being sealed."""
        try:
            with self._path.open("rb") as file:
                file.seek(self._end)
                for line in file:
                    if not line.endswith(b"\n"):
                        break
                    self._end += len(line)
                    if line.startswith(_CALL):
                        self._spent = self._spent.plus(self._of(line))
        except FileNotFoundError:
            pass
        return self._spent

    def _of(self, line: bytes) -> Spent:
        """Of a line that its cell will refuse, nothing: who looks on does not stop for it."""
        try:
            record = orjson.loads(line)
            return self._prices.of(record["request"]["model"], log_lines.reply(record, ""))
        except DAMAGE:
            return Spent()


def finished(folder: Path) -> Spent:
    """What a finished cell asked."""
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    columns = ["key", "prompt_tokens", "completion_tokens", "cost", "error"]
    tables = [pq.read_table(folder / name, columns=columns) for name in _TABLES if (folder / name).exists()]
    calls = pa.concat_tables(tables)
    found = calls.filter(pc.is_null(calls["error"]))
    asked = found.group_by("key").aggregate([(name, "min") for name in columns[1:4]])
    prompt, completion, cost = (pc.sum(asked[f"{name}_min"]).as_py() or 0 for name in columns[1:4])
    return Spent(asked.num_rows, prompt + completion, float(cost))
