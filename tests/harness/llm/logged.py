"""Calls to log, and logs read by the letter of their description."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa

from harness.llm.call_log import CallLog
from harness.llm.request import Message, Reply, Request


def request(text: str, **changes: Any) -> Request:
    return Request("some/model", None, (Message("user", text),), **changes)


def reply(text: str) -> Reply:
    return Reply(text, 3, 5, "stop", "some/model")


def keys(texts: Iterable[str]) -> set[str]:
    return {request(text).key for text in texts}


def fill(path: Path, texts: Iterable[str]) -> None:
    """Append calls one after the other, each answered by its own text in capitals."""

    async def appended() -> None:
        with CallLog(path) as log:
            for text in texts:
                await log.append(request(text), reply(text.upper()))

    asyncio.run(appended())


def answers(path: Path, texts: Iterable[str]) -> dict[str, str]:
    """The texts that a log answers some calls with, as far as it does."""
    with CallLog(path) as log:
        found = {text: log.get(request(text).key) for text in texts}
        assert len(log) >= sum(one is not None for one in found.values())
    return {text: one.text for text, one in found.items() if one is not None}


def running(path: Path) -> dict[str, dict[str, Any]]:
    """The calls of a running log by key, with their texts in place; what is torn at the end is not among them."""
    texts, calls = {}, {}
    *lines, _ = path.read_bytes().split(b"\n")
    for line in lines:
        content = json.loads(line)
        if isinstance(content, str):
            texts[hashlib.sha256(content.encode()).hexdigest()] = content
        elif "forget" in content:
            calls.pop(content["forget"])
        else:
            calls[content["key"]] = _whole(content, texts)
    return calls


def sealed(path: Path) -> tuple[list[str], list[dict[str, Any]]]:
    """The texts of a sealed log, and its calls with their texts in place."""
    lines = [json.loads(line) for line in pa.input_stream(str(path), compression="zstd").read().splitlines()]
    texts = [line for line in lines if isinstance(line, str)]
    assert lines[: len(texts)] == texts
    return texts, [_whole(line, texts) for line in lines[len(texts) :]]


def _whole(record: dict[str, Any], texts: Any) -> dict[str, Any]:
    for message in record["request"]["messages"]:
        message["content"] = texts[message["content"]]
    record["reply"]["text"] = texts[record["reply"]["text"]]
    return record
