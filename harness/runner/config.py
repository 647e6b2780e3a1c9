"""Validated models of presets and methods, as declared in ``config/``."""

from __future__ import annotations

import logging
import math
import os
import sys
from collections.abc import Mapping
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal

from annotated_types import MaxLen
from pydantic import Field, NonNegativeInt, PositiveInt, Strict

from harness.agents import roles
from harness.benchmarks import catalogue
from harness.errors import UserError, check_names, printable
from harness.files import ROOT, Declaration, Distinct, Many, Share, check, check_entries, read_yaml
from harness.fingerprint import source_of
from harness.llm.backbones import load as load_backbones
from harness.llm.client import Budget

logger = logging.getLogger(__name__)
_SAID = "GMR_EXTRA_SAID"  # environment variable: the file whose code a run has said it runs

FOLDER = ROOT / "config"
LICENCES = FOLDER / "licences.yaml"
Key = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")]
_OWN = {"title", "sweep", "swept"}  # fields of an entry that no other inherits


class Limit(Declaration):
    """Limits on questions of each split and on epochs. None means no limit."""

    train: PositiveInt | Mapping[str, PositiveInt] | None = None
    test: PositiveInt | Mapping[str, PositiveInt] | None = None
    epochs: NonNegativeInt | None = None  # 0 leaves a router as initialised
    share: Annotated[float, Field(gt=0, le=1)] | None = None

    def of(self, benchmark: str) -> Limit:
        def bound(given: Any) -> Any:
            return given.get(benchmark, given.get("default")) if isinstance(given, Mapping) else given

        return self.model_copy(update={"train": bound(self.train), "test": bound(self.test)})

    def used_questions(self, size: int, bound: Any) -> int:
        """Number of questions used of a split: its ``share``, rounded up, and at most ``bound``."""
        # The decimal as written, not the nearest float: 0.1 of 30 is 3.
        used = size if self.share is None else math.ceil(size * Fraction(str(self.share)))
        return used if bound is None else min(used, bound)


class Keys(Declaration):
    """Keys of a preset, in ``config/presets`` and ``--set``. docs/runs.md explains them."""

    description: str
    data: Literal["embedded", "real"]  # mini-benchmarks in this repository, or the real benchmarks
    # ``all``: no training questions; ``resampled``: each seed draws others of those that recordings answered
    splits: Literal["published", "official", "all", "resampled"]
    benchmarks: Distinct[str]
    methods: Distinct[str]
    backbones: Distinct[str]  # keys of ``config/backbones.yaml`` or ``pool``
    endpoints: (  # who answers calls; the second form: only calls that are in no recording go to servers
        Literal["simulated", "served", "recorded"]
        | Annotated[tuple[Literal["recorded"], Literal["served"]], Strict(False)]
    )
    recordings: Distinct[str] | None = None
    seeds: Distinct[NonNegativeInt]  # training seeds
    large: Distinct[str] | None = None  # backbones of methods with ``rows: large``; default: all
    pool: Mapping[str, Any] = {}  # in the file of a preset also a name in ``config/pools``
    servers: Mapping[str, Any] = {}  # addresses of backbones, entries as in ``config/endpoints.yaml``
    weights: str | None = None  # quantised or other weights, a key of ``config/weights.yaml``
    length_scale: Annotated[float, Field(gt=0, le=4)] = 1.0  # factor on the length of simulated replies
    limit: Limit = Limit()
    answer_training: bool = False
    noise_floor: Many[str] = ()
    margin: Annotated[float, Field(ge=0.5, lt=100)] | None = None
    reference: str | None = None
    decoding: Literal["released", "greedy"] = "released"
    max_error_share: Share = 0.05  # maximum share of failed attempts
    in_flight: PositiveInt | None = None
    extra: str | None = None
    budget: Budget | None = None
    artefacts: Distinct[str] | None = None  # keys of ``config/artefacts.yaml``; default: all non-optional artefacts


class MethodEntry(Declaration):
    """Entry of ``config/methods.yaml``. It inherits fields, and keys of ``config``, from the entry it ``extends``.

    docs/adding.md explains the fields.
    """

    key: Key  # in configuration, results and tables
    module: str  # has ``Config`` and ``build``
    title: str
    rows: Literal["each", "large", "pool"]
    benchmarks: Distinct[str] | None = None  # benchmarks that the method can answer; default: all
    trained: bool = False  # trained once per seed of the preset
    multi_agent: bool | None = None  # shown as "M" in the main table
    routing: bool | None = None  # shown as "R"
    compared_cost: Literal["total", "steps"] = "total"
    seed_offset: NonNegativeInt = 0
    further_backbones: Many[str] = ()  # backbones that are callable in addition to the row's
    matches: str | None = None
    decoding: Literal["greedy"] | None = None  # overrides the decoding of the preset
    config: Mapping[str, Any] = {}  # fields of the module's ``Config``
    sweep: Annotated[Mapping[str, Distinct[bool | int | float | Key]], MaxLen(1)] = {}
    swept: tuple[str, bool | int | float | str] | None = None  # of a variant: key of the swept entry, and the value

    @property
    def variants(self) -> list[MethodEntry]:
        """Entries of the sweep, with key and title made from the value."""

        def variant(name: str, value: Any) -> MethodEntry:
            names = {"key": f"{self.key}_{name}_{value}", "title": f"{self.title}, {name} = {value}", "sweep": {}}
            config = {**self.config, name: value}
            return self.model_copy(update={**names, "config": config, "swept": (self.key, value)})

        return [variant(name, value) for name, values in self.sweep.items() for value in values]


@cache
def methods(extra: str | None = None) -> Mapping[str, MethodEntry]:
    """Load all methods by key: the paper's methods, further methods, then methods of a preset's ``extra`` file.

    Modules of an ``extra`` file are imported from its folder. Its keys ``benchmarks`` and ``roles`` declare
    further benchmarks and roles.

    Raises:
        UserError: if a file is invalid, or names something that does not exist.
    """
    if extra is None:
        known: dict[str, MethodEntry] = {}
        for file in ("methods.yaml", "methods_beyond.yaml"):
            known |= _new_methods(read_yaml(FOLDER / file), FOLDER / file, known)
        return known
    path = Path(extra)
    document = check(read_yaml(path), dict[str, Any], path)
    if "methods" in document:
        raise UserError(f"{path}: `methods` is no key; put each method at the top level of the file")
    if os.environ.get(_SAID) != str(path.resolve()):
        logger.warning("runs code from the folder of %s: its methods and benchmarks", printable(path))
        os.environ[_SAID] = str(path.resolve())  # The jobs of this run inherit it.
    if (folder := str(path.resolve().parent)) not in sys.path:
        sys.path.append(folder)  # Last, so that its files hide no other module.
    for key, declare in (("benchmarks", catalogue.declare), ("roles", roles.declare)):
        if (entries := document.pop(key, None)) is not None:
            declare(entries, path)
    return {**methods(), **(_new_methods(document, path, methods()) if document else {})}


def _new_methods(document: Any, path: Path, known: Mapping[str, MethodEntry]) -> dict[str, MethodEntry]:
    raw = check(document, dict[str, dict[str, Any]], path)
    entries = check_entries(_extended(raw, known, path), MethodEntry, path)
    new = {each.key: each for entry in entries.values() for each in (entry, *entry.variants)}
    if clashes := known.keys() & new:
        raise UserError(f"{path}: {min(clashes)} is in config/methods.yaml already; rename it")
    backbones = load_backbones(FOLDER / "backbones.yaml")
    for key, entry in new.items():
        check_names("backbone", entry.further_backbones, backbones, f"config/backbones.yaml; named by {key}")
        check_names("benchmark", entry.benchmarks or (), catalogue.keys(), f"config/benchmarks.yaml; named by {key}")
        if source_of(entry.module) is None:
            raise UserError(f"{path}: module {entry.module!r} of {key} was not found; correct the name")
        if entry.matches is not None:
            check_names("method", [entry.matches], {**known, **new}, f"{path}; matched by {key}")
            if {**known, **new}[entry.matches].matches is not None:
                raise UserError(f"{path}: {key} matches {entry.matches}, which matches another method; name that")
    return new


def _extended(raw: Mapping[str, dict[str, Any]], shared: Mapping[str, MethodEntry], path: Path) -> dict[str, Any]:
    """Resolve ``extends``: an entry inherits all fields except title and sweep."""
    whole = {key: entry.model_dump(exclude={"key", *_OWN}, exclude_unset=True) for key, entry in shared.items()}
    for key, entry in sorted(raw.items(), key=lambda pair: "extends" in pair[1]):
        base: dict[str, Any] = {}
        if "extends" in entry:
            check_names("base method", [str(entry["extends"])], whole, f"{path}; `extends` must come after its base")
            base = {name: value for name, value in whole[entry["extends"]].items() if name not in _OWN}
        own = check(entry.get("config", {}), dict[str, Any], f"{path}: {key}.config")
        inherited = {**base, **entry, "config": {**base.get("config", {}), **own}}
        whole[key] = {name: value for name, value in inherited.items() if name != "extends"}
    return {key: whole[key] for key in raw}


def withheld_benchmarks() -> set[str]:
    """Return the benchmarks whose questions are not redistributable."""
    questions = read_yaml(LICENCES)["questions"]
    return {key for key, terms in questions.items() if not terms.get("redistributable", True)}


def preset_names() -> list[str]:
    return sorted(path.stem for path in (FOLDER / "presets").glob("*.yaml"))
