"""The comparisons of the study of learning, as declared in ``config/studies``: a file a preset, where it has one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import Field, NonNegativeFloat, PositiveFloat

from analysis.learning.measures import MEASURES
from harness.errors import UserError, unknown
from harness.files import ROOT, Declaration, Distinct, Many, Text, read
from harness.runner import config

FOLDER = ROOT / "config" / "studies"
PATH = FOLDER / "learning.yaml"
BEST_SINGLE = "best_single"
RANDOM = "random_same_depth"


class Contrast(Declaration):
    """One question of the study: method ``a`` minus ``b``, by each of some measures on each of some benchmarks.

    Attributes:
        asks: The question, as one sentence.
        b: Key of a method, :data:`BEST_SINGLE` or :data:`RANDOM`.
    """

    name: Annotated[str, Field(pattern="^[a-z0-9_]+$")]
    asks: Text
    a: str
    b: str
    measures: Distinct[str]
    benchmarks: Distinct[str]


class Study(Declaration):
    """The whole declaration.

    Attributes:
        cost_weight: λ_c of the utility in every row, so that rows can be compared.
        contrasts: The questions.
        own_utility: What the methods maximise, in words; a reader of their own utilities needs them.
        collapsed_entropy: In nats; below it the choice of a backbone counts as settled. ``None`` asks nothing of it.
        single: The method whose cells are the single backbones, if these are references.
        trained: The router whose shares of backbones are shown after training, if any are.
        untrained: The same router before.
        random: Routers that choose uniformly, each with a fixed depth; may be none.
    """

    cost_weight: NonNegativeFloat
    contrasts: Many[Contrast]
    own_utility: Text = ""
    collapsed_entropy: PositiveFloat | None = None
    single: str | None = None
    trained: str | None = None
    untrained: str | None = None
    random: Distinct[str] = ()


def path_of(preset: str) -> Path:
    """The declaration for a preset: its own, or the common one."""
    own = FOLDER / f"{preset}.yaml"
    return own if own.is_file() else PATH


def load(path: Path = PATH) -> Study:
    """Read a declaration.

    Raises:
        UserError: It breaks its schema, names a method or a measure that does not exist, or a contrast twice, or a
            contrast needs what the declaration leaves out: nothing could ever answer it.
    """
    study: Study = read(path, Study)
    methods, names = config.methods(), [one.name for one in study.contrasts]
    for method in (study.single, study.trained, study.untrained, *study.random, *(one.a for one in study.contrasts)):
        if method not in (*methods, None):
            raise unknown("method", str(method), methods, f"config/methods.yaml; named in {path}")
    for one in study.contrasts:
        if one.b not in (*methods, BEST_SINGLE, RANDOM):
            raise unknown("method", one.b, (*methods, BEST_SINGLE, RANDOM), f"config/methods.yaml or {path}")
        for measure in one.measures:
            if measure not in MEASURES:
                raise unknown("measure", measure, MEASURES, f"analysis/learning/measures.py; named in {path}")
        if names.count(one.name) > 1:
            raise UserError(f"{path}: the contrast {one.name!r} is there twice; give each a name of its own")
        needs = {
            "single": study.single is None and one.b == BEST_SINGLE,
            "random": not study.random and one.b == RANDOM,
            "collapsed_entropy": study.collapsed_entropy is None and "collapse" in one.measures,
        }
        if any(needs.values()):
            field = next(field for field, is_missing in needs.items() if is_missing)
            raise UserError(f"{path}: the contrast {one.name!r} needs `{field}`, which is not given; add it")
    return study
