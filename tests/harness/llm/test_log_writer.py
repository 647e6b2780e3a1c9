"""The thread that writes: what waits for it and what does not."""

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Sequence

import pytest

from harness.errors import UserError
from harness.llm import log_writer
from harness.llm.log_lines import Entry, entry
from harness.llm.log_writer import LogWriter
from tests.harness.llm.logged import reply, request

Write = Callable[[Sequence[Entry]], tuple[int, UserError | None]]


class Disk:
    """Takes what it is given while it is open, and remembers in which portions it came."""

    def __init__(self) -> None:
        self.open = threading.Event()
        self.open.set()
        self.waits = False
        self.portions: list[int] = []
        self.keys: list[bytes] = []
        self.synced: list[int] = []

    def write(self, entries: Sequence[Entry]) -> tuple[int, UserError | None]:
        self.waits = True
        assert self.open.wait(20)
        self.portions.append(len(entries))
        self.keys += [one.key for one in entries]
        return len(entries), None

    def sync(self) -> None:
        self.synced.append(len(self.keys))


def entries(count: int) -> list[Entry]:
    return [entry(request(str(number)), reply("x")) for number in range(count)]


async def wait_until(reached: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not reached():
        assert time.monotonic() < deadline
        await asyncio.sleep(0.001)


async def test_the_loop_turns_while_the_disk_does_not() -> None:
    disk = Disk()
    writer = LogWriter("log", disk.write, disk.sync)
    disk.open.clear()
    waiting = [asyncio.create_task(writer.put(one)) for one in entries(100)]
    for _ in range(100):
        await asyncio.sleep(0)
    assert not any(one.done() for one in waiting)
    disk.open.set()
    await asyncio.gather(*waiting)
    writer.close()


async def test_all_that_waits_is_written_in_one_go_and_in_order() -> None:
    disk = Disk()
    writer = LogWriter("log", disk.write, disk.sync)
    everything = entries(101)
    disk.open.clear()
    first = asyncio.create_task(writer.put(everything[0]))
    await wait_until(lambda: disk.waits)
    rest = [asyncio.create_task(writer.put(one)) for one in everything[1:51]]
    await asyncio.sleep(0)
    rest += [asyncio.create_task(writer.put(one)) for one in everything[51:]]
    await wait_until(lambda: not writer._waiting and not writer._queue.empty())
    disk.open.set()
    await asyncio.gather(first, *rest)
    writer.close()
    assert disk.portions == [1, 100]
    assert disk.keys == [one.key for one in everything]


async def test_the_disk_is_waited_for_once_and_when_nothing_comes_any_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    disk = Disk()
    monkeypatch.setattr(log_writer, "_SYNC_S", 0.05)
    writer = LogWriter("log", disk.write, disk.sync)
    for one in entries(3):
        await writer.put(one)
    await wait_until(lambda: disk.synced[-1:] == [3])
    before = len(disk.synced)
    await asyncio.sleep(0.2)
    assert len(disk.synced) == before
    writer.close()
    assert len(disk.synced) == before
    monkeypatch.setattr(log_writer, "_SYNC_S", 1000)
    for one in entries(2):
        await writer.put(one)
    assert len(disk.synced) == before
    writer.close()
    assert disk.synced[before:] == [5]


async def test_nobody_waits_for_a_disk_that_confirms_late_and_it_is_asked_by_one_at_a_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    disk, confirms = Disk(), threading.Event()
    under_way: list[int] = []
    monkeypatch.setattr(log_writer, "_SYNC_S", 0.01)

    def late() -> None:
        under_way.append(len(disk.keys))
        assert confirms.wait(20)
        disk.sync()

    writer = LogWriter("log", disk.write, late)
    first, *rest, last = entries(12)
    await writer.put(first)
    await wait_until(lambda: under_way == [1])
    async with asyncio.timeout(10):
        for one in rest:
            await writer.put(one)
            await asyncio.sleep(0.005)
    assert (len(disk.keys), under_way, disk.synced) == (11, [1], [])
    # What came meanwhile is confirmed without another entry to wake anybody.
    confirms.set()
    await wait_until(lambda: len(disk.synced) == 2)
    assert under_way == [1, 11]
    confirms.clear()
    await writer.put(last)
    await wait_until(lambda: under_way == [1, 11, 12])
    closing = asyncio.create_task(asyncio.to_thread(writer.close))
    await asyncio.sleep(0.05)
    assert not closing.done()
    confirms.set()
    await closing
    assert under_way == [1, 11, 12]


async def test_a_disk_that_does_not_confirm_is_told_and_nothing_more(caplog: pytest.LogCaptureFixture) -> None:
    disk = Disk()

    def failing() -> None:
        raise OSError(5, "Input/output error")

    writer = LogWriter("calls.jsonl", disk.write, failing)
    await writer.put(entries(1)[0])
    with caplog.at_level(logging.WARNING):
        writer.close()
    assert caplog.messages == ["calls.jsonl: the disk does not confirm what was written (Input/output error)"]


@pytest.mark.parametrize("failure", [UserError("no room"), ZeroDivisionError("a mistake of ours")])
async def test_a_failure_reaches_all_who_wait_and_later_ones_are_served(failure: Exception) -> None:
    disk = Disk()

    def failing(entries: Sequence[Entry]) -> tuple[int, UserError | None]:
        if isinstance(failure, UserError):
            return 0, failure
        raise failure

    write: Write = failing
    writer = LogWriter("log", lambda entries: write(entries), disk.sync)
    outcomes = await asyncio.gather(*map(writer.put, entries(5)), return_exceptions=True)
    assert outcomes == [failure] * 5
    write = disk.write
    await writer.put(entries(1)[0])
    writer.close()


def test_it_serves_one_loop_after_the_other_and_outlives_one_that_ended_early() -> None:
    disk = Disk()
    writer = LogWriter("log", disk.write, disk.sync)

    async def leave() -> None:
        disk.open.clear()
        asyncio.create_task(writer.put(entries(1)[0]))  # noqa: RUF006  left on purpose
        await asyncio.sleep(0)

    asyncio.run(leave())
    disk.open.set()
    asyncio.run(writer.put(entries(2)[1]))
    writer.close()
    assert disk.keys == [one.key for one in entries(2)]
