"""Code tools: the programs that they run, how often, and their feedback."""

from dataclasses import replace

import pytest

from harness.agents.code_tools import NO_EXAMPLE, NO_PROGRAM, CodeTools, Value, program_defining, programs
from harness.benchmarks.items import CodeTask, Item
from harness.benchmarks.programs import fenced
from harness.errors import UserError
from harness.sandbox import Execution, Outcome
from tests.fixtures import FakeSandbox

VISIBLE = ("assert double(1) == 2", "assert double('a') == 'aa'", "assert double(0) == 1")
TASK = CodeTask("double", "import math", "assert double(21) == 42  # hidden", VISIBLE)
ITEM = Item(id="1", benchmark="humaneval", question="def double(x): ...", gold="", code=TASK)
MATHS = Item(id="2", benchmark="math", question="What is 6 times 7?", gold="42")
DOUBLE = "def double(x):\n    return 2 * x"


def test_which_blocks_are_programs() -> None:
    found = {
        f"Text.\n{fenced('x = 1')}\nMore.\n```py\ny = 2\n```": ["x = 1\n", "y = 2\n"],
        "```\nfor each row: add it up\n```": [],
        "```python\nx = 1": ["x = 1\n"],
        "x = 1": ["x = 1"],
    }
    assert {text: programs(text) for text in found} == found


async def test_a_failing_program_is_told_why(code_tools: CodeTools) -> None:
    lines = (await code_tools.examples(ITEM, fenced("def double(x):\n    return x + x.real"))).splitlines()
    assert lines[1] == "- example passed: assert double(1) == 2"
    assert lines[2].startswith("- example failed: assert double('a') == 'aa' (AttributeError: 'str' object")
    assert lines[2].endswith("(program, line 2))")
    for source, reason in (("def double(x:", "SyntaxError"), ("x = 1", "NameError: name 'double' is not defined")):
        _, *lines = (await code_tools.examples(ITEM, fenced(source))).splitlines()
        assert len(lines) == 3
        assert all(line.startswith("- example failed: assert") and reason in line for line in lines)


async def test_the_last_program_that_defines_the_function_is_run_anew_for_each_example(code_tools: CodeTools) -> None:
    """A program passes when every example does."""
    counting = "calls = []\ndef double(x):\n    calls.append(x)\n    return 2 * x if len(calls) == 1 else None"
    text = f"{fenced('def double(x): pass')}\nand\n{fenced(counting)}\nand\n{fenced('y = 1')}"
    assert (await code_tools.examples(ITEM, text)).count("example passed") == 2
    assert await code_tools.passes(ITEM, text) is False
    assert await code_tools.passes(ITEM, fenced(f"{DOUBLE} if x else 1")) is True


def test_a_program_that_defines_a_function_parses_and_is_the_last_one() -> None:
    helper, draft = fenced("ONE = 1"), fenced("def double(x): pass")
    source = 'def double(x):\n    """\n    ```\n    double(1)\n    ```\n    """\n    return 2 * x\n'
    assert program_defining(f"{helper}\n{draft}\nNo:\n{fenced(source)}", "double") == source
    assert program_defining(DOUBLE, "double") == DOUBLE
    for text in ("", "ok", helper, "```python\ndef double(\n```", "```text\ndef double(x): ...\n```"):
        assert program_defining(text, "double") is None


async def test_only_visible_examples_are_run_behind_the_setup_and_where_there_are_none_a_line_says_so() -> None:
    sandbox = FakeSandbox()
    code_tools = CodeTools(sandbox)
    await code_tools.examples(ITEM, fenced(DOUBLE))
    asked = [(program.checks, program.source, program.setup.strip()) for program in sandbox.given]
    assert asked == [(example, f"{DOUBLE}\n", "import math") for example in VISIBLE]
    bare = replace(ITEM, code=replace(TASK, visible=()))
    nothing = [(ITEM, "No program.", NO_PROGRAM), (MATHS, "No program.", NO_PROGRAM)]
    for item, text, line in [*nothing, (MATHS, fenced(DOUBLE), NO_EXAMPLE), (bare, fenced(DOUBLE), NO_EXAMPLE)]:
        assert (await code_tools.examples(item, text), await code_tools.passes(item, text)) == (line, None)
    assert len(sandbox.given) == len(VISIBLE)


async def test_the_value_is_what_print_would_show_or_why_there_is_none(code_tools: CodeTools) -> None:
    values = {
        "answer = 6 * 7": Value("42"),
        "answer = 'two\\n[2] Somebody:\\nlines'": Value("two [2] Somebody: lines"),
        "answer = 'a' * 201": Value("a" * 200 + "..."),
        "import sys\nsys.stdout = None\nprint = str = repr = len = 0\nanswer = 5": Value("5"),
        "answer = [object()]": Value("[<object object at 0x...>]"),
        "if False:\n    answer = 1": Value(failure="NameError: name 'answer' is not defined"),
        "def answer(): return 1": Value(failure="TypeError: answer is a function, not a value"),
        "answer = 1 / 0": Value(failure="ZeroDivisionError: division by zero (program, line 1)"),
        "answer = 'x' * 10 ** 10": Value(failure="MemoryError (program, line 1)"),
        "answer = 1\nimport sys\nsys.exit()": Value(failure="SystemExit (program, line 3)"),
    }
    assert {source: await code_tools.value(f"So:\n{fenced(source)}") for source in values} == values


async def test_the_last_program_that_speaks_of_the_answer_counts(code_tools: CodeTools) -> None:
    text = "\n".join([fenced("answer = 1"), "No:", fenced("answer = 2"), fenced("print('done')")])
    assert await code_tools.value(text) == Value(printed="2")
    assert await code_tools.value(fenced("answer = 1\nprint('x' * 10 ** 6)")) == Value(printed="1")
    assert await code_tools.value("The answer is 3.") is None


async def test_a_broken_sandbox_is_the_users_concern_and_not_remembered() -> None:
    sandbox = FakeSandbox(Execution(Outcome.SANDBOX_ERROR, "no namespaces today"))
    code_tools = CodeTools(sandbox)
    for attempt in (code_tools.examples(ITEM, fenced(DOUBLE)), code_tools.value(fenced("answer = 1"))):
        with pytest.raises(UserError, match=r"no namespaces today.*same command again"):
            await attempt
    sandbox.execution = Execution(Outcome.PASSED, "")
    assert (await code_tools.examples(ITEM, fenced(DOUBLE))).count("example passed") == 3
