"""The comparisons of the study of learning, as declared in ``config/studies``: a file a preset, where it has one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Annotated, Self

from pydantic import AfterValidator, Field, NonNegativeFloat, PositiveFloat, model_validator

from analysis.learning.measures import MEASURES
from harness.errors import unknown
from harness.files import ROOT, Declaration, Distinct, Text, read
from harness.runner.config import methods

FOLDER = ROOT / "config" / "studies"
PATH = FOLDER / "learning.yaml"
BEST_SINGLE = "best_single"
RANDOM = "random_same_depth"
# What a side or a measure of a contrast takes from the rest of the declaration.
_NEEDS = {BEST_SINGLE: "single", RANDOM: "random", "collapse": "collapsed_entropy"}


def _one_of(kind: str, known: Callable[[], Iterable[str]], where: str) -> AfterValidator:
    def check(name: str) -> str:
        if name not in known():
            raise ValueError(str(unknown(kind, name, known(), where)))
        return name

    return AfterValidator(check)


_Name = Annotated[str, Field(pattern="^[a-z0-9_]+$")]
_Method = Annotated[str, _one_of("method", methods, "config/methods.yaml")]
_Side = Annotated[str, _one_of("method", lambda: (*methods(), BEST_SINGLE, RANDOM), "config/methods.yaml")]
_Measure = Annotated[str, _one_of("measure", lambda: MEASURES, "analysis/learning/measures.py")]


class Contrast(Declaration):
    """The question ``asks``: method ``a`` minus ``b``, by each of some measures on each of some benchmarks."""

    asks: Text
    a: _Method
    b: _Side
    measures: Distinct[_Measure]
    benchmarks: Distinct[str]


class Study(Declaration):
    """The whole declaration."""

    cost_weight: NonNegativeFloat  # λ_c of the utility in every row, so that rows can be compared
    contrasts: Mapping[_Name, Contrast]
    own_utility: Text = ""  # what the methods maximise, in words
    collapsed_entropy: PositiveFloat | None = None  # in nats; below it the choice of a backbone counts as settled
    single: _Method | None = None  # the method whose cells are the single backbones
    random: Distinct[_Method] = ()  # routers that choose uniformly, each with a fixed depth

    @model_validator(mode="after")
    def _answerable(self) -> Self:
        for name, contrast in self.contrasts.items():
            for field in map(_NEEDS.get, (contrast.b, *contrast.measures)):
                if field and not getattr(self, field):
                    raise ValueError(f"the contrast {name!r} needs `{field}`, which is not given; add it")
        return self


def load(path: Path = PATH) -> Study:
    """A declaration; raises UserError for a slip, an unknown name, or a contrast that nothing could answer."""
    study: Study = read(path, Study)
    return study


def path_of(preset: str) -> Path:
    """The declaration for a preset: its own, or the common one."""
    own = FOLDER / f"{preset}.yaml"
    return own if own.is_file() else PATH
