"""The response model: how likely an answer is right, and how long a reply is (docs/simulator.md).

``P = sigmoid(slope * (ability - difficulty) + affinity + style + fit + evidence - overload)``. Difficulty and affinity
are fixed by the wording of the question, so questions with the same text are one question to every backbone.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from statistics import NormalDist, fmean
from typing import NamedTuple

from harness.agents import rng
from harness.agents.roles import Role
from harness.simulator.parameters import Parameters

# A generator may call a question trivial or impossible; the normal scale has no such ends.
_EASIEST, _HARDEST = 0.02, 0.98
_CDF = NormalDist().cdf
_LONGEST_REPLY = 1e6


class Evidence(NamedTuple):
    """The sum of the contributions shown in a prompt."""

    right: float = 0.0  # total weight of contributions that hold the right answer
    wrong: Sequence[float] = ()  # total weight behind each distinct wrong answer
    feedback: bool = False  # whether the outcome of the visible examples is reported
    tokens: int = 0  # length of the contributions


def difficulty(question: str, known: float | None, parameters: Parameters) -> float:
    """Difficulty of a question, about standard normal; ``known`` is between 0 and 1 where its record states it."""
    noise = rng.normal("difficulty", question)
    if known is None:
        return noise
    score = rng.normal_score(min(max(known, _EASIEST), _HARDEST))
    weight = parameters.difficulty_weight
    return weight * score + math.sqrt(1 - weight**2) * noise


def affinity(question: str, backbone: str, parameters: Parameters) -> float:
    """What one backbone finds easier (positive) or harder than others do, in logits."""
    return parameters.disagreement_sd * rng.normal("affinity", question, backbone)


def fit(role: Role | None, benchmark: str, question: str, parameters: Parameters) -> float:
    """How well a role suits a benchmark and a question, in logits; no role, no change."""
    if role is None:
        return 0.0
    domain = parameters.role_fit.get(role.domain, {}).get(benchmark, 0.0)
    return domain + parameters.role_jitter_sd * rng.normal("fit", role.key, question)


def pull(evidence: Evidence, accuracy: float, aggregating: bool, parameters: Parameters) -> float:
    """The pull of the contributions shown, in logits; positive towards the right answer.

    Right contributions count a little more than wrong ones (discernment, which grows with the backbone's own accuracy
    on the benchmark). Wrong answers that contradict each other pull less than wrong answers that agree. The pull grows
    with the square root of the number of voices.
    """
    voices = evidence.right + sum(evidence.wrong)
    if voices == 0:
        return 0.0
    discernment = parameters.discernment_base + parameters.discernment_per_accuracy * accuracy
    if evidence.feedback:
        discernment += parameters.feedback_discernment
    balance = (1 + discernment) * evidence.right - (1 - discernment) * math.hypot(*evidence.wrong)
    strength = parameters.evidence_strength * (parameters.aggregation_factor if aggregating else 1.0)
    return strength * balance / math.sqrt(1 + voices)


def overload(evidence: Evidence, parameters: Parameters) -> float:
    """Logits lost to the length of the contributions shown."""
    return parameters.overload_per_1000_tokens * evidence.tokens / 1000


def sigmoid(logit: float) -> float:
    """The logistic function, safe for any finite argument."""
    if logit >= 0:
        return 1 / (1 + math.exp(-logit))
    return math.exp(logit) / (1 + math.exp(logit))


@functools.lru_cache(maxsize=4096)
def log_location(mean: float, sd: float, floors: tuple[int, ...]) -> float:
    """Mean of the logarithm of a log-normal length for which max(floor, length) has the wanted mean.

    ``sd`` is the standard deviation of the logarithm, ``floors`` are least lengths, equally likely; where they alone
    exceed the mean, the location is the smallest there is.
    """
    return solve(
        lambda at: fmean(_mean_above(floor, at, sd) for floor in floors), mean, 0.0, math.log(_LONGEST_REPLY), 40
    )


def solve(function: Callable[[float], float], wanted: float, low: float, high: float, halvings: int) -> float:
    """Where an increasing function has a value, by bisection: the same digits on every machine."""
    for _ in range(halvings):
        middle = (low + high) / 2
        if function(middle) < wanted:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def _mean_above(floor: int, location: float, sd: float) -> float:
    """Mean of the larger of a floor and a log-normal number."""
    whole = math.exp(location + sd**2 / 2)
    if floor == 0:
        return whole
    edge = (math.log(floor) - location) / sd
    return floor * _CDF(edge) + whole * _CDF(sd - edge)
