"""Configuration that results depend on, its hash, and whether finished cells match it."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

import orjson
import yaml

from harness.benchmarks import catalogue
from harness.files import digest, read_yaml, write_atomically
from harness.fingerprint import code_of, fingerprint, fingerprint_of, source_of
from harness.llm.backbones import ABOUT
from harness.runner import config, layout

_HEAD = "# The settings of the last run of this preset, overrides included; its jobs read them.\n"


def of_data(preset: config.Preset, benchmark: str) -> dict[str, Any]:
    """Return the part of a preset that decides the questions of a benchmark, with the code of one of a user's file."""
    decides = {"data": preset.data, "splits": preset.splits}
    if not catalogue.is_further(benchmark):
        return decides
    entry = catalogue.entry(benchmark)
    files = [path for path in (source_of(entry.module), Path(entry.questions or "")) if path and path.is_file()]
    return {**decides, "benchmark": [entry.title, fingerprint(files)]}


def of_cell(preset: config.Preset, cell: config.Cell) -> dict[str, Any]:
    """Return the part of the configuration that can change the results of a cell."""
    entry = config.methods(preset.extra)[cell.method]
    backbones = config.backbones(preset)
    pool = config.backbones_of(preset, cell)
    limit = preset.limit.model_dump(include=None if entry.trained else {"test", "share"})
    learning = {"encoder": _encoder()} if entry.trained else {}
    matched = config.matched(preset, cell)
    served = {
        "endpoints": preset.endpoints,
        **({"length_scale": preset.length_scale, "simulator": _simulator()} if preset.simulated else {}),
        **({"decoding": "greedy"} if config.is_greedy(preset, entry) else {}),
    }
    return {
        "cell": dataclasses.asdict(cell),
        "module": entry.module,
        "seed_offset": entry.seed_offset,
        "config": dict(entry.config),
        # Only keys of the file, so that a new key with a default changes no cell.
        "backbones": {key: backbones[key].model_dump(exclude={"key", *ABOUT}, exclude_unset=True) for key in pool},
        # In order, which decides which of them a draw hits, and which a dictionary does not compare.
        "pool": list(pool),
        "preset": {**of_data(preset, cell.benchmark), "limit": limit, **served},
        **learning,
        **({"matched": declared(preset, matched)} if matched else {}),
    }


def declared(preset: config.Preset, cell: config.Cell) -> dict[str, Any]:
    """Return the part of ``run.json`` that follows from configuration and code alone."""
    entry = config.methods(preset.extra)[cell.method]
    return {
        "preset": preset.name,
        **dataclasses.asdict(cell),
        "method_title": entry.title,
        "module": entry.module,
        "multi_agent": entry.multi_agent,
        "routing": entry.routing,
        "compared_cost": entry.compared_cost,
        "config_hash": digest(of_cell(preset, cell)),
        "code": code_of(entry.module),
    }


def is_current(preset: config.Preset, cell: config.Cell) -> bool:
    """Return whether all files of a cell exist and match the present settings, code and questions."""
    folder = layout.cell(preset.name, cell)
    needed = {*layout.cell_files(learned=config.methods(preset.extra)[cell.method].trained)}
    if preset.recorded:
        needed -= {layout.CHECKPOINT}  # of which a bundle has none unless asked
    try:
        if not needed <= {*os.listdir(folder)}:
            return False
        run = orjson.loads((folder / "run.json").read_bytes())
        data = orjson.loads(layout.manifest(preset.name, cell.benchmark).read_bytes())
        has_questions = all(run["data"][name] == data[name] for name in ("checksum", "split_checksum"))
    except (OSError, orjson.JSONDecodeError, KeyError):
        return False
    # Without digests of its tables, a cell was written by an earlier version.
    is_declared = all(run.get(name) == value for name, value in declared(preset, cell).items())
    return has_questions and "tables" in run and is_declared


def write_settings(preset: config.Preset) -> None:
    """Write the settings of a run for its jobs; an equal file keeps its time."""
    text = _HEAD + yaml.safe_dump(config.settings(preset), sort_keys=False, width=120, allow_unicode=True)
    path = layout.settings(preset.name)
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        write_atomically(path, text)


def made_of_data(preset: config.Preset, benchmark: str) -> str:
    """Return the digest of all that decides the prepared questions of a benchmark."""
    return digest([of_data(preset, benchmark), fingerprint_of("harness/benchmarks", "config/benchmarks.yaml")])


def made_of_timing(preset: config.Preset, cell: config.Cell) -> str:
    """Return the digest of all that decides the timing of a finished cell."""
    try:
        run = orjson.loads((layout.cell(preset.name, cell) / "run.json").read_bytes()).get("run_id")
    except (OSError, orjson.JSONDecodeError):
        run = None
    code = code_of(config.methods(preset.extra)[cell.method].module)
    return digest([preset.in_flight, preset.endpoints, code, run])


def note_made_of(path: Path, made_of: str) -> None:
    """Write the digest of the inputs of a job, once all its files exist."""
    write_atomically(path, f"{made_of}\n")


def is_made_of(path: Path, made_of: str, files: Iterable[Path] = ()) -> bool:
    """Return whether all files of a job exist, made of the inputs with this digest."""
    try:
        return path.read_text(encoding="utf-8").strip() == made_of and all(file.exists() for file in files)
    except OSError:
        return False


@cache
def _encoder() -> Any:
    return read_yaml(config.FOLDER / "encoder.yaml")


@cache
def _simulator() -> Any:
    return read_yaml(config.FOLDER / "simulator.yaml")
