import ast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.benchmarks import Tools, benchmark
from harness.benchmarks.items import Item, Status
from harness.benchmarks.mbpp import _entry_point
from harness.benchmarks.mutants import MOST_MUTANTS, mutants
from harness.benchmarks.programs import canonical
from harness.sandbox.model import Outcome
from tests.harness.benchmarks.conftest import PlainRunner
from tests.harness.benchmarks.samples import ALL

GOOD = "def norm(a, b):\n    return (a * a + b * b) ** 0.5\n"
LOOP = """
def collatz(n):
    steps = 0
    while n != 1 and steps < 1000:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        steps += 1
    return steps
"""


@pytest.fixture
def item() -> Item:
    return benchmark("humaneval").normalise(ALL["humaneval"])[0]


@pytest.mark.parametrize(
    ("text", "program"),
    [
        (f"```python\n{GOOD}```", GOOD),
        (f"```\n{GOOD}```", GOOD),
        (f"```python\nx = 1\n```\n```python\n{GOOD}```", GOOD),  # the first that defines the function
        (f"```python\n{GOOD}```\n```python\nprint(norm(1, 2))\n```", GOOD),
        ("```python\nx = 1\n```\n```python\ny = 2\n```", "y = 2\n"),  # none defines it: the last that parses
        ("```python\nx = 1\n```\n```python\ny = = 2\n```", "x = 1\n"),
        (f"```bash\npip install x\n```\n```py\n{GOOD}```", GOOD),
        (f"```output\n5\n```\n```Python3\n{GOOD}```", GOOD),
        (f"```python\n{GOOD}", GOOD),
        (GOOD, GOOD),  # no fence at all
        ("```python\nnorm = lambda a, b: 5.0\n```", "norm = lambda a, b: 5.0\n"),
        ("```python\ndef norm(a, b)\n    return 1\n```", None),
        ("x = (" * 5000, None),
        ("a\0b", None),
    ],
)
def test_extraction(item: Item, text: str, program: str | None) -> None:
    assert benchmark("humaneval").extract(item, text) == program


async def test_helpers_of_the_prompt_are_there_whether_repeated_or_not(item: Item, tools: Tools) -> None:
    text = "```python\ndef norm(a, b):\n    return math.sqrt(helper(a) + helper(b))\n```"
    assert (await benchmark("humaneval").grade(item, text, tools)).correct


async def test_check_is_called(item: Item, tools: Tools) -> None:
    verdict = await benchmark("humaneval").grade(item, "```python\ndef norm(a, b):\n    return 0\n```", tools)
    assert not verdict.correct
    assert verdict.status is Status.GRADED
    assert verdict.detail.startswith("wrong_answer")


@pytest.mark.parametrize("outcome", list(Outcome))
async def test_only_a_pass_is_right_and_only_our_own_failure_is_no_verdict(
    item: Item, tools: Tools, runner: PlainRunner, outcome: Outcome
) -> None:
    runner.forced = outcome
    verdict = await benchmark("humaneval").grade(item, GOOD, tools)
    assert verdict.correct is (outcome is Outcome.PASSED)
    assert (verdict.status is Status.SANDBOX_ERROR) is (outcome is Outcome.SANDBOX_ERROR)


def test_humaneval_examples_become_asserts(item: Item) -> None:
    assert item.code is not None
    assert item.code.visible == ("assert norm(3.0, 4.0) == 5.0", "assert norm(0.0, 0.0) == 0.0")


def test_humaneval_gold_is_a_whole_program(item: Item) -> None:
    assert item.gold.startswith("import math")
    namespace: dict[str, object] = {}
    exec(item.gold, namespace)  # noqa: S102 - our own sample
    assert namespace["norm"](3.0, 4.0) == 5.0  # type: ignore[operator]


def test_mbpp_shows_one_assert_and_checks_all() -> None:
    item = benchmark("mbpp").normalise(ALL["mbpp"])[0]
    assert item.code is not None
    assert "twice(2)" in item.question
    assert "twice(0)" not in item.question
    assert item.code.visible == ("assert twice(2) == 4",)
    assert item.code.checks.count("assert") == 3
    assert "\r" not in item.gold


async def test_mbpp_setup_runs_after_the_program_and_hides_the_example(tools: Tools) -> None:
    item = benchmark("mbpp").normalise(ALL["mbpp"])[1]
    assert item.code is not None
    assert item.code.visible == ()
    assert (await benchmark("mbpp").grade(item, f"```python\n{item.gold}\n```", tools)).correct


def test_mbpp_leaves_out_other_id_ranges_and_splits_by_id() -> None:
    items = benchmark("mbpp").normalise(ALL["mbpp"])
    split = benchmark("mbpp").split(items, "official")
    assert (split.train, split.test) == (("601",), ("11",))
    assert split == benchmark("mbpp").split(items, "published")


@pytest.mark.parametrize(
    ("example", "gold", "name"),
    [
        ("assert f(1) == 2", "def f(x): return 2", "f"),
        ("assert set(f(1)) == {1}", "def f(x): return [1]", "f"),
        ("assert not f(1)", "def f(x): return 0", "f"),
        ("assert math.isclose(f(1), 2.0, rel_tol=1e-3)", "def f(x): return 2.0", "f"),
        ("assert (f(Node(1))) == 1", "class Node: pass\ndef f(x): return 1", "f"),
        ("assert sum(f(1)) == 1", "def f(x): return [1]\ndef other(): pass", "f"),
        ("assert g(1) == 1", "from lib import g", "g"),
        ("assert sum([1]) == 1", "def sum(x): return 1", "sum"),
    ],
)
def test_mbpp_entry_point(example: str, gold: str, name: str) -> None:
    assert _entry_point(example, gold) == name


def test_mbpp_assert_about_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="calls no function"):
        _entry_point("assert 1 == 1", "def f(): pass")


def test_same_ignores_layout_comments_and_docstrings(item: Item) -> None:
    subject = benchmark("mbpp")
    assert subject.same(item, "def f(x):\n    '''Doc.'''\n    # why\n    return  x+1", "def f(x): return (x + 1)")
    assert not subject.same(item, "def f(x): return x + 1", "def f(x): return x + 2")
    assert subject.same(item, "not a program", " not a program\n")
    assert canonical("def f():\n    'doc'") == canonical("def f(): pass")


@given(st.text(alphabet="ab`\n ", max_size=40))
def test_presented_programs_survive_backticks(noise: str) -> None:
    subject = benchmark("mbpp")
    item = subject.normalise(ALL["mbpp"])[0]
    program = f"def twice(n):\n    return {noise!r}\n"
    assert subject.extract(item, subject.present(item, program)) == program


def test_mutants_parse_are_distinct_and_bounded() -> None:
    for source, name in [(GOOD, "norm"), (LOOP, "collatz"), ("def f():\n    pass", "f")]:
        found = mutants(source, name)
        assert 2 <= len(found) <= MOST_MUTANTS
        assert len({ast.dump(ast.parse(mutant)) for mutant in found} | {ast.dump(ast.parse(source))}) == len(found) + 1
        assert found == mutants(source, name)


def test_mutants_differ_from_the_program_in_one_statement_of_behaviour() -> None:
    source = "def biggest(a, b, c):\n    return max(a, max(b, c))\n"
    assert mutants(source, "biggest")[0] == "def biggest(a, b, c):\n    return min(a, max(b, c))"


def test_mutants_of_loops_come_last() -> None:
    in_loop = [
        index
        for index, mutant in enumerate(mutants(LOOP, "collatz"))
        if "steps = 0" in mutant and "return steps" in mutant
    ]
    elsewhere = [
        index
        for index, mutant in enumerate(mutants(LOOP, "collatz"))
        if "return None" in mutant and "*args" not in mutant
    ]
    assert max(elsewhere) < min(index for index in in_loop)


def test_kinds_take_turns() -> None:
    source = "def f(x):\n    if x > 3:\n        return x + 1\n    return x - 1\n"
    first = [
        next(line for line in mutant.splitlines() if line not in source.splitlines())
        for mutant in mutants(source, "f")[:5]
    ]
    assert first == [
        "    if not x > 3:",
        "        return x - 1",
        "    if x > 4:",
        "    if x >= 3:",
        "        return None",
    ]


def test_no_mutant_grows_without_bound() -> None:
    for mutant in mutants("def f(x):\n    return x * x - x % 7 + (x >> 2)\n", "f"):
        assert "**" not in mutant.replace("**kwargs", "")
        assert "<<" not in mutant
