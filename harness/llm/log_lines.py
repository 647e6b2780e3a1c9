"""The lines of a call log, and what they say.

A text, be it of a message or of a reply, is a line of its own: a JSON string, written once. A call is an object with
its ``key``, ``request`` and ``reply``, in which the name of a text stands for the text. In a running log that name is
the SHA-256 of the text, so that a line can be deleted without harm to the others; in a sealed log it is the number of
the text's line, counted from 0, which takes a tenth of the space. A running log may also say ``forget`` of a key.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Sequence
from typing import Any, NamedTuple

import orjson

from harness.llm.request import Reply, Request

Record = dict[str, Any]
_OUTCOME = tuple(field.name for field in dataclasses.fields(Reply))
# What the reader of a line may raise where somebody has changed it.
DAMAGE = (ValueError, LookupError, TypeError, AttributeError)


class Entry(NamedTuple):
    """A finished call on its way into a running log: its key, its line, and the texts that the line names."""

    key: bytes
    line: bytes
    texts: dict[bytes, str]


def entry(request: Request, reply: Reply) -> Entry:
    """What a running log keeps of a call."""
    outcome = {name: getattr(reply, name) for name in _OUTCOME}
    record = {"key": request.key, "request": request.to_record(), "reply": outcome}
    texts = {text: digest(text) for text in names(record)}
    rename(record, [texts[text].hex() for text in names(record)])
    return Entry(bytes.fromhex(request.key), line(record), {name: text for text, name in texts.items()})


def is_old(line: bytes) -> bool:
    """Whether a line is a call in the form of earlier versions: with its texts in place, so that its key is theirs."""
    try:
        record = orjson.loads(line)
        request = orjson.dumps(record["request"], option=orjson.OPT_SORT_KEYS)
        return bool(record["key"] == hashlib.sha256(request).hexdigest())
    except DAMAGE:
        return False


def digest(text: str) -> bytes:
    """The SHA-256 of a text."""
    return hashlib.sha256(text.encode()).digest()


def line(content: Record | str) -> bytes:
    """The line of a call or of a text; equal ones are equal to the byte."""
    return orjson.dumps(content, option=orjson.OPT_SORT_KEYS | orjson.OPT_APPEND_NEWLINE)


def names(record: Record) -> list[Any]:
    """The names of a call's texts: those of the messages in their order, then that of the reply."""
    return [*(message["content"] for message in record["request"]["messages"]), record["reply"]["text"]]


def rename(record: Record, to: Sequence[Any]) -> None:
    """Give the texts of a call other names, in the same order."""
    for message, name in zip(record["request"]["messages"], to[:-1], strict=True):
        message["content"] = name
    record["reply"]["text"] = to[-1]


def reply(record: Record, text: str) -> Reply:
    """The outcome of a call.

    Args:
        record: The call.
        text: The text that the record names.
    """
    return Reply.from_record({**record["reply"], "text": text})
