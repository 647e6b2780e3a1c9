"""Runtime of a cell: client, tools and embeddings that all its contexts share."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from harness.agents.code_tools import CodeTools
from harness.agents.trajectory import TEST, Answered, Call, Context, Episode, Trajectory
from harness.benchmarks import Benchmark, Tools
from harness.benchmarks.items import Item, Status, Verdict
from harness.errors import UserError
from harness.llm.backbones import Backbone
from harness.llm.client import ChatClient

if TYPE_CHECKING:
    from harness.llm.encoder import Embeddings

Solve = Callable[[Item, Context], Awaitable[str]]

MIN_ATTEMPTS = 20
_SHOWN_ERRORS, _LONGEST_ERROR = 3, 120
# Numbers, identifiers and addresses differ between failures of the same kind.
_VARYING = re.compile(r"\b(?:0x)?[0-9a-fA-F-]*\d[0-9a-fA-F-]*\b")


@dataclass
class ErrorShare:
    """Count of attempts that failed through no fault of the method; stops a run that will have too many of them."""

    limit: float  # largest share of failed attempts, of those planned and of at least twenty
    places: Mapping[str, str] = field(default_factory=dict)  # of the servers of each backbone, for the message
    retry: str = "gmr retry"  # command that asks failed calls again, for the message
    planned: int = 0
    attempts: int = 0
    failed: int = 0
    _errors: defaultdict[tuple[str, str], list[str]] = field(default_factory=lambda: defaultdict(list))

    def plan(self, attempts: int) -> None:
        """Restart the count, with the number of attempts to expect."""
        self.planned, self.attempts, self.failed = attempts, 0, 0
        self._errors.clear()

    def count_attempt(self, failed_call: Call | None) -> None:
        """Count an attempt and the call that made it fail, if any; UserError with examples if too many failed."""
        self.attempts += 1
        if failed_call is not None:
            self.failed += 1
            message = " ".join((failed_call.error or "").split())
            self._errors[failed_call.backbone, _VARYING.sub("*", message)].append(message)
        expected = max(self.planned, self.attempts)
        if self.failed > self.limit * max(expected, MIN_ATTEMPTS):
            groups = sorted(self._errors.items(), key=lambda group: -len(group[1]))[:_SHOWN_ERRORS]
            parts = [self._error_summary(backbone, messages) for (backbone, _), messages in groups]
            if others := self.failed - sum(len(messages) for _, messages in groups):
                parts.append(f"{others} others")
            raise UserError(
                f"{self.failed} of {expected} attempts failed (limit {self.limit:.0%}): {', '.join(parts)}. Fix "
                f"the cause, then `{self.retry}` asks the failed calls again"
            )

    def _error_summary(self, backbone: str, messages: list[str]) -> str:
        """Return the count, first message and address of one kind of error."""
        message = messages[0] if len(messages[0]) <= _LONGEST_ERROR else f"{messages[0][:_LONGEST_ERROR]}..."
        place = f" at {self.places[backbone]}" if backbone in self.places else ""
        return f"{len(messages)} x {message!r} from {backbone}{place}"


@dataclass(frozen=True)
class Runtime:
    """Client, tools and embeddings of one cell."""

    client: ChatClient
    backbones: Mapping[str, Backbone]  # that may be asked, as their servers report them
    benchmark: Benchmark
    tools: Tools  # of grading
    code_tools: CodeTools  # of roles
    embeddings: Embeddings
    seed: int
    errors: ErrorShare
    greedy: bool = False  # every call takes the most probable tokens, whatever a method asks (D-GEN-2)

    def context(self, item: Item, episode: Episode = TEST) -> Context:
        """Return a context for one attempt at a question."""
        return Context(item, self, episode)

    async def attempt(self, solve: Solve, item: Item, episode: Episode = TEST) -> Answered:
        """Solve a question and grade it; UserError if too many have failed, or the sandbox or an endpoint is gone."""
        context = self.context(item, episode)
        answer = await solve(item, context)
        if not isinstance(answer, str):
            raise UserError(
                f"{solve.__qualname__} of {solve.__module__} returned a {type(answer).__name__}; expected the answer's "
                "text, such as the text of a reply"
            )
        trajectory = context.close(answer)
        verdict = await grade(self.benchmark, trajectory, self.tools)
        self.errors.count_attempt(trajectory.failed_call)
        return Answered(trajectory, verdict)


async def grade(benchmark: Benchmark, trajectory: Trajectory, tools: Tools) -> Verdict:
    """Return the verdict, which tells a failed call from a wrong answer; UserError if the sandbox failed."""
    if (failed := trajectory.failed_call) is not None:
        return Verdict(False, None, Status.CALL_FAILED, failed.error or "")
    verdict = await benchmark.grade(trajectory.item, trajectory.answer, tools, trajectory.cut_off)
    if verdict.status is Status.SANDBOX_ERROR:
        raise UserError(
            f"the sandbox failed on question {trajectory.item.id} ({verdict.detail}); fix the cause, then give the "
            "same command again (finished calls are kept)"
        )
    return verdict
