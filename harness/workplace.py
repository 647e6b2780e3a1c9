"""Where trajectories happen: the client, the tools and the embeddings that all desks of a cell share."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.backbones import Backbone
from harness.benchmarks import Benchmark, Tools
from harness.error_share import ErrorShare
from harness.errors import UserError
from harness.grading import grade
from harness.items import Item
from harness.llm.client import ChatClient
from harness.results import Answered
from harness.trajectory import TEST, Desk, Episode
from harness.workbench import Workbench

if TYPE_CHECKING:
    from harness.embeddings import Embeddings

Solve = Callable[[Item, Desk], Awaitable[str]]


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
        greedy: Whether every call takes the most probable tokens, whatever a method asks for.
        desks: Makes a desk.
    """

    client: ChatClient
    backbones: Mapping[str, Backbone]
    benchmark: Benchmark
    tools: Tools
    workbench: Workbench
    embeddings: Embeddings
    seed: int
    errors: ErrorShare
    greedy: bool = False
    desks: Callable[..., Desk] = Desk

    def desk(self, item: Item, episode: Episode = TEST) -> Desk:
        """A desk for one attempt at a question."""
        return self.desks(
            item,
            self.client,
            self.backbones,
            self.benchmark.output_rules,
            workbench=self.workbench,
            embeddings=self.embeddings,
            extract=self.benchmark.extract,
            seed=self.seed,
            episode=episode,
            greedy=self.greedy,
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
        self.errors.note(verdict.status, trajectory.final_call)
        return Answered(trajectory, verdict)
