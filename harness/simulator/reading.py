"""Parse a prompt into its question and earlier turns."""

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence

from harness.agents.prompts import HINTS_HEADER
from harness.benchmarks.items import Item
from harness.llm.request import Message

_HEAD_CHARACTERS = 24
_LINE = re.compile(r"^[^\S\n]*(?=\S)", re.MULTILINE)
_RECORD = re.compile(r"^\[\d+\] [^\n]+:[ \t]*$", re.MULTILINE)
_HINTS = re.compile(rf"^{re.escape(HINTS_HEADER)} [^\n]*\s*\Z", re.MULTILINE)


class QuestionIndex:
    """Index of questions by text. If texts are equal, the first question counts."""

    def __init__(self, items: Iterable[Item]) -> None:
        self._by_head: dict[str, dict[str, Item]] = defaultdict(dict)
        for item in items:
            if question := item.question.strip():
                self._by_head[question[:_HEAD_CHARACTERS]].setdefault(question, item)
        self._lengths = {len(head) for head in self._by_head}

    def find(self, text: str) -> tuple[Item, str] | None:
        """Find the longest question that starts at a line of a text. Return it and the remaining text, or None."""
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
    """Find the last known question, and the earlier turns (records of colleagues and own replies) in order."""
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
    """Split a message into its records, each headed ``[k] <name>:``, without the line of hints."""
    return [body.strip() for body in _RECORD.split(_HINTS.sub("", text))[1:]]
