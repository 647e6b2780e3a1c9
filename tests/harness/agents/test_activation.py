"""An agent's action: its calls, visible context, and the resulting contribution; the programs that its tools run."""

import itertools
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness.agents.activation import NO_ENTRY, Team, act, append_text, candidates
from harness.agents.code_tools import NO_EXAMPLE, NO_PROGRAM, CodeTools, Value, program_defining, programs
from harness.agents.prompts import HINTS_HEADER, RECORDS_HEADER, Record
from harness.agents.roles import CATALOGUE, Role, ToolOutput, by_domain, by_key, catalogue
from harness.agents.trajectory import CallSpec
from harness.benchmarks.catalogue import benchmark
from harness.benchmarks.items import CodeTask, Item
from harness.benchmarks.programs import fenced
from harness.errors import UserError
from harness.files import read_entries
from harness.llm.request import Reply
from harness.sandbox import Execution, Outcome
from harness.scripted import ScriptedModel
from tests.fixtures import FakeSandbox, context

VISIBLE = ("assert double(1) == 2", "assert double('a') == 'ab'")
CODE = Item("1", "humaneval", "def double(x): ...", "", code=CodeTask("double", "", "assert 0  # hidden", VISIBLE))
MATHS = Item("2", "gsm_hard", "What is 6 times 7?", "42.0")
PROGRAM = "```python\ndef double(x):\n    return 2 * x\nanswer = double(21)\n```"
OUTCOME = (
    "The program was run on every visible example of the question:\n"
    "- example passed: assert double(1) == 2\n"
    "- example failed: assert double('a') == 'ab' (the result differs)"
)
VALUE = "The program was executed; its variable answer holds 42"
PROSE = Record("Planner", "Multiply.")
WORK = Record("Worker", f"{PROGRAM}\n\nThe answer is 41")

# The table of roles, written down a second time.
REVISERS = {f"Code/{name}" for name in ("BugFixer", "ReflectProgrammer", "PlanSolver", "TestAnalyst")}
FEEDBACK = REVISERS | {f"Code/{name}" for name in ("AlgorithmDesigner", "ProjectManager", "ProgrammingExpert")}
HINTS = {"Math/MathSolver", "Math/MathTeacher", "Math/ProgrammingExpert"}
RUNS_EXAMPLES = {"Code/ProgrammingExpert", "Code/BugFixer", "Code/ReflectProgrammer"}
EXECUTES = {"Math/ProgrammingExpert", "Math/SoftwareDeveloper"}
TWICE = EXECUTES | REVISERS | {"Commonsense/Reflector", "Commonsense/WikiSearcher"}
KEYS = [one.key for one in catalogue()]

IDLE = CodeTools(None)  # type: ignore[arg-type]  # with nothing to run a program in


async def activate(
    key: str,
    item: Item,
    code_tools: CodeTools,
    *replies: str | Reply,
    records: Sequence[Record] = (),
    slot: int = 0,
    **team: Any,
) -> tuple[str, ScriptedModel, Any]:
    client = ScriptedModel(*replies)
    attempt = context(item, client, "RULES", code_tools=code_tools)
    text = await act(by_key()[key], "small", item, records, attempt, CallSpec(3, slot=slot), Team(**team))
    return text, client, attempt.close(text)


def prompts(client: ScriptedModel) -> list[list[tuple[str, str]]]:
    return [[tuple(message) for message in request.messages] for _, request in client.asked]  # type: ignore[misc]


async def test_the_calls_of_every_role(code_tools: CodeTools) -> None:
    for key, item in itertools.product(KEYS, [CODE, MATHS]):
        one = by_key()[key]
        text, client, trajectory = await activate(key, item, code_tools, PROGRAM, "second", records=[PROSE, WORK])

        shown = WORK.text
        if key in FEEDBACK and item is CODE:
            shown += f"\n\n{OUTCOME}"
        user = f"Question:\n{item.question}\n\n{RECORDS_HEADER}\n\n[1] Planner:\nMultiply.\n\n[2] Worker:\n{shown}"
        if key in HINTS:
            user += f"\n\n{HINTS_HEADER} 41; 42"
        first = [("system", f"{one.description}\n\n{one.instruction}\n\nRULES"), ("user", user)]

        added = PROGRAM
        if key in RUNS_EXAMPLES:
            added += f"\n\n{OUTCOME if item is CODE else NO_EXAMPLE}"
        elif key in EXECUTES:
            added += f"\n\n{VALUE}"
        elif key == "Commonsense/WikiSearcher":
            added += f"\n\n{NO_ENTRY}"

        if key in TWICE:
            assert prompts(client) == [first, [*first, ("assistant", added), ("user", f"{one.second_call}\n\nRULES")]]
            assert text == "second"
        else:
            assert prompts(client) == [first]
            assert text == added
        # With the call that it is about.
        said = added.removeprefix(PROGRAM).strip()
        for number, example in enumerate(item.code.visible if item.code else (), 1):
            said = said.replace(f": {example}", f": no. {number}")
        assert [call.tool for call in trajectory.calls] == [said, ""][: len(client.asked)]
        calls = [(3, key, purpose, "small") for purpose in ("act", "second_call")][: len(client.asked)]
        assert [(call.step, call.role, call.purpose, call.backbone) for call in trajectory.calls] == calls
        assert trajectory.cost_steps == trajectory.cost_total > 0


@pytest.mark.parametrize("place", ["last", "first", "none"])
async def test_the_outcome_of_a_program_stands_where_it_should(place: ToolOutput, code_tools: CodeTools) -> None:
    """In the record that the agent leaves, and in those that it reads."""
    expected = {"last": f"{PROGRAM}\n\n{OUTCOME}", "first": f"{OUTCOME}\n\n{PROGRAM}", "none": PROGRAM}[place]
    bare = PROGRAM.split("\n", 1)[1].removesuffix("\n```")
    for reply in (PROGRAM, bare) if place == "first" else (PROGRAM,):
        own, *_ = await activate("Code/ProgrammingExpert", CODE, code_tools, reply, tool_output=place)
        assert own == expected
    records = [Record("Colleague", PROGRAM), Record("Second", expected)]
    _, client, _ = await activate(
        "Code/ProgrammingExpert", CODE, code_tools, PROGRAM, records=records, tool_output=place
    )
    (_, (_, user)), *_ = prompts(client)
    assert user.count(expected) == 2
    assert user.count("example passed") == (0 if place == "none" else 2)


async def test_a_reply_in_prose_and_no_records() -> None:
    no_program = dict.fromkeys([*RUNS_EXAMPLES, "Math/ProgrammingExpert"], f"\n\n{NO_PROGRAM}")
    for key, item in itertools.product(KEYS, [CODE, MATHS]):
        text, client, _ = await activate(key, item, IDLE, "I would rather not say.", "second")
        assert prompts(client)[0][1] == ("user", f"Question:\n{item.question}")
        addition = {**no_program, "Commonsense/WikiSearcher": f"\n\n{NO_ENTRY}"}.get(key, "")
        assert (prompts(client)[1][2][1] if key in TWICE else text) == f"I would rather not say.{addition}"


async def test_a_failed_call_leaves_nothing_and_ends_the_activation() -> None:
    failed = Reply.failed("org/small", "no room")
    for key in KEYS:
        text, client, trajectory = await activate(key, CODE, IDLE, failed, "second")
        assert (text, len(client.asked), [call.error for call in trajectory.calls]) == ("", 1, ["no room"])
    text, _, trajectory = await activate("Code/BugFixer", MATHS, IDLE, PROGRAM, failed)
    assert (text, [call.error for call in trajectory.calls]) == ("", [None, "no room"])


CANDIDATES = [
    (["The answer is \\boxed{ \\frac{3}\n{4} }"], ["\\frac{3} {4}"]),
    (["The answer is 8.\nNo, wait. The answer is 9."], ["9"]),
    ([r"First \boxed{1}, then \boxed{2}. The answer is 3", r"The answer is \boxed{C}"], ["2", "C"]),
    ([r"\boxed{" + "x" * 81 + "}", r"The answer is 8, not \boxed{}.", r"\boxed{}"], ["8"]),
    (["```python\nanswer = 6 * 7\n```", "```python\nanswer = None\n```"], ["42"]),
    (["```python\nanswer = 6 * 7\n```\nThe answer is 42.0"], ["42.0"]),
    (["The answer is 1,000.", "```python\nanswer = 1000.0\n```", *[r"\boxed{NaN}"] * 2], ["1,000", "NaN"]),
    (["The answer is 9007199254740993", "The answer is 9007199254740992"], ["9007199254740993", "9007199254740992"]),
]


async def test_the_candidates_that_records_offer(code_tools: CodeTools) -> None:
    for texts, found in CANDIDATES:
        records = [Record(str(n), text) for n, text in enumerate(texts)]
        assert await candidates(records, code_tools) == tuple(found)


def test_additions_stand_outside_of_programs() -> None:
    closed = {
        PROGRAM: PROGRAM,
        "```python\nx = 1\n": "```python\nx = 1\n```",
        f"{PROGRAM}\n\nBetter:\n```python\nx = 1": f"{PROGRAM}\n\nBetter:\n```python\nx = 1\n```",
        "x = 1\n": "```python\nx = 1\n```",
    }
    assert {text: append_text(text, "More.").removesuffix("\n\nMore.") for text in closed} == closed
    assert append_text(PROGRAM, "") == PROGRAM


def test_fixed_lines_cannot_pass_for_an_answer() -> None:
    for line in (NO_ENTRY, NO_PROGRAM, NO_EXAMPLE):
        for key in ("gsm_hard", "math", "mmlu_pro", "humaneval"):
            assert benchmark(key).extract(CODE if key == "humaneval" else MATHS, line) is None


def test_a_domain_that_is_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"unknown domain 'math'.*'Math'"):
        by_domain("math")
    path = tmp_path / "roles.yaml"
    path.write_text(CATALOGUE.read_text().replace("Math/Inspector:", "Cooking/Someone:"))
    with pytest.raises(UserError, match=r"roles\.yaml: .*Cooking/Someone"):
        read_entries(path, Role)


EXAMPLES = ("assert double(1) == 2", "assert double('a') == 'aa'", "assert double(0) == 1")
TASK = CodeTask("double", "import math", "assert double(21) == 42  # hidden", EXAMPLES)
ITEM = replace(CODE, code=TASK)
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
    assert asked == [(example, f"{DOUBLE}\n", "import math") for example in EXAMPLES]
    bare = replace(ITEM, code=replace(TASK, visible=()))
    nothing = [(ITEM, "No program.", NO_PROGRAM), (MATHS, "No program.", NO_PROGRAM)]
    for item, text, line in [*nothing, (MATHS, fenced(DOUBLE), NO_EXAMPLE), (bare, fenced(DOUBLE), NO_EXAMPLE)]:
        assert (await code_tools.examples(item, text), await code_tools.passes(item, text)) == (line, None)
    assert len(sandbox.given) == len(EXAMPLES)


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
