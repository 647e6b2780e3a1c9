"""Removal of thinking from replies, by the marks of models of 2024 to 2026 that a server did not parse."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.benchmarks.reading import without_thinking

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
