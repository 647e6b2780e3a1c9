"""Runtime of a cell (client, tools, embeddings), and the context that a method gets for one question."""

from __future__ import annotations

import asyncio
import inspect
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from harness.agents import rng
from harness.agents.code_tools import CodeTools
from harness.agents.prompts import question_prompt
from harness.agents.trajectory import TEST, Answered, Call, CallSpec, Decision, Episode, Trajectory, rounded
from harness.benchmarks.base import Benchmark, Tools
from harness.benchmarks.items import Item, Status, Verdict
from harness.benchmarks.reading import without_thinking
from harness.errors import UserError, check_names
from harness.llm.backbones import Backbone
from harness.llm.client import ChatClient
from harness.llm.request import GREEDY, Message, Metadata, Reply, Sampling
from harness.method import Context, Solve

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from harness.llm.encoder import Embeddings

MIN_ATTEMPTS = 20
_SHOWN_ERRORS, _LONGEST_ERROR = 3, 120


@dataclass
class ErrorShare:
    """Counts attempts that failed because of a call, and stops the run if their share gets too large."""

    limit: float  # maximum share of failed attempts, relative to the planned number (at least MIN_ATTEMPTS)
    retry: str = "gmr retry"  # command that forgets failed calls, for the message
    planned: int = 0
    attempts: int = 0
    _errors: Counter[str] = field(default_factory=Counter)  # of failed attempts

    def expect_attempts(self, attempts: int) -> None:
        """Reset the counts and set the expected number of attempts."""
        self.planned, self.attempts = attempts, 0
        self._errors.clear()

    def count_attempt(self, failed_call: Call | None) -> None:
        """Count an attempt and, if it failed, the failed call. Raises UserError if too many attempts have failed."""
        self.attempts += 1
        if failed_call is not None:
            message = " ".join((failed_call.error or "").split())[:_LONGEST_ERROR]
            self._errors[f"{message!r} from {failed_call.backbone}"] += 1
        expected, failed = max(self.planned, self.attempts), self._errors.total()
        if failed > self.limit * max(expected, MIN_ATTEMPTS):
            errors = ", ".join(f"{number} x {error}" for error, number in self._errors.most_common(_SHOWN_ERRORS))
            raise UserError(
                f"{failed} of {expected} attempts failed (limit {self.limit:.0%}), most often by {errors}. Fix "
                f"the cause, then `{self.retry}` asks the failed calls again"
            )


class RecordedContext(Context):
    """The context of an attempt, which records calls and decisions."""

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
        spec: CallSpec = CallSpec(),
        response_format: str | None = None,
    ) -> Reply:
        check_names("backbone", [backbone], self._runtime.backbones, "`backbones` of the preset")
        model = self._runtime.backbones[backbone]
        sampling = model.sampling if spec.temperature is None else Sampling(spec.temperature)
        draw = spec.draw
        if self._runtime.greedy and not spec.is_sample:
            sampling, draw = GREEDY, 0
        self._samplings.add(sampling)
        if draw is None:
            # Servers take 31-bit seeds.
            key = (*self._key, str(spec.step), f"sample of {spec.purpose}", str(spec.slot))
            draw = rng.index(1 << 31, *key) if sampling.temperature else 0
        told = Metadata(spec.role, spec.purpose)
        request = model.request(messages, sampling, draw=draw, response_format=response_format, metadata=told)
        reply = await self._runtime.client.complete(backbone, request)
        # The call log and the cost include the thinking.
        reply = replace(reply, text=without_thinking(reply.text, reply.finish_reason == "length"))
        self._record(backbone, spec, request.key, reply)
        if reply.finish_reason == "length":
            self._cut_off.add(reply.text.strip())
        return reply

    def _record(self, backbone: str, spec: CallSpec, key: str, reply: Reply, cost: float | None = None) -> None:
        """Charge a call, by its tokens unless its cost is known."""
        by_tokens = self._runtime.backbones[backbone].cost(reply.prompt_tokens, reply.completion_tokens)
        call = Call(
            step=spec.step,
            purpose=spec.purpose,
            slot=spec.slot,
            backbone=backbone,
            role=spec.role,
            key=key,
            prompt_tokens=reply.prompt_tokens,
            completion_tokens=reply.completion_tokens,
            cost=by_tokens if cost is None else cost,
            is_step=spec.is_step,
            finish_reason=reply.finish_reason,
            error=reply.error,
            cached_tokens=reply.cached_tokens,
            reasoning_tokens=reply.reasoning_tokens,
        )
        self._calls.append(call)
        self._replies.append(reply)

    async def ask_question(self, backbone: str) -> str:
        if (known := self._runtime.benchmark.outcome(self.item, backbone)) is not None:
            key, outcome = known
            # The reply stands for the model: its benchmark looks up the verdict. The table is its log.
            reply = Reply(backbone, outcome.prompt_tokens, outcome.completion_tokens, "stop", backbone)
            self._record(backbone, CallSpec(), key, reply, outcome.cost)
            self._runtime.client.calls_answered += 1
            await asyncio.sleep(0)  # Progress lines and signals
            return reply.text
        return (await self.ask(backbone, question_prompt("", self.rules, self.item))).text

    def record_tool_output(self, reply: Reply, output: str, item: Item) -> None:
        # Results must not contain parts of a question, since bundles leave questions out.
        examples = enumerate(item.code.visible if item.code else (), 1)
        for number, example in sorted(examples, key=lambda pair: -len(pair[1])):  # one may be a prefix of another
            output = output.replace(" ".join(example.split()), f"no. {number}")
        index = next(index for index, other in enumerate(self._replies) if other is reply)
        self._calls[index] = replace(self._calls[index], tool=output)

    async def embed(self, text: str) -> NDArray[np.float32]:
        embeddings = self._runtime.embeddings
        encoded = await embeddings.embed(text)
        self._embedded += 1
        self._truncated += encoded.tokens > embeddings.encoder.max_tokens
        return encoded.vector

    def extract(self, text: str) -> str | None:
        return self._runtime.benchmark.extract(self.item, text)

    def same(self, a: str, b: str) -> bool:
        return self._runtime.benchmark.same(self.item, a, b)

    def uniform(self, step: int, name: str, slot: int = 0) -> float:
        return rng.uniform(*self._key, str(step), name, str(slot))

    def decide(self, decision: Decision) -> None:
        self._decisions.append(replace(decision, log_prob=rounded(decision.log_prob)))

    def close(self, answer: str) -> Trajectory:
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


@dataclass(frozen=True)
class Runtime:
    """Client, tools and embeddings of one cell."""

    client: ChatClient
    backbones: Mapping[str, Backbone]  # with the revisions that servers report
    benchmark: Benchmark
    tools: Tools  # for grading
    code_tools: CodeTools  # for roles
    embeddings: Embeddings
    seed: int
    errors: ErrorShare
    greedy: bool = False  # temperature 0 for every call except is_sample (D-GEN-2)

    @property
    def simulated(self) -> bool:
        """Whether any backbone is simulated or has random weights."""
        return any(backbone.stand_in for backbone in self.backbones.values())

    def context(self, item: Item, episode: Episode = TEST) -> RecordedContext:
        return RecordedContext(item, self, episode)

    async def attempt(self, solve: Solve, item: Item, episode: Episode = TEST) -> Answered:
        """Solve and grade a question. Raises UserError if too many attempts failed, or sandbox or endpoint is gone."""
        context = self.context(item, episode)
        answer: Any = solve(item, context)
        if not inspect.isawaitable(answer):
            raise UserError(f"{solve.__qualname__} of {solve.__module__} is no coroutine; define it with `async def`")
        answer = await answer
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
    """Grade a trajectory. A failed call has its own status. Raises UserError if the sandbox failed."""
    if (failed := trajectory.failed_call) is not None:
        return Verdict(False, None, Status.CALL_FAILED, failed.error or "")
    # Who answers by a model of a table has to ask it, and to pay.
    is_asked = not benchmark.names_models or trajectory.answer in {call.backbone for call in trajectory.calls}
    answer = trajectory.answer if is_asked else ""
    verdict = await benchmark.grade(trajectory.item, answer, tools, trajectory.cut_off)
    if verdict.status is Status.SANDBOX_ERROR:
        raise UserError(
            f"the sandbox failed on question {trajectory.item.id} ({verdict.detail}); fix the cause, then give the "
            "same command again (finished calls are kept)"
        )
    reason = trajectory.calls[-1].finish_reason if trajectory.calls else ""
    if verdict.status is Status.EMPTY and reason in (Status.TOOL_CALLS, Status.CONTENT_FILTER):
        return replace(verdict, status=Status(reason))
    return verdict
