import asyncio
import contextlib
import sys
from pathlib import Path

import pytest

from harness.benchmarks.math_verifier import MathVerifier
from harness.database import Cache
from harness.errors import UserError
from harness.sandbox.jail import linux

_, *_BLOCKS = Path(__file__).with_name("workers.txt").read_text().split("\n## ")
# The command of each program in the place of the worker, by its name.
WORKERS = {name: (sys.executable, "-c", source) for name, _, source in (block.partition("\n") for block in _BLOCKS)}


async def test_symbolic_equality() -> None:
    equal = [(r"\frac{1}{2}", "0.5"), ("0.25", r"\frac{1}{4}"), ("(x+1)^2", "x^2+2x+1")]
    others = ["-5", "", "{{{{}}", "__import__('os').system('true')", "\x00", "\ud800", "٥"]
    pairs = dict.fromkeys(equal, True) | dict.fromkeys([(r"\frac{1}{2}", "0.6"), *(("5", n) for n in others)], False)
    async with MathVerifier() as verifier:
        assert {pair: await verifier.equal(*pair) for pair in pairs} == pairs


async def test_what_would_take_for_ever_is_undecided_and_the_next_pair_is_decided() -> None:
    async with MathVerifier(WORKERS["impatient"]) as verifier:
        for answer in ("9^{9^{9^{9^{9}}}} + 1", r"\left(" * 70 + "1" + r"\right)" * 70):
            assert await verifier.equal("1", answer) is None
            assert await verifier.equal("2", "1+1") is True


async def test_a_worker_that_hangs_or_dies_is_replaced_and_gets_no_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_API_KEY", "secret")
    async with MathVerifier(WORKERS["impostor"], reply_limit_s=1.0) as verifier:
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


async def test_a_child_reaches_nothing_and_without_a_clean_verdict_decides_nothing(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("a key")
    intruder = [word.replace("TARGET", repr(str(tmp_path))) for word in WORKERS["intruder"]]
    async with MathVerifier(intruder) as verifier:
        for answer in ("say something else", "die", "spin", "swallow"):
            assert await verifier.equal("1", answer) is None, answer
            assert await verifier.equal(answer, answer) is True
        assert await verifier.equal("1", "answer for the parent") is False
        with contextlib.suppress(OSError):
            linux.call("landlock_create_ruleset", None, 0, 1)
            assert await verifier.equal("1", "2") is True
            assert [path.name for path in tmp_path.iterdir()] == ["secret"]


async def test_a_pair_is_decided_once_for_all_cells_of_a_machine(tmp_path: Path) -> None:
    pairs = {("1", "1"): True, ("1", "2"): False, ("1", "\ud800"): False}
    with Cache(tmp_path / "cache.sqlite") as cache:
        async with MathVerifier(WORKERS["impostor"], 0.5, cache) as verifier:
            assert {pair: await verifier.equal(*pair) for pair in pairs} == pairs
            assert await verifier.equal("1", "die") is None
        async with MathVerifier(("/no/such",), cache=cache) as verifier:
            assert {pair: await verifier.equal(*pair) for pair in pairs} == pairs
            # That there is no verdict is remembered by one process alone.
            with pytest.raises(UserError, match="did not start"):
                await verifier.equal("1", "die")
