"""The call log: cache, ledger and proof of every model call of a cell.

While a cell runs, each finished call is appended to a *running* log by one writer that holds a lock. A torn last line
(the mark of a killed process or a full disk) is cut off on opening. When the cell is done its calls are *sealed*:
written in the order of their keys, so that equal calls make equal bytes whatever the order in which they finished. A
sealed cell that is run again answers from its sealed log and appends what is new to a new running log.

Beside ``calls.jsonl`` lie ``calls.jsonl.zst``, the sealed log, and ``calls.spare.jsonl.zst``, calls of other
configurations of the cell in the same form, each with an ``.index`` that can be made again.
"""

from __future__ import annotations

import fcntl
import os
import socket
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType

import numpy as np
import numpy.typing as npt

from harness.errors import UserError
from harness.files import remove_leftovers, writing
from harness.llm import log_lines
from harness.llm.log_index import Seal
from harness.llm.log_lines import Entry
from harness.llm.log_writer import LogWriter
from harness.llm.request import Reply, Request
from harness.llm.running_log import RunningLog, old_log
from harness.llm.sealed_log import SealedFile, index_of, sealed_of, spare_of
from harness.llm.sealing import Source, write_sealed
from harness.places import GONE, Merged, as_digests, merged, positions, size

CALL_LOG = "calls.jsonl"


class CallLog:
    """The log of one cell, open for reading and appending.

    Args:
        path: The running log; made if absent. The lock file and the sealed logs lie beside it.

    Raises:
        UserError: Another process has the log open, a line other than the last is damaged, an earlier version of this
            suite wrote it, or the disk is full.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        with ExitStack() as opened:
            opened.callback(os.close, _lock(path.with_suffix(".lock")))
            for file in (sealed_of(path), spare_of(path)):
                remove_leftovers(file)
                remove_leftovers(index_of(file))
            self._running = RunningLog(path, is_owner=True)
            opened.callback(self._running.close)
            self._sealed = _sealed(path, opened)
            self._sources: list[Source] = [self._running, *self._sealed.values()]
            self._writer = LogWriter(str(path), self._write, self._running.sync)
            opened.callback(self._writer.close)
            self._count = size([source.calls() for source in self._sources])
            self._open = opened.pop_all()

    def __len__(self) -> int:
        return self._count

    def __contains__(self, key: str) -> bool:
        return self._find(bytes.fromhex(key)) is not None

    def __enter__(self) -> CallLog:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def get(self, key: str) -> Reply | None:
        """The outcome of the call with this key, ``None`` if it was never finished.

        Raises:
            UserError: The sealed log that holds it is damaged.
        """
        found = self._find(bytes.fromhex(key))
        return None if found is None else found[0].reply(found[1])

    async def append(self, request: Request, reply: Reply) -> None:
        """Write one finished call; on return it has left this process.

        Raises:
            UserError: The disk is full; no part of the call stays, and later ones can be written when there is room.
        """
        await self._writer.put(log_lines.entry(request, reply))

    def seal(self, used: Collection[str]) -> Seal:
        """Close the log for good, with the calls of this run alone and in the order of their keys.

        Calls of other configurations of the same cell move to a file beside it; they are still found on opening, but
        what is sealed depends on the run and not on what was run before it. Interrupted at any moment, it leaves files
        that together hold all calls.

        Args:
            used: Keys of the calls this run used.

        Raises:
            UserError: The log lacks some of them, because it was changed or removed under a half-finished run.
        """
        self._writer.close()
        calls = merged([source.calls() for source in self._sources])
        wanted = np.unique(as_digests(bytes.fromhex(key) for key in used))
        at = positions(calls.digests, wanted)
        if lost := int(np.count_nonzero(at < 0)):
            raise UserError(
                f"{self.path} lacks {lost} calls that an earlier part of this run used; restore it, or remove "
                f"{self.path.parent} and give the same command again"
            )
        is_used = np.zeros(len(calls.digests), bool)
        is_used[at] = True
        seal = self._divide(calls, is_used)
        self.close()
        return seal

    def forget_failed(self) -> int:
        """Forget the failed calls, so that they are asked again; returns how many there were.

        Raises:
            UserError: The disk is full.
        """
        self._writer.close()
        failed = _failed(self._sources)
        self._running.forget(failed)
        self._count -= len(failed)
        return len(failed)

    def close(self) -> None:
        """Write what is still to be written and give up the lock; closing twice is harmless."""
        self._open.close()

    def _find(self, key: bytes) -> tuple[Source, int] | None:
        for source in self._sources:
            if (place := source.place(key)) is not None:
                return None if place == GONE else (source, place)
        return None

    def _write(self, entries: Sequence[Entry]) -> tuple[int, UserError | None]:
        new = [self._find(entry.key) is None for entry in entries]
        written, error = self._running.write(entries)
        self._count += len({entry.key for entry, is_new in zip(entries[:written], new, strict=False) if is_new})
        return written, error

    def _divide(self, calls: Merged, is_used: npt.NDArray[np.bool_]) -> Seal:
        """Write used and other calls to their files, of which at any moment some holds each call."""
        sealed, spare = sealed_of(self.path), spare_of(self.path)
        # What moves from the spare ones to the sealed ones is in both for a while.
        held = self._sealed[spare].calls().digests if spare in self._sealed else as_digests([])
        kept = calls.only(~is_used | (positions(held, calls.digests) >= 0))
        rest = calls.only(~is_used)
        if not self._is_just(spare, kept):
            self._put_spare(kept)
        used = calls.only(is_used)
        seal = self._sealed[sealed].seal if self._is_just(sealed, used) else write_sealed(sealed, self._sources, used)
        if len(rest.digests) < len(kept.digests):
            self._put_spare(rest)
        with writing(self.path):
            _sync_folder(self.path.parent)
            self.path.unlink()
        return seal

    def _is_just(self, file: Path, calls: Merged) -> bool:
        """Whether a sealed log, as it was opened, holds these calls and no others."""
        if file not in self._sealed:
            return False
        source = self._sealed[file]
        ours = np.count_nonzero(calls.tables == self._sources.index(source))
        return bool(ours == len(calls.digests) == len(source.calls().digests))

    def _put_spare(self, calls: Merged) -> None:
        spare = spare_of(self.path)
        if len(calls.digests):
            write_sealed(spare, self._sources, calls)
        else:
            with writing(spare):
                spare.unlink(missing_ok=True)
                index_of(spare).unlink(missing_ok=True)


def failed_calls(path: Path) -> int:
    """How many calls of a log, those of other configurations included, ended in an error for good."""
    with ExitStack() as opened:
        return len(_failed(_sources_of(path, opened)))


def outcomes(path: Path) -> Iterator[tuple[str, str, Reply]]:
    """Key, model and outcome without its text of every call of a log, those of other configurations included.

    Raises:
        UserError: The log is damaged.
    """
    with ExitStack() as opened:
        sources = _sources_of(path, opened)
        calls = merged([source.calls() for source in sources])
        keys, each = calls.digests.tobytes(), calls.digests.itemsize
        for number, (source, place) in enumerate(zip(calls.tables, calls.places, strict=True)):
            yield keys[number * each : (number + 1) * each].hex(), *sources[source].outcome(int(place))


def drop_errors(path: Path, before: Callable[[], None] = lambda: None) -> int:
    """Remove the failed calls from a log so that the next run asks them again.

    Args:
        path: The log.
        before: What has to be done first, while no other process can write the log.

    Returns:
        How many calls were removed.

    Raises:
        UserError: Another process is writing the log; nothing was done.
    """
    with CallLog(path) as log:
        before()
        return log.forget_failed()


def logs_below(folder: Path) -> list[Path]:
    """The call logs below a folder, each by the name of its running log, whether there is one now or not."""
    return sorted({file.with_name(CALL_LOG) for file in folder.rglob(f"{CALL_LOG}*")})


def _sealed(path: Path, opened: ExitStack) -> dict[Path, SealedFile]:
    """The sealed logs beside a running one, as far as there are any."""
    # Earlier versions kept calls of other configurations here.
    if (old := path.with_suffix(".spare.jsonl")).exists():
        raise old_log(old, old)
    found = {}
    for file in (sealed_of(path), spare_of(path)):
        if file.exists():
            found[file] = SealedFile(file)
            opened.callback(found[file].close)
    return found


def _sources_of(path: Path, opened: ExitStack) -> list[Source]:
    """The files of a log that another process may be writing."""
    sources: list[Source] = []
    if path.exists():
        running = RunningLog(path, is_owner=False)
        opened.callback(running.close)
        sources.append(running)
    return [*sources, *_sealed(path, opened).values()]


def _failed(sources: Sequence[Source]) -> list[str]:
    """The keys of the calls that ended in an error for good."""
    calls = merged([source.calls() for source in sources])
    keys, each = calls.digests.tobytes(), calls.digests.itemsize
    return [
        keys[number * each : (number + 1) * each].hex()
        for number, (source, place) in enumerate(zip(calls.tables, calls.places, strict=True))
        if sources[source].has_failed(int(place))
    ]


def _sync_folder(folder: Path) -> None:
    """Wait until the disk knows what its files are called."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _lock(path: Path) -> int:
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        holder = os.read(handle, 200).decode(errors="replace").strip() or "another process"
        os.close(handle)
        raise UserError(f"{path.parent} is being written by {holder}; wait until it is done, or stop it") from error
    with writing(path):
        os.ftruncate(handle, 0)
        os.write(handle, f"process {os.getpid()} on {socket.gethostname()}\n".encode())
    return handle
