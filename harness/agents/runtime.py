"""The runtime of a cell: client, tools and embeddings that all its contexts share."""

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
_SHOWN, _LONGEST = 3, 120
# Numbers, identifiers and addresses differ from one failure to the next of the same kind.
_OWN = re.compile(r"\b(?:0x)?[0-9a-fA-F-]*\d[0-9a-fA-F-]*\b")


@dataclass
class ErrorShare:
    """Counts attempts that failed through no fault of the method, and stops a run that will have too many of them."""

    limit: float  # largest share of failed attempts, of those planned and of at least twenty
    places: Mapping[str, str] = field(default_factory=dict)  # where each backbone is asked, for the message
    retry: str = "gmr retry"  # the command that asks failed calls again, for the message
    planned: int = 0
    attempts: int = 0
    failed: int = 0
    _errors: defaultdict[tuple[str, str], list[str]] = field(default_factory=lambda: defaultdict(list))

    def plan(self, attempts: int) -> None:
        """Expect so many attempts, of the test or of the whole training, and forget those before."""
        self.planned, self.attempts, self.failed = attempts, 0, 0
        self._errors.clear()

    def note(self, status: Status, final: Call | None) -> None:
        """Count an attempt, whose outcome rests on its final call; UserError with examples when too many failed."""
        self.attempts += 1
        if status is Status.CALL_FAILED and final is not None:
            self.failed += 1
            said = " ".join((final.error or "").split())
            self._errors[final.backbone, _OWN.sub("*", said)].append(said)
        number = max(self.planned, self.attempts)
        if self.failed > self.limit * max(number, MIN_ATTEMPTS):
            most = sorted(self._errors.items(), key=lambda one: -len(one[1]))[:_SHOWN]
            parts = [self._example(backbone, alike) for (backbone, _), alike in most]
            if others := self.failed - sum(len(alike) for _, alike in most):
                parts.append(f"{others} others")
            raise UserError(
                f"{self.failed} of {number} attempts failed (limit {self.limit:.0%}): {', '.join(parts)}. Mend "
                f"the cause, then `{self.retry}` asks them again"
            )

    def _example(self, backbone: str, alike: list[str]) -> str:
        said = alike[0] if len(alike[0]) <= _LONGEST else f"{alike[0][:_LONGEST]}..."
        place = f" at {self.places[backbone]}" if backbone in self.places else ""
        return f"{len(alike)} x {said!r} from {backbone}{place}"


@dataclass(frozen=True)
class Runtime:
    """The client, tools and embeddings of one cell."""

    client: ChatClient
    backbones: Mapping[str, Backbone]  # those that may be asked, as their servers report them
    benchmark: Benchmark
    tools: Tools  # what grading needs
    code_tools: CodeTools  # what the tools of roles may do
    embeddings: Embeddings
    seed: int
    errors: ErrorShare
    greedy: bool = False  # whether every call takes the most probable tokens, also where a method asks otherwise

    def context(self, item: Item, episode: Episode = TEST) -> Context:
        """A context for one attempt at a question."""
        return Context(
            item,
            self.client,
            self.backbones,
            self.benchmark.output_rules,
            code_tools=self.code_tools,
            embeddings=self.embeddings,
            extract=self.benchmark.extract,
            seed=self.seed,
            episode=episode,
            greedy=self.greedy,
        )

    async def attempt(self, solve: Solve, item: Item, episode: Episode = TEST) -> Answered:
        """Solve a question and grade it; UserError when too many have failed, the sandbox or an endpoint is gone."""
        context = self.context(item, episode)
        answer = await solve(item, context)
        if not isinstance(answer, str):
            raise UserError(
                f"{solve.__qualname__} of {solve.__module__} returned a {type(answer).__name__}; expected the answer's "
                "text, such as the text of a reply"
            )
        trajectory = context.close(answer)
        verdict = await grade(self.benchmark, trajectory, self.tools)
        self.errors.note(verdict.status, trajectory.final_call)
        return Answered(trajectory, verdict)


async def grade(benchmark: Benchmark, trajectory: Trajectory, tools: Tools) -> Verdict:
    """Return the verdict, with an error told from a wrong answer; raises UserError if the sandbox failed."""
    final = trajectory.final_call
    if final is not None and final.error is not None and not trajectory.answer.strip():
        return Verdict(False, None, Status.CALL_FAILED, final.error)
    verdict = await benchmark.grade(trajectory.item, trajectory.answer, tools, trajectory.cut_off)
    if verdict.status is Status.SANDBOX_ERROR:
        raise UserError(
            f"the sandbox failed on question {trajectory.item.id} ({verdict.detail}); mend the cause, then give the "
            "same command again (finished calls are kept)"
        )
    return verdict
