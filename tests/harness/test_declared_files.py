"""What a declaration may hold: a mistake is one line that names file, key, what stands there and what should."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated, Any, Literal

import pytest
from pydantic import AfterValidator, Field, PositiveInt, ValidationError

from harness.errors import UserError
from harness.files import AsWritten, Declaration, Distinct, Share, Word, check, check_entries, told


class Limit(Declaration):
    test: PositiveInt | None = None
    share: Share = 1.0


def limited(given: Any) -> Limit:
    return Limit.model_validate(given)


class Entry(Declaration):
    key: Annotated[str, Field(pattern="^[a-z]+$")]
    names: Distinct[str]
    limit: Limit = Limit()
    weights: Mapping[str, float] = {}
    size: Annotated[float, AsWritten] = 1
    colour: Literal["red", "green"] = "red"
    on: bool = True
    word: Word = "word"
    inner: Annotated[Any, AfterValidator(limited)] = None


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"limits": {}}, "one: unknown key 'limits'; did you mean 'limit'?"),
        ({"qqq": 1}, "one: unknown key 'qqq'; known: names, limit, weights, size, colour, on, word, inner"),
        ({"key": "two"}, "one: unknown key 'key'; "),
        ({"limit": {"tests": 1}}, "one.limit: unknown key 'tests'; did you mean 'test'?"),
        ({"limit": {"test": 0}}, "one.limit.test: 0 should be greater than 0"),
        ({"limit": {"test": True}}, "one.limit.test: True should be a whole number"),
        ({"limit": {"test": "3"}}, "one.limit.test: '3' should be a whole number"),
        ({"limit": {"test": 3.0}}, "one.limit.test: 3.0 should be a whole number"),
        ({"limit": {"share": 1.5}}, "one.limit.share: 1.5 should be less than or equal to 1"),
        ({"limit": None}, "one.limit: None should be a mapping"),
        ({"weights": {"a": True}}, "one.weights.a: True should be a number"),
        ({"weights": {"a": "1"}}, "one.weights.a: '1' should be a number"),
        ({"weights": {"a": math.nan}}, "one.weights.a: nan should be a finite number"),
        ({"weights": {1: 1}}, "one.weights: the key 1 should be text"),
        ({"size": True}, "one.size: True should be a number"),
        ({"names": "ab"}, "one.names: 'ab' should be a list"),
        ({"names": [1]}, "one.names.0: 1 should be text"),
        ({"names": []}, "one.names: [] should have at least 1 item"),
        ({"names": ["a", "a"]}, "one.names: 'a' stands there twice"),
        ({"names": ...}, "one.names: missing; add it"),
        ({"colour": "greed"}, "one.colour: 'greed' should be 'red' or 'green'; did you mean 'green'?"),
        ({"on": "yes"}, "one.on: 'yes' should be true or false"),
        ({"on": 1}, "one.on: 1 should be true or false"),
        ({"word": "two words"}, "one.word: 'two words' should match pattern"),
        ({"word": "x " * 5000}, "one.word: 'x x "),
        ({"inner": {"test": 0}}, "one.inner.test: 0 should be greater than 0"),
    ],
)
def test_a_mistake_is_one_line(entry: dict[str, Any], message: str) -> None:
    whole = {name: value for name, value in {"names": ["a"], **entry}.items() if value is not ...}
    with pytest.raises(UserError) as caught:
        check_entries({"one": whole}, Entry, "some.yaml")
    assert str(caught.value).startswith(f"some.yaml: {message}")
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 250


@pytest.mark.parametrize(
    ("document", "message"),
    [
        (None, "None should be a mapping"),
        ([], "[] should be a mapping"),
        ({}, "{} should have at least 1 item"),
        ({1: {}}, "the key 1 should be text"),
        ({"one": 3}, "one: 3 should be a mapping"),
        ({"One": {"names": ["a"]}}, "One.key: 'One' should match pattern '^[a-z]+$'"),
    ],
)
def test_what_has_no_entries_is_refused(document: Any, message: str) -> None:
    with pytest.raises(UserError) as caught:
        check_entries(document, Entry, "some.yaml")
    assert str(caught.value) == f"some.yaml: {message}"


def test_what_is_right_is_kept_as_it_was_written() -> None:
    made: Limit = check({"test": 3, "share": 1}, Limit, "some.yaml")
    assert (made.test, made.share, made.model_fields_set) == (3, 1.0, {"test", "share"})
    entry = check_entries({"one": {"names": ["a"], "size": 3}}, Entry, "some.yaml")["one"]
    assert (entry.key, entry.names, repr(entry.size)) == ("one", ("a",), "3")
    with pytest.raises(ValidationError, match="frozen"):
        entry.on = False  # type: ignore[misc]


def test_what_is_made_in_code_is_held_to_the_same() -> None:
    with pytest.raises(ValidationError) as caught:
        Limit(tests=3)  # type: ignore[call-arg]
    assert told(caught.value) == "unknown key 'tests'; did you mean 'test'?"
