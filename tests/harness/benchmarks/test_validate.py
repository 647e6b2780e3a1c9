from dataclasses import replace

from harness.benchmarks import Tools, benchmark
from harness.benchmarks.validate import EXAMPLES, GOLD, WRONG, validate_items
from tests.harness.benchmarks.samples import ALL, item_of


async def test_gold_answers_that_fail_and_tests_that_accept_everything_are_listed(tools: Tools) -> None:
    items = benchmark("mbpp").normalise(ALL["mbpp"])
    broken = replace(items[0], gold="def twice(n):\n    return n\n")
    report = await validate_items(benchmark("mbpp"), [broken, *items[1:]], "real", tools)
    assert not report.passed
    assert report.exceptions(GOLD) == report.exceptions(EXAMPLES) == ["11"]
    assert "gold answer right: 1 of 2; not for 11" in report.to_markdown()
    item = item_of("humaneval")
    assert item.code is not None
    toothless = replace(item, code=replace(item.code, checks="pass"))
    report = await validate_items(benchmark("humaneval"), [toothless], "real", tools)
    assert (report.passed, report.exceptions(WRONG)) == (False, [item.id])


async def test_an_equivalent_mutant_is_passed_over(tools: Tools) -> None:
    source = "def twice(n):\n    unused = n - 1\n    return n + n\n"
    assert (await validate_items(benchmark("mbpp"), [replace(item_of("mbpp"), gold=source)], "real", tools)).passed


class AlwaysEqual:
    async def equal(self, gold: str, answer: str) -> bool:
        return True


async def test_a_second_column_that_differs_is_listed(tools: Tools) -> None:
    items = benchmark("math").normalise(ALL["math"])
    assert (await validate_items(benchmark("math"), items, "real", tools)).exceptions("math_verify agrees") == []
    report = await validate_items(benchmark("math"), items, "real", Tools(tools.sandbox, AlwaysEqual()))  # type: ignore[arg-type]
    assert report.passed
    assert "math_verify agrees: 0 of 3; not for algebra/" in report.to_markdown()
