"""Trajectories, and the context that records the calls and decisions of a method on one question."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from harness.agents import rng
from harness.benchmarks.items import Item, Verdict
from harness.llm.request import GREEDY, Message, Reply, Request, Sampling, Turn
from harness.thinking import without_thinking

if TYPE_CHECKING:
    from harness.agents.runtime import Runtime


class Episode(NamedTuple):
    """Attempt at a question: epoch and rollout."""

    epoch: int  # of the training, counted from 1; 0 for the test
    rollout: int  # among those of the question in this epoch, counted from 0


TEST = Episode(0, 0)


@dataclass(frozen=True, slots=True)
class Call:
    """Use of a model, charged as the method would have paid, cached or not."""

    step: int  # step of the trajectory, counted from 1
    purpose: str  # in the method's words (``solve``, ``critique``, ``aggregate`` ...)
    slot: int  # order among calls of the same step and purpose, whatever their latency
    backbone: str
    role: str  # key of the role, empty without one
    key: str  # of the call in the log
    prompt_tokens: int  # as the server reported
    completion_tokens: int  # as the server reported
    cost: float  # price of this use in the paper's unit
    is_step: bool  # part of a step (counted in ``cost_steps``), not the final aggregation
    finish_reason: str  # as the server reported; ``error`` for a failed call
    error: str | None  # message of the server if the call failed for good
    tool: str = ""  # output of the role's tool on the reply; empty if none was run


@dataclass(frozen=True, slots=True)
class Decision:
    """Choice of a policy among several options, with its log-probability."""

    step: int
    name: str
    slot: int
    choice: str
    options: int
    log_prob: float


@dataclass(frozen=True, slots=True)
class Trajectory:
    """Calls and decisions of a method on one question, in order, and its answer."""

    item: Item
    answer: str  # the text to be graded
    calls: tuple[Call, ...]
    decisions: tuple[Decision, ...]
    embedded: int = 0  # number of texts embedded
    truncated: int = 0  # number of these that were longer than the sentence encoder reads
    cut_off: bool = False  # the answer is a reply that ended at its length limit

    @property
    def cost_total(self) -> float:
        """Return the price of all calls in the paper's unit (D-GEN-1)."""
        return sum(call.cost for call in self.calls)

    @property
    def cost_steps(self) -> float:
        """Return the price without the final aggregation call."""
        return sum(call.cost for call in self.calls if call.is_step)

    @property
    def depth(self) -> int:
        """Return the number of steps executed."""
        return max((call.step for call in self.calls if call.is_step), default=0)

    @property
    def failed_call(self) -> Call | None:
        """Return the final call if it failed and left no answer, else None."""
        final = self.calls[-1] if self.calls else None
        return None if final is None or final.error is None or self.answer.strip() else final


class Answered(NamedTuple):
    """Question, answered and graded."""

    trajectory: Trajectory
    verdict: Verdict


# Decimals of the probabilities that decisions are drawn from, and of written log-probabilities, because results
# computed alone and in a batch differ in the fifteenth decimal.
DRAWN_DECIMALS = 9
WRITTEN_DECIMALS = 6


def rounded(value: float) -> float:
    """Return a number as results hold it, with six decimals and without a negative zero."""
    return round(value, WRITTEN_DECIMALS) + 0.0


def sample(probabilities: NDArray[np.float64], uniforms: ArrayLike) -> NDArray[np.int64]:
    """Return the indices at which cumulative distributions, of probabilities of nine decimals, pass uniform numbers.

    The options are the last dimension of ``probabilities``; indices have the shape of ``uniforms``.
    """
    probabilities = probabilities.round(DRAWN_DECIMALS)
    passed = probabilities.cumsum(axis=-1) <= np.expand_dims(uniforms, -1)
    # Rounding may leave the sum a hair below 1.
    last = probabilities.shape[-1] - 1 - (probabilities[..., ::-1] > 0).argmax(axis=-1)
    return np.minimum(passed.sum(axis=-1), last)


class Context:
    """Access of a method to models, chance, embeddings and tools, for one attempt at one question.

    Calls and decisions are recorded in an order that neither latency nor concurrency can change.
    """

    def __init__(self, item: Item, runtime: Runtime, episode: Episode = TEST) -> None:
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
        response_format: str | None = None,
    ) -> Reply:
        """Ask one backbone once; see :class:`Call` and :class:`~harness.llm.request.Request` for the arguments.

        The text of the reply is without the thinking that a model wrote before it, which no agent sees (D-GEN-9).
        A temperature comes with neither nucleus nor penalty; ``None`` stands for the sampling that the publisher of the
        backbone recommends (D-GEN-2). At 0, equal prompts get equal replies, and each use is charged. Above 0, unless a
        ``draw`` is given, every call is an independent sample fixed by seed, question, episode, step, purpose and slot.
        """
        model = self._runtime.backbones[backbone]
        sampling = model.sampling if temperature is None else Sampling(temperature)
        if self._runtime.greedy:
            sampling, draw = GREEDY, 0
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
        reply = replace(reply, text=without_thinking(reply.text))
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

    def note_tool(self, reply: Reply, output: str) -> None:
        """Record the output of a tool with the call of the reply, examples of the question replaced by their number."""
        # So that results hold no part of a question, and a bundle can leave questions out.
        for number, example in enumerate(self.item.code.visible if self.item.code else (), 1):
            output = output.replace(" ".join(example.split()), f"no. {number}")
        # Calls with one key may share a reply; each of them gets its output.
        place = next(at for at, other in enumerate(self._replies) if other is reply and not self._calls[at].tool)
        self._calls[place] = replace(self._calls[place], tool=output)

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
        counts = self._embedded, self._truncated
        return Trajectory(self.item, answer, tuple(calls), tuple(decisions), *counts, answer.strip() in self._cut_off)
