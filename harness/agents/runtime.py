"""The runtime of a cell: client, tools and embeddings that all its contexts share."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from harness.agents.code_tools import CodeTools
from harness.agents.error_share import ErrorShare
from harness.agents.results import Answered
from harness.agents.trajectory import TEST, Context, Episode, Trajectory
from harness.benchmarks import Benchmark, Tools
from harness.benchmarks.items import Item, Status, Verdict
from harness.errors import UserError
from harness.llm.backbones import Backbone
from harness.llm.client import ChatClient

if TYPE_CHECKING:
    from harness.llm.encoder import Embeddings

Solve = Callable[[Item, Context], Awaitable[str]]


@dataclass(frozen=True)
class Runtime:
    """The client, tools and embeddings of one cell."""

    client: ChatClient  # asks backbones
    backbones: Mapping[str, Backbone]  # those that may be asked, as their servers report them
    benchmark: Benchmark  # gives the output rules and grades
    tools: Tools  # what grading needs
    code_tools: CodeTools  # what the tools of roles may do
    embeddings: Embeddings  # sentence embeddings
    seed: int  # training seed
    errors: ErrorShare  # stops the cell when too many attempts fail
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


async def grade(benchmark: Benchmark, trajectory: Trajectory, tools: Tools) -> Verdict:
    """The verdict on a trajectory, where an error or a cut-off text is told from a wrong answer.

    Raises:
        UserError: The sandbox failed twice, so there is no verdict at all.
    """
    final = trajectory.final_call
    if final is not None and final.error is not None and not trajectory.answer.strip():
        return Verdict(False, None, Status.CALL_FAILED, final.error)
    verdict = await benchmark.grade(trajectory.item, trajectory.answer, tools)
    if verdict.status is Status.SANDBOX_ERROR:
        raise UserError(
            f"the sandbox failed on question {trajectory.item.id} ({verdict.detail}); mend the cause, then give the "
            "same command again (finished calls are kept)"
        )
    cut = final is not None and final.finish_reason == "length"
    if cut and verdict.status in (Status.UNPARSABLE, Status.EMPTY):
        return replace(verdict, status=Status.TRUNCATED)
    return verdict
