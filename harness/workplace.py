"""Where trajectories happen: the client, the tools and the embeddings that all desks of a cell share."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.backbones import Backbone
from harness.benchmarks import Benchmark, Tools
from harness.errors import UserError
from harness.grading import grade
from harness.items import Item, Status
from harness.llm.client import ChatClient
from harness.results import Answered
from harness.trajectory import TEST, Desk, Episode
from harness.workbench import Workbench

if TYPE_CHECKING:
    from harness.embeddings import Embeddings

Solve = Callable[[Item, Desk], Awaitable[str]]
MIN_FOR_ERROR_SHARE = 20


@dataclass
class ErrorShare:
    """Counts attempts that failed through no fault of the method, and stops a run with too many of them.

    Attributes:
        limit: Largest share of failed attempts, counted over at least twenty.
    """

    limit: float
    attempts: int = 0
    failed: int = 0

    def note(self, status: Status) -> None:
        """Count one attempt.

        Raises:
            UserError: Too many have failed.
        """
        self.attempts += 1
        self.failed += status is Status.CALL_FAILED
        if self.failed > self.limit * max(self.attempts, MIN_FOR_ERROR_SHARE):
            raise UserError(
                f"{self.failed} of {self.attempts} attempts failed (limit {self.limit:.0%}); calls.jsonl holds what "
                "the servers said. Mend the cause, then `gmr retry-errors --preset ...` and the same command again"
            )


@dataclass(frozen=True)
class Workplace:
    """What one cell works with.

    Attributes:
        client: Asks backbones.
        backbones: Those that may be asked, as their servers report them.
        benchmark: Gives the output rules and grades.
        tools: What grading needs.
        workbench: What the tools of roles may do.
        embeddings: Sentence embeddings.
        seed: Training seed.
        errors: Stops the cell when too many attempts fail.
    """

    client: ChatClient
    backbones: Mapping[str, Backbone]
    benchmark: Benchmark
    tools: Tools
    workbench: Workbench
    embeddings: Embeddings
    seed: int
    errors: ErrorShare

    def desk(self, item: Item, episode: Episode = TEST) -> Desk:
        """A desk for one attempt at a question."""
        return Desk(
            item,
            self.client,
            self.backbones,
            self.benchmark.output_rules,
            workbench=self.workbench,
            embeddings=self.embeddings,
            extract=self.benchmark.extract,
            seed=self.seed,
            episode=episode,
        )

    async def attempt(self, solve: Solve, item: Item, episode: Episode = TEST) -> Answered:
        """Solve a question and grade the answer.

        Raises:
            UserError: Too many attempts have failed, the sandbox is broken, or an endpoint is gone.
        """
        desk = self.desk(item, episode)
        answer = await solve(item, desk)
        if not isinstance(answer, str):
            raise UserError(
                f"{solve.__qualname__} of {solve.__module__} returned a {type(answer).__name__}; expected the answer's "
                "text, such as the text of a reply"
            )
        trajectory = desk.close(answer)
        verdict = await grade(self.benchmark, trajectory, self.tools)
        self.errors.note(verdict.status)
        return Answered(trajectory, verdict)
