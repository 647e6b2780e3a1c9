"""Response model: probability that an answer is right, and length of a reply (docs/simulator.md).

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

# A stated difficulty may be 0 or 1, whose normal scores are infinite.
_EASIEST, _HARDEST = 0.02, 0.98
_NORMAL = NormalDist()
_LONGEST_REPLY = 1e6


class Evidence(NamedTuple):
    """Sum of the contributions shown in a prompt."""

    right: float = 0.0  # total weight of contributions with the right answer
    wrong: Sequence[float] = ()  # total weight of each distinct wrong answer
    feedback: bool = False  # results on the visible examples are shown
    tokens: int = 0  # length of the contributions


def difficulty(question: str, stated: float | None, parameters: Parameters) -> float:
    """Return the difficulty of a question, about standard normal; ``stated`` is that of its record, from 0 to 1."""
    noise = rng.normal("difficulty", question)
    if stated is None:
        return noise
    score = _NORMAL.inv_cdf(min(max(stated, _EASIEST), _HARDEST))
    weight = parameters.difficulty_weight
    return weight * score + math.sqrt(1 - weight**2) * noise


def affinity(question: str, backbone: str, parameters: Parameters) -> float:
    """Return how much easier (positive) or harder a question is for a backbone than for others, in logits."""
    return parameters.disagreement_sd * rng.normal("affinity", question, backbone)


def role_fit(role: Role | None, benchmark: str, question: str, parameters: Parameters) -> float:
    """Return how well a role suits a benchmark and a question, in logits; 0 without a role."""
    if role is None:
        return 0.0
    domain = parameters.role_fit.get(role.domain, {}).get(benchmark, 0.0)
    return domain + parameters.role_jitter_sd * rng.normal("fit", role.key, question)


def pull(evidence: Evidence, accuracy: float, aggregating: bool, parameters: Parameters) -> float:
    """Return the pull of contributions towards the right answer, in logits (docs/simulator.md)."""
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
    """Return the logits lost to the length of contributions."""
    return parameters.overload_per_1000_tokens * evidence.tokens / 1000


def sigmoid(logit: float) -> float:
    """Return the logistic function, safe for any finite argument."""
    if logit >= 0:
        return 1 / (1 + math.exp(-logit))
    return math.exp(logit) / (1 + math.exp(logit))


@functools.lru_cache(maxsize=4096)
def log_location(mean: float, sd: float, floors: tuple[int, ...]) -> float:
    """Return the mean log of a log-normal length whose maximum with each floor, equally likely, has a given mean."""
    return solve(
        lambda at: fmean(_mean_above(floor, at, sd) for floor in floors), mean, 0.0, math.log(_LONGEST_REPLY), 40
    )


def solve(function: Callable[[float], float], value: float, low: float, high: float, halvings: int) -> float:
    """Solve an increasing function for a value by bisection, with the same digits on every machine."""
    for _ in range(halvings):
        middle = (low + high) / 2
        if function(middle) < value:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def _mean_above(floor: int, location: float, sd: float) -> float:
    mean = math.exp(location + sd**2 / 2)
    if floor == 0:
        return mean
    edge = (math.log(floor) - location) / sd
    return floor * _NORMAL.cdf(edge) + mean * _NORMAL.cdf(sd - edge)
