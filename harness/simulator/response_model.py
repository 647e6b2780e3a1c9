"""Response model (docs/simulator.md): P(right) = Φ(score).

Scores of single calls are normal over questions, so that their mean accuracy is the skill without any fitting.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from statistics import NormalDist

from harness.agents import rng
from harness.agents.roles import by_key
from harness.benchmarks.items import Item
from harness.llm.request import Turn
from harness.simulator.parameters import Parameters

_NORMAL = NormalDist()


def score(item: Item, domain: str, backbone: str, turn: Turn, values: Parameters) -> float:
    """Compute the score of a call without earlier turns. ``domain`` is the role domain of the benchmark."""
    spread = math.hypot(1, values.difficulty_sd, values.disagreement_sd)
    total = spread * _NORMAL.inv_cdf(values.skill(backbone).skill) + values.style[turn.style]
    total -= values.difficulty_sd * difficulty(item, values.stated_difficulty_weight)
    total += values.disagreement_sd * rng.normal("disagreement", item.question, backbone)
    if role := by_key().get(turn.role):
        total += values.fitting_role if role.domain == domain else values.other_role
        total += values.role_sd * rng.normal("role", item.question, role.key)
    return total


def difficulty(item: Item, stated_weight: float) -> float:
    """Compute the difficulty of a question, standard normal over questions."""
    noise = rng.normal("difficulty", item.question)
    if item.difficulty is None:
        return noise
    stated = _NORMAL.inv_cdf(min(max(item.difficulty, 0.02), 0.98))  # Avoids infinite quantiles.
    return stated_weight * stated + math.sqrt(1 - stated_weight**2) * noise


def evidence(answers: Sequence[str], right: str, values: Parameters) -> float:
    """Compute the effect of earlier answers on the score: the right one minus the strongest wrong one."""
    # Weight of an answer: 1 for its first occurrence, `repetition` for the second, its square for the third.
    voices = {
        answer: sum(values.repetition**turn for turn in range(count)) for answer, count in Counter(answers).items()
    }
    strongest = max((weight for answer, weight in voices.items() if answer != right), default=0.0)
    balance = voices.get(right, 0.0) - (1 - values.discernment) * strongest
    return values.evidence * balance / math.sqrt(1 + sum(voices.values()))
