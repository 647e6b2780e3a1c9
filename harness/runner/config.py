"""What the files of ``config/`` state of presets and methods."""

from __future__ import annotations

import logging
import math
import sys
from collections.abc import Mapping
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, NonNegativeInt, PositiveInt, Strict

from harness import earlier
from harness.benchmarks import catalogue
from harness.errors import UserError, check_names, printable
from harness.files import ROOT, Declaration, Distinct, Many, Share, check, check_entries, read_yaml
from harness.fingerprint import source_of
from harness.llm.backbones import load as load_backbones
from harness.llm.budget import Budget

logger = logging.getLogger(__name__)

FOLDER = ROOT / "config"


class Limit(Declaration):
    """Limits on the questions of each split and on training epochs; ``None`` for all."""

    # Most training questions and most test questions, of every benchmark or by benchmark with a ``default`` for others.
    train: PositiveInt | Mapping[str, PositiveInt] | None = None
    test: PositiveInt | Mapping[str, PositiveInt] | None = None
    # Most passes of a learning method over the training questions; 0 leaves it as initialised.
    epochs: NonNegativeInt | None = None
    # Share of the questions of each split, so that every benchmark is cut in proportion; rounded up.
    share: Annotated[float, Field(gt=0, le=1)] | None = None

    def of(self, benchmark: str) -> Limit:
        """Return the limits of one benchmark, as numbers."""
        bounds = {"train": self.train, "test": self.test}
        return self.model_copy(
            update={
                split: bound.get(benchmark, bound.get("default")) if isinstance(bound, Mapping) else bound
                for split, bound in bounds.items()
            }
        )

    def used_questions(self, size: int, bound: Any) -> int:
        """Return how many of a split's ``size`` questions are used: its ``share``, and then at most ``bound``."""
        # By the decimal as written, not by the nearest float: a tenth of 30 is 3.
        used = size if self.share is None else math.ceil(size * Fraction(str(self.share)))
        return used if bound is None else min(used, bound)


class Keys(Declaration):
    """Keys of a preset, in a file of ``config/presets`` and in ``--set``."""

    description: str
    data: Literal["embedded", "real"]  # mini-benchmarks in this repository, or the real benchmarks
    # Those of the paper, of the benchmark, or ``all`` of its test questions and none to train on.
    splits: Literal["published", "official", "all"]
    benchmarks: Distinct[str]
    methods: Distinct[str]
    backbones: Distinct[str]  # of ``config/backbones.yaml`` or of ``pool``
    # ``simulated``, ``served`` at the addresses in ``config/endpoints.yaml`` or ``servers``, or ``recorded``; with
    # ``[recorded, served]`` servers are asked what no recording holds.
    endpoints: (
        Literal["simulated", "served", "recorded"]
        | Annotated[tuple[Literal["recorded"], Literal["served"]], Strict(False)]
    )
    # Bundles or folders of results that answer calls; what decides calls is theirs unless the preset states it.
    recordings: Distinct[str] | None = None
    seeds: Distinct[NonNegativeInt]  # of training
    large: Distinct[str] | None = None  # backbones of the methods whose rows are ``large``; without it, all
    pool: Mapping[str, Any] = {}  # further backbones, entries as in ``config/backbones.yaml``
    servers: Mapping[str, Any] = {}  # addresses of backbones, entries as in ``config/endpoints.yaml``
    weights: str | None = None  # other weights than the original, declared in ``config/weights.yaml``
    length_scale: Annotated[float, Field(gt=0, le=4)] = 1.0  # factor on the length of simulated replies
    limit: Limit = Limit()
    # Methods that learn nothing also answer the training questions, which later routers learn from.
    answer_training: bool = False
    # Benchmarks whose ``single`` rows are asked a second time, as seed 1: how far a method differs from itself.
    noise_floor: Many[str] = ()
    # Points of accuracy below which a loss counts as none: "cheaper, and not worse by more than this".
    margin: Annotated[float, Field(gt=0, lt=100)] | None = None
    # Method that tables compare with all others; else the last of one's own, GMR, or the dearest single backbone.
    reference: str | None = None
    # Sampling as each method's ``released`` code has it, or ``greedy``: temperature 0, but for samples of one prompt.
    decoding: Literal["released", "greedy"] = "released"
    max_error_share: Share = 0.05  # share of failed attempts above which a cell stops
    # Questions in flight; without it, as many as keep all servers full.
    in_flight: PositiveInt | None = None
    epoch_checkpoints: bool = False  # keep the router of every epoch of a training
    # File of further methods, entries as in ``config/methods.yaml``; its modules lie beside it.
    extra: str | None = None
    budget: Budget | None = None
    artefacts: Distinct[str] | None = None  # of a whole run, keys of ``config/artefacts.yaml``; else the usual ones


class MethodEntry(Declaration):
    """Entry of ``config/methods.yaml``, which inherits fields, and keys of ``config``, from the one it ``extends``."""

    key: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")]  # in configuration, results and tables
    module: str  # with ``Config`` and ``build``
    title: str
    # Rows of a table: ``each`` backbone of the preset, each of its ``large`` ones, or the ``pool``.
    rows: Literal["each", "large", "pool"]
    trained: bool = False  # learns from the training split, with every seed of the preset
    multi_agent: bool | None = None  # several agents; shown as "M" in the main table
    routing: bool | None = None  # routes over the pool of models; shown as "R"
    # Cost compared in tables: ``total`` of all calls, or ``steps`` without the final one (D-REPORT-2).
    compared_cost: Literal["total", "steps"] = "total"
    # Added to the seeds of a preset, for a second training of the same configuration.
    seed_offset: NonNegativeInt = 0
    further_backbones: Many[str] = ()  # callable besides those of the row
    # Method whose finished cell (same benchmark and seed) tells this one the cost and the depth that it has to meet.
    matches: str | None = None
    decoding: Literal["greedy"] | None = None  # temperature 0 for every call, also where the preset has ``released``
    config: Mapping[str, Any] = {}  # fields of the module's ``Config``


class _Stated(Declaration, extra="allow"):
    extends: str = ""
    config: Mapping[str, Any] = {}


@cache
def methods(extra: str | None = None) -> Mapping[str, MethodEntry]:
    """Return all methods by key: the paper's, those beyond it, then those of a preset's ``extra`` file.

    The modules of the ``extra`` file are in its folder. Its key ``benchmarks`` declares further benchmarks. Raises
    UserError if a file is not valid, or names what does not exist.
    """
    if extra is None:
        known: dict[str, MethodEntry] = {}
        for file in ("methods.yaml", "methods_beyond.yaml"):
            known |= _new_methods(read_yaml(FOLDER / file), FOLDER / file, f"config/{file}", known)
        return known
    path = Path(extra)
    document = check(read_yaml(path), dict[str, Any], path)
    further_benchmarks = document.pop("benchmarks", None)
    logger.info("code beside %s is run: its methods and benchmarks", printable(path))
    if (folder := str(path.resolve().parent)) not in sys.path:
        sys.path.append(folder)  # Last, so that its files hide no other module.
    if further_benchmarks is not None:
        catalogue.declare(further_benchmarks, path)
    return {**methods(), **(_new_methods(document, path, extra, methods()) if document else {})}


def _new_methods(document: Any, path: Path, name: str, known: Mapping[str, MethodEntry]) -> dict[str, MethodEntry]:
    """Return the methods that a document adds to the known ones, which they may extend."""
    stated = check(document, dict[str, _Stated], path)
    if clashes := known.keys() & stated:
        raise UserError(f"{name}: {min(clashes)} is in config/methods.yaml already; rename it")
    new = check_entries(_extended(stated, known, name), MethodEntry, path)
    for key, entry in new.items():
        backbones = load_backbones(FOLDER / "backbones.yaml")
        check_names("backbone", entry.further_backbones, backbones, f"config/backbones.yaml; named by {key}")
        if source_of(entry.module) is None:
            raise UserError(f"{name} names the module {entry.module!r}, which cannot be found")
        if entry.matches is not None:
            check_names("method", [entry.matches], {**known, **new}, f"{name}; matched by {key}")
            if {**known, **new}[entry.matches].matches is not None:
                raise UserError(f"{name}: {key} matches {entry.matches}, which matches another; name that")
    return new


def _extended(stated: Mapping[str, _Stated], shared: Mapping[str, MethodEntry], name: str) -> dict[str, Any]:
    """Return entries with all fields, except the title, inherited from the one they extend."""
    whole = {key: entry.model_dump(exclude={"key"}, exclude_unset=True) for key, entry in shared.items()}
    for key, entry in sorted(stated.items(), key=lambda pair: "extends" in pair[1].model_fields_set):
        base: dict[str, Any] = {}
        if "extends" in entry.model_fields_set:
            where, extends = f"{name}; one that extends another has to stand above", entry.extends
            extends = extends if extends in whole else earlier.RENAMED["method"].get(extends, extends)
            check_names("base method", [extends], whole, where)
            base = {name: value for name, value in whole[extends].items() if name != "title"}
        fields = {**base, **(entry.model_extra or {})}
        renamed = earlier.SETTINGS.get(fields.get("module", ""), {})
        settings = {renamed.get(name, name): value for name, value in entry.config.items()}
        whole[key] = {**fields, "config": {**base.get("config", {}), **settings}}
    return {key: whole[key] for key in stated}


def preset_names() -> list[str]:
    """Return the names of all presets."""
    return sorted(path.stem for path in (FOLDER / "presets").glob("*.yaml"))
