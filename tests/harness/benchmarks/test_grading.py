"""The five benchmarks: reading questions, grading and presenting answers, the mini-benchmarks and the real files."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness.benchmarks.base import Tools
from harness.benchmarks.catalogue import benchmark, entry, keys
from harness.benchmarks.items import CodeTask, Item, Status, keyed_order
from harness.benchmarks.mbpp import _entry_point
from harness.benchmarks.prepare import EMBEDDED, load_items, split_items
from harness.benchmarks.validate import GOLD, WRONG, find_exceptions
from harness.concurrency import gather
from harness.files import sha256
from harness.sandbox import Execution, Outcome, Sandbox
from harness.sandbox.worker import LIMITS
from tests.fixtures import FakeSandbox
from tests.harness.benchmarks.conftest import ALL, item_of


async def test_math_gold_stratum_and_second_column(tools: Tools) -> None:
    item = item_of("math", 2)
    assert (item.gold, item.stratum) == ("-2", "Intermediate Algebra/Level 3"), "the last box"
    verdict = await benchmark("math").grade(item_of("math", 1), r"\boxed{\frac{2}{4}}", tools)
    assert (verdict.correct, verdict.also) == (False, {"math_verify": True})


async def test_gsm_hard_gold_and_tolerance(tools: Tools) -> None:
    assert [item_of("gsm_hard", n).gold for n in range(3)] == ["200.0", "-2.5", "9300000000000.5"]
    for answer, correct in (("200.0009", True), ("199.9991", True), ("200.002", False)):
        assert (await benchmark("gsm_hard").grade(item_of("gsm_hard"), answer, tools)).correct is correct


def test_mmlu_pro_shows_lettered_options_and_trusts_the_letter() -> None:
    item = item_of("mmlu_pro")
    assert item.question.splitlines()[1:] == ["A. four", "B. six", "C. seven", "D. nine"]
    assert (item.id, item.stratum, item_of("mmlu_pro", 1).gold) == ("70", "math", "B")


def test_a_record_without_what_grading_needs_is_refused() -> None:
    for key, change, problem in (
        ("math", {"solution": "two"}, r"no \\boxed answer"),
        ("mmlu_pro", {"answer": "J"}, "options and the answer 'J'"),
        ("mbpp", {"test_list": ["assert 1 == 1"]}, "calls no function"),
    ):
        with pytest.raises(ValueError, match=problem):
            benchmark(key).normalise([{**ALL[key][0], **change}])


async def test_humaneval_runs_the_prompt_s_helpers_and_calls_check(tools: Tools) -> None:
    item = item_of("humaneval")
    assert item.code.visible == ("assert norm(3.0, 4.0) == 5.0", "assert norm(0.0, 0.0) == 0.0")
    assert item.gold.startswith("import math")
    grade = benchmark("humaneval").grade
    with_helper = "```python\ndef norm(a, b):\n    return math.sqrt(helper(a) + helper(b))\n```"
    assert (await grade(item, with_helper, tools)).correct
    wrong = await grade(item, "```python\ndef norm(a, b):\n    return 0\n```", tools)
    assert (wrong.correct, wrong.status) == (False, Status.GRADED)
    assert wrong.detail.startswith("wrong_answer")


@pytest.mark.parametrize("outcome", list(Outcome))
async def test_only_a_pass_is_right_and_only_our_own_failure_is_no_verdict(outcome: Outcome) -> None:
    tools: Any = Tools(FakeSandbox(Execution(outcome, "")), None)
    verdict = await benchmark("humaneval").grade(item_of("humaneval"), "def norm(a, b): return 5", tools)
    assert verdict.correct is (outcome is Outcome.PASSED)
    assert (verdict.status is Status.SANDBOX_ERROR) is (outcome is Outcome.SANDBOX_ERROR)


async def test_mbpp_shows_one_assert_checks_all_and_splits_by_id(tools: Tools) -> None:
    subject, items = benchmark("mbpp"), benchmark("mbpp").normalise(ALL["mbpp"])
    plain, with_setup = items
    assert "twice(2)" in plain.question
    assert "twice(0)" not in plain.question
    assert (plain.code.visible, plain.code.checks.count("assert")) == (("assert twice(2) == 4",), 3)
    assert "\r" not in plain.gold
    assert with_setup.code.visible == (), "its setup has to run after the program, so the example cannot run alone"
    assert (await subject.grade(with_setup, f"```python\n{with_setup.gold}\n```", tools)).correct
    split = subject.split(items, "official")
    assert (split.train, split.test) == (("601",), ("11",))
    assert split == subject.split(items, "published")


def test_mbpp_entry_point() -> None:
    names = {
        ("assert f(1) == 2", "def f(x): return 2"): "f",
        ("assert sum(f(1)) == 1", "def f(x): return [1]\ndef other(): pass"): "f",
        ("assert g(1) == 1", "from lib import g"): "g",
        ("assert sum([1]) == 1", "def sum(x): return 1"): "sum",
    }
    assert {each: _entry_point(*each) for each in names} == names


async def test_a_program_counts_whole_or_without_what_tries_it_out(tools: Tools) -> None:
    _, *blocks = Path(__file__).with_name("norms.txt").read_text().split("\n## ")
    *rows, (_, _, norm) = [block.partition("\n") for block in blocks]
    expected = {text.replace("@ norm", norm): word == "right" for word, _, text in rows}
    item = Item("x", "mbpp", "", "", code=CodeTask("norm", "", "assert norm(3, 4) == 5.0\n", ()))
    async with Sandbox(LIMITS.model_copy(update={"cpu_s": 1, "wall_s": 2.0})) as sandbox:
        small = replace(tools, sandbox=sandbox)
        verdicts = await gather(benchmark("mbpp").grade_answer(item, answer, small) for answer in expected)
    assert {verdict.answer: verdict.correct for verdict in verdicts} == expected


def test_same_ignores_layout_comments_and_docstrings() -> None:
    subject, item = benchmark("mbpp"), item_of("mbpp")
    assert subject.same(item, "def f(x):\n    '''Doc.'''\n    # why\n    return  x+1", "def f(x): return (x + 1)")
    assert not subject.same(item, "def f(x): return x + 1", "def f(x): return x + 2")
    assert subject.same(item, "not a program", " not a program\n")


async def test_gold_answers_that_fail_and_tests_that_accept_everything_are_listed(tools: Tools) -> None:
    broken, item = replace(item_of("mbpp"), gold="def twice(n):\n    return n\n"), item_of("mbpp", 1)
    toothless = replace(item, code=replace(item.code, checks="pass"))
    found = await find_exceptions(benchmark("mbpp"), [broken, toothless], tools)
    assert found == {GOLD: [broken.id], WRONG: [item.id]}


# SHA-256 of the file, and the checksum of its items that every manifest carries, begun. A change here changes every
# number measured on the embedded sets: it is a new version of the benchmark.
PINS = {
    "gsm_hard": ("a5efa517a88a72fb912bdd86973a327e", "399f99d4f1a5bda413515a71cac3bda5"),
    "humaneval": ("a0f141a0bd4f0d5c6dc7b9f111973816", "afdb84cee10b45a267a1fb79c1fe4274"),
    "math": ("c1c4fcaae1b76432bace11a560afdd71", "2025cca18907e999c5379ab3218aff04"),
    "mbpp": ("8655a39c0b9ac3d583793042c3774bf4", "89b0b7f20ba48094415927b628adcee5"),
    "mmlu_pro": ("042938631a04f2eb50ca5df58229c124", "85b50ec38a8849f10fd8bdad8997b6e5"),
}


@pytest.mark.parametrize("key", keys())
def test_the_questions_are_the_pinned_ones_in_one_form(key: str) -> None:
    loaded, path = load_items(key, "embedded"), EMBEDDED / f"{key}.jsonl"
    assert (sha256(path)[:32], loaded.checksum[:32]) == PINS[key]
    assert all(item.difficulty is not None and 0 <= item.difficulty <= 1 for item in loaded.items)
    split = split_items(key, "embedded", loaded.items, "official")
    assert (len(split.train), len(split.test)) == (32, 128)


@pytest.mark.parametrize("step", [8, pytest.param(1, marks=pytest.mark.nightly)])
@pytest.mark.parametrize("key", keys())
async def test_every_gold_answer_is_right_and_a_mutant_wrong(key: str, step: int, tools: Tools) -> None:
    exceptions = await find_exceptions(benchmark(key), load_items(key, "embedded").items[::step], tools)
    assert not any(exceptions.values()), exceptions


@pytest.mark.realdata
@pytest.mark.usefixtures("mirror")
@pytest.mark.parametrize("key", keys())
async def test_sizes_checksums_and_a_sample_validates(key: str, tools: Tools) -> None:
    items = load_items(key, "real").items
    for kind, sizes in entry(key).expected.sizes.items():
        split = split_items(key, "real", items, kind)
        assert (len(split.train), len(split.test)) == sizes
        assert not {*split.train} & {*split.test}
    by_id = {item.id: item for item in items}
    validated = {"math": 30, "gsm_hard": 1319, "mbpp": 20, "humaneval": 20, "mmlu_pro": 2000}[key]
    sample = [by_id[id_] for id_ in keyed_order(by_id, "validation sample")[:validated]]
    exceptions = await find_exceptions(benchmark(key), sample, tools)
    assert not any(exceptions.values()), exceptions
