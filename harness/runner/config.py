"""Presets, methods and their cells, read from ``config/`` and validated before anything runs."""

from __future__ import annotations

import logging
import math
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, NonNegativeInt, PositiveInt, Strict

from harness import earlier
from harness.benchmarks import catalogue
from harness.errors import UserError, check_names, printable, unknown
from harness.files import ROOT, Declaration, Distinct, Many, Share, check, check_entries, read_yaml
from harness.fingerprint import source_of
from harness.llm import backbones as backbone_files
from harness.llm import endpoints, recordings
from harness.llm.backbones import Backbone
from harness.llm.budget import Budget
from harness.llm.endpoints import Endpoint
from harness.llm.recordings import Recording

logger = logging.getLogger(__name__)

POOL = "pool"
SINGLE = "single"  # the method that asks a backbone once
FOLDER = ROOT / "config"
# What decides the key of a call, which a preset takes from its recordings unless it states it.
_DECIDES_CALLS = ("data", "splits", "weights", "length_scale", "limit", "decoding")


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


PresetName = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")]


class Preset(Keys):
    """Settings of a run: data, methods, backbones, seeds, budgets."""

    name: PresetName  # of the file
    simulated: bool  # the backbones, also where their replies are recorded

    @property
    def recorded(self) -> tuple[Recording, ...]:
        """Return the recordings that answer calls."""
        return tuple(recordings.opened(recordings.located(path)) for path in self.recordings or ())

    @property
    def served(self) -> bool:
        """Return whether servers are asked."""
        return "served" in self.endpoints


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


@dataclass(frozen=True, slots=True, order=True)
class Cell:
    """Job: a method on a benchmark with one backbone (or the pool) and one seed."""

    method: str
    benchmark: str
    backbone: str
    seed: int

    def __str__(self) -> str:
        return f"{self.method} {self.benchmark} {self.backbone} seed {self.seed}"


@cache
def methods(extra: str | None = None) -> Mapping[str, MethodEntry]:
    """Return all methods by key: the project's, then those of a preset's ``extra`` file, whose modules lie beside it.

    Under the key ``benchmarks``, such a file declares further benchmarks, too. Raises UserError if a file is not valid,
    or names what does not exist.
    """
    shared = {} if extra is None else methods()
    path, name = (FOLDER / "methods.yaml", "config/methods.yaml") if extra is None else (Path(extra), extra)
    document = check(read_yaml(path), dict[str, Any], path)
    further_benchmarks = document.pop("benchmarks", None) if extra is not None else None
    stated = check(document, dict[str, _Stated], path)
    if clashes := shared.keys() & stated:
        raise UserError(f"{name}: {min(clashes)} is in config/methods.yaml already; rename it")
    if extra is not None:
        logger.info("code beside %s is run: its methods and benchmarks", printable(path))
    if extra is not None and (folder := str(path.resolve().parent)) not in sys.path:
        sys.path.append(folder)  # Last, so that its files hide no other module.
    if further_benchmarks is not None:
        catalogue.declare(further_benchmarks, path)
    new = check_entries(_extended(stated, shared, name), MethodEntry, path) if stated or extra is None else {}
    entries = {**shared, **new}
    for key, entry in new.items():
        known = backbone_files.load(FOLDER / "backbones.yaml")
        check_names("backbone", entry.further_backbones, known, f"config/backbones.yaml; named by {key}")
        if source_of(entry.module) is None:
            raise UserError(f"{name} names the module {entry.module!r}, which cannot be found")
        if entry.matches is not None:
            check_names("method", [entry.matches], entries, f"{name}; matched by {key}")
            if entries[entry.matches].matches is not None:
                raise UserError(f"{name}: {key} matches {entry.matches}, which matches another; name that")
    return entries


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


def backbones(preset: Preset) -> Mapping[str, Backbone]:
    """Return the backbones that a preset may name, by key: the project's, then its own, with its ``weights``."""
    pool = check_entries(preset.pool, Backbone, f"pool of preset {preset.name}") if preset.pool else {}
    declared = {**backbone_files.load(FOLDER / "backbones.yaml"), **pool}
    if preset.weights is None:
        return declared
    return backbone_files.with_weights(declared, FOLDER / "weights.yaml", preset.weights)


def servers(preset: Preset, keys: Iterable[str]) -> dict[str, Endpoint]:
    """Return the endpoints of backbones from GMR_ENDPOINTS, else the preset, else ``config/endpoints.yaml``.

    Raises UserError if a backbone has no endpoint or one that is not valid.
    """
    if preset.servers and not endpoints.named_file():
        return endpoints.choose(preset.servers, keys, f"servers of preset {preset.name}")
    path = Path(endpoints.named_file() or FOLDER / "endpoints.yaml")
    return endpoints.choose(read_yaml(path), keys, endpoints.endpoints_file())


def preset_names() -> list[str]:
    """Return the names of all presets."""
    return sorted(path.stem for path in (FOLDER / "presets").glob("*.yaml"))


def preset(name: str, overrides: Mapping[str, Any] | None = None) -> Preset:
    """Read a preset, apply overrides, and check every name it uses (UserError).

    It needs no file where the overrides are all of it, as in a bundle. Names of earlier versions are read in files.
    """
    check(name, PresetName, f"preset {name!r}")
    path = FOLDER / "presets" / f"{name}.yaml"
    changed = overrides or {}
    stated: dict[str, Any] = {}
    if not changed.keys() >= {key for key, field in Keys.model_fields.items() if field.is_required()}:
        check_names("preset", [name], preset_names(), "config/presets/")
        stated = check(read_yaml(path), dict[str, Any], path)
    where = f"{path}{' with ' + ', '.join(map(str, changed)) + ' overridden' if changed else ''}"
    if not changed.keys() <= Keys.model_fields.keys():
        where = "keys given for this run"
    keys: Keys = check(_with_recorded({**stated, **changed}), Keys, where)
    if Path(recordings.METADATA).exists():
        raise UserError(
            f"{Path.cwd()} was unpacked from a bundle, which is data; elsewhere, list the file in `recordings`"
        )
    check(keys.servers, Mapping[str, Endpoint], f"servers of preset {name}")
    checked = Preset(name=name, simulated=keys.endpoints == "simulated", **dict(keys))
    if checked.recorded:
        checked = checked.model_copy(update={"simulated": any(each.simulated for each in checked.recorded)})
    known, typed = methods(checked.extra), changed if stated else {}
    present: dict[str, Any] = {}
    if "methods" not in typed:
        present["methods"] = earlier.present_names("method", checked.methods, known)
    if "artefacts" not in typed:
        present["artefacts"] = earlier.present_names("artefact", checked.artefacts or ()) or None
    checked = checked.model_copy(update=present)
    if "extra" in changed and "methods" not in changed:
        further = [key for key in known if key not in methods()]
        checked = checked.model_copy(update={"methods": tuple(dict.fromkeys([*checked.methods, *further]))})
    _check_backbones(checked, path.name)
    _check_limits(checked, path.name)
    for noun, choices in (("benchmark", catalogue.keys()), ("method", known), ("backbone", backbones(checked))):
        named = "given for this run" if f"{noun}s" in changed else f"named in config/presets/{path.name}"
        check_names(noun, getattr(checked, f"{noun}s"), choices, f"config/{noun}s.yaml; {named}")
    if keys.splits == "all" and (learning := [key for key in checked.methods if known[key].trained]):
        problem = f"{path.name} has splits: all, which leaves {learning[0]} no question to train on"
        raise UserError(problem, "use official, or methods that learn nothing")
    check_names("method", filter(None, [keys.reference]), known, f"config/methods.yaml; reference of {path.name}")
    check_names("large backbone", keys.large or (), backbones(checked), f"the backbones of {path.name}")
    return checked


def _with_recorded(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keys of a preset with what decides calls in its recordings; UserError for a key in which they differ.

    Of the ``pool`` the preset may state some fields of an entry.
    """
    paths = check(document.get("recordings") or (), Many[str], "recordings")
    if bool(paths) != ("recorded" in str(document.get("endpoints"))):
        raise UserError("`endpoints: recorded`, or `[recorded, served]`, and `recordings` need each other; state both")
    found: dict[str, Any] = {"pool": {}, "benchmarks": [], "backbones": []} if paths else {}
    own = document.get("pool") or {}
    for path in paths:
        recorded = recordings.opened(recordings.located(path)).settings
        with recordings.data_of(Path(path)):
            for key in ("benchmarks", "backbones"):
                found[key] = list(dict.fromkeys([*found[key], *recorded[key]]))
            decides = {key: recorded[key] for key in _DECIDES_CALLS if key in recorded and key not in document}
            pool = {name: {**entry, **own.get(name, {})} for name, entry in (recorded.get("pool") or {}).items()}
        for known, given, where in ((found, decides, ""), (found["pool"], pool, "pool.")):
            for key, value in given.items():
                if known.setdefault(key, value) != value:
                    raise UserError(f"{path}: its {where}{key} is not that of the recordings before it; state the key")
    pool = {**own, **found.get("pool", {})}
    return {**found, **document, **({"pool": pool} if pool else {})}


def settings(preset: Preset) -> dict[str, Any]:
    """Return every key of a preset with its value, in the form of overrides."""
    return preset.model_dump(mode="json", include=set(Keys.model_fields))


def _check_limits(preset: Preset, name: str) -> None:
    """Raise a UserError if ``limit`` or ``noise_floor`` does not fit the other keys of the preset in a file."""
    bounds = [bound for bound in (preset.limit.train, preset.limit.test) if isinstance(bound, Mapping)]
    limited = {key for bound in bounds for key in bound} - {"default"}
    for key, named in (("limit", sorted(limited)), ("noise_floor", preset.noise_floor)):
        # A run of fewer benchmarks than the preset states keeps what is said of the others.
        check_names("benchmark", named, catalogue.keys(), f"config/benchmarks.yaml; named by {key} of {name}")
    if preset.noise_floor and preset.simulated:
        raise UserError(f"{name} has noise_floor, but simulated replies repeat; leave it out")
    if preset.noise_floor and SINGLE not in preset.methods:
        raise UserError(f"{name} has noise_floor, which asks {SINGLE} twice; add {SINGLE} to its methods")


def _check_backbones(preset: Preset, name: str) -> None:
    """Raise a UserError if weights or pool do not fit the other keys of the preset in the file ``name``."""
    declared, simulated = backbones(preset), preset.simulated
    if preset.weights is not None:
        if simulated:
            raise UserError(f"{name} has weights {preset.weights!r}, but simulated backbones have none; leave out one")
        if lacking := [key for key in preset.backbones if key not in declared]:
            raise UserError(
                f"{lacking[0]} has no weights {preset.weights!r}; add them to config/weights.yaml, leave the backbone "
                "out of the preset, or choose other weights"
            )
    if not preset.pool:
        return
    if simulated:
        raise UserError(f"{name} has a pool of its own, but only backbones of config/backbones.yaml can be simulated")
    if taken := set(preset.pool) & set(backbone_files.load(FOLDER / "backbones.yaml")):
        raise UserError(f"{name}: {min(taken)} is in config/backbones.yaml already; leave it out of pool, or rename it")
    used = [declared[key] for key in preset.backbones if key in declared]
    priced = {backbone.key for backbone in used if backbone.price is not None}
    if priced and (unpriced := {backbone.key for backbone in used} - priced):
        raise UserError(
            f"{name}: {min(priced)} has a price and {min(unpriced)} has none; costs of a run are in one unit, so state "
            "the price of all its backbones, or of none"
        )
    names = [backbone.model for backbone in used]
    if twice := [model for model in names if names.count(model) > 1]:
        raise UserError(f"{name}: two backbones are {twice[0]!r}; calls are told apart by `model`")


def cells(preset: Preset) -> list[Cell]:
    """Return all cells of a preset, in the order of methods, rows, benchmarks, seeds."""
    entries = methods(preset.extra)
    return [
        Cell(method, benchmark, row, seed)
        for method in preset.methods
        for row in rows(preset, entries[method])
        for benchmark in preset.benchmarks
        for seed in seeds(preset, entries[method])
    ]


def asked_again(preset: Preset) -> list[Cell]:
    """Return the second askings of ``single`` rows that ``noise_floor`` names."""
    rows_asked = rows(preset, methods(preset.extra)[SINGLE])
    benchmarks = [benchmark for benchmark in preset.noise_floor if benchmark in preset.benchmarks]
    return [Cell(SINGLE, benchmark, row, 1) for row in rows_asked for benchmark in benchmarks]


def rows(preset: Preset, entry: MethodEntry) -> list[str]:
    """Return the rows of a method in a preset: keys of backbones, or the pool."""
    if entry.rows == "pool":
        return [POOL]
    large = preset.backbones if entry.rows == "each" or preset.large is None else preset.large
    return [key for key in preset.backbones if key in large]


def seeds(preset: Preset, entry: MethodEntry) -> tuple[int, ...]:
    """Return the training seeds of a method: those of the preset, or 0 for one that learns nothing (D-REPORT-1)."""
    return preset.seeds if entry.trained else (0,)


def check_benchmark(preset: Preset, benchmark: str) -> None:
    """Raise a UserError, with the nearest name, for a benchmark that the preset does not have."""
    check_names("benchmark", [benchmark], preset.benchmarks, f"preset {preset.name}")


def check_cell(preset: Preset, cell: Cell) -> None:
    """Raise a UserError for a cell whose benchmark or row the preset does not have; any method may be run."""
    entries = methods(preset.extra)
    check_names("method", [cell.method], entries, "config/methods.yaml")
    check_benchmark(preset, cell.benchmark)
    entry = entries[cell.method]
    if cell.backbone not in (*backbones(preset), POOL):
        raise unknown("backbone", cell.backbone, rows(preset, entry), "config/backbones.yaml")
    if cell.backbone not in rows(preset, entry):
        raise UserError(
            f"{cell.method} has no row for {cell.backbone} in preset {preset.name}, only for "
            f"{', '.join(rows(preset, entry)) or 'none'}; add it to the preset's backbones"
            f"{', and to those that it calls large' if entry.rows == 'large' else ''}"
        )


def backbones_of(preset: Preset, cell: Cell) -> tuple[str, ...]:
    """Return the keys of the backbones that a cell may ask."""
    row = preset.backbones if cell.backbone == POOL else (cell.backbone,)
    return tuple(dict.fromkeys((*row, *methods(preset.extra)[cell.method].further_backbones)))


def cost_factor(preset: Preset) -> float:
    """Return the factor on a weight of cost that makes cost weigh the same in every pool (D-GMR-5).

    It is the price of a completion token of the paper's dearest backbone over that of the dearest backbone of the
    preset: exactly 1.0 for the paper's pool, and 1.0 for a pool that is free.
    """
    declared, paper = backbones(preset), backbone_files.load(FOLDER / "backbones.yaml")
    dearest = max(declared[key].price_out for key in preset.backbones)
    return max(backbone.price_out for backbone in paper.values()) / dearest if dearest else 1.0


def is_greedy(preset: Preset, entry: MethodEntry) -> bool:
    """Return whether calls have temperature 0, whatever the released code of the method sends (D-GEN-2)."""
    return "greedy" in (preset.decoding, entry.decoding)


def matched(preset: Preset, cell: Cell) -> Cell | None:
    """Return the cell whose cost and depth a cell has to meet, or None."""
    entries = methods(preset.extra)
    name = entries[cell.method].matches
    if name is None:
        return None
    seed = cell.seed if entries[name].trained else 0  # of what learns nothing there is one cell
    return replace(cell, method=name, backbone=POOL if entries[name].rows == "pool" else cell.backbone, seed=seed)
