"""Extractors and graders on arbitrary texts raise no exception and are deterministic."""

import asyncio
from types import SimpleNamespace
from typing import Any
from unittest.mock import AsyncMock

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness.benchmarks.base import Tools
from harness.benchmarks.catalogue import benchmark, keys
from harness.benchmarks.items import Status
from harness.sandbox import Execution, Outcome
from tests.harness.benchmarks.conftest import item_of
from tests.harness.benchmarks.test_extraction import REPLIES

# What other tests read, in any mixture, and what no model should write and some do.
READ = [reply for _, reply, _, _ in REPLIES]
ODD = ["\ud800", "\x00", "\u202e", "İ", "①", "²", "9" * 400, "1e400", "-1/0", "(" * 90, "not " * 200, "1" + "+1" * 300]
ODD += [r"\def\a{\a\a}\a", "factorial(9**9)", "__import__('os').system('true')", r"\frac{", "^{", "\\"]
FRAGMENTS = st.one_of(st.sampled_from(READ), st.sampled_from(ODD), st.text(max_size=8))
MIXTURES = st.lists(FRAGMENTS, max_size=10).map("".join)
REPEATED = st.builds(lambda piece, times: (piece * times)[:100_000], FRAGMENTS, st.integers(1, 100_000))
TEXTS = st.one_of(*[MIXTURES] * 8, st.text(), REPEATED)


NOTHING: Any = SimpleNamespace(
    run=AsyncMock(return_value=Execution(Outcome.WRONG_ANSWER, "")), equal=AsyncMock(return_value=None)
)
TOOLS = Tools(NOTHING, NOTHING)


@pytest.mark.parametrize("most", [50, pytest.param(20_000, marks=pytest.mark.nightly)])
@pytest.mark.parametrize("key", keys())
def test_every_text_has_a_verdict(key: str, most: int) -> None:
    subject, item = benchmark(key), item_of(key)

    @settings(
        max_examples=most, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck)
    )
    @given(TEXTS, st.booleans())
    def judged(text: str, cut_off: bool) -> None:
        verdict = asyncio.run(subject.grade(item, text, TOOLS, cut_off))
        without = (Status.TRUNCATED,) if cut_off else (Status.UNPARSABLE, Status.EMPTY)
        assert verdict.status in (Status.GRADED, *without)
        assert (verdict.answer is None) == (verdict.status is not Status.GRADED)
        assert verdict.status is Status.GRADED or not verdict.correct
        assert asyncio.run(subject.grade(item, text, TOOLS, cut_off)) == verdict
        if verdict.answer is not None:
            assert isinstance(subject.same(item, verdict.answer, item.gold), bool)

    judged()
