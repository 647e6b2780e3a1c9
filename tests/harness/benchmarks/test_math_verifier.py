import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest

from harness.benchmarks.math_verifier import WORTH_ANOTHER, MathVerifier
from harness.errors import UserError
from harness.llm.database import Cache
from harness.sandbox.jail import linux

# Speaks the protocol; sleeps on "hang", dies on "die" and within a reply on "tear", otherwise compares strings.
IMPOSTOR = """
import json, os, sys, time
for line in sys.stdin:
    request = json.loads(line)
    if request["answer"] == "hang":
        time.sleep(60)
    if request["answer"] == "die":
        os._exit(1)
    if request["answer"] == "tear":
        sys.stdout.write('{"equal": true}')
        break
    print(json.dumps({"equal": request["gold"] == request["answer"]}), flush=True)
"""
# The worker itself with a shorter limit.
IMPATIENT = "from harness.benchmarks import math_worker; math_worker.CPU_LIMIT_S = 1; math_worker.main()"


def confined() -> bool:
    try:
        return linux.call("landlock_create_ruleset", None, 0, 1) > 0
    except OSError:
        return False


def impostor(reply_limit_s: float = 0.5, workers: int = 1) -> MathVerifier:
    return MathVerifier((sys.executable, "-c", IMPOSTOR), reply_limit_s, workers)


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """The processes that have been started."""
    processes: list[object] = []
    begin = asyncio.create_subprocess_exec

    async def noted(*command: str, **options: Any) -> Any:
        processes.append(await begin(*command, **options))
        return processes[-1]

    monkeypatch.setattr(asyncio, "create_subprocess_exec", noted)
    return processes


async def test_symbolic_equality() -> None:
    pairs = {
        (r"\frac{1}{2}", "0.5"): True,
        ("0.25", r"\frac{1}{4}"): True,
        ("(x+1)^2", "x^2+2x+1"): True,
        (r"\frac{1}{2}", "0.6"): False,
        ("5", "-5"): False,
        ("5", ""): False,
        ("5", "{{{{}}"): False,
        ("5", "__import__('os').system('true')"): False,
        ("5", "\x00"): False,
        ("5", "\ud800"): False,
        ("5", "٥"): False,
    }
    async with MathVerifier() as verifier:
        assert {pair: await verifier.equal(*pair) for pair in pairs} == pairs


@pytest.mark.parametrize(
    "answer",
    [
        "9^{9^{9^{9^{9}}}} + 1",
        r"\left(" * 70 + "1" + r"\right)" * 70,
    ],
)
async def test_what_would_take_for_ever_is_undecided_and_the_next_pair_is_decided(answer: str) -> None:
    async with MathVerifier((sys.executable, "-c", IMPATIENT)) as verifier:
        assert await verifier.equal("1", answer) is None
        assert await verifier.equal("2", "1+1") is True


async def test_an_answer_longer_than_any_value_is_undecided_without_being_read() -> None:
    async with MathVerifier((sys.executable, "-c", "raise SystemExit(1)")) as verifier:
        assert await verifier.equal("2", "2" * 100_000) is None


async def test_a_hanging_worker_is_replaced() -> None:
    async with impostor() as verifier:
        assert await verifier.equal("1", "hang") is None
        assert await verifier.equal("1", "1") is True


@pytest.mark.parametrize("answer", ["die", "tear"])
async def test_a_dying_worker_is_replaced(answer: str) -> None:
    async with impostor() as verifier:
        assert await verifier.equal("1", answer) is None
        assert await verifier.equal("1", "1") is True


async def test_nobody_waits_for_a_hanging_worker_where_there_is_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.benchmarks.math_verifier.WORTH_ANOTHER", 0)
    async with impostor(reply_limit_s=30, workers=2) as verifier:
        hanging = asyncio.create_task(verifier.equal("1", "hang"))
        async with asyncio.timeout(20):
            assert [await verifier.equal(str(n), "3") for n in range(5)] == [False, False, False, True, False]
        hanging.cancel()
        with pytest.raises(asyncio.CancelledError):
            await hanging


async def test_another_worker_is_started_where_many_pairs_wait(started: list[object]) -> None:
    async with impostor(reply_limit_s=30, workers=3) as verifier:
        for n in range(5):
            await verifier.equal(str(n), "one after the other")
        await asyncio.gather(*(verifier.equal(str(n), "few") for n in range(WORTH_ANOTHER)))
        assert len(started) == 1
        await asyncio.gather(*(verifier.equal(str(n), str(n)) for n in range(5 * WORTH_ANOTHER)))
        assert len(started) == 3
        assert await asyncio.gather(*(verifier.equal("1", "the same") for _ in range(9))) == [False] * 9


async def test_waiting_in_the_queue_does_not_count_against_the_limit() -> None:
    async with impostor(reply_limit_s=1.0) as verifier:
        slow = [verifier.equal("1", "hang"), verifier.equal("2", "hang")]
        verdicts = await asyncio.gather(*slow, *(verifier.equal(str(n), str(n)) for n in range(50)))
        assert verdicts == [None, None] + [True] * 50


async def test_a_cancelled_question_does_not_answer_the_next() -> None:
    async with impostor(reply_limit_s=30) as verifier:
        assert await verifier.equal("1", "1") is True
        task = asyncio.create_task(verifier.equal("1", "hang"))
        await asyncio.sleep(0.1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await verifier.equal("3", "4") is False
        assert await verifier.equal("3", "3") is True


async def test_a_worker_that_cannot_start_is_an_error_and_no_verdict() -> None:
    async with MathVerifier((sys.executable, "-c", "raise SystemExit(1)")) as verifier:
        with pytest.raises(UserError, match="math-verify installed"):
            await verifier.equal("1", "1")


async def test_a_worker_that_keeps_silent_at_its_start_is_an_error_and_no_verdict(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("harness.benchmarks.math_verifier.REPLY_LIMIT_S", 0.2)
    for command in ((sys.executable, "-c", "import time; time.sleep(60)"), ("/no/such/python",)):
        async with MathVerifier(command) as verifier:
            with pytest.raises(UserError, match="did not reply at its start"):
                await verifier.equal("1", "1")


async def test_the_worker_gets_no_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_API_KEY", "secret")
    spy = (
        "import json, os, sys\nfor line in sys.stdin: "
        "print(json.dumps({'equal': 'SOME_API_KEY' in os.environ}), flush=True)"
    )
    async with MathVerifier((sys.executable, "-c", spy)) as verifier:
        assert await verifier.equal("1", "1") is False


# What the child of the worker may do is tried by code in the place of Math-Verify.
INTRUDER = """
import os, signal, socket, sys
from harness.benchmarks import math_worker

def refused(act):
    try:
        act()
    except OSError:
        return True
    return False

def attempts(gold, answer):
    if gold == answer:
        return True
    if answer == "answer for the parent":
        os.write(1, b'{"equal": true}\\n')
        return False
    if answer == "say something else":
        for descriptor in range(3, 64):
            try:
                os.write(descriptor, b"very true")
            except OSError:
                pass
        return True
    if answer == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    if answer == "spin":
        signal.signal(signal.SIGXCPU, signal.SIG_IGN)
        while True:
            pass
    if answer == "swallow":
        return len(bytearray(3 << 30)) > 0
    target = {target!r}
    return all(map(refused, [
        lambda: open(target + "/made", "w"),
        lambda: open(target + "/secret").read(),
        lambda: os.mkdir(target + "/folder"),
        lambda: socket.socket(),
        lambda: os.fork(),
        lambda: os.execv(sys.executable, [sys.executable]),
        lambda: os.kill(os.getppid(), signal.SIGTERM),
    ]))

math_worker._equal, math_worker.WARMING, math_worker.CPU_LIMIT_S = attempts, (), 1
math_worker.main()
"""


@pytest.fixture
def intruder(tmp_path: Path) -> MathVerifier:
    (tmp_path / "secret").write_text("a key")
    return MathVerifier((sys.executable, "-c", INTRUDER.replace("{target!r}", repr(str(tmp_path)))))


@pytest.mark.skipif(not confined(), reason="the kernel has no Landlock")
async def test_the_child_reads_no_file_and_reaches_nothing(intruder: MathVerifier, tmp_path: Path) -> None:
    async with intruder as verifier:
        assert await verifier.equal("1", "2") is True
    assert [path.name for path in tmp_path.iterdir()] == ["secret"]


@pytest.mark.parametrize("answer", ["say something else", "die", "spin", "swallow"])
async def test_a_child_without_a_clean_verdict_decides_nothing_and_harms_no_other(
    intruder: MathVerifier, answer: str
) -> None:
    async with intruder as verifier:
        assert await verifier.equal("1", answer) is None
        assert await verifier.equal("2", "2") is True


async def test_a_child_cannot_answer_in_the_name_of_its_parent(intruder: MathVerifier) -> None:
    async with intruder as verifier:
        assert await verifier.equal("1", "answer for the parent") is False
        assert await verifier.equal("2", "2") is True


async def test_a_pair_is_decided_once_for_all_cells_of_a_machine(started: list[object], tmp_path: Path) -> None:
    pairs = [("1", "1"), ("1", "2"), ("1", "\ud800")]
    with Cache(tmp_path / "cache.sqlite") as cache:
        for _ in range(2):
            async with MathVerifier((sys.executable, "-c", IMPOSTOR), workers=1, cache=cache) as verifier:
                assert [await verifier.equal(*pair) for pair in pairs] == [True, False, False]
        assert len(started) == 1
        async with MathVerifier((sys.executable, "-c", IMPOSTOR), 0.5, 1, cache) as verifier:
            assert [await verifier.equal("1", answer) for answer in ("die", "die", "3")] == [None, None, False]
        assert len(started) == 3
        async with MathVerifier((sys.executable, "-c", IMPOSTOR), 0.5, 1, cache) as verifier:
            assert await verifier.equal("1", "die") is None
        assert len(started) == 4
