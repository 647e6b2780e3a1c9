"""Answers per second, from the text of a model to its verdict."""

import asyncio

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from harness.benchmarks import Tools, keys
from harness.benchmarks import benchmark as registered
from harness.benchmarks.items import Item
from harness.benchmarks.loading import load_items
from harness.benchmarks.math_verifier import MathVerifier
from harness.sandbox import Sandbox
from tests.benchmarks.conftest import DATA, Measure, chosen

QUESTIONS = 100


@pytest.fixture(scope="module", params=keys())
def items(request: pytest.FixtureRequest) -> list[Item]:
    return load_items(request.param, DATA).items


def texts(items: list[Item], run: int) -> list[tuple[Item, str, bool]]:
    """A right and a wrong answer in turn, every time with other words around it and a comment in programs."""
    found = []
    for number, item in enumerate(items):
        subject = registered(item.benchmark)
        right = number % 2 == 0
        # The last one is wrong for certain: of programs, the mutant that only raises.
        answer = item.gold if right else subject.wrong_answers(item)[-1]
        if item.benchmark == "math" and not right:
            # Math-Verify's verdicts are remembered; a number of its own has it decide.
            answer = str(10**6 + run)
        comment = f"\n# {run}\n" if item.code is not None else ""
        found.append((item, f"Attempt {run}, step by step.\n\n{subject.present(item, answer + comment)}", right))
    return found


def test_grading(items: list[Item], benchmark: BenchmarkFixture, measure: Measure) -> None:
    subjects = chosen(benchmark, items, QUESTIONS)

    async def grade(tools: Tools, run: int) -> None:
        asked = texts(subjects, run)
        graded = (registered(item.benchmark).grade(item, text, tools) for item, text, _ in asked)
        verdicts = await asyncio.gather(*graded)
        assert [verdict.correct for verdict in verdicts] == [right for _, _, right in asked]

    with asyncio.Runner() as runner:
        tools = Tools(Sandbox(), MathVerifier())
        runner.run(grade(tools, -1))
        measure(benchmark, lambda run: runner.run(grade(tools, run)), len(subjects))
        runner.run(_closed(tools))


async def _closed(tools: Tools) -> None:
    async with tools.sandbox, tools.math_verify:
        pass
