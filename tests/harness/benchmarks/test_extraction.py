import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.benchmarks import benchmark
from harness.benchmarks.extraction import after_answer_is, boxes_from_last, fenced_blocks, last_box
from harness.benchmarks.items import Item

HOSTILE = st.text(alphabet="\\boxed{}` \n~pyanswer is:$(A)1,.-", max_size=200)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (r"so \boxed{5}", "5"),
        (r"\boxed{1} then \boxed{\frac{1}{2}}", r"\frac{1}{2}"),
        (r"\boxed{\boxed{7}}", "7"),
        (r"\boxed{1 \boxed{7} \fbox{8}}", "8"),
        (r"\boxed{\{1, 2\}}", r"\{1, 2\}"),
        (r"\boxed{\left\{ x \right.} end", r"\left\{ x \right."),
        (r"\boxed{3} and \boxed{4", "3"),
        (r"stray } brace \boxed{3}", "3"),
        (r"\fbox{9}", "9"),
        (r"\boxed {8}", "8"),
        ("\\boxed{\n6\n}", "6"),
        ("no box, only {braces}", None),
        (r"\boxed{", None),
    ],
)
def test_last_balanced_box(text: str, expected: str | None) -> None:
    assert last_box(text) == expected


def test_boxes_from_last_to_first() -> None:
    assert list(boxes_from_last(r"\boxed{a} \boxed{b} \boxed{c}")) == ["c", "b", "a"]
    assert list(boxes_from_last(r"\boxed{a} \boxed{b \boxed{c} \boxed{d {} } \fbox{e}")) == ["e", "d {}", "c", "a"]
    assert list(boxes_from_last(r"\boxed{a \boxed{b \boxed{c} d \boxed{e}} f} \boxed{g}")) == ["g", "e", "c"]


@given(st.text(alphabet="abc12+ ", max_size=20), HOSTILE)
def test_a_box_at_the_end_is_always_found(content: str, before: str) -> None:
    # A trailing backslash would turn the box's own backslash into a line break.
    assert last_box(f"{before.rstrip(chr(92))}\\boxed{{{content}}}") == content.strip()


def test_answer_lines_in_order_with_markup() -> None:
    text = "The answer is 3.\nNo, the answer is the answer is 8\nNo: the **Answer is:** $4$\nFinal answer is\n5"
    assert after_answer_is(text) == ["3.", "the", "8", "$4$", "5"]


@pytest.mark.parametrize(
    ("text", "stated"),
    [
        ("**Answer:** 5 m", ["5 m"]),
        ("Final answer: $x$\nAnswer: -2", ["$x$", "-2"]),
        ("Answer: The answer is 5", ["5"]),
        ("Answer: none of them. answers: 5", []),  # words alone state nothing, and a list is no statement
        ("The answer is\n\n$$\n5\n$$", ["5"]),
        ("The answer is $$5$$", ["$$5$$"]),
    ],
)
def test_answer_lines_with_a_colon_or_a_display(text: str, stated: list[str]) -> None:
    assert after_answer_is(text) == stated


def test_blocks_with_languages_and_prose_around() -> None:
    text = "First:\n```python\nx = 1\n```\nthen\n~~~\ny\n~~~\n```output\n3\n```\n"
    assert [(block.language, block.source) for block in fenced_blocks(text)] == [
        ("python", "x = 1\n"),
        ("", "y\n"),
        ("output", "3\n"),
    ]


@pytest.mark.parametrize(
    ("text", "sources"),
    [
        ("```python\nx = 1", ["x = 1\n"]),  # never closed
        ("Code: ```python\nx = 1\n```", ["x = 1\n"]),  # opened behind prose
        ("```python\nx = 1```", ["x = 1\n"]),  # closed behind code
        ("```python\nx = 1\n```python\ny = 2\n```", ["x = 1\n", "y = 2\n"]),  # second opened instead of first closed
        ("```python\nx = 1\n```.", ["x = 1\n"]),
        ("````python\ns = '```'\n````", ["s = '```'\n"]),
        ("Use ```inline``` code\n```python\nx = 1\n```", ["x = 1\n"]),
        ("```python\r\nx = 1\r\n```", ["x = 1\n"]),
        ("```python\nx = 'a\u2028b'\n```", ["x = 'a\u2028b'\n"]),  # a line separator inside a string is no new line
        ("none", []),
    ],
)
def test_slips_of_fences(text: str, sources: list[str]) -> None:
    assert [block.source for block in fenced_blocks(text)] == sources


def read_all(text: str) -> None:
    list(boxes_from_last(text))
    after_answer_is(text)
    fenced_blocks(text)


@given(HOSTILE)
def test_any_text_is_accepted(text: str) -> None:
    read_all(text)


@pytest.mark.parametrize(
    ("unit", "end"),
    [
        *(
            (unit, "")
            for unit in ("\\boxed{", "`", "answer is ", "answer: ", "answer*:(", "```\n", "{", "}", "~~~", "\\")
        ),
        ("\\boxed{", "}"),
        ("\\boxed{(A) ", "}"),
        ("\\boxed{1, we ", "}"),
        ("The answer is A\nQuestion: ", ""),
        ("12", " th x"),
        ("(C)", "~ "),
    ],
)
def test_long_texts_end(unit: str, end: str) -> None:
    """In quadratic time this would go on for a good part of an hour."""
    text = unit * 50_000 + end * 50_000
    read_all(text)
    for key in ("math", "gsm_hard", "mmlu_pro"):
        benchmark(key).extract(Item("1", key, "", ""), text)
        benchmark(key).extract(Item("1", key, "", ""), f"\\boxed{{{text}}}")
