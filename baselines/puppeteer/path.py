"""What one path has brought so far: contributions, conversations, the latest program (D-PUP-13)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from baselines.puppeteer.actions import Action
from harness.llm.request import Message

Vector = NDArray[np.float32]
Messages = tuple[Message, ...]


@dataclass(frozen=True, slots=True)
class Contribution:
    """What one activation of an agent brought.

    Attributes:
        text: What later agents see of it; empty where its call failed for good.
        answer: The answer it commits to, as it was written; ``None`` for none.
        dialog: The agent's conversation, to be continued should it act again.
        tokens: Prompt and completion tokens of all its calls.
        program: The valid program it offers (programming questions only).
    """

    text: str
    answer: str | None
    dialog: Messages
    tokens: int
    program: str | None = None


@dataclass(frozen=True, slots=True)
class Path:
    """A line of work on one question. It never changes, so a path that splits shares nothing that could.

    Attributes:
        slot: Its number among the paths of the question, fixed when it begins.
        speakers: Who contributed, in order.
        contributions: What they contributed.
        embeddings: Embeddings of the contributions, shape (384,) each.
        dialogs: The conversation of every agent that has acted, by the key of its action.
        last: Place of its latest choice in the trace, ``None`` before the first.
        ended: Whether it has terminated.
    """

    slot: int = 0
    speakers: tuple[str, ...] = ()
    contributions: tuple[Contribution, ...] = ()
    embeddings: tuple[Vector, ...] = ()
    dialogs: Mapping[str, Messages] = field(default_factory=dict)
    last: int | None = None
    ended: bool = False

    @property
    def steps(self) -> int:
        """How many agents have acted."""
        return len(self.contributions)

    @property
    def answers(self) -> list[tuple[str, str]]:
        """Its candidate answers, each with who gave it, in order and with repetitions."""
        pairs = zip(self.speakers, self.contributions, strict=True)
        return [(speaker, one.answer) for speaker, one in pairs if one.answer is not None]

    @property
    def program(self) -> str | None:
        """The latest valid program, ``None`` for none (programming questions only)."""
        return next((one.program for one in reversed(self.contributions) if one.program is not None), None)

    def after(self, action: Action, one: Contribution, embedding: Vector) -> Path:
        """The path with one contribution more."""
        return replace(
            self,
            speakers=(*self.speakers, action.name),
            contributions=(*self.contributions, one),
            embeddings=(*self.embeddings, embedding),
            dialogs={**self.dialogs, action.key: one.dialog},
        )
