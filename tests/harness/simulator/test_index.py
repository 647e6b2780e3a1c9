from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from harness.benchmarks.items import Item
from harness.simulator.index import QuestionIndex

# Other work on the machine must not decide whether a property holds.
relaxed = hypothesis_settings(deadline=None)


def item(question: str, key: str = "i") -> Item:
    return Item(id=key, benchmark="math", question=question, gold="1")


def found(index: QuestionIndex, text: str) -> str | None:
    occurrence = index.find(text)
    return None if occurrence is None else occurrence.item.question


LETTERS = st.text(st.sampled_from("ab .?\n"), max_size=60)


@relaxed
@given(st.lists(LETTERS.filter(str.strip), min_size=1, max_size=8), LETTERS, LETTERS, st.data())
def test_agrees_with_a_search_for_every_question(questions: list[str], before: str, after: str, data: st.DataObject):
    text = before + data.draw(st.sampled_from(questions)) + after
    index = QuestionIndex([item(question, str(n)) for n, question in enumerate(questions)])
    occurrence = index.find(text)
    longest = max(len(question.strip()) for question in questions if question.strip() in text)
    assert occurrence is not None
    assert occurrence.end - occurrence.start == longest
    assert text[occurrence.start : occurrence.end] == occurrence.item.question.strip()


def test_the_longest_question_wins():
    short, long = "What is the sum of 3 and 4?", "What is the sum of 3 and 4? Write it in binary notation."
    index = QuestionIndex([item(short, "s"), item(long, "l")])
    assert found(index, f"Please answer: {long}") == long
    assert found(index, f"Please answer: {short} Thanks.") == short


@pytest.mark.parametrize("text", ["", "hello", "x" * 10000, "What is the sum of 3 and"])
def test_none(text: str):
    assert QuestionIndex([item("What is the sum of 3 and 4?")]).find(text) is None
    assert QuestionIndex([]).find(text) is None


@pytest.mark.parametrize("length", [1, 11, 12, 14, 15, 16, 31, 32, 38, 39, 40, 200])
@pytest.mark.parametrize("offset", range(9))
def test_any_length_at_any_offset(length: int, offset: int):
    question = "".join(chr(97 + (n * 7) % 26) for n in range(length))
    assert found(QuestionIndex([item(question)]), "-" * offset + question + "+" * (8 - offset)) == question


def test_questions_with_the_same_text_are_one():
    index = QuestionIndex(
        [item("Which lamp burns longest of all?", "first"), item(" Which lamp burns longest of all?\n", "2nd")]
    )
    occurrence = index.find("Which lamp burns longest of all?")
    assert occurrence is not None
    assert occurrence.item.id == "first"


def test_the_last_user_message_that_holds_one_counts():
    index = QuestionIndex([item("How many legs has a spider?", "a"), item("How many legs has a beetle?", "b")])
    messages = [
        {"role": "system", "content": "How many legs has a beetle?"},
        {"role": "user", "content": "How many legs has a spider?"},
        {"role": "assistant", "content": "How many legs has a beetle?"},
        {"role": "user", "content": "Are you sure?"},
    ]
    place_and_occurrence = index.find_in_conversation(messages)
    assert place_and_occurrence is not None
    assert place_and_occurrence[0] == 1
    assert place_and_occurrence[1].item.id == "a"
    assert index.find_in_conversation(messages[:1]) is None
