import gzip
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.benchmarks.math import equivalent, normal_form

# fmt: off
EQUAL = [
    (r"\frac12", r"\frac{1}{2}"), (r"\frac1{72}", r"\frac{1}{72}"), (r"\frac \pi4", r"\frac{\pi}{4}"),
    (r"\frac{\sqrt3}2", r"\frac{\sqrt{3}}2"), (r"\dfrac{1}{2}", r"\tfrac{1}{2}"), ("3/4", r"\frac{3}{4}"),
    ("-3/4", r"\frac{-3}{4}"), ("0.5", r"\frac{1}{2}"), (".5", r"\frac{1}{2}"), (".25", "0.25"),
    ("-4 + .3", "-4 + 0.3"), (r"\sqrt3", r"\sqrt{3}"), (r"2\sqrt 7", r"2\sqrt{7}"), (r"\left(1, 2\right)", "(1,2)"),
    (r"30^\circ", "30"), (r"30^{\circ}", "30"), (r"50\%", "50"), ("50%", "50"), (r"\$10", "10"),
    (r"10\text{ cm}", "10"), ("x = 5", "5"), ("k=-1", "-1"), (r"10{,}\!000", "10{,}000"), ("1 +\n2", "1+2"),
    (r"\textbf{(B)}", "(B)"), (r"\mathrm{ (B) }", r"\text{(B)}"),
]
DIFFERENT = [
    ("5", "-5"), ("0.25", r"\frac{1}{4}"), ("12", "1 2 0"), (r"\text{even}", r"\text{odd}"),
    (r"\sqrt[3]{2}", r"\sqrt{2}"), ("abc = 5", "5"), ("a=b=5", "5"), ("(1,2)", "[1,2]"), ("1.5/2", r"\frac{1.5}{2}"),
    ("1,000", "1000"), (r"\text{(B)}", "(C)"), (r"\textbf{B}", r"\text{B}"),
]
# fmt: on


@pytest.mark.parametrize(("a", "b"), [*EQUAL, *DIFFERENT])
def test_spellings_of_one_value_and_what_the_rules_keep_apart(a: str, b: str) -> None:
    assert equivalent(a, b) is equivalent(b, a) is ((a, b) in EQUAL)


@given(st.text(alphabet="\\fracsqrttext{}[]()0123456789/.=-+ %$^_xk\n", max_size=60))
def test_any_text_has_a_normal_form_equal_to_itself(text: str) -> None:
    assert isinstance(normal_form(text), str)
    assert equivalent(text, text)


@pytest.mark.realdata
def test_pairs_of_the_rules_own_authors(mirror: Path) -> None:
    with gzip.open(mirror / "outputs" / "answer_pairs.jsonl.gz", "rt", encoding="utf-8") as file:
        pairs = [pair for pair in map(json.loads, file) if pair["upstream"].startswith("hendrycks/math")]
    assert pairs
    wrong = [pair for pair in pairs if equivalent(pair["gold"], pair["response"]) != pair["upstream_correct"]]
    assert wrong == []
