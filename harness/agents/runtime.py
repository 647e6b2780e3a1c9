"""Runtime of a cell: client, tools and embeddings, and the context by which a method has them for one question."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from harness.agents import rng
from harness.agents.code_tools import CodeTools
from harness.agents.trajectory import TEST, Answered, Call, Decision, Episode, Trajectory, rounded
from harness.benchmarks import Benchmark, Tools
from harness.benchmarks.items import Item, Status, Verdict
from harness.errors import UserError
from harness.llm.backbones import Backbone
from harness.llm.client import ChatClient
from harness.llm.request import GREEDY, Message, Reply, Request, Sampling, Turn
from harness.thinking import without_thinking

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from harness.llm.encoder import Embeddings

MIN_ATTEMPTS = 20
_SHOWN_ERRORS, _LONGEST_ERROR = 3, 120
# Numbers, identifiers and addresses differ between failures of the same kind.
_VARYING = re.compile(r"\b(?:0x)?[0-9a-fA-F-]*\d[0-9a-fA-F-]*\b")


@dataclass
class ErrorShare:
    """Count of attempts that failed through no fault of the method; stops a run that will have too many of them."""

    limit: float  # largest share of failed attempts, of those planned and of at least twenty
    addresses: Mapping[str, str] = field(default_factory=dict)  # of the server of each backbone, for the message
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
            errors = [self._error_summary(backbone, messages) for (backbone, _), messages in groups]
            if others := self.failed - sum(len(messages) for _, messages in groups):
                errors.append(f"{others} others")
            raise UserError(
                f"{self.failed} of {expected} attempts failed (limit {self.limit:.0%}): {', '.join(errors)}. Fix "
                f"the cause, then `{self.retry}` asks the failed calls again"
            )

    def _error_summary(self, backbone: str, messages: list[str]) -> str:
        """Return the count, first message and address of one kind of error."""
        message = messages[0] if len(messages[0]) <= _LONGEST_ERROR else f"{messages[0][:_LONGEST_ERROR]}..."
        address = f" at {self.addresses[backbone]}" if backbone in self.addresses else ""
        return f"{len(messages)} x {message!r} from {backbone}{address}"


class Context:
    """Access of a method to models, chance, embeddings and tools, for one attempt at one question.

    Calls and decisions are recorded in an order that neither latency nor concurrency can change.
    """

    def __init__(self, item: Item, runtime: Runtime, episode: Episode) -> None:
        self.item = item
        self.rules = runtime.benchmark.output_rules
        self.code_tools = runtime.code_tools
        self._runtime = runtime
        self._key = (str(runtime.seed), str(episode.epoch), str(episode.rollout), item.benchmark, item.id)
        self._calls: list[Call] = []
        self._replies: list[Reply] = []
        self._decisions: list[Decision] = []
        self._embedded = 0
        self._truncated = 0
        self._cut_off: set[str] = set()
        self._samplings: set[Sampling] = set()

    async def ask(
        self,
        backbone: str,
        messages: tuple[Message, ...],
        turn: Turn = Turn(),
        *,
        step: int = 1,
        purpose: str = "solve",
        slot: int = 0,
        is_step: bool = True,
        temperature: float | None = 0.0,
        draw: int | None = None,
        is_sample: bool = False,
        response_format: str | None = None,
    ) -> Reply:
        """Ask one backbone once; see :class:`Call` and :class:`~harness.llm.request.Request` for the arguments.

        The text of the reply is without the thinking that a model wrote before it, which no agent sees (D-GEN-9).
        A temperature comes with neither nucleus nor penalty; ``None`` stands for the sampling that the publisher of the
        backbone recommends (D-GEN-2). At 0, equal prompts get equal replies, and each use is charged. Above 0, unless a
        ``draw`` is given, every call is an independent sample fixed by seed, question, episode, step, purpose and slot.
        A method that compares several samples of one prompt marks them with ``is_sample``: they keep their temperature
        where a run decodes greedily.
        """
        model = self._runtime.backbones[backbone]
        sampling = model.sampling if temperature is None else Sampling(temperature)
        if self._runtime.greedy and not is_sample:
            sampling, draw = GREEDY, 0
        self._samplings.add(sampling)
        if draw is None:
            # Servers take a seed of 31 bits.
            key = (*self._key, str(step), f"sample of {purpose}", str(slot))
            draw = rng.index(1 << 31, *key) if sampling.temperature else 0
        request = Request(
            model.model,
            model.revision,
            model.prompt(messages),
            max_tokens=model.max_tokens,
            stop=model.stop,
            **sampling._asdict(),
            draw=draw,
            response_format=response_format,
            metadata=turn,
        )
        reply = await self._runtime.client.complete(backbone, request)
        # The log keeps, and the cost counts, all that was written.
        reply = replace(reply, text=without_thinking(reply.text, reply.finish_reason == "length"))
        call = Call(
            step=step,
            purpose=purpose,
            slot=slot,
            backbone=backbone,
            role=turn.role,
            key=request.key,
            prompt_tokens=reply.prompt_tokens,
            completion_tokens=reply.completion_tokens,
            cost=model.cost(reply.prompt_tokens, reply.completion_tokens),
            is_step=is_step,
            finish_reason=reply.finish_reason,
            error=reply.error,
        )
        self._calls.append(call)
        self._replies.append(reply)
        if reply.finish_reason == "length":
            self._cut_off.add(reply.text.strip())
        return reply

    def note_tool(self, reply: Reply, output: str, item: Item) -> None:
        """Record what a tool said of a question to a reply, the question's examples replaced by their numbers."""
        # So that results hold no part of a question, and a bundle can leave questions out.
        examples = enumerate(item.code.visible if item.code else (), 1)
        for number, example in sorted(examples, key=lambda pair: -len(pair[1])):  # one may begin another
            output = output.replace(" ".join(example.split()), f"no. {number}")
        index = next(index for index, other in enumerate(self._replies) if other is reply)
        self._calls[index] = replace(self._calls[index], tool=output)

    async def embed(self, text: str) -> NDArray[np.float32]:
        """Return the sentence embedding of a text, shape (384,), of unit length."""
        embeddings = self._runtime.embeddings
        encoded = await embeddings.embed(text)
        self._embedded += 1
        self._truncated += encoded.tokens > embeddings.encoder.max_tokens
        return encoded.vector

    def extract(self, text: str) -> str | None:
        """Return the answer that the benchmark's extractor finds in a text, or None."""
        return self._runtime.benchmark.extract(self.item, text)

    def same(self, a: str, b: str) -> bool:
        """Return whether the benchmark calls two extracted answers equal."""
        return self._runtime.benchmark.same(self.item, a, b)

    def uniform(self, step: int, name: str, slot: int = 0) -> float:
        """Return a number strictly between 0 and 1, fixed by seed, question, episode and decision."""
        return rng.uniform(*self._key, str(step), name, str(slot))

    def decide(self, decision: Decision) -> None:
        """Record one decision of a policy, its log-probability with six decimals."""
        self._decisions.append(replace(decision, log_prob=rounded(decision.log_prob)))

    def close(self, answer: str) -> Trajectory:
        """Return the trajectory, whose answer is given."""
        calls = sorted(self._calls, key=lambda call: (not call.is_step, call.step, call.slot, call.purpose, call.key))
        decisions = sorted(self._decisions, key=lambda decision: (decision.step, decision.slot, decision.name))
        is_cut_off = answer.strip() in self._cut_off
        return Trajectory(
            self.item,
            answer,
            tuple(calls),
            tuple(decisions),
            self._embedded,
            self._truncated,
            is_cut_off,
            frozenset(self._samplings),
        )


Solve = Callable[[Item, Context], Awaitable[str]]


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
    greedy: bool = False  # temperature 0 for every call but samples of one prompt, whatever a method asks (D-GEN-2)

    @property
    def simulated(self) -> bool:
        """Return whether a backbone is no trained model: simulated, or of weights that stand in for others."""
        return any(backbone.stand_in for backbone in self.backbones.values())

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
    reason = trajectory.calls[-1].finish_reason if trajectory.calls else ""
    if verdict.status is Status.EMPTY and reason in (Status.TOOL_CALLS, Status.CONTENT_FILTER):
        return replace(verdict, status=Status(reason))
    return verdict
