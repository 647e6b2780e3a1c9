"""Trajectories: the calls and decisions of a method on one question, and how an option is drawn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from harness.benchmarks.items import Item, Verdict
from harness.llm.request import Sampling


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
    samplings: frozenset[Sampling] = frozenset()  # distinct sampling parameters of the calls

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
