"""Reading a prompt: its question and its earlier turns."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence

from harness.agents.prompts import HINTS_HEADER
from harness.benchmarks.items import Item
from harness.llm.request import Message

_HEAD_CHARACTERS = 24
_LINE = re.compile(r"^[^\S\n]*(?=\S)", re.MULTILINE)
_RECORD = re.compile(r"^\[(\d+)\] [^\n]+:[ \t]*$", re.MULTILINE)
_HINTS = re.compile(rf"^{re.escape(HINTS_HEADER)} [^\n]*\s*\Z", re.MULTILINE)


class QuestionIndex:
    """Index that finds questions in prompts; of questions with the same text, the first."""

    def __init__(self, items: Iterable[Item]) -> None:
        self._by_head: dict[str, dict[str, Item]] = defaultdict(dict)
        for item in items:
            if question := item.question.strip():
                self._by_head[question[:_HEAD_CHARACTERS]].setdefault(question, item)
        self._lengths = {len(head) for head in self._by_head}

    def find(self, text: str) -> tuple[Item, str] | None:
        """Return the longest question that begins a line of a text, and the text without it; None without any."""
        found: list[tuple[int, int, Item]] = []
        for start in (match.end() for match in _LINE.finditer(text)):
            for head in (text[start : start + length] for length in self._lengths):
                questions = self._by_head.get(head, {}).items()
                found += [(len(each), -start, item) for each, item in questions if text.startswith(each, start)]
        if not found:
            return None
        length, start, item = max(found, key=lambda hit: hit[:2])
        return item, f"{text[:-start]}\n{text[length - start :]}"


def read(messages: Sequence[Message], index: QuestionIndex) -> tuple[Item | None, list[str]]:
    """Return the question of the last user message with a known one, and the earlier turns of a conversation in order.

    Those are the numbered records of colleagues, and own replies.
    """
    texts, item = [message.content for message in messages], None
    for number in reversed(range(len(messages))):
        if messages[number].role == "user" and (hit := index.find(texts[number])):
            item, texts[number] = hit
            break
    earlier: list[str] = []
    for message, text in zip(messages, texts, strict=True):
        if message.role != "system":
            earlier += [text] if message.role == "assistant" else records(text)
    return item, earlier


def records(text: str) -> list[str]:
    """Return the numbered records of a message, each from ``[k] <name>:`` to the next, without the line of hints."""
    text = _HINTS.sub("", text)
    starts: list[tuple[int, int]] = []
    for match in _RECORD.finditer(text):
        if int(match[1]) == len(starts) + 1:
            starts.append(match.span())
    ends = [*(start for start, _ in starts[1:]), len(text)]
    return [text[body:end].strip() for (_, body), end in zip(starts, ends, strict=False)]
