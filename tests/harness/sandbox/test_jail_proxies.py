"""Objects that stay with the program, and what may come of asking it."""

from __future__ import annotations

import builtins
import copy
import json
import math
import operator
import pickle
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.sandbox.jail.channel import LONGEST, TooLongError
from harness.sandbox.jail.proxies import Peer, ProgramError, Remote, Told, _End, told
from harness.sandbox.jail.values import UnreadableError
from tests.harness.sandbox.pretended import framed, remote, reply, requests, scripted

NULL = {"object": 0}


def asked(theirs: Any) -> list[Any]:
    return [json.loads(request) for request in requests(theirs)]


@pytest.mark.parametrize(
    ("use", "request_", "result"),
    [
        (lambda one: one(1, (2,), key="v"), ["call", NULL, [1, {"tuple": [2]}], {"dict": [["key", "v"]]}], 5),
        (lambda one: one(), ["call", NULL, [], {"dict": []}], 5),
        (lambda one: one(one, len, int), ["call", NULL, [NULL, {"built_in": "len"}, {"type": "int"}], {"dict": []}], 5),
        (lambda one: one.value, ["attribute", NULL, "value"], 5),
        (lambda one: one.__name__, ["attribute", NULL, "__name__"], 5),
        (lambda one: one[1], ["item", NULL, 1], 5),
        (lambda one: one[("a", 2)], ["item", NULL, {"tuple": ["a", 2]}], 5),
        (len, ["length", NULL], 5),
        (bool, ["truth", NULL], True),
        (str, ["text", NULL], "5"),
        (lambda one: f"{one}", ["text", NULL], "5"),
        (lambda one: "%s" % one, ["text", NULL], "5"),  # noqa: UP031
        (next, ["next", NULL], 5),
        (lambda one: setattr(one, "value", [1]), ["set_attribute", NULL, "value", [1]], None),
        (lambda one: operator.setitem(one, 1, None), ["set_item", NULL, 1, None], None),
    ],
)
def test_what_is_done_to_it_is_asked_once_and_decided_there(
    use: Callable[[Any], Any], request_: list[Any], result: object
) -> None:
    with scripted(reply("value", result)) as (peer, theirs):
        assert use(Remote(peer, 0, "thing")) == result
        assert asked(theirs) == [request_]


@pytest.mark.parametrize(
    ("use", "error"),
    [
        (lambda one: one < 42, TypeError),
        (lambda one: 42 - one, TypeError),
        (lambda one: one + 42, TypeError),
        (lambda one: abs(one), TypeError),
        (lambda one: int(one), TypeError),
        (lambda one: [1, 2][one], TypeError),
        (lambda one: math.isclose(one, 42), TypeError),
        (lambda one: round(one, 42), TypeError),
        (lambda one: format(one, "42"), TypeError),
        (lambda one: one.__reduce__(), TypeError),
        (lambda one: copy.copy(one), TypeError),
        (lambda one: pickle.dumps(one), TypeError),
        (lambda one: one(lambda: 42), TypeError),
        (lambda one: one(object()), TypeError),
        (lambda one: one(type("len", (), {})), TypeError),
        (lambda one: operator.delitem(one, 42), AttributeError),
        (lambda one: delattr(one, "x"), AttributeError),
    ],
)
def test_what_could_carry_an_expected_value_there_is_refused_unasked(
    use: Callable[[Any], Any], error: type[Exception]
) -> None:
    with scripted() as (peer, theirs):
        with pytest.raises(error):
            use(Remote(peer, 0, "thing"))
        assert asked(theirs) == []


def test_it_is_equal_to_itself_only_and_nobody_is_asked() -> None:
    with scripted() as (peer, theirs):
        one, again, other = Remote(peer, 3, "a"), Remote(peer, 3, "b"), Remote(peer, 4, "a")
        assert one == one == again
        assert operator.ne(one, again) is False
        assert one != other
        assert hash(one) == hash(again)
        assert {one, again, other} == {one, other}
        assert [one, other].index(again) == 0
        for value in (3, "a", None, [3], float("nan"), object(), Peer):
            assert one != value
            assert value != one
        assert one not in [3, "a", None]
        assert (one is None, isinstance(one, int)) == (False, False)
        assert repr(one) == "<a of the program>"
        assert f"{[one]!r}" == "[<a of the program>]"
        assert asked(theirs) == []


def test_what_it_returns_and_what_it_holds_stay_there_too() -> None:
    replies = [reply("value", [remote(1, "Box"), 2]), reply("value", remote(1, "Box")), reply("value", 3)]
    with scripted(*replies) as (peer, theirs):
        box, two = Remote(peer, 0, "function")()
        assert (repr(box), two) == ("<Box of the program>", 2)
        assert box.same == box
        assert box.value == 3
        assert [request[1] for request in asked(theirs)] == [NULL, {"object": 1}, {"object": 1}]


def test_iteration_ends_where_the_program_says_so() -> None:
    replies = [reply("value", remote(1)), reply("value", 5), reply("value", None), reply("ended", "", "", "")]
    with scripted(*replies) as (peer, theirs):
        assert [one for one in Remote(peer, 0, "generator")] == [5, None]  # noqa: C416  list() asks for a length, too
        assert [request[0] for request in asked(theirs)] == ["iterate", "next", "next", "next"]
        assert asked(theirs) == []
    with scripted(replies[-1]) as (peer, _), pytest.raises(StopIteration):
        next(Remote(peer, 0, "generator"))


def test_a_search_inside_compares_here() -> None:
    replies = [reply("value", remote(1)), reply("value", 5), reply("value", 42), reply("ended", "", "", "")]
    with scripted(*replies) as (peer, theirs):
        assert 42 in Remote(peer, 0, "generator")
        assert [request[0] for request in asked(theirs)] == ["iterate", "next", "next"]


@pytest.mark.parametrize("operation", ["call", "attribute", "item", "length", "truth", "text", "iterate"])
def test_an_end_of_no_iterator_ends_nothing(operation: str) -> None:
    with scripted(reply("ended", "StopIteration", "", "")) as (peer, _), pytest.raises(_End) as caught:
        peer.ask(operation, Remote(peer, 0, "function"))
    assert not isinstance(caught.value, StopIteration)


@pytest.mark.parametrize("truth", [False, None, 0, 1, "True", [True], remote(1)])
def test_only_truth_itself_is_true(truth: object) -> None:
    with scripted(reply("value", truth)) as (peer, _):
        assert not Remote(peer, 0, "thing")


@pytest.mark.parametrize("length", [-1, 1 << 70, "x", None, [1], 2.5, remote(1)])
def test_a_length_that_is_none(length: object) -> None:
    with scripted(reply("value", length)) as (peer, _):
        try:
            assert len(Remote(peer, 0, "thing")) == 2
        except (ValueError, OverflowError, TypeError):
            return
        assert length == 2.5


def fresh(name: str) -> BaseException:
    with scripted(reply("raised", name, "what it said (program, line 3)", "program")) as (peer, _):
        try:
            peer.ask("call", Remote(peer, 0, "function"), [], {})
        except BaseException as error:
            return error
    raise AssertionError("nothing was raised")


BUILT_IN = {name: kind for name, kind in vars(builtins).items() if isinstance(kind, type)}
EXCEPTIONS = {name: kind for name, kind in BUILT_IN.items() if issubclass(kind, BaseException)}
NEEDY = {"UnicodeDecodeError", "UnicodeEncodeError", "UnicodeTranslateError", "BaseExceptionGroup", "ExceptionGroup"}
ENDS = {"StopIteration", "StopAsyncIteration", "GeneratorExit"}


@pytest.mark.parametrize("name", sorted(EXCEPTIONS))
def test_an_exception_is_raised_as_the_checks_know_it(name: str) -> None:
    error = fresh(name)
    assert type(error) is (ProgramError if name in NEEDY | ENDS else EXCEPTIONS[name])
    found = told(error)
    assert found is not None
    assert (found.kind, found.text) == ("raised", "what it said (program, line 3)")
    assert "what it said" in str(error)


@pytest.mark.parametrize("name", [*sorted(set(BUILT_IN) - set(EXCEPTIONS)), "print", "open", "__name__", "", "\0", "é"])
def test_what_is_no_exception_is_none(name: str) -> None:
    assert type(fresh(name)) is ProgramError


def test_only_what_the_program_said_counts_as_that() -> None:
    error = ValueError()
    assert told(error) is None
    error.__cause__ = KeyError()
    assert told(error) is None
    assert told(Told("raised", "x")) is None


words = st.sampled_from(["value", "raised", "ended", "unreadable", "ValueError", "", "x"])
anything = st.recursive(
    st.none() | st.integers() | words | st.just(remote(0)),
    lambda inner: st.lists(inner, max_size=3) | st.builds(lambda one: {"tuple": one}, st.lists(inner, max_size=4)),
    max_leaves=8,
)
messages = anything | st.builds(lambda *parts: list(parts), words, anything, words, words)


@given(messages)
@settings(max_examples=200, deadline=None)
def test_a_reply_of_any_form_is_a_value_or_a_known_failure(message: object) -> None:
    with scripted(framed(json.dumps(message).encode())) as (peer, _):
        try:
            value = peer.reply()
        except (_End, ProgramError, UnreadableError, ValueError) as error:
            assert told(error) is not None or isinstance(error, _End | UnreadableError)  # noqa: PT017
            return
        parts: Any = message["tuple"] if isinstance(message, dict) else message
        assert parts[0] == "value"
        assert len(parts) == 2
        assert parts[1] is not None or value is None


@pytest.mark.parametrize(
    "content",
    [
        *(b"", b"[]", b"5", b'"value"', b'["value"]', b'["value", 1, 2]', b'["raised", "ValueError", "x"]', b"null"),
        *(b'["unknown", 1]', b'["raised", 1, "x", ""]', b'["raised", "ValueError", "x", null]', b'["ended", 1]'),
        *(b'["value", {"object": 1}]', b'["value", {"object": ["x", "y"]}]', b'["value", {"built_in": [1, "x"]}]'),
        *(b'["value", {"object": [1]}]', b'{"value": 1}', b"\xff"),
    ],
)
def test_a_reply_of_no_known_form_is_unreadable(content: bytes) -> None:
    with scripted(framed(content)) as (peer, _), pytest.raises(UnreadableError):
        peer.reply()


def test_the_name_of_a_kind_is_cut() -> None:
    with scripted(reply("value", remote(1, "x" * 1000))) as (peer, _):
        assert repr(peer.reply()) == f"<{'x' * 100} of the program>"


@pytest.mark.parametrize(
    ("content", "error"),
    [(b"", EOFError), ((LONGEST + 1).to_bytes(4, "little"), TooLongError), (b"\3\0\0\0[", EOFError)],
)
def test_no_reply_at_all(content: bytes, error: type[Exception]) -> None:
    with scripted(content) as (peer, _), pytest.raises(error):
        peer.reply()
