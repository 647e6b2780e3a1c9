"""Where trajectories happen: the client, the tools and the embeddings that all contexts of a cell share."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.agents.code_tools import CodeTools
from harness.agents.error_share import ErrorShare
from harness.agents.grading import grade
from harness.agents.results import Answered
from harness.agents.trajectory import TEST, Context, Episode
from harness.benchmarks import Benchmark, Tools
from harness.benchmarks.items import Item
from harness.errors import UserError
from harness.llm.backbones import Backbone
from harness.llm.client import ChatClient

if TYPE_CHECKING:
    from harness.llm.embeddings import Embeddings

Solve = Callable[[Item, Context], Awaitable[str]]


@dataclass(frozen=True)
class Runtime:
    """What one cell works with.

    Attributes:
        client: Asks backbones.
        backbones: Those that may be asked, as their servers report them.
        benchmark: Gives the output rules and grades.
        tools: What grading needs.
        code_tools: What the tools of roles may do.
        embeddings: Sentence embeddings.
        seed: Training seed.
        errors: Stops the cell when too many attempts fail.
        greedy: Whether every call takes the most probable tokens, whatever a method asks for.
    """

    client: ChatClient
    backbones: Mapping[str, Backbone]
    benchmark: Benchmark
    tools: Tools
    code_tools: CodeTools
    embeddings: Embeddings
    seed: int
    errors: ErrorShare
    greedy: bool = False

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
        """Solve a question and grade the answer.

        Raises:
            UserError: Too many attempts have failed, the sandbox is broken, or an endpoint is gone.
        """
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
