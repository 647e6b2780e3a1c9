"""Parameters of the simulated backbones. ``config/simulator.yaml`` explains each."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Annotated, TypeVar, get_args

from annotated_types import Gt, Len, Lt, MinLen
from pydantic import NonNegativeFloat, PositiveFloat

from harness.errors import check_names
from harness.files import ROOT, Declaration, Many, Share, read
from harness.llm.request import Kind, Style

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
