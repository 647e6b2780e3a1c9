"""Presets, methods and the cells they make, read from ``config/`` and validated before anything runs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Annotated, Any, Literal

from pydantic import Field, NonNegativeInt, PositiveInt

from harness.benchmarks import catalogue
from harness.errors import UserError, unknown
from harness.files import (
    ROOT,
    Declaration,
    Distinct,
    Many,
    Share,
    check,
    check_entries,
    read_yaml,
)
from harness.fingerprint import source_of
from harness.llm import backbones as backbone_files
from harness.llm import endpoints
from harness.llm.backbones import Backbone
from harness.llm.budget import Budget
from harness.llm.endpoints import Endpoint

POOL = "pool"
FOLDER = ROOT / "config"


class Limit(Declaration):
    """The number of questions used of each split, and of training epochs; ``None`` for all."""

    train: PositiveInt | None = None  # most training questions
    test: PositiveInt | None = None  # most test questions
    # Most passes of a learning method over the training questions; 0 leaves it as initialised.
    epochs: NonNegativeInt | None = None
    # Share of the questions of each split, so that every benchmark is cut in proportion; rounded up.
    share: Annotated[float, Field(gt=0, le=1)] | None = None

    def count(self, questions: int, most: int | None) -> int:
        """The number of questions used of a split that has so many, with this limit of its own."""
        # Of the decimal that was written, not of the float nearest to it: a tenth of 30 is 3.
        part = questions if self.share is None else math.ceil(questions * Fraction(str(self.share)))
        return part if most is None else min(part, most)


class Keys(Declaration):
    """The keys of a preset, as a file of ``config/presets`` and ``--set`` have them."""

    description: str
    data: Literal["embedded", "real"]  # the ``embedded`` mini-benchmarks, or the ``real`` ones
    splits: Literal["published", "official"]  # as the paper ``published`` them, or the ``official`` ones
    benchmarks: Distinct[str]
    methods: Distinct[str]
    backbones: Distinct[str]  # of ``config/backbones.yaml`` or of ``pool``
    # ``simulated``, or ``served`` by what ``config/endpoints.yaml`` or ``servers`` names.
    endpoints: Literal["simulated", "served"]
    seeds: Distinct[NonNegativeInt]
    large: Distinct[str] | None = None  # backbones of the methods whose rows are ``large``; without it, all
    pool: Mapping[str, Any] = {}  # backbones of this preset's own, entries as in ``config/backbones.yaml``
    servers: Mapping[str, Any] = {}  # where backbones are served, entries as in ``config/endpoints.yaml``
    weights: str | None = None  # other weights than the original, declared in ``config/weights.yaml``
    length_scale: Annotated[float, Field(gt=0, le=4)] = 1.0  # factor on the length of simulated replies
    limit: Limit = Limit()
    # Whether logs of finished cells may answer other cells where ``config/methods.yaml`` declares it.
    share_logs: bool = True
    # Sampling as each method's ``released`` code has it, or ``greedy``: temperature 0 for every call.
    decoding: Literal["released", "greedy"] = "released"
    max_error_share: Share = 0.05  # share of failed attempts above which a cell stops
    # Questions a cell works on at the same time; without it, as many as keep all its servers full.
    in_flight: PositiveInt | None = None
    # Whether backbones answer from the call log of each cell alone, and no server is asked.
    recorded: bool = False
    budget: Budget | None = None
    artefacts: Distinct[str] | None = None  # of a whole run, keys of ``config/artefacts.yaml``; else the usual ones


class Preset(Keys):
    """One run: data, methods, backbones, seeds, budgets."""

    name: str  # of the file

    @property
    def simulated(self) -> bool:
        """Whether the backbones are simulated in process."""
        return self.endpoints == "simulated"

    @property
    def greedy(self) -> bool:
        """Whether every call is sent temperature 0, also where a method's released code sends another."""
        return self.decoding == "greedy"


class MethodEntry(Declaration):
    """One entry of ``config/methods.yaml``; one that ``extends`` another has its fields, and of ``config`` its keys."""

    key: str
    module: str  # where ``Config`` and ``build`` stand
    title: str
    # The rows of a table: one for ``each`` backbone of the preset, for each of its ``large`` ones, or the ``pool``.
    rows: Literal["each", "large", "pool"]
    trained: bool = False  # learns from the training split, so every seed of the preset is run
    # The simulated backbones are fitted to this method's published accuracies, so a simulated cell is not evidence.
    calibrated: bool = False
    # Which calls the cost that tables compare is of: ``total`` for all, ``steps`` without the final one (D-REPORT-2).
    compared_cost: Literal["total", "steps"] = "total"
    # Added to the seeds of a preset, so that two entries of one configuration are two trainings.
    seed_offset: NonNegativeInt = 0
    # Methods whose call logs answer this one's calls (same benchmark, row and seed) where ``share_logs`` is on.
    answers_from: Many[str] = ()
    also_asks: Many[str] = ()  # backbones the method may ask besides that of its row
    config: Mapping[str, Any] = {}  # its settings, of which the module's ``Config`` knows more


class _Stated(Declaration, extra="allow"):
    extends: str = ""
    config: Mapping[str, Any] = {}


@dataclass(frozen=True, slots=True, order=True)
class Cell:
    """One job: a method on a benchmark with one backbone (or the pool) and one seed."""

    method: str
    benchmark: str
    backbone: str
    seed: int

    def __str__(self) -> str:
        return f"{self.method} {self.benchmark} {self.backbone} seed {self.seed}"


@cache
def methods() -> Mapping[str, MethodEntry]:
    """Every method, by key; raises UserError for a slip, or for a method, backbone or module that does not exist."""
    path = FOLDER / "methods.yaml"
    entries = check_entries(_extended(check(read_yaml(path), dict[str, _Stated], path)), MethodEntry, path)
    for key, entry in entries.items():
        _check_names("method", entry.answers_from, entries, f"config/methods.yaml; named by {key}")
        shared = backbone_files.load(FOLDER / "backbones.yaml")
        _check_names("backbone", entry.also_asks, shared, f"config/backbones.yaml; named by {key}")
        if source_of(entry.module) is None:
            raise UserError(f"config/methods.yaml names the module {entry.module!r}, which cannot be found")
    return entries


def _extended(stated: Mapping[str, _Stated]) -> dict[str, Any]:
    """The entries with what they take over from the one they extend, all but the title."""
    whole: dict[str, Any] = {}
    for key, entry in sorted(stated.items(), key=lambda one: "extends" in one[1].model_fields_set):
        base: dict[str, Any] = {}
        if "extends" in entry.model_fields_set:
            where = "config/methods.yaml; one that extends another has to stand above"
            _check_names("base method", [entry.extends], whole, where)
            base = {name: value for name, value in whole[entry.extends].items() if name != "title"}
        whole[key] = {**base, **(entry.model_extra or {}), "config": {**base.get("config", {}), **entry.config}}
    return {key: whole[key] for key in stated}


def backbones(chosen: Preset) -> Mapping[str, Backbone]:
    """Return the backbones a preset may name, by key: the project's, then its own, those that have its ``weights``."""
    own = check_entries(chosen.pool, Backbone, _of(chosen, "pool")) if chosen.pool else {}
    declared = {**backbone_files.load(FOLDER / "backbones.yaml"), **own}
    if chosen.weights is None:
        return declared
    return backbone_files.with_weights(declared, FOLDER / "weights.yaml", chosen.weights)


def servers(chosen: Preset, keys: Iterable[str]) -> dict[str, Endpoint]:
    """Return where backbones are served: by GMR_ENDPOINTS, else the preset, else ``config/endpoints.yaml``.

    Raises UserError where a backbone has no endpoint, a wrong one, or shares a server on other terms.
    """
    if chosen.servers and not endpoints.is_named():
        where = _of(chosen, "servers")
        return endpoints.choose(check(chosen.servers, dict[str, Endpoint], where), keys, where)
    return endpoints.load(endpoints.declared_in(), keys, endpoints.endpoints_file())


def _of(chosen: Preset, key: str) -> str:
    return f"{key} of preset {chosen.name}"


def preset_names() -> list[str]:
    """The presets there are."""
    return sorted(path.stem for path in (FOLDER / "presets").glob("*.yaml"))


def check_presets(names: Iterable[str]) -> None:
    """Refuse the name of a preset that does not exist, with a UserError that names the nearest that does."""
    _check_names("preset", [name.partition("@")[0] for name in names], preset_names(), "config/presets/")


def preset(name: str, overrides: Mapping[str, Any] | None = None) -> Preset:
    """Read a preset, apply overrides, and check every name it uses (UserError)."""
    check_presets([name])
    path = FOLDER / "presets" / f"{name}.yaml"
    changed = overrides or {}
    where = f"{path}{' with ' + ', '.join(map(str, changed)) + ' overridden' if changed else ''}"
    keys: Keys = check({**check(read_yaml(path), dict[str, Any], path), **changed}, Keys, where)
    found = Preset(name=name, **dict(keys))
    _check_weights(found, path.name)
    _check_pool(found, path.name)
    for kind, choices in (("benchmark", catalogue.keys()), ("method", methods()), ("backbone", backbones(found))):
        named = "given for this run" if f"{kind}s" in changed else f"named in config/presets/{path.name}"
        _check_names(kind, getattr(keys, f"{kind}s"), choices, f"config/{kind}s.yaml; {named}")
    _check_names("large backbone", keys.large or (), backbones(found), f"the backbones of {path.name}")
    return found


def settings(chosen: Preset) -> dict[str, Any]:
    """Every key of a preset with its value, as :func:`preset` takes overrides."""
    return chosen.model_dump(mode="json", include=set(Keys.model_fields))


def _check_weights(chosen: Preset, name: str) -> None:
    if chosen.weights is None:
        return
    if chosen.endpoints == "simulated":
        raise UserError(f"{name} has weights {chosen.weights!r}, but simulated backbones have none; leave out one")
    declared = backbones(chosen)
    for backbone in chosen.backbones:
        if backbone not in declared:
            raise UserError(
                f"{backbone} has no weights {chosen.weights!r}; add them to config/weights.yaml, leave the backbone "
                "out of the preset, or choose other weights"
            )


def _check_pool(chosen: Preset, name: str) -> None:
    if not chosen.pool:
        return
    if chosen.endpoints == "simulated":
        raise UserError(f"{name} has a pool of its own, but only backbones of config/backbones.yaml can be simulated")
    if taken := set(chosen.pool) & set(backbone_files.load(FOLDER / "backbones.yaml")):
        raise UserError(f"{name}: {min(taken)} is in config/backbones.yaml already; leave it out of pool, or rename it")
    found = backbones(chosen)
    asked = [found[key] for key in chosen.backbones if key in found]
    priced = {one.key for one in asked if one.price is not None}
    if priced and (unpriced := {one.key for one in asked} - priced):
        raise UserError(
            f"{name}: {min(priced)} has a price and {min(unpriced)} has none; costs of a run are in one unit, so state "
            "the price of all its backbones, or of none"
        )
    names = [one.model for one in asked]
    if twice := [model for model in names if names.count(model) > 1]:
        raise UserError(f"{name}: two backbones are {twice[0]!r}; calls are told apart by `model`")


def cells(chosen: Preset) -> list[Cell]:
    """Every cell of a preset, in the order of methods, rows, benchmarks, seeds."""
    entries = methods()
    return [
        Cell(method, benchmark, row, seed)
        for method in chosen.methods
        for row in rows(chosen, entries[method])
        for benchmark in chosen.benchmarks
        for seed in _seeds(chosen, entries[method])
    ]


def rows(chosen: Preset, entry: MethodEntry) -> list[str]:
    """Return the rows of a method in a preset: keys of backbones, or the pool."""
    if entry.rows == "pool":
        return [POOL]
    large = chosen.backbones if entry.rows == "each" or chosen.large is None else chosen.large
    return [key for key in chosen.backbones if key in large]


def _seeds(chosen: Preset, entry: MethodEntry) -> tuple[int, ...]:
    return chosen.seeds if entry.trained else chosen.seeds[:1]


def check_benchmark(chosen: Preset, benchmark: str) -> None:
    """Refuse a benchmark that the preset does not have, with a UserError that names the nearest."""
    _check_names("benchmark", [benchmark], chosen.benchmarks, f"preset {chosen.name}")


def check_cell(chosen: Preset, cell: Cell) -> None:
    """Refuse a cell whose benchmark or backbone the preset does not have (UserError); any method may be run."""
    entries = methods()
    _check_names("method", [cell.method], entries, "config/methods.yaml")
    check_benchmark(chosen, cell.benchmark)
    entry = entries[cell.method]
    if cell.backbone not in (*backbones(chosen), POOL):
        raise unknown("backbone", cell.backbone, rows(chosen, entry), "config/backbones.yaml")
    if cell.backbone not in rows(chosen, entry):
        raise UserError(
            f"{cell.method} has no row for {cell.backbone} in preset {chosen.name}, only for "
            f"{', '.join(rows(chosen, entry)) or 'none'}; add it to the preset's backbones"
            f"{', and to those that it calls large' if entry.rows == 'large' else ''}"
        )


def backbones_of(chosen: Preset, cell: Cell) -> tuple[str, ...]:
    """The backbones a cell may ask."""
    asked = chosen.backbones if cell.backbone == POOL else (cell.backbone,)
    return tuple(dict.fromkeys((*asked, *methods()[cell.method].also_asks)))


def sharing(chosen: Preset, cell: Cell) -> list[Cell]:
    """The finished cells whose logs may answer this one, where preset and method allow it."""
    if not chosen.share_logs:
        return []
    entries = methods()
    return sorted(
        Cell(other, cell.benchmark, cell.backbone, cell.seed)
        for other in set(entries[cell.method].answers_from) & set(chosen.methods)
        if cell.benchmark in chosen.benchmarks
        and cell.backbone in rows(chosen, entries[other])
        and cell.seed in _seeds(chosen, entries[other])
    )


def _check_names(kind: str, names: Iterable[str], known: Iterable[str], where: str) -> None:
    choices = list(known)
    for name in names:
        if name not in choices:
            raise unknown(kind, name, choices, where)
