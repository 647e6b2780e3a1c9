import gzip
import json
from pathlib import Path

import pytest

from harness.errors import UserError
from tests.harness.benchmarks.samples import ALL
from tests.workflow.agreement.samples import line, record, write
from workflow.agreement.questions import COMMON_IMPORTS, Questions, bare_answer, function_under_test
from workflow.agreement.records import data_directory, read


def test_a_record_as_it_lies_in_its_file(tmp_path: Path) -> None:
    write(tmp_path, "gsm8k", [line("gsm8k", "It is 5.", "5", item_id=7, meta={"strategy": "cot"}, upstream_pred="5")])
    (found,) = read(tmp_path, "gsm8k")
    assert (found.item_id, found.upstream, found.gold, found.upstream_pred) == ("7", "somebody/something", "5", "5")
    assert found.key == "7/model/cot"


@pytest.mark.parametrize(
    ("upstream", "strategy", "response"),
    [
        ("microsoft/rho", "cot", r"\frac{1}{2}"),
        ("microsoft/rho", "tora", r"\\frac{1}{2}"),
        ("somebody/something", "cot", r"\\frac{1}{2}"),
    ],
)
def test_doubled_backslashes_are_undone_where_they_were_doubled(
    tmp_path: Path, upstream: str, strategy: str, response: str
) -> None:
    fields = line("math", r"\\frac{1}{2}", "1", upstream=f"{upstream}:file@1", meta={"strategy": strategy})
    write(tmp_path, "math", [fields])
    assert [one.response for one in read(tmp_path, "math")] == [response]


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="did you mean 'gsm8k'"):
        read(tmp_path, "gsm8")
    with pytest.raises(UserError, match="does not exist"):
        read(tmp_path, "gsm8k")
    write(tmp_path, "gsm8k", [line("gsm8k", "text " * 100, "5")])
    path = tmp_path / "outputs" / "gsm8k.jsonl.gz"
    whole = path.read_bytes()
    for damaged in (whole[:-20], b"no archive", gzip.compress(b"{no json}\n")):
        path.write_bytes(damaged)
        with pytest.raises(UserError, match="damaged or cut off"):
            read(tmp_path, "gsm8k")


def test_the_folder_is_the_given_one_or_that_of_the_environment(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("GMR_DATA_DIR", "/of/the/environment")
    assert data_directory(tmp_path) == tmp_path
    assert data_directory(None) == Path("/of/the/environment")
    monkeypatch.delenv("GMR_DATA_DIR")
    with pytest.raises(UserError, match="--data-dir"):
        data_directory(None)


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        (r"so it is \boxed{5}.", "5"),
        (r"\boxed{1} and \boxed{2}", None),
        ("$ 5 $", "5"),
        ("$$x+1$$", "x+1"),
        (r"\(x\)", "x"),
        (r"\[ x \] ", "x"),
        ("$1$ and $2$", None),
        ("10\\text{ units}", "10\\text{ units}"),
        ("1/2", "1/2"),
        ("so it is 5", None),
    ],
)
def test_an_answer_without_text_around_it(text: str, answer: str | None) -> None:
    assert bare_answer(text) == answer


@pytest.mark.parametrize(
    ("tests", "name"),
    [
        (
            "def check(candidate):\n    assert candidate(1) == 2\n\ndef test_check():\n    check(double)\ntest_check()",
            "double",
        ),
        ("def check(candidate):\n    assert double(1) == 2\ncheck(first)\n", "double"),
        ("def check(candidate):\n    assert set(double(1)) == {2}\ncheck(first)\n", "double"),
        ("no program (", ""),
    ],
)
def test_the_function_that_tests_are_about(tests: str, name: str) -> None:
    assert function_under_test(tests) == name


def test_questions_carry_upstreams_gold_and_tests(tmp_path: Path) -> None:
    questions = Questions(tmp_path)
    assert questions.item(record("gsm8k", "", "1,234")).gold == "1234.0"
    assert questions.item(record("answer_pairs", "", r"$\frac{1}{2}$")).gold == r"\frac{1}{2}"
    code = questions.item(record("mbpp", "", "assert double(1) == 2")).code
    assert code is not None
    assert (code.entry_point, code.setup, code.checks) == ("double", COMMON_IMPORTS, "assert double(1) == 2")
    compile(COMMON_IMPORTS, "imports", "exec")


def test_a_completion_is_read_behind_its_prompt(tmp_path: Path) -> None:
    (tmp_path / "humaneval").mkdir()
    (problem,) = ALL["humaneval"]
    content = gzip.compress(json.dumps(problem).encode())
    (tmp_path / "humaneval" / "HumanEval.jsonl.gz").write_bytes(content)
    questions = Questions(tmp_path)
    whole = record("humaneval", "def norm(a, b): ...", item_id="mini/0", kind="program")
    rest = record("humaneval", "    return 5.0\n", item_id="mini/0", kind="completion")
    assert questions.answer(whole) == "def norm(a, b): ..."
    assert questions.answer(rest) == problem["prompt"] + "    return 5.0\n"
    code = questions.item(rest).code
    assert code is not None
    assert code.setup.startswith(COMMON_IMPORTS)
    assert "def helper" in code.setup


def test_a_bare_pair_gets_the_form_of_an_answer(tmp_path: Path) -> None:
    questions = Questions(tmp_path)
    assert questions.answer(record("answer_pairs", "$5$", "5")) == r"The answer is \boxed{5}"
    assert questions.answer(record("answer_pairs", "it is so: $5$", "5")) == "it is so: $5$"
