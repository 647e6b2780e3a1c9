"""The expressions of claims: arithmetic and the functions given, and no way to anything else."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.claims.language import check, evaluate
from harness.errors import UserError

FUNCTIONS = {"double": lambda value: 2 * value, "least": min}


@pytest.mark.parametrize(
    ("text", "value"),
    [("1 + 2 * 3", 7), ("(1 + 2) * 3", 9), ("-double(x) / 4", -5), ("least(x, 3) - +1", 2), ("double(value=x)", 20)],
)
def test_arithmetic_and_calls(text: str, value: float) -> None:
    assert evaluate(text, FUNCTIONS, {"x": 10}) == value


@given(st.floats(-1e6, 1e6), st.floats(-1e6, 1e6), st.floats(0.1, 1e6))
def test_it_computes_what_python_computes(a: float, b: float, c: float) -> None:
    assert evaluate("(a - b) / c + a * b", {}, {"a": a, "b": b, "c": c}) == (a - b) / c + a * b


@pytest.mark.parametrize(
    "text",
    [
        "x.real",
        "x['real']",
        "double.__globals__",
        "''.join('a')",
        "double(1).__class__",
        "(x).__class__.__mro__",
        "x | abs",
        "x is defined",
        "x if x else 1",
        "[x][0]",
        "{'a': 1}",
        "x == 10",
        "x ** 2",
        "x ~ 'a'",
        "not x",
        "double(*x)",
        "double(**x)",
        "double(double)(1)",
        "x }} {{ 1",
        "x; 1",
        "{% set x = 1 %}",
        "",
        "1 +",
    ],
)
def test_nothing_else_is_an_expression(text: str) -> None:
    with pytest.raises(UserError, match="expression"):
        evaluate(text, FUNCTIONS, {"x": 10})


@pytest.mark.parametrize("name", ["range", "dict", "cycler", "lipsum", "namespace", "open", "__import__", "eval"])
def test_no_builtin_is_at_hand(name: str) -> None:
    with pytest.raises(UserError, match="unknown function"):
        evaluate(f"{name}(1)", FUNCTIONS, {})


def test_slips_are_named_with_what_was_expected() -> None:
    with pytest.raises(UserError, match="did you mean 'double'"):
        check("doubel(1)", FUNCTIONS, {})
    with pytest.raises(UserError, match="names 'benchmrk'; expected one of benchmark"):
        check("double(benchmrk)", FUNCTIONS, {"benchmark": "math"})
    with pytest.raises(UserError, match="put text in quotes"):
        check("double(math)", FUNCTIONS, {})
    with pytest.raises(UserError, match="the name of a function"):
        check("double(1)", FUNCTIONS, {"double": 3})
    with pytest.raises(UserError, match="correct the arguments"):
        evaluate("double()", FUNCTIONS, {})
