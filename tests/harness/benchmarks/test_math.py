"""MATH: the rules of its grader, and symbolic equality in processes of its own."""

import asyncio
import contextlib
import gzip
import json
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.benchmarks.math import equivalent, normal_form
from harness.benchmarks.math_verifier import MathVerifier
from harness.database import Cache
from harness.errors import UserError
from harness.sandbox.jail import linux

# fmt: off
EQUAL = [
    (r"\frac12", r"\frac{1}{2}"), (r"\frac1{72}", r"\frac{1}{72}"), (r"\frac \pi4", r"\frac{\pi}{4}"),
    (r"\frac{\sqrt3}2", r"\frac{\sqrt{3}}2"), (r"\dfrac{1}{2}", r"\tfrac{1}{2}"), ("3/4", r"\frac{3}{4}"),
    ("-3/4", r"\frac{-3}{4}"), ("0.5", r"\frac{1}{2}"), (".5", r"\frac{1}{2}"), (".25", "0.25"),
    ("-4 + .3", "-4 + 0.3"), (r"\sqrt3", r"\sqrt{3}"), (r"2\sqrt 7", r"2\sqrt{7}"), (r"\left(1, 2\right)", "(1,2)"),
    (r"30^\circ", "30"), (r"30^{\circ}", "30"), (r"50\%", "50"), ("50%", "50"), (r"\$10", "10"),
    (r"10\text{ cm}", "10"), ("x = 5", "5"), ("k=-1", "-1"), (r"10{,}\!000", "10{,}000"), ("1 +\n2", "1+2"),
    (r"\textbf{(B)}", "(B)"), (r"\mathrm{ (B) }", r"\text{(B)}"),
]
DIFFERENT = [
    ("5", "-5"), ("0.25", r"\frac{1}{4}"), ("12", "1 2 0"), (r"\text{even}", r"\text{odd}"),
    (r"\sqrt[3]{2}", r"\sqrt{2}"), ("abc = 5", "5"), ("a=b=5", "5"), ("(1,2)", "[1,2]"), ("1.5/2", r"\frac{1.5}{2}"),
    ("1,000", "1000"), (r"\text{(B)}", "(C)"), (r"\textbf{B}", r"\text{B}"),
]
# fmt: on


@pytest.mark.parametrize(("a", "b"), [*EQUAL, *DIFFERENT])
def test_spellings_of_one_value_and_what_the_rules_keep_apart(a: str, b: str) -> None:
    assert equivalent(a, b) is equivalent(b, a) is ((a, b) in EQUAL)


@given(st.text(alphabet="\\fracsqrttext{}[]()0123456789/.=-+ %$^_xk\n", max_size=60))
def test_any_text_has_a_normal_form_equal_to_itself(text: str) -> None:
    assert isinstance(normal_form(text), str)
    assert equivalent(text, text)


@pytest.mark.realdata
def test_pairs_of_the_rules_own_authors(mirror: Path) -> None:
    with gzip.open(mirror / "outputs" / "answer_pairs.jsonl.gz", "rt", encoding="utf-8") as file:
        pairs = [pair for pair in map(json.loads, file) if pair["upstream"].startswith("hendrycks/math")]
    assert pairs
    wrong = [pair for pair in pairs if equivalent(pair["gold"], pair["response"]) != pair["upstream_correct"]]
    assert wrong == []


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
