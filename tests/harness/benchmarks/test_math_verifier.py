import asyncio
import sys
from pathlib import Path

import pytest

from harness.benchmarks.math_verifier import MathVerifier
from harness.database import Cache
from harness.errors import UserError
from harness.sandbox.jail import linux

# Speaks the protocol; sleeps on "hang", dies on "die" and within a reply on "tear", otherwise compares strings.
IMPOSTOR = """
import json, os, time
from harness.sandbox.jail.protocol import Channel
channel = Channel(0)
while True:
    gold, answer = json.loads(channel.receive())
    if answer == "hang":
        time.sleep(60)
    if answer == "die":
        os._exit(1)
    if answer == "tear":
        os.write(0, b"\\4\\0\\0\\0tr")
        os._exit(1)
    if answer == "secret":
        answer = gold if "SOME_API_KEY" in os.environ else ""
    channel.send(json.dumps(gold == answer).encode())
"""
# The worker itself with a shorter limit.
IMPATIENT = "from harness.benchmarks import math_worker; math_worker.CPU_LIMIT_S = 1; math_worker.main()"


def confined() -> bool:
    try:
        return linux.call("landlock_create_ruleset", None, 0, 1) > 0
    except OSError:
        return False


def impostor(reply_limit_s: float = 0.5, cache: Cache | None = None) -> MathVerifier:
    return MathVerifier((sys.executable, "-c", IMPOSTOR), reply_limit_s, cache)


async def test_symbolic_equality() -> None:
    equal = [(r"\frac{1}{2}", "0.5"), ("0.25", r"\frac{1}{4}"), ("(x+1)^2", "x^2+2x+1")]
    others = ["-5", "", "{{{{}}", "__import__('os').system('true')", "\x00", "\ud800", "٥"]
    pairs = dict.fromkeys(equal, True) | dict.fromkeys([(r"\frac{1}{2}", "0.6"), *(("5", n) for n in others)], False)
    async with MathVerifier() as verifier:
        assert {pair: await verifier.equal(*pair) for pair in pairs} == pairs


@pytest.mark.parametrize("answer", ["9^{9^{9^{9^{9}}}} + 1", r"\left(" * 70 + "1" + r"\right)" * 70])
async def test_what_would_take_for_ever_is_undecided_and_the_next_pair_is_decided(answer: str) -> None:
    async with MathVerifier((sys.executable, "-c", IMPATIENT)) as verifier:
        assert await verifier.equal("1", answer) is None
        assert await verifier.equal("2", "1+1") is True


async def test_a_worker_that_hangs_or_dies_is_replaced_and_gets_no_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_API_KEY", "secret")
    async with impostor(reply_limit_s=1.0) as verifier:
        assert await verifier.equal("2", "2" * 100_000) is None, "longer than any value, and not read"
        answers = ["hang", "1", "die", "tear", "2", "secret"]
        verdicts = await asyncio.gather(*(verifier.equal("1", answer) for answer in answers))
    # Waiting in the queue does not count against the limit.
    assert verdicts == [None, True, None, None, False, False]


async def test_a_worker_that_does_not_start_is_an_error_and_no_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.benchmarks.math_verifier.REPLY_LIMIT_S", 0.5)
    silent, dying = ((sys.executable, "-c", code) for code in ("import time; time.sleep(60)", "import no_such"))
    for command, reason in ((silent, "kept silent"), (dying, "No module named 'no_such'"), (["/no/such"], "/no/such")):
        async with MathVerifier(command) as verifier:
            with pytest.raises(UserError, match=f"did not start.*{reason}.*math-verify installed"):
                await verifier.equal("1", "1")


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
        os.write(0, b"\\4\\0\\0\\0true")
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


async def test_a_child_reaches_nothing_and_without_a_clean_verdict_decides_nothing(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("a key")
    intruder = (sys.executable, "-c", INTRUDER.replace("{target!r}", repr(str(tmp_path))))
    async with MathVerifier(intruder) as verifier:
        for answer in ("say something else", "die", "spin", "swallow"):
            assert await verifier.equal("1", answer) is None, answer
            assert await verifier.equal(answer, answer) is True
        assert await verifier.equal("1", "answer for the parent") is False
        if confined():
            assert await verifier.equal("1", "2") is True
            assert [path.name for path in tmp_path.iterdir()] == ["secret"]


async def test_a_pair_is_decided_once_for_all_cells_of_a_machine(tmp_path: Path) -> None:
    pairs = {("1", "1"): True, ("1", "2"): False, ("1", "\ud800"): False}
    with Cache(tmp_path / "cache.sqlite") as cache:
        async with impostor(cache=cache) as verifier:
            assert {pair: await verifier.equal(*pair) for pair in pairs} == pairs
            assert await verifier.equal("1", "die") is None
        async with MathVerifier(("/no/such",), cache=cache) as verifier:
            assert {pair: await verifier.equal(*pair) for pair in pairs} == pairs
            # That there is no verdict is remembered by one process alone.
            with pytest.raises(UserError, match="did not start"):
                await verifier.equal("1", "die")
