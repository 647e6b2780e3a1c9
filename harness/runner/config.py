"""Presets, methods and the cells they make, read from ``config/`` and validated before anything runs."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from harness.errors import UserError, unknown
from harness.files import ROOT, source_of
from harness.llm import backbones as backbone_files
from harness.llm.budget import Budget
from harness.yaml_files import changed_at, check, from_text, parse, read_yaml

POOL = "pool"


@dataclass(frozen=True, slots=True)
class Limit:
    """How many questions of each split are used, and how often those of the training; ``None`` for all.

    Attributes:
        train: Most training questions.
        test: Most test questions.
        epochs: Most passes over the training questions.
        share: Share of the questions of each split, so that every benchmark is cut in proportion; rounded up.
    """

    train: int | None = None
    test: int | None = None
    epochs: int | None = None
    share: float | None = None

    def count(self, questions: int, most: int | None) -> int:
        """How many of the questions of a split are used.

        Args:
            questions: How many there are.
            most: The limit of this split.
        """
        # Of the decimal that was written, not of the float nearest to it: a tenth of 30 is 3.
        part = questions if self.share is None else math.ceil(questions * Fraction(str(self.share)))
        return part if most is None else min(part, most)


@dataclass(frozen=True, slots=True)
class Preset:
    """One run: data, methods, backbones, seeds, budgets. Fields as in ``workflow/schemas/preset.schema.yaml``."""

    name: str
    description: str
    data: str
    splits: str
    benchmarks: tuple[str, ...]
    methods: tuple[str, ...]
    backbones: tuple[str, ...]
    endpoints: str
    seeds: tuple[int, ...]
    weights: str | None = None
    length_scale: float = 1.0
    limit: Limit = field(default_factory=Limit)
    share_logs: bool = True
    decoding: str = "released"
    max_error_share: float = 0.05
    in_flight: int | None = None
    budget: Budget | None = None
    simulator: Mapping[str, float] = field(default_factory=dict)

    @property
    def simulated(self) -> bool:
        """Whether the backbones are simulated in process."""
        return self.endpoints == "simulated"

    @property
    def greedy(self) -> bool:
        """Whether every call is sent temperature 0, whatever a method's released code sends."""
        return self.decoding == "greedy"


@dataclass(frozen=True, slots=True)
class MethodEntry:
    """One entry of ``config/methods.yaml``."""

    key: str
    module: str
    title: str
    rows: tuple[str, ...]
    trained: bool = False
    calibrated: bool = False
    seed_offset: int = 0
    answers_from: tuple[str, ...] = ()
    also_asks: tuple[str, ...] = ()
    config: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, order=True)
class Cell:
    """One job: a method on a benchmark with one backbone (or the pool) and one seed."""

    method: str
    benchmark: str
    backbone: str
    seed: int

    def __str__(self) -> str:
        return f"{self.method} {self.benchmark} {self.backbone} seed {self.seed}"


def methods(root: Path = ROOT) -> dict[str, MethodEntry]:
    """Every method, by key."""
    return dict(_methods(root, *(changed_at(root / "config" / name) for name in ("methods.yaml", "backbones.yaml"))))


@lru_cache
def _methods(root: Path, *_changed_at: int) -> dict[str, MethodEntry]:
    """Read once for every state of the files: a DAG asks thousands of times."""
    entries = _extended(read_yaml(root / "config" / "methods.yaml", _schema("methods")))
    rows = [*parse(root / "config" / "backbones.yaml"), POOL]
    for entry in entries.values():
        _check_names("row", entry["rows"], rows, "config/backbones.yaml, besides pool")
        _check_names("method", entry.get("answers_from", []), entries, "config/methods.yaml")
        _check_names("backbone", entry.get("also_asks", []), rows[:-1], "config/backbones.yaml")
        if source_of(entry["module"]) is None:
            raise UserError(f"config/methods.yaml names the module {entry['module']!r}, which cannot be found")
    return {key: MethodEntry(key=key, **_tuples(entry)) for key, entry in entries.items()}


def _extended(entries: Mapping[str, Any]) -> dict[str, Any]:
    """The entries with what they take over from the one they extend; of ``config``, key by key."""
    whole = {key: entry for key, entry in entries.items() if "extends" not in entry}
    for key, entry in entries.items():
        if "extends" in entry:
            where = "config/methods.yaml; one that extends another has to stand above"
            _check_names("base method", [entry["extends"]], whole, where)
            base = whole[entry["extends"]]
            own = {name: value for name, value in entry.items() if name != "extends"}
            whole[key] = {**base, **own, "config": {**base.get("config", {}), **entry.get("config", {})}}
    return {key: whole[key] for key in entries}


def preset_names(root: Path = ROOT) -> list[str]:
    """The presets there are."""
    return sorted(path.stem for path in (root / "config" / "presets").glob("*.yaml"))


def check_presets(names: Iterable[str], root: Path = ROOT) -> None:
    """Refuse the name of a preset that does not exist.

    Raises:
        UserError: Names the first unknown one and the nearest that is known.
    """
    _check_names("preset", [name.partition("@")[0] for name in names], preset_names(root), "config/presets/")


def preset(name: str, overrides: Mapping[str, Any] | None = None, root: Path = ROOT) -> Preset:
    """Read a preset, apply overrides, and check every name it uses.

    Args:
        name: A file of ``config/presets``; ``NAME@PARAMETER=VALUE`` is the same in a simulated world with one parameter
            changed, such as ``embedded@slope=4.0``.
        overrides: Keys that hold instead of the preset's own values.
        root: The checkout.

    Raises:
        UserError: Unknown preset, key, benchmark, method or backbone.
    """
    base, _, change = name.partition("@")
    check_presets([base], root)
    path = root / "config" / "presets" / f"{base}.yaml"
    changed = overrides or {}
    entry = {**(parse(path) or {}), **changed}
    check(entry, _schema("preset"), f"{path}{' with ' + ', '.join(changed) + ' overridden' if changed else ''}")
    known = {
        "benchmarks": ("benchmark", parse(root / "config" / "benchmarks.yaml"), "config/benchmarks.yaml"),
        "methods": ("method", methods(root), "config/methods.yaml"),
        "backbones": ("backbone", parse(root / "config" / "backbones.yaml"), "config/backbones.yaml"),
    }
    for key, (kind, choices, file) in known.items():
        named = "given for this run" if key in changed else f"named in {path.relative_to(root)}"
        _check_names(kind, entry[key], choices, f"{file}; {named}")
    _check_weights(entry, path.name, root)
    limit = Limit(**(entry.pop("limit", None) or {}))
    budget = Budget(**bounds) if (bounds := entry.pop("budget", None)) else None
    found = Preset(name=name, limit=limit, budget=budget, **_tuples(entry))
    return dataclasses.replace(found, simulator=_changed_world(found, change)) if change else found


def settings(chosen: Preset) -> dict[str, Any]:
    """Every key of a preset with its value, as :func:`preset` takes overrides.

    The name, and the change of a simulated world that stands in the name, are no keys.
    """
    found = {key: value for key, value in dataclasses.asdict(chosen).items() if key not in ("name", "simulator")}
    return {key: list(value) if isinstance(value, tuple) else value for key, value in found.items()}


def _check_weights(entry: Mapping[str, Any], name: str, root: Path) -> None:
    """Refuse weights that are not declared of every backbone, or that nobody would load."""
    if entry.get("weights") is None:
        return
    if entry["endpoints"] == "simulated":
        raise UserError(f"{name} has weights {entry['weights']!r}, but simulated backbones have none; leave out one")
    chosen = backbone_files.load_weights(root / "config" / "weights.yaml", entry["weights"])
    for backbone in entry["backbones"]:
        chosen.of(backbone)


def _changed_world(chosen: Preset, change: str) -> dict[str, float]:
    """The change that the name of a preset carries; building the world checks whether there is such a parameter."""
    parameter, _, value = change.partition("=")
    number = from_text(value)
    if not chosen.simulated or isinstance(number, bool) or not isinstance(number, int | float):
        raise UserError(
            f"{chosen.name!r} is no preset: behind @ stands one parameter of config/simulator.yaml and its value, such "
            "as embedded@slope=4.0, and the backbones have to be simulated"
        )
    return {parameter: float(number)}


def cells(chosen: Preset, root: Path = ROOT) -> list[Cell]:
    """Every cell of a preset, in the order of methods, rows, benchmarks, seeds."""
    entries = methods(root)
    return [
        Cell(method, benchmark, row, seed)
        for method in chosen.methods
        for row in _rows(chosen, entries[method])
        for benchmark in chosen.benchmarks
        for seed in _seeds(chosen, entries[method])
    ]


def _rows(chosen: Preset, entry: MethodEntry) -> list[str]:
    return [row for row in entry.rows if row == POOL or row in chosen.backbones]


def _seeds(chosen: Preset, entry: MethodEntry) -> tuple[int, ...]:
    return chosen.seeds if entry.trained else chosen.seeds[:1]


def check_benchmark(chosen: Preset, benchmark: str) -> None:
    """Refuse a benchmark that the preset does not have.

    Raises:
        UserError: Names the nearest that it has.
    """
    _check_names("benchmark", [benchmark], chosen.benchmarks, f"preset {chosen.name}")


def check_cell(chosen: Preset, cell: Cell, root: Path = ROOT) -> None:
    """Refuse a cell that cannot be run under a preset: any method may, on the benchmarks and backbones it has.

    Raises:
        UserError: Names the first part that is unknown.
    """
    entries = methods(root)
    _check_names("method", [cell.method], entries, "config/methods.yaml")
    check_benchmark(chosen, cell.benchmark)
    entry = entries[cell.method]
    if cell.backbone not in (*parse(root / "config" / "backbones.yaml"), POOL):
        raise unknown("backbone", cell.backbone, _rows(chosen, entry), "config/backbones.yaml")
    if cell.backbone not in entry.rows:
        raise UserError(
            f"{cell.method} has no row for {cell.backbone}, only for {', '.join(entry.rows)}; for a new one, add it to "
            f"the rows of {cell.method} in config/methods.yaml"
        )
    if cell.backbone not in _rows(chosen, entry):
        raise UserError(f"preset {chosen.name} has no backbone {cell.backbone}; add it to the preset's backbones")


def backbones_of(chosen: Preset, cell: Cell, root: Path = ROOT) -> tuple[str, ...]:
    """The backbones a cell may ask."""
    rows = chosen.backbones if cell.backbone == POOL else (cell.backbone,)
    return tuple(dict.fromkeys((*rows, *methods(root)[cell.method].also_asks)))


def sharing(chosen: Preset, cell: Cell, root: Path = ROOT) -> list[Cell]:
    """The finished cells whose logs may answer this one, where preset and method allow it."""
    if not chosen.share_logs:
        return []
    entries = methods(root)
    return sorted(
        Cell(other, cell.benchmark, cell.backbone, cell.seed)
        for other in set(entries[cell.method].answers_from) & set(chosen.methods)
        if cell.benchmark in chosen.benchmarks
        and cell.backbone in _rows(chosen, entries[other])
        and cell.seed in _seeds(chosen, entries[other])
    )


@cache
def _schema(name: str) -> Any:
    return parse(ROOT / "workflow" / "schemas" / f"{name}.schema.yaml")


def _check_names(kind: str, names: Iterable[str], known: Iterable[str], where: str) -> None:
    choices = list(known)
    for name in names:
        if name not in choices:
            raise unknown(kind, name, choices, where)


def _tuples(entry: Mapping[str, Any]) -> dict[str, Any]:
    return {key: tuple(value) if isinstance(value, list) else value for key, value in entry.items()}
