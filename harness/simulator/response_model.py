"""Response model (docs/simulator.md): P(right) = Φ(score). ``config/simulator.yaml`` explains the parameters.

Scores of single calls are normal over questions, so that their mean accuracy is the skill without any fitting.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from statistics import NormalDist
from typing import Annotated, TypeVar, get_args

from annotated_types import Gt, Len, Lt, MinLen
from pydantic import NonNegativeFloat, PositiveFloat

from harness.agents import rng
from harness.agents.roles import by_key
from harness.benchmarks.items import Item
from harness.errors import check_names
from harness.files import ROOT, Declaration, Many, Share, read
from harness.llm.request import Kind, Style, Turn

_NORMAL = NormalDist()
FILE = ROOT / "config" / "simulator.yaml"

T = TypeVar("T")
ByStyle = Annotated[Mapping[Style, T], MinLen(len(get_args(Style)))]
ByKind = Annotated[Mapping[Kind, T], MinLen(len(get_args(Kind)))]


class Skill(Declaration):
    """Skill and reply length of a backbone."""

    skill: Annotated[float, Gt(0), Lt(1)]
    tokens: PositiveFloat


class Parameters(Declaration):
    """Parameters of the response model."""

    backbones: Mapping[str, Skill]
    difficulty_sd: NonNegativeFloat
    disagreement_sd: NonNegativeFloat
    stated_difficulty_weight: Share
    fitting_role: float
    other_role: float
    role_sd: NonNegativeFloat
    style: ByStyle[float]
    evidence: NonNegativeFloat
    discernment: Share
    repetition: Share
    aggregation: PositiveFloat
    overload_per_1000_tokens: NonNegativeFloat
    wrong_weights: Annotated[Many[PositiveFloat], Len(4, 4)]
    copied_wrong: Share
    unparsable: Share
    invalid_schema: Share
    length_sd: NonNegativeFloat
    kind_length: ByKind[PositiveFloat]
    style_length: ByStyle[PositiveFloat]

    def skill(self, backbone: str) -> Skill:
        check_names("simulated backbone", [backbone], self.backbones, "config/simulator.yaml; state its skill there")
        return self.backbones[backbone]


@cache
def load(path: Path = FILE) -> Parameters:
    parameters: Parameters = read(path, Parameters)
    return parameters


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
    """Compute the effect of earlier answers on the score: right answer minus strongest wrong answer."""
    # Weight of an answer: 1 for its first occurrence, `repetition` for the second, its square for the third.
    voices = {
        answer: sum(values.repetition**turn for turn in range(count)) for answer, count in Counter(answers).items()
    }
    strongest = max((weight for answer, weight in voices.items() if answer != right), default=0.0)
    balance = voices.get(right, 0.0) - (1 - values.discernment) * strongest
    return values.evidence * balance / math.sqrt(1 + sum(voices.values()))
