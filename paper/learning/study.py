"""What the study of learning compares, as declared in ``config/studies/learning.yaml``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness import config
from harness.errors import UserError, unknown
from harness.files import ROOT
from harness.yaml_files import parse
from paper.learning.measures import MEASURES
from paper.schema import check

PATH = ROOT / "config" / "studies" / "learning.yaml"
BEST_SINGLE = "best_single"
RANDOM = "random_same_depth"


@dataclass(frozen=True, slots=True)
class Contrast:
    """One question of the study: method ``a`` minus ``b``, by each of some measures on each of some benchmarks.

    Attributes:
        asks: The question, as one sentence.
        b: Key of a method, :data:`BEST_SINGLE` or :data:`RANDOM`.
    """

    name: str
    asks: str
    a: str
    b: str
    measures: tuple[str, ...]
    benchmarks: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Study:
    """The whole declaration.

    Attributes:
        methods: Keys of the methods there are, in the order in which a report lists them.
        cost_weight: λ_c of the utility in every row, so that rows can be compared.
        collapsed_entropy: In nats; below it the choice of a backbone counts as settled.
        single: The method whose cells are the single backbones.
        trained: The router whose shares of backbones are shown after training.
        untrained: The same router before.
        random: Routers that choose uniformly, each with a fixed depth.
    """

    methods: tuple[str, ...]
    cost_weight: float
    collapsed_entropy: float
    single: str
    trained: str
    untrained: str
    random: tuple[str, ...]
    contrasts: tuple[Contrast, ...]


def load(path: Path = PATH) -> Study:
    """Read the declaration.

    Raises:
        UserError: It breaks its schema, names a method or a measure that does not exist, or a contrast twice.
    """
    document = parse(path)
    check(document, "learning", path)
    contrasts = tuple(_contrast(entry) for entry in document.pop("contrasts"))
    fields = {**document, "random": tuple(document["random"])}
    study = Study(methods=tuple(config.methods()), contrasts=contrasts, **fields)
    _check_names(study, path)
    return study


def _contrast(entry: Mapping[str, Any]) -> Contrast:
    lists = {key: tuple(entry[key]) for key in ("measures", "benchmarks")}
    return Contrast(**{**entry, **lists})


def _check_names(study: Study, path: Path) -> None:
    own = [study.single, study.trained, study.untrained, *study.random]
    for method in [*own, *(one.a for one in study.contrasts)]:
        if method not in study.methods:
            raise unknown("method", method, study.methods, f"config/methods.yaml; named in {path}")
    for one in study.contrasts:
        if one.b not in (*study.methods, BEST_SINGLE, RANDOM):
            raise unknown("method", one.b, (*study.methods, BEST_SINGLE, RANDOM), f"config/methods.yaml or {path}")
        for measure in one.measures:
            if measure not in MEASURES:
                raise unknown("measure", measure, MEASURES, f"paper/learning/measures.py; named in {path}")
    twice = [name for name, times in Counter(one.name for one in study.contrasts).items() if times > 1]
    if twice:
        raise UserError(f"{path}: the contrast {twice[0]!r} stands there twice; give each a name of its own")
