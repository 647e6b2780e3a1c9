"""A trajectory as the page gets it: plain values in which every text is a number, and the texts once a chunk.

Prompts repeat each other: the question, the output rules, the role, what others have said. So a text is kept as its
paragraphs, each of which is in a chunk once.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import Any

from analysis.results import outcome
from analysis.trajectories import Choice, Gate, Record, Said, Step

_PARAGRAPH = "\n\n"
_OF_A_CALL = ("purpose", "slot", "backbone", "role", "prompt_tokens", "completion_tokens", "cost", "finish_reason")


class Chunk:
    """Trajectories that a page loads together.

    Attributes:
        size: Characters of the texts, each counted once.
    """

    def __init__(self) -> None:
        self.size = 0
        self._paragraphs: dict[str, int] = {}
        self._texts: dict[str, int] = {}
        self._records: list[dict[str, Any]] = []

    def add(self, record: Record) -> None:
        """Put one more trajectory in."""
        verdict = record.verdict
        self._records.append(
            {
                "id": record.item.id,
                "question": self._text(record.item.question),
                "gold": self._text(record.item.gold),
                "answer": self._text(record.answer),
                "extracted": self._text(verdict.answer),
                "verdict": outcome(record.verdict.status, record.verdict.correct),
                "status": str(verdict.status),
                "detail": verdict.detail,
                "also": dict(verdict.also),
                "totals": dataclasses.asdict(record.totals),
                "steps": [self._step(step) for step in record.steps],
                "final": self._said(record.final),
            }
        )

    def packed(self) -> dict[str, Any]:
        """What is written: paragraphs, texts as numbers of paragraphs, records with numbers of texts."""
        texts = [[self._paragraphs[part] for part in text.split(_PARAGRAPH)] for text in self._texts]
        return {"paragraphs": list(self._paragraphs), "texts": texts, "records": self._records}

    def _step(self, step: Step) -> dict[str, Any]:
        return {
            "number": step.number,
            "role": _choice(step.role),
            "backbone": _choice(step.backbone),
            "choices": [_choice(choice) for choice in step.choices],
            "retrieved": [[record, *_gate(gate)] for record, gate in step.retrieved.items()],
            "written": None if step.written is None else _gate(step.written),
            "halted": None if step.halted is None else _gate(step.halted),
            "calls": self._said(step.calls),
        }

    def _said(self, calls: Iterable[Said]) -> list[dict[str, Any]]:
        return [
            {
                **{name: getattr(said.call, name) for name in _OF_A_CALL},
                "error": self._text(said.call.error),
                "messages": None
                if said.messages is None
                else [[one.role, self._text(one.content)] for one in said.messages],
                "reply": self._text(said.reply),
            }
            for said in calls
        ]

    def _text(self, text: str | None) -> int | None:
        if text is None:
            return None
        if text not in self._texts:
            self._texts[text] = len(self._texts)
            for part in text.split(_PARAGRAPH):
                if part not in self._paragraphs:
                    self._paragraphs[part] = len(self._paragraphs)
                    self.size += len(part)
        return self._texts[text]


def _choice(choice: Choice | None) -> dict[str, Any] | None:
    return None if choice is None else dataclasses.asdict(choice)


def _gate(gate: Gate) -> list[bool | float | None]:
    return [gate.is_open, gate.probability]
