"""What a prompt asks for, read from its wording alone: question, style, kind of turn, role, contributions of others."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from harness.agents.prompts import HINTS_HEADER
from harness.agents.roles import Role, catalogue
from harness.benchmarks.items import Item
from harness.simulator.contributions import Contribution
from harness.simulator.parameters import Kind, Recognition, Style
from harness.simulator.world import Occurrence, QuestionIndex

_RECORD = re.compile(r"^\[(\d+)\] [^\n]+:[ \t]*$", re.MULTILINE)
_HINTS = re.compile(rf"^{re.escape(HINTS_HEADER)} [^\n]*\s*\Z", re.MULTILINE)
_SPACE = re.compile(r"\s+")
_KIND_OF_OUTPUT: Mapping[str, Kind] = {"text": "plan", "keywords": "search"}

Message = Mapping[str, str]


class Reading(NamedTuple):
    """A prompt, understood."""

    item: Item | None  # the question, None where the prompt holds none that is known
    style: Style  # how explicitly reasoning is asked for
    kind: Kind  # what sort of turn is asked for
    role: Role | None  # the role of the catalogue that the system text describes, if any
    contributions: Sequence[Contribution]  # earlier turns, in order
    feedback: bool  # whether the prompt reports how programs did on the visible examples
    program: bool  # whether a program is asked for that computes the answer
    choice: bool  # whether one of the contributions is to be named by its letter


class Reader:
    """Reads prompts; ``boilerplate`` is static text (output rules) that says nothing about the turn."""

    def __init__(self, index: QuestionIndex, recognition: Recognition, boilerplate: Sequence[str]) -> None:
        self._index = index
        self._recognition = recognition
        self._boilerplate = tuple(text.strip() for text in boilerplate)

    def read(self, messages: Sequence[Message]) -> Reading:
        """Understand a conversation of ``system``, ``user`` and ``assistant`` messages."""
        found = self._question(messages)
        system = " ".join(message["content"] for message in messages if message["role"] == "system")
        users, contributions = self._divide(messages, found)
        role, phrases = recognise_role(system), self._recognition
        wanted = f"{system} {users[-1] if users else ''}".lower()
        everything = " ".join([system, *users]).lower()
        return Reading(
            item=None if found is None else found[1].item,
            style=next((style for style, its in phrases.styles.items() if _holds(everything, its)), "direct"),
            kind=self._kind(role, system, users[-1] if users else ""),
            role=role,
            contributions=contributions,
            feedback=any(_holds(contribution.text.lower(), phrases.feedback) for contribution in contributions),
            program=_holds(wanted, phrases.program),
            choice=_holds(wanted, phrases.choice),
        )

    def _question(self, messages: Sequence[Message]) -> tuple[int, Occurrence] | None:
        """The question of a conversation and the message it stands in: the last user message that holds one."""
        for place in range(len(messages) - 1, -1, -1):
            if messages[place]["role"] == "user" and (found := self._index.find(messages[place]["content"])):
                return place, found
        return None

    def _divide(
        self, messages: Sequence[Message], question: tuple[int, Occurrence] | None
    ) -> tuple[list[str], list[Contribution]]:
        """Instructions of the user messages, without the question, apart from the contributions they carry."""
        users: list[str] = []
        contributions: list[Contribution] = []
        for place, message in enumerate(messages):
            text = message["content"]
            if message["role"] == "assistant":
                contributions.append(Contribution(text, own=True))
            elif message["role"] == "user":
                if question is not None and question[0] == place:
                    text = text[: question[1].start] + "\n" + text[question[1].end :]
                for boilerplate in self._boilerplate:
                    text = text.replace(boilerplate, "\n")
                head, records = split_records(text)
                users.append(head)
                contributions += [Contribution(record, own=False) for record in records]
        return users, contributions

    def _kind(self, role: Role | None, system: str, last: str) -> Kind:
        if role is not None and role.second_call is not None and _flat(role.second_call) in _flat(last):
            return "finish"
        if (kind := self._kind_by_phrase(last)) is not None:
            return kind
        if role is not None:
            return _KIND_OF_OUTPUT.get(role.output, "solve")
        return self._kind_by_phrase(system) or "solve"

    def _kind_by_phrase(self, text: str) -> Kind | None:
        lower = text.lower()
        return next((kind for kind, phrases in self._recognition.kinds.items() if _holds(lower, phrases)), None)


def split_records(text: str) -> tuple[str, list[str]]:
    """Divide a message into what comes before the block of numbered records, and the records.

    A record begins at a line ``[k] <name>:``, k counting from 1, and ends at the next such line or at the end; a
    line whose number is out of turn belongs to the record it stands in. A last line of hints repeats what records say
    and is part of none.
    """
    text = _HINTS.sub("", text)
    starts = list(_in_turn(text))
    ends = [start for start, _ in starts[1:]] + [len(text)]
    records = [text[body:end].strip() for (_, body), end in zip(starts, ends, strict=bool(starts))]
    return text[: starts[0][0]] if starts else text, records


def _in_turn(text: str) -> Iterator[tuple[int, int]]:
    expected = 1
    for match in _RECORD.finditer(text):
        if int(match.group(1)) == expected:
            expected += 1
            yield match.span()


@functools.lru_cache(maxsize=1024)
def recognise_role(system: str) -> Role | None:
    """The role whose instruction or, failing that, description stands in a system text."""
    flat = _flat(system)
    for part in ("instruction", "description"):
        for role in catalogue():
            if _flat(getattr(role, part)) in flat:
                return role
    return None


@functools.lru_cache(maxsize=4096)
def _flat(text: str) -> str:
    return _SPACE.sub(" ", text).strip()


def _holds(text: str, phrases: Sequence[str]) -> bool:
    return any(phrase in text for phrase in phrases)
