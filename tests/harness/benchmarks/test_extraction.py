"""Extraction from replies: boxes, answer lines, fenced blocks, and the answer of each benchmark.

Many texts have formatting errors of real model outputs, in our own words (``replies.jsonl``).
"""

import doctest
import importlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from harness.benchmarks.base import Benchmark, Tools
from harness.benchmarks.catalogue import benchmark, keys
from harness.benchmarks.extraction import fenced_blocks
from harness.benchmarks.items import Item, Status
from harness.benchmarks.prepare import load_items
from harness.benchmarks.programs import salvage
from harness.benchmarks.statements import last_box, statements
from harness.simulator.answers import present, wrong_answers
from tests.harness.benchmarks.samples import item_of

HOSTILE = st.text(alphabet="\\boxed{}` \n~pyanswer is:$(A)1,.-", max_size=200)


@given(st.text(alphabet="abc12+ ", max_size=20).filter(str.strip), HOSTILE)
def test_a_box_at_the_end_is_always_found(content: str, before: str) -> None:
    # A trailing backslash would turn the box's own backslash into a line break.
    assert last_box(f"{before.rstrip(chr(92))}\\boxed{{{content}}}") == content.strip()


def rows(name: str) -> list[dict[str, Any]]:
    return [orjson.loads(line) for line in Path(__file__).with_name(name).read_bytes().splitlines()]


REPLIES = [(row["benchmark"], row["reply"], row.get("cut_off", False), row["answer"]) for row in rows("replies.jsonl")]


@pytest.mark.parametrize(("key", "text", "cut_off", "answer"), REPLIES)
def test_the_answer_of_a_reply(key: str, text: str, cut_off: bool, answer: Any) -> None:
    extracted: Any = benchmark(key).extract(item_of(key), text, cut_off)
    if key == "humaneval" and extracted and answer:
        extracted, answer = ([line for line in program.splitlines() if line] for program in (extracted, answer))
    assert (float(extracted) if key == "gsm_hard" and extracted else extracted) == answer


# Replies of SmolLM2-135M-Instruct (Hugging Face, Apache-2.0) to questions of the mini-benchmarks, from calls of all
# methods, read one by one: ``answer`` is what a reader takes one to state, for programs whether it has the function.
REAL_REPLIES = rows("real_replies.jsonl")


async def verdict(subject: Benchmark, item: Item, row: dict[str, Any], tools: Tools) -> tuple[Any, bool]:
    answer = subject.extract(item, row["reply"], row["cut_off"])
    if item.code is not None:
        graded = await subject.grade(item, row["reply"], tools, row["cut_off"])
        return answer is not None and f"def {item.code.entry_point}(" in answer, graded.correct
    stated = row["answer"] if answer and row["answer"] and subject.same(item, answer, row["answer"]) else answer
    return stated, answer is not None and subject.same(item, item.gold, answer)


@pytest.mark.parametrize("key", keys())
async def test_extraction_and_grading_agree_with_a_reader(key: str, tools: Tools) -> None:
    subject, items = benchmark(key), {item.id: item for item in load_items(key, "embedded").items}
    own = [row for row in REAL_REPLIES if row["benchmark"] == key]
    verdicts = [(row["reply"], await verdict(subject, items[row["id"]], row, tools)) for row in own]
    assert verdicts == [(row["reply"], (row["answer"], row["right"])) for row in own]
    if key not in ("mbpp", "humaneval"):
        # Were what a reader takes it to state the reference, a reply would be right.
        stating = [row for row in own if row["answer"] is not None]
        restated = [replace(items[row["id"]], gold=row["answer"]) for row in stating]
        rights = [(await verdict(subject, item, row, tools))[1] for item, row in zip(restated, stating, strict=True)]
        assert [row["reply"] for row, right in zip(stating, rights, strict=True) if not right] == []


@pytest.mark.parametrize("key", keys())
async def test_thinking_is_no_answer(key: str, tools: Tools) -> None:
    subject, item = benchmark(key), item_of(key)
    answer, other = (present(subject, item, content) for content in (item.gold, wrong_answers(subject, item)[0]))
    for thinking in (f"<think>\n{other}\n</think>\n", f"{other}\n</think>"):
        assert subject.extract(item, f"{thinking}{answer}<|im_end|>") == subject.extract(item, answer)
    cut_off = await subject.grade(item, f"<think>\n{answer}\nHmm", tools, cut_off=True)
    assert (cut_off.status, cut_off.answer) == (Status.TRUNCATED, None)


# By their kind, which the file says.
QUESTIONS: dict[str, list[str]] = yaml.safe_load(Path(__file__).with_name("questions.yaml").read_text())


@pytest.mark.parametrize("key", keys())
def test_a_critique_does_not_end_a_reply(key: str) -> None:
    subject, item = benchmark(key), item_of(key)
    answer, draft = (present(subject, item, content) for content in (item.gold, wrong_answers(subject, item)[0]))
    expected = subject.extract(item, answer)
    critiques = [text.format(question=item.question) for text in QUESTIONS["critiques"]]
    revised = {text: subject.extract(item, f"{draft}\n{text}\n\n{answer}") for text in critiques}
    assert {text for text, found in revised.items() if found != expected} == set()
    followed = {text: subject.extract(item, f"{answer}\n{text}\n{draft}") for text in QUESTIONS["further"]}
    assert {text for text, found in followed.items() if found != expected} == set()


@pytest.mark.parametrize("key", keys())
@given(st.sampled_from(QUESTIONS["next"]), st.sampled_from(["\n", "\n\n"]), st.booleans(), st.integers(0, 1))
def test_a_reply_that_goes_on_to_another_question_answers_the_first(
    key: str, following: str, gap: str, cut_off: bool, other: int
) -> None:
    """What states no answer before a question asks its own, or divides it."""
    subject, item = benchmark(key), item_of(key)
    contents = (item.gold, wrong_answers(subject, item)[other])
    answer, wrong = (present(subject, item, content) for content in contents)
    expected = subject.extract(item, answer)
    assert subject.extract(item, f"{answer}{gap}{following}\n{wrong}", cut_off) == expected
    assert subject.extract(item, f"Let us see.{gap}{following}\n{answer}\n", cut_off) == expected


def test_a_choice_is_told_from_the_words_of_an_option() -> None:
    item = Item("1", "mmlu_pro", "", "B", options=("H. pylori", "E. coli", "none of the others in this list"))
    texts = {"E. coli": None, "B. E. coli": "B", "A. E. coli": None, "E. coli, a germ of the gut": None}
    texts |= {"(C) none of the others in this": "C", "(B) none of the others in this": None}
    assert {text: benchmark("mmlu_pro").extract(item, text) for text in texts} == texts


@given(st.integers(-(10**6), 10**6), st.integers(1, 10**6), st.sampled_from(["{}/{}", "{} / {}", r"\frac{{{}}}{{{}}}"]))
def test_a_fraction_is_read_as_one(over: int, under: int, form: str) -> None:
    value = benchmark("gsm_hard").extract(item_of("gsm_hard"), f"The answer is {form.format(over, under)}.")
    assert float(str(value)) == pytest.approx(over / under)


@given(st.text(alphabet="ab`\n ", max_size=40))
def test_presented_programs_survive_backticks(noise: str) -> None:
    subject, item = benchmark("mbpp"), item_of("mbpp")
    program = f"def twice(n):\n    return {noise!r}\n"
    assert subject.extract(item, present(subject, item, program)) == program


SLOW = ["\\boxed{", "`", "answer is ", "answer: ", "answer*:(", "The answer is A\nQuestion: "]
SLOWER = ["```\n", "{", "}", "~~~", "\\", "Which?\nA. x\n", "C.\n", "1 1/"]
PAIRS = [("\\boxed{", "}"), ("\\boxed{(A) ", "}"), ("\\boxed{1, we ", "}"), ("12", " th x"), ("(C)", "~ ")]


@pytest.mark.parametrize("number", [4_000, pytest.param(20_000, marks=pytest.mark.nightly)])
@pytest.mark.parametrize(
    ("unit", "end"),
    [*((unit, "") for unit in SLOW), *PAIRS, *(pytest.param(unit, "", marks=pytest.mark.nightly) for unit in SLOWER)],
)
def test_long_texts_end(unit: str, end: str, number: int) -> None:
    """In quadratic time this would go on for minutes."""
    text = unit * number + end * number
    assert statements(text) is not None
    assert fenced_blocks(text) is not None
    for key in ("math", "gsm_hard", "mmlu_pro"):
        benchmark(key).extract(Item("1", key, "", ""), text)
        benchmark(key).extract(Item("1", key, "", ""), f"\\boxed{{{text}}}")
    assert "def f" not in salvage("def f(:\n" * 6000)
    assert benchmark("humaneval").extract(item_of("humaneval"), "x = (" * 5000) is None


@pytest.mark.parametrize("name", ["extraction", "statements"])
def test_the_examples_of_docstrings(name: str) -> None:
    assert doctest.testmod(importlib.import_module(f"harness.benchmarks.{name}")) == (0, 1)
