"""The programming tasks: right solutions pass, wrong ones fail, quickly and for good reasons."""

from __future__ import annotations

import ast
import copy
import doctest
import re
import signal
from collections.abc import Iterator
from types import FrameType

import pytest

from harness.benchmarks.mini import humaneval, mbpp
from harness.benchmarks.mini.code import CodeQuestion, body
from harness.benchmarks.mini.compose import Placed

SETS = {"mbpp": mbpp, "humaneval": humaneval}
PLACED = {key: module.questions() for key, module in SETS.items()}
RECORDS = {key: module.records() for key, module in SETS.items()}
TASKS = [placed for key in SETS for placed in PLACED[key]]
SWAPS: dict[type, type] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Add,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv,
    ast.And: ast.Or,
    ast.Or: ast.And,
    ast.In: ast.NotIn,
}


class _TooLongError(Exception):
    """A mutant did not end."""


def _interrupt(_signal: int, _frame: FrameType | None) -> None:
    raise _TooLongError


def mutants(source: str) -> Iterator[str]:
    """The source with one operator, comparison or whole number changed."""
    tree = ast.parse(source)
    for place, node in enumerate(ast.walk(tree)):
        for field in ("op", "ops"):
            old = getattr(node, field, None)
            old = old[0] if isinstance(old, list) else old
            if type(old) in SWAPS:
                changed = copy.deepcopy(tree)
                target = list(ast.walk(changed))[place]
                new = SWAPS[type(old)]()
                setattr(target, field, [new, *getattr(target, field)[1:]] if field == "ops" else new)
                yield ast.unparse(changed)
        if isinstance(node, ast.Constant) and type(node.value) is int:
            changed = copy.deepcopy(tree)
            list(ast.walk(changed))[place].value = node.value + 1
            yield ast.unparse(changed)


def passes(source: str, checks: str) -> bool:
    """Whether a program of this project, or a mutant of one, passes within 60 ms of CPU time."""
    namespace: dict[str, object] = {}
    previous = signal.signal(signal.SIGVTALRM, _interrupt)
    signal.setitimer(signal.ITIMER_VIRTUAL, 0.06)
    try:
        exec(source, namespace)  # noqa: S102
        exec(checks, namespace)  # noqa: S102
    except Exception:
        return False
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, previous)
    return True


def program(key: str, record: dict[str, str]) -> tuple[str, str]:
    if key == "mbpp":
        return record["code"], "\n".join(record["test_list"])
    return (
        record["prompt"] + record["canonical_solution"],
        f"{record['test']}\ncheck({record['entry_point']})",
    )


@pytest.mark.parametrize("key", SETS)
def test_solutions_agree_with_independent_implementations(key: str) -> None:
    for record in RECORDS[key]:
        source, checks = program(key, record)
        namespace: dict[str, object] = {}
        exec(source, namespace)  # noqa: S102
        exec(checks, namespace)  # noqa: S102


@pytest.mark.parametrize("key", SETS)
def test_simple_mutants_fail(key: str) -> None:
    killed = total = 0
    for record in RECORDS[key]:
        source, checks = program(key, record)
        fates = [passes(mutant, checks) for mutant in mutants(source)]
        killed, total = killed + fates.count(False), total + len(fates)
        assert fates.count(False) >= 1 or not fates, source
        assert fates.count(True) <= max(3, len(fates) // 3), source
    assert killed / total > 0.9


@pytest.mark.parametrize("key", SETS)
def test_an_empty_or_constant_answer_fails(key: str) -> None:
    for record in RECORDS[key]:
        source, checks = program(key, record)
        name = re.findall(r"def (\w+)", source)[0]
        for value in ("None", "0", "[]", "''", "True"):
            assert not passes(f"def {name}(*_):\n    return {value}\n", checks), (name, value)


def test_solutions_leave_their_arguments_alone() -> None:
    for placed in TASKS:
        namespace: dict[str, object] = {}
        exec(placed.question.plain_source, namespace)  # noqa: S102
        for arguments in placed.question.inputs:
            before = copy.deepcopy(arguments)
            namespace[placed.question.name](*arguments)  # type: ignore[operator]
            assert arguments == before


@pytest.mark.parametrize("key", SETS)
def test_every_task_of_a_set_behaves_differently(key: str) -> None:
    sources = [re.sub(rf"\b{q.name}\b", "f", q.plain_source) for _, q, _ in PLACED[key]]
    assert len(set(sources)) == 160
    assert len({placed.family for placed in PLACED[key]}) >= 30


@pytest.mark.parametrize("key", SETS)
def test_only_the_standard_library_is_imported(key: str) -> None:
    for record in RECORDS[key]:
        for node in ast.walk(ast.parse("\n".join(program(key, record)))):
            assert not isinstance(node, ast.Import | ast.ImportFrom)


def test_inputs_show_more_than_one_result() -> None:
    for family, question, _ in TASKS:
        results = [repr(question.oracle(*arguments)) for arguments in question.inputs]
        assert len(set(results)) >= 2, (family, question.name)


def test_prompts_hold_two_examples_that_hold() -> None:
    for record in RECORDS["humaneval"]:
        namespace: dict[str, object] = {}
        exec(record["prompt"] + record["canonical_solution"], namespace)  # noqa: S102
        test = doctest.DocTestParser().get_doctest(
            namespace[record["entry_point"]].__doc__, namespace, record["task_id"], None, None
        )
        assert len(test.examples) == 2
        assert doctest.DocTestRunner(verbose=False).run(test).failed == 0


def test_prompts_end_where_the_body_begins() -> None:
    for number, record in enumerate(RECORDS["humaneval"]):
        assert record["task_id"] == f"mini/{number}"
        assert record["prompt"].endswith('"""\n')
        assert record["canonical_solution"].startswith("    ")
        assert f"def {record['entry_point']}(" in record["prompt"]
        assert "\t" not in record["canonical_solution"]


def test_hidden_tests_go_beyond_the_examples() -> None:
    for placed in PLACED["humaneval"]:
        assert len(placed.question.inputs) >= 6, placed.family
        assert len({repr(arguments) for arguments in placed.question.inputs}) >= 5, placed.family


def test_numbers_follow_the_upstream_split() -> None:
    numbers = sorted(record["task_id"] for record in RECORDS["mbpp"])
    assert numbers == [*range(11, 139), *range(601, 633)]


def test_training_tasks_are_spread_over_the_families() -> None:
    family = {placed.question.text: placed.family for placed in PLACED["mbpp"]}
    train = {family[record["text"]] for record in RECORDS["mbpp"] if record["task_id"] > 600}
    test = {family[record["text"]] for record in RECORDS["mbpp"] if record["task_id"] < 600}
    assert len(train) >= 18
    assert len(test) >= 34


def test_asserts_are_single_calls_compared_with_a_literal() -> None:
    for record in RECORDS["mbpp"]:
        assert len(record["test_list"]) == 3
        for line in record["test_list"]:
            (statement,) = ast.parse(line).body
            assert isinstance(statement, ast.Assert)
            assert isinstance(statement.test, ast.Compare)
            assert isinstance(statement.test.left, ast.Call)
            ast.literal_eval(statement.test.comparators[0])


def test_body_fills_and_indents() -> None:
    assert body("\n  if x:\n    return $k\n", k=3) == "    if x:\n      return 3\n"
    with pytest.raises(KeyError, match="k"):
        body("return $k")


def test_a_question_writes_its_own_source() -> None:
    question = CodeQuestion(
        "f",
        "Add.",
        "a: int; b: dict[str, int]",
        "int",
        "    return a\n",
        lambda a, b: a,
        ((1, {"x": 2}),),
        0.5,
        "import math",
    )
    assert question.signature == "def f(a: int, b: dict[str, int]) -> int:"
    assert question.plain_source == "import math\n\n\ndef f(a, b):\n    return a\n"
    assert question.assertion((1, {"x": 2})) == "assert f(1, {'x': 2}) == 1"
    assert Placed("family", question, 0.1).question.essence == "    return a\n"
