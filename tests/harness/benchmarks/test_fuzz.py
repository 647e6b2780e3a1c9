"""Extractors and graders on arbitrary text: no exception, no hang, and the same verdict twice."""

from __future__ import annotations

import asyncio
import sys
from typing import cast

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness.benchmarks import Tools, benchmark, keys
from harness.benchmarks.items import Status
from harness.benchmarks.math_verifier import MathVerifier
from harness.sandbox import Execution, Outcome, Sandbox
from tests.harness.benchmarks.nasty import ANSWERS, TEXTS
from tests.harness.benchmarks.samples import item_of

GOLDS = (r"\frac{1}{2}", "-3", r"(1, 2] \cup [3, \infty)", r"\begin{pmatrix} 1 \\ 2 \end{pmatrix}", r"x^2 + \sqrt{3}")
IMPATIENT = "from harness.benchmarks import math_worker; math_worker.CPU_LIMIT_S = 1; math_worker.main()"


def cases(most: int) -> settings:
    quiet = list(HealthCheck)
    return settings(max_examples=most, deadline=None, derandomize=True, database=None, suppress_health_check=quiet)


class Nothing:
    """Stands in for the sandbox and for Math-Verify where their callers are tried."""

    async def run(self, program: object) -> Execution:
        return Execution(Outcome.WRONG_ANSWER, "", "")

    async def equal(self, gold: str, answer: str) -> None:
        return None


TOOLS = Tools(cast(Sandbox, Nothing()), cast(MathVerifier, Nothing()))


@pytest.mark.parametrize(
    ("key", "most"),
    [*((key, 200) for key in keys()), *(pytest.param(key, 20_000, marks=pytest.mark.nightly) for key in keys())],
)
def test_every_text_has_a_verdict(key: str, most: int) -> None:
    subject, item = benchmark(key), item_of(key)

    @cases(most)
    @given(TEXTS)
    def judged(text: str) -> None:
        verdict = asyncio.run(subject.grade(item, text, TOOLS))
        assert verdict.status in (Status.GRADED, Status.UNPARSABLE, Status.EMPTY)
        assert (verdict.answer is None) == (verdict.status is not Status.GRADED)
        assert verdict.status is Status.GRADED or not verdict.correct
        assert asyncio.run(subject.grade(item, text, TOOLS)) == verdict
        if verdict.answer is not None:
            assert isinstance(subject.same(item, verdict.answer, item.gold), bool)

    judged()


@pytest.mark.parametrize("most", [30, pytest.param(1000, marks=pytest.mark.nightly)])
def test_every_answer_is_equal_or_not_or_undecided(most: int) -> None:
    verifier = MathVerifier((sys.executable, "-c", IMPATIENT))
    with asyncio.Runner() as runner:

        @cases(most)
        @given(st.sampled_from(GOLDS), ANSWERS)
        def decided(gold: str, answer: str) -> None:
            assert runner.run(verifier.equal(gold, answer)) in (True, False, None)

        decided()
        assert all(runner.run(verifier.equal(gold, gold)) for gold in GOLDS)
        runner.run(verifier.__aexit__(None, None, None))
