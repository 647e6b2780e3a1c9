"""The response model: the probability that a backbone answers a question correctly.

``P = sigmoid(slope * (ability - difficulty) + affinity + style + fit + evidence - overload)``; ``docs/simulator.md``
explains the terms. Difficulty and affinity are fixed by the wording of the question, so questions with the same text
are one question to every backbone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from harness import rng
from harness.agents.roles import Role
from harness.simulator.parameters import Parameters

# A generator may call a question trivial or impossible; the normal scale has no such ends.
_EASIEST, _HARDEST = 0.02, 0.98


@dataclass(frozen=True, slots=True)
class Context:
    """What the turns shown in a prompt say about the question, summed up.

    Attributes:
        right: Total weight of contributions that hold the right answer.
        wrong: Total weight behind each distinct wrong answer.
        feedback: Whether the outcome of the visible examples is reported.
        tokens: Length of the contributions.
    """

    right: float = 0.0
    wrong: Sequence[float] = ()
    feedback: bool = False
    tokens: int = 0


def difficulty(question: str, known: float | None, parameters: Parameters) -> float:
    """Difficulty of a question, about standard normal over a benchmark.

    Args:
        question: Its wording.
        known: Between 0 and 1 where the question's record states it.
        parameters: Gives the weight of the known part.
    """
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


def evidence(context: Context, accuracy: float, aggregating: bool, parameters: Parameters) -> float:
    """The pull of the contributions shown, in logits; positive towards the right answer.

    Right contributions count a little more than wrong ones (discernment, which grows with the backbone's own
    accuracy). Wrong answers that contradict each other pull less than wrong answers that agree. The pull grows with
    the square root of the number of voices.

    Args:
        context: What the contributions say.
        accuracy: Share of the benchmark the backbone answers correctly on its own.
        aggregating: Whether the turn only weighs others' answers.
        parameters: Strengths.
    """
    voices = context.right + sum(context.wrong)
    if voices == 0:
        return 0.0
    discernment = parameters.discernment_base + parameters.discernment_per_accuracy * accuracy
    if context.feedback:
        discernment += parameters.feedback_discernment
    balance = (1 + discernment) * context.right - (1 - discernment) * math.hypot(*context.wrong)
    strength = parameters.evidence_strength * (parameters.aggregation_factor if aggregating else 1.0)
    return strength * balance / math.sqrt(1 + voices)


def overload(context: Context, parameters: Parameters) -> float:
    """Logits lost to the length of the contributions shown."""
    return parameters.overload_per_1000_tokens * context.tokens / 1000


def sigmoid(logit: float) -> float:
    """The logistic function, safe for any finite argument."""
    if logit >= 0:
        return 1 / (1 + math.exp(-logit))
    return math.exp(logit) / (1 + math.exp(logit))
