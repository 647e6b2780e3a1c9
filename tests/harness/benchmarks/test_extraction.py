"""Extraction from replies: boxes, answer lines, fenced blocks, thinking, arbitrary texts, each benchmark's answer."""

import asyncio
import doctest
import importlib
from dataclasses import replace
from types import SimpleNamespace
from typing import Any
from unittest.mock import AsyncMock

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness.benchmarks.base import Benchmark, Tools
from harness.benchmarks.catalogue import benchmark, keys
from harness.benchmarks.items import Item, Status
from harness.benchmarks.prepare import load_items
from harness.benchmarks.reading import last_box, without_thinking
from harness.sandbox import Execution, Outcome
from harness.simulator.answers import present, wrong_answers
from tests.harness.benchmarks.conftest import item_of, rows


@given(st.text(alphabet="abc12+ ", max_size=20).filter(str.strip), st.text(alphabet="\\boxed{}` \n$1.", max_size=200))
def test_a_box_at_the_end_is_always_found(content: str, before: str) -> None:
    # A trailing backslash would turn the box's own backslash into a line break.
    assert last_box(f"{before.rstrip(chr(92))}\\boxed{{{content}}}") == content.strip()


# Texts like those of real models, in our own words, for every rule (docs/grading.md).
REPLIES = [(row["benchmark"], row["reply"], row.get("cut_off", False), row["answer"]) for row in rows("replies.jsonl")]


@pytest.mark.parametrize(("key", "text", "cut_off", "answer"), REPLIES)
def test_the_answer_of_a_reply(key: str, text: str, cut_off: bool, answer: Any) -> None:
    extracted: Any = benchmark(key).extract(item_of(key), text, cut_off)
    if key == "humaneval" and extracted and answer:
        extracted, answer = ([line for line in program.splitlines() if line] for program in (extracted, answer))
    assert (float(extracted) if key == "gsm_hard" and extracted else extracted) == answer


async def verdict(subject: Benchmark, item: Item, row: dict[str, Any], tools: Tools) -> tuple[Any, bool]:
    answer = subject.extract(item, row["reply"], row["cut_off"])
    if item.code is not None:
        graded = await subject.grade(item, row["reply"], tools, row["cut_off"])
        return answer is not None and f"def {item.code.entry_point}(" in answer, graded.correct
    expected = row.get("read", row["answer"])
    stated = expected if answer and expected and subject.same(item, answer, expected) else answer
    return stated, answer is not None and subject.same(item, item.gold, answer)


@pytest.mark.parametrize("key", keys())
async def test_extraction_and_grading_agree_with_a_reader(key: str, tools: Tools) -> None:
    """Of replies of SmolLM2-135M-Instruct (Hugging Face, Apache-2.0) to the mini-benchmarks, read one by one.

    ``answer`` is what a reader takes one to state, for programs whether it has the function. Where no rule reads this,
    since too few replies need one, ``read`` is what the suite reads.
    """
    subject, items = benchmark(key), {item.id: item for item in load_items(key, "embedded").items}
    own = [row for row in rows("real_replies.jsonl") if row["benchmark"] == key]
    verdicts = [(row["reply"], await verdict(subject, items[row["id"]], row, tools)) for row in own]
    assert verdicts == [(row["reply"], (row.get("read", row["answer"]), row["right"])) for row in own]
    # Were what a reader takes it to state the reference, a reply would be right.
    stated = [row for row in own if row["answer"] is not None and "read" not in row and items[row["id"]].code is None]
    restated = [(row, replace(items[row["id"]], gold=row["answer"])) for row in stated]
    assert [row["reply"] for row, item in restated if not (await verdict(subject, item, row, tools))[1]] == []


# Thinking by the marks of models of 2024 to 2026, which a server did not parse.
# fmt: off
SAID = [
    ("<think>\n17?\n</think>\n\n42", "42"), ("17?\n</think>\n\n42", "42"), ("<think>\n\n</think>\n\n42", "42"),
    ("<think>a <think>b</think> c</think> 42", "42"), ("<think>a</think>17<think>b</think>42", "42"),
    ("```\n17\n```\n</think>```\n42\n```", "```\n42\n```"), ("<thought>17</thought>42", "42"),
    ("<thinking>\n17\n</thinking>42", "42"), ("<Reasoning>17</Reasoning>\n<answer>42</answer>", "<answer>42</answer>"),
    ("<seed:think>17</seed:think>42", "42"), ("<think:opensource>17</think:opensource>42", "42"),
    ("[THINK]17[/THINK]42", "42"), ("◁think▷17◁/think▷42", "42"), ("<|channel>thought\n17<channel|>42<turn|>", "42"),
    ("<|begin_of_thought|>17<|end_of_thought|>\n42", "42"), ("<|START_THINKING|>17<|END_THINKING|>42", "42"),
    ("<|channel|>analysis<|message|>17<|end|><|start|>assistant<|channel|>final<|message|>42<|return|>", "42"),
    ("The answer is 5.\n\n<reasoning>3 + 2</reasoning>\n", "The answer is 5."), ("42\n<think>\n17", "42"),
    ("42\n<think>so</think><|im_end|>", "42"), ("<think>1</think>42\n<think>17", "42"),
    # Marks that end a turn.
    ("42<|im_end|>", "42"), ("42</s>", "42"), ("42<|eot_id|>\n<|endoftext|>", "42"), ("42<｜end▁of▁sentence｜>", "42"),
]
PLAIN = [
    "42\n", "The tag <think> begins it.", "a < b / think > c", "<a><reason>x</reason></a>", "analysis(2) = 5",
    "Analysis: 42", "I thought so.", "[Reasoning]\n42", "<b>42</b>", "x <|im",
]
# fmt: on
ALONE = ["<think>17", "\n <think>\n17", "[THINK]17", "<|channel|>analysis<|message|>17"]


@pytest.mark.parametrize(("text", "said"), [*SAID, *((text, text) for text in [*PLAIN, *ALONE])])
def test_what_a_reply_says_and_that_thinking_alone_says_nothing_if_it_is_cut_off(text: str, said: str) -> None:
    assert without_thinking(text).strip() == said.strip()
    assert (without_thinking(text) == text) == (text in [*PLAIN, *ALONE])
    assert text not in ALONE or without_thinking(text, cut_off=True).strip() == ""


THOUGHTS, ANSWERS = (st.sampled_from(texts) for texts in (["", "17", "\n<think>17", "`"], ["42", "42\n", "`42`"]))


@given(st.lists(st.tuples(THOUGHTS, ANSWERS), min_size=1), st.booleans())
def test_what_follows_the_last_thought_is_said(pairs: list[tuple[str, str]], breaks_off: bool) -> None:
    text = "".join(f"<think>{thought}</think>{answer}" for thought, answer in pairs)
    said = without_thinking(text + "\n<think>17" * breaks_off)
    assert said.strip() == pairs[-1][1].strip()


@pytest.mark.parametrize("key", keys())
async def test_thinking_is_no_answer(key: str, tools: Tools) -> None:
    subject, item = benchmark(key), item_of(key)
    answer, other = (present(subject, item, content) for content in (item.gold, wrong_answers(subject, item)[0]))
    for thinking in (f"<think>\n{other}\n</think>\n", f"{other}\n</think>"):
        assert subject.extract(item, f"{thinking}{answer}<|im_end|>") == subject.extract(item, answer)
    cut_off = await subject.grade(item, f"<think>\n{answer}\nHmm", tools, cut_off=True)
    assert (cut_off.status, cut_off.answer) == (Status.TRUNCATED, None)


# Pieces of every pattern.
PIECES = ["\\boxed{", "{", "}", "\\", "\\[ ", "\\(x", "$", "**", "**1", "answer is ", "answer: ", "the the "]
PIECES += ["The answer is A\n", "#### 42\n", "1", "1,111", "1.", "9e", "-", "= ", "x=1 ", "x^2+", "10 x", "A. x\n"]
PIECES += ["(", " ", "\n", ". \n", "[1] Solver:\nx\n", "Agent 1: ", "Agent 1:\n", "the draft's ", "their "]
PIECES += ["is (D) ", "==> D", "(A) and "]
PIECES += ["<think>", "</think>", "\n<think>", "<|channel|>", "<|channel|>final", "<|im_end|>", "<|", "a_"]
PIECES += ["`", "```\n", "```python\n", "def f(:\n", "def f(): pass\n", "x = (", "import a\n", "@x\n", '"""\n']


@pytest.mark.nightly  # Takes as long as all other tests of graders.
@pytest.mark.parametrize("piece", PIECES)
def test_the_time_to_read_is_linear(piece: str) -> None:
    """A reply of 100 kB takes less than 0.2 s; in quadratic time it would take longer than a test may."""
    for start, end in [("", ""), ("The answer is ", ""), ("\\boxed{", "}"), ("```python\n", "")]:
        text = f"{start}{(piece * 100_000)[:100_000]}{end}"
        for key in ("math", "gsm_hard", "mmlu_pro", "humaneval"):
            benchmark(key).extract(item_of(key), text)


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


@pytest.mark.parametrize(("name", "examples"), [("benchmarks.programs", 1), ("benchmarks.reading", 1), ("scripted", 9)])
def test_the_examples_of_docstrings(name: str, examples: int) -> None:
    assert doctest.testmod(importlib.import_module(f"harness.{name}")) == (0, examples)
