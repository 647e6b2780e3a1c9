"""One limit for several processes: never exceeded, fairly shared, free again when a process dies."""

from __future__ import annotations

import asyncio
import itertools
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from aiohttp import web
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.errors import UserError
from harness.files import ROOT
from harness.llm import slots as slots_module
from harness.llm.slot_table import Row, SlotTable, fair_shares
from harness.llm.slots import Slots
from tests.harness.llm.conftest import Make
from tests.harness.llm.serving import ANSWER, completion, request, served_at

WORKER = Path(__file__).with_name("slot_worker.py")
HOLDER = """
import sys
from pathlib import Path
from harness.llm.slot_table import SlotTable

with SlotTable(Path(sys.argv[1])).guarded() as alone:
    print(alone, flush=True)
    sys.stdin.readline()
"""

rows = st.lists(st.builds(Row, st.just(0), st.integers(0, 50), st.integers(0, 9)), max_size=8)


@settings(deadline=None)
@given(rows, st.integers(1, 80))
def test_shares_are_fair(rows: list[Row], places: int) -> None:
    shares = fair_shares(rows, places)
    assert sum(shares) == min(places, sum(row.wanted for row in rows))
    for row, share in zip(rows, shares, strict=True):
        assert 0 <= share <= row.wanted
        if share < row.wanted:  # nobody has two more than one who goes short
            assert max(shares) <= share + 1
    short = [(row.given, number) for number, row in enumerate(rows) if shares[number] < row.wanted]
    lowest = min((shares[number] for _, number in short), default=0)
    # Of those who would take one more, those who got something longest ago have it.
    above = [(row.given, number) for number, row in enumerate(rows) if shares[number] == lowest + 1 <= row.wanted]
    below = [one for one in short if shares[one[1]] == lowest]
    contested = [one for one in above if rows[one[1]].wanted > lowest]
    assert not below or not contested or max(contested) < min(below)


def test_shares_of_a_few() -> None:
    wanting = [Row(0, 10), Row(0, 2), Row(0, 10)]
    assert fair_shares(wanting, 8) == [3, 2, 3]
    assert fair_shares(wanting, 9) == [4, 2, 3]
    assert fair_shares([Row(0, 5, given=7), Row(0, 5, given=3)], 1) == [0, 1]


Start = Callable[..., subprocess.Popen[str]]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts worker processes that share the file ``slots``; they wait for a line before they begin."""
    started: list[subprocess.Popen[str]] = []

    def start(most: int, calls: int, seconds: float, wanted: int) -> subprocess.Popen[str]:
        words = [tmp_path / "slots", most, calls, seconds, wanted]
        started.append(python(WORKER.read_text(), *words))
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.communicate()


def python(program: str, *words: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", program, *map(str, words)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.Popen(
        command, cwd=ROOT, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment
    )


def let_go(*processes: subprocess.Popen[str]) -> None:
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()


def calls_of(process: subprocess.Popen[str]) -> list[tuple[float, float]]:
    """Begin and end of the calls of a process that has come to its end."""
    out, _ = process.communicate(timeout=120)
    assert process.returncode == 0
    return [(float(a), float(b)) for a, b in re.findall(r"^([\d.]+) ([\d.]+)$", out, re.MULTILINE)]


def at_once(calls: list[tuple[float, float]]) -> int:
    """The largest number of calls in flight at the same time."""
    changes = sorted([(began, 1) for began, _ in calls] + [(ended, -1) for _, ended in calls])
    return max(itertools.accumulate(change for _, change in changes))


def test_processes_share_a_limit_fairly_and_never_exceed_it(start: Start) -> None:
    """Three that would each fill the server alone, and a small one that asks for a single slot at a time."""
    processes = [start(6, 60, 0.03, 10) for _ in range(3)] + [start(6, 20, 0.03, 1)]
    let_go(*processes)
    calls = [calls_of(process) for process in processes]
    assert [len(one) for one in calls] == [60, 60, 60, 20]
    assert at_once([call for one in calls for call in one]) == 6
    first_done = min(max(ended for _, ended in one) for one in calls[:3])
    done_by_then = [sum(ended <= first_done for _, ended in one) for one in calls]
    # Where one could keep what it has, the others would have nothing; a busy machine makes shares uneven.
    assert min(done_by_then[:3]) >= 10
    assert done_by_then[3] >= 3


def test_a_single_slot_goes_round(start: Start) -> None:
    processes = [start(1, 12, 0.02, 3) for _ in range(3)]
    let_go(*processes)
    calls = [calls_of(process) for process in processes]
    assert at_once([call for one in calls for call in one]) == 1
    # Whoever began first is not done before the others have had their turns.
    assert max(min(began for began, _ in one) for one in calls) < min(max(ended for _, ended in one) for one in calls)


def test_a_killed_process_frees_its_slots(start: Start) -> None:
    dying, other = start(3, 3, 3600.0, 3), start(3, 9, 0.01, 3)
    let_go(dying)
    assert dying.stdout is not None
    assert [dying.stdout.readline() for _ in range(3)] == ["begun\n"] * 3
    let_go(other)
    time.sleep(0.3)
    dying.kill()
    killed = time.monotonic()
    calls = calls_of(other)
    assert len(calls) == 9
    assert min(began for began, _ in calls) >= killed


async def test_slots_not_needed_any_more_are_given_back(
    tmp_path: Path, start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was just in use is kept for a moment, but not from another process that is short."""
    monkeypatch.setattr(slots_module, "KEEP_S", float("inf"))
    grown = asyncio.Event()
    slots = Slots(tmp_path / "slots", 4, grown.set, pytest.fail)
    slots.want(4)
    await grown.wait()
    slots.want(0)
    for _ in range(4):
        slots.begin()
    slots.end()
    assert slots.held == 4
    other = start(4, 1, 3600.0, 1)
    let_go(other)
    assert other.stdout is not None
    assert await asyncio.to_thread(other.stdout.readline) == "begun\n"
    assert slots.held == 3
    for _ in range(3):
        slots.end()
    await asyncio.sleep(0.1)
    assert slots.held == 3
    monkeypatch.setattr(slots_module, "KEEP_S", 0.0)
    while slots.held:
        await asyncio.sleep(0.02)
    slots.close()


async def test_nobody_settles_while_another_does(tmp_path: Path) -> None:
    holder = python(HOLDER, tmp_path / "slots")
    grown = asyncio.Event()
    slots = Slots(tmp_path / "slots", 4, grown.set, pytest.fail)
    try:
        assert holder.stdout is not None
        assert await asyncio.to_thread(holder.stdout.readline) == "True\n"
        slots.want(1)
        await asyncio.sleep(0.1)
        assert not slots.has_room
    finally:
        holder.communicate("\n")
    await asyncio.wait_for(grown.wait(), 10)
    assert (slots.has_room, slots.held) == (True, 1)
    slots.close()


async def test_who_waits_learns_that_the_file_cannot_be_worked_with(
    tmp_path: Path, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(table: SlotTable, row: Row) -> None:
        raise UserError("cannot write slots: No space left on device")

    async def answer(http_request: web.Request) -> web.Response:
        return web.json_response(completion())

    async with served_at(chat=answer) as url:
        client = make(None, url, slots=tmp_path)
        with monkeypatch.context() as disk:
            disk.setattr(SlotTable, "write", full)
            with pytest.raises(UserError, match="No space left"):
                await asyncio.wait_for(client.complete("m", request("first")), 10)
        assert (await asyncio.wait_for(client.complete("m", request("second")), 10)).error is None


def test_a_file_is_opened_once_in_a_process(tmp_path: Path) -> None:
    table = SlotTable(tmp_path / "slots")
    with pytest.raises(RuntimeError, match="is open in this process already"):
        SlotTable(tmp_path / "slots")
    table.close()
    SlotTable(tmp_path / "slots").close()


def test_a_folder_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="cannot write"):
        SlotTable(tmp_path / "file" / "slots")


CLIENT = """
import asyncio, sys
from pathlib import Path
from harness.llm.attempts import AttemptLog
from harness.llm.client import ChatClient
from harness.llm.endpoints import Endpoint
from tests.harness.llm.serving import Kept, request

async def main(url, folder, name):
    attempts = AttemptLog(Path(folder) / f"attempts-{name}.jsonl")
    async with ChatClient({"m": Endpoint((url,), max_in_flight=8)}, Kept(), attempts, slots=Path(folder)) as client:
        print("ready", flush=True)
        await asyncio.to_thread(sys.stdin.readline)
        replies = await asyncio.gather(*(client.complete("m", request(f"{name} {n}")) for n in range(80)))
    attempts.close()
    print(sum(reply.error is None for reply in replies), flush=True)

asyncio.run(main(*sys.argv[1:]))
"""


async def test_clients_of_several_processes_keep_to_one_limit(tmp_path: Path, make: Make) -> None:
    """Seen from the server; one of the processes is killed in the middle of its calls."""
    now = most = 0
    asked: list[str] = []

    async def chat(http_request: web.Request) -> web.Response:
        nonlocal now, most
        now += 1
        most = max(most, now)
        try:
            asked.append((await http_request.json())["messages"][0]["content"].split()[0])
            await asyncio.sleep(0.03)
            return web.json_response(completion())
        finally:
            now -= 1

    async with served_at(chat=chat) as url:
        processes = [python(CLIENT, url, tmp_path, name) for name in ("one", "two", "killed")]
        try:
            await asyncio.to_thread(let_go, *processes)
            while asked.count("killed") < 10:
                await asyncio.sleep(0.01)
            processes[2].kill()
            outs = [await asyncio.to_thread(process.communicate) for process in processes]
        finally:
            for process in processes:
                process.kill()
        assert [out for out, _ in outs] == ["80\n", "80\n", ""]
        assert (asked.count("one"), asked.count("two")) == (80, 80)
        assert most == 8
        # All that is left of the killed process is a row that nobody minds.
        assert await make(None, url, max_in_flight=8, slots=tmp_path).complete("m", request()) == ANSWER
