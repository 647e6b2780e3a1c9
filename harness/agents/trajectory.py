"""Trajectories (calls and decisions of a method on one question), and sampling of options."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from harness.benchmarks.items import Item, Verdict
from harness.llm.request import Sampling


class Episode(NamedTuple):
    """Identifies one attempt at a question."""

    epoch: int  # training epoch, from 1; 0 for the test
    rollout: int  # rollout of the question in this epoch, from 0


TEST = Episode(0, 0)


class CallSpec(NamedTuple):
    """Where a call stands in its trajectory, and how it is sampled."""

    step: int = 1  # step of the trajectory, from 1
    purpose: str = "solve"  # in the method's words, for tables of calls and simulated models
    slot: int = 0  # order among calls of the same step and purpose
    role: str = ""  # key in the role catalogue, or any name for a method's own roles
    # With top_p 1 and no penalty. None: the publisher's sampling parameters (D-GEN-2). At 0, equal prompts get equal
    # replies.
    temperature: float | None = 0.0
    # Sample index. None: above temperature 0 an independent draw keyed by seed, question, episode, step, purpose, slot.
    draw: int | None = None
    is_step: bool = True  # False for the final aggregation, which ``cost_steps`` excludes
    is_sample: bool = False  # keep the temperature even if the preset decodes greedily, to compare samples of a prompt


@dataclass(frozen=True, slots=True)
class Call:
    """One use of a model. It is charged even if the reply is cached."""

    step: int  # step of the trajectory, from 1
    purpose: str  # ``solve``, ``critique``, ``aggregate`` ...
    slot: int  # order among calls of the same step and purpose
    backbone: str
    role: str  # key of the role; empty if the call has no role
    key: str  # key in the call log
    prompt_tokens: int  # as reported by the server
    completion_tokens: int  # as reported by the server
    cost: float  # in the paper's unit
    is_step: bool  # False for the final aggregation, which ``cost_steps`` excludes
    finish_reason: str  # as reported by the server; ``error`` for a failed call
    error: str | None  # error message if the call failed for good
    tool: str = ""  # tool output; empty if no tool ran
    cached_tokens: int | None = None  # prompt tokens from the server's cache; None if not reported
    reasoning_tokens: int | None = None  # completion tokens of reasoning; None if not reported


@dataclass(frozen=True, slots=True)
class Decision:
    """One decision of a policy."""

    step: int
    name: str
    slot: int
    choice: str
    options: int
    log_prob: float


@dataclass(frozen=True, slots=True)
class Trajectory:
    """Calls, decisions and answer of a method on one question."""

    item: Item
    answer: str  # text to grade
    calls: tuple[Call, ...]
    decisions: tuple[Decision, ...]
    embedded: int = 0  # number of embedded texts
    truncated: int = 0  # number of embedded texts longer than the encoder's max_tokens
    cut_off: bool = False  # the answer is a reply that ended at max_tokens
    samplings: frozenset[Sampling] = frozenset()  # distinct sampling parameters of the calls

    @property
    def cost_total(self) -> float:
        """Cost of all calls in the paper's unit (D-GEN-1)."""
        return sum(call.cost for call in self.calls)

    @property
    def cost_steps(self) -> float:
        return sum(call.cost for call in self.calls if call.is_step)

    @property
    def depth(self) -> int:
        return max((call.step for call in self.calls if call.is_step), default=0)

    @property
    def failed_call(self) -> Call | None:
        """The final call if it failed and there is no answer, else None."""
        final = self.calls[-1] if self.calls else None
        return None if final is None or final.error is None or self.answer.strip() else final


class Answered(NamedTuple):
    """A trajectory with its verdict."""

    trajectory: Trajectory
    verdict: Verdict


# Decimals of the probabilities used for sampling, and of stored log-probabilities. Single and batched computation can
# differ in the fifteenth decimal.
DRAWN_DECIMALS = 9
WRITTEN_DECIMALS = 6


def rounded(value: float) -> float:
    """Round to the six decimals of result tables, without negative zero."""
    return round(value, WRITTEN_DECIMALS) + 0.0


def sample(probabilities: NDArray[np.float64], uniforms: ArrayLike) -> NDArray[np.int64]:
    """Sample indices by inverse CDF over the last dimension, with probabilities rounded to nine decimals.

    The result has the shape of ``uniforms``.
    """
    probabilities = probabilities.round(DRAWN_DECIMALS)
    passed = probabilities.cumsum(axis=-1) <= np.expand_dims(uniforms, -1)
    # After rounding the sum can be slightly below 1.
    last = probabilities.shape[-1] - 1 - (probabilities[..., ::-1] > 0).argmax(axis=-1)
    return np.minimum(passed.sum(axis=-1), last)
