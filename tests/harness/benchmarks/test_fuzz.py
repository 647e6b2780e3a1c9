"""Extractors and graders on arbitrary text: no exception, no hang, and the same verdict twice.

2,000 texts in the suite; as many as wanted, with the worst of them reported, by

    GMR_FUZZ_CASES=100000 pytest -q --timeout 0 --hypothesis-seed 0 tests/harness/benchmarks/test_fuzz.py
"""

import asyncio
import os
import resource
import sys
import time
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import dataclass, field
from typing import Any, cast

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness.benchmarks import Tools, benchmark, keys
from harness.benchmarks.items import Status
from harness.benchmarks.math_verifier import MathVerifier
from harness.sandbox import Execution, Outcome, Sandbox
from tests.harness.benchmarks.nasty import ANSWERS, TEXTS
from tests.harness.benchmarks.samples import ALL

CASES = int(os.environ.get("GMR_FUZZ_CASES", "2000"))
# A worker takes a thousand times as long for a pair as an extractor for a text.
SHARE_OF_WORKER = 0.05
GOLDS = (r"\frac{1}{2}", "-3", r"(1, 2] \cup [3, \infty)", r"\begin{pmatrix} 1 \\ 2 \end{pmatrix}", r"x^2 + \sqrt{3}")
IMPATIENT = "from harness.benchmarks import math_worker; math_worker.CPU_LIMIT_S = 1; math_worker.main()"


def cases(share: float) -> settings:
    return settings(
        max_examples=max(1, round(share * CASES)),
        deadline=None,
        derandomize="GMR_FUZZ_CASES" not in os.environ,
        database=None,
        suppress_health_check=list(HealthCheck),
    )


@dataclass
class Worst:
    """The longest time any case took, and the text of it."""

    seconds: dict[str, tuple[float, str]] = field(default_factory=dict)
    number: int = 0
    undecided: int = 0

    def timed(self, name: str, text: str, act: Callable[[], Any], clock: Callable[[], float]) -> Any:
        started = clock()
        found = act()
        took = clock() - started
        self.seconds[name] = max(self.seconds.get(name, (0.0, "")), (took, text))
        return found

    def report(self) -> str:
        own, children = (resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
        lines = [
            f"{self.number} cases, {self.undecided} pairs undecided",
            *(
                f"{name}: {1000 * seconds:.1f} ms at worst, {len(text)} characters, {text[:60]!r}"
                for name, (seconds, text) in self.seconds.items()
            ),
            f"peak memory: {own // 1024} MiB with the record of all cases, {children // 1024} MiB of a worker",
        ]
        return "\n".join(lines)


@pytest.fixture(scope="module")
def worst(request: pytest.FixtureRequest) -> Iterator[Worst]:
    found = Worst()
    yield found
    if "GMR_FUZZ_CASES" in os.environ:
        with request.config.pluginmanager.getplugin("capturemanager").global_and_fixture_disabled():
            sys.stdout.write(f"\n{found.report()}\n")


@pytest.fixture(scope="module")
def run() -> Iterator[Callable[[Coroutine[Any, Any, Any]], Any]]:
    loop = asyncio.new_event_loop()
    yield loop.run_until_complete
    loop.close()


class Nothing:
    """Stands in for the sandbox and for Math-Verify where their callers are tried."""

    async def run(self, program: object) -> Execution:
        return Execution(Outcome.WRONG_ANSWER, "", "")

    async def equal(self, gold: str, answer: str) -> None:
        return None


TOOLS = Tools(cast(Sandbox, Nothing()), cast(MathVerifier, Nothing()))


@pytest.mark.parametrize("key", keys())
def test_every_text_has_a_verdict(key: str, worst: Worst, run: Callable[..., Any]) -> None:
    subject = benchmark(key)
    item = subject.normalise(ALL[key])[0]

    @cases((1 - SHARE_OF_WORKER) / len(keys()))
    @given(TEXTS)
    def judged(text: str) -> None:
        worst.number += 1
        verdict = worst.timed(key, text, lambda: run(subject.grade(item, text, TOOLS)), time.process_time)
        assert verdict.status in (Status.GRADED, Status.UNPARSABLE, Status.EMPTY)
        assert (verdict.answer is None) == (verdict.status is not Status.GRADED)
        assert verdict.status is Status.GRADED or not verdict.correct
        assert run(subject.grade(item, text, TOOLS)) == verdict
        if verdict.answer is not None:
            compared = f"{key}, compared"
            worst.timed(compared, text, lambda: subject.same(item, verdict.answer, item.gold), time.process_time)

    judged()


def test_every_answer_is_equal_or_not_or_undecided(worst: Worst, run: Callable[..., Any]) -> None:
    verifier = MathVerifier((sys.executable, "-c", IMPATIENT))

    @cases(SHARE_OF_WORKER)
    @given(st.sampled_from(GOLDS), ANSWERS)
    def decided(gold: str, answer: str) -> None:
        worst.number += 1
        verdict = worst.timed("Math-Verify", answer, lambda: run(verifier.equal(gold, answer)), time.perf_counter)
        worst.undecided += verdict is None

    decided()
    for gold in GOLDS:
        assert run(verifier.equal(gold, gold)) is True
    run(verifier.close())
