"""Failed attempts: counted, told apart by what the servers said, and too many of them stop a run."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from harness.agents.trajectory import Call
from harness.benchmarks.items import Status
from harness.errors import UserError
from harness.llm.endpoints import Endpoint

MIN_ATTEMPTS = 20
_SHOWN = 3
_LONGEST = 120
# Numbers, identifiers and addresses differ from one failure to the next of the same kind.
_OWN = re.compile(r"\b(?:0x)?[0-9a-fA-F-]*\d[0-9a-fA-F-]*\b")


def places_of(endpoints: Mapping[str, Endpoint]) -> dict[str, str]:
    """Where each backbone is asked, in words."""
    return {backbone: " and ".join(endpoint.urls) for backbone, endpoint in endpoints.items()}


@dataclass
class ErrorShare:
    """Counts attempts that failed through no fault of the method, and stops a run with too many of them."""

    limit: float  # largest share of failed attempts, counted over at least twenty
    places: Mapping[str, str] = field(default_factory=dict)  # where each backbone is asked, for the message
    attempts: int = 0
    failed: int = 0
    _kinds: Counter[tuple[str, str]] = field(default_factory=Counter)
    _examples: dict[tuple[str, str], str] = field(default_factory=dict)

    def note(self, status: Status, final: Call | None) -> None:
        """Count one attempt.

        Args:
            status: How it ended.
            final: The call that its outcome rests on, ``None`` where no model was asked.

        Raises:
            UserError: Too many have failed.
        """
        self.attempts += 1
        if status is Status.CALL_FAILED:
            self.failed += 1
            self._remember(final)
        if self.failed > self.limit * max(self.attempts, MIN_ATTEMPTS):
            raise UserError(
                f"{self.failed} of {self.attempts} attempts failed (limit {self.limit:.0%}): {self._summary()}. Mend "
                "the cause, then `gmr cell --retry-errors` asks them again"
            )

    def _remember(self, final: Call | None) -> None:
        backbone, said = ("", "") if final is None else (final.backbone, " ".join((final.error or "").split()))
        kind = (backbone, _OWN.sub("*", said))
        self._kinds[kind] += 1
        self._examples.setdefault(kind, said if len(said) <= _LONGEST else f"{said[:_LONGEST]}...")

    def _summary(self) -> str:
        """The most frequent errors, each with its first example."""
        most = self._kinds.most_common(_SHOWN)
        parts = [f"{count} x {self._examples[kind]!r} from {self._place(kind[0])}" for kind, count in most]
        left = self.failed - sum(count for _, count in most)
        return ", ".join([*parts, *([f"{left} others"] if left else [])])

    def _place(self, backbone: str) -> str:
        place = self.places.get(backbone)
        return f"{backbone} at {place}" if place else backbone
