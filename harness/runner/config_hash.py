"""Configuration that results depend on, its hash, and whether finished cells match it."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import orjson
import yaml

from harness.benchmarks import catalogue
from harness.errors import UserError, making
from harness.files import digest, read_yaml, sha256, write_atomically
from harness.fingerprint import code_of, fingerprint, fingerprint_of, source_of
from harness.llm.backbones import ABOUT
from harness.runner import config, layout

_HEAD = "# The settings of the last run of this preset, overrides included; its jobs read them.\n"


def of_data(preset: config.Preset, benchmark: str) -> dict[str, Any]:
    """Return what decides the questions of a benchmark; of a user's own that is its title, module and questions too."""
    decides: dict[str, Any] = {"data": preset.data, "splits": preset.splits}
    if preset.recordings:
        decides["recordings"] = [recording.sha256 for recording in preset.recorded]
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
    decides = of_data(preset, cell.benchmark)
    answers_training = preset.answer_training and not entry.trained
    limits = None if entry.trained else {"test", "share", *(["train"] if answers_training else [])}
    decides["limit"] = preset.limit.of(cell.benchmark).model_dump(include=limits)
    if answers_training:
        decides["answer_training"] = True
    decides["endpoints"] = "simulated" if preset.simulated else "served"
    if preset.simulated:
        decides |= {"length_scale": preset.length_scale, "simulator": _content("simulator.yaml")}
    if config.is_greedy(preset, entry):
        decides["decoding"] = "greedy"
    identity = {
        "cell": dataclasses.asdict(cell),
        "module": entry.module,
        "seed_offset": entry.seed_offset,
        "config": dict(entry.config),
        # Only keys of the file, so that a new key with a default changes no cell.
        "backbones": {key: backbones[key].model_dump(exclude={"key", *ABOUT}, exclude_unset=True) for key in pool},
        # In order, which decides which of them a draw hits, and which a dictionary does not compare.
        "pool": list(pool),
        "preset": decides,
    }
    if entry.trained or cell.backbone == config.POOL:
        # What other backbones of the preset cost decides it.
        identity["cost_factor"] = config.cost_factor(preset)
    if entry.trained:
        identity["encoder"] = _content("encoder.yaml")
    if (matched := config.matched(preset, cell)) is not None:
        identity["matched"] = declared(preset, matched)
    return identity


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


def finished_run(preset: config.Preset, cell: config.Cell) -> dict[str, Any]:
    """Read ``run.json`` of a finished cell; UserError unless settings, code, questions and tables are the same."""
    config.check_cell(preset, cell)
    run = _current_run(preset, cell)
    check_tables(layout.cell(preset.name, cell), run["tables"])
    return run


def _current_run(preset: config.Preset, cell: config.Cell) -> dict[str, Any]:
    path, manifest = layout.cell(preset.name, cell) / "run.json", layout.manifest(preset.name, cell.benchmark)
    for file, problem in ((path, f"{cell} of {preset.name} is not finished"), (manifest, f"{manifest} is missing")):
        if not file.exists():
            raise UserError(problem, making(file))
    try:
        run: dict[str, Any] = orjson.loads(path.read_bytes())
        data = orjson.loads(manifest.read_bytes())
        has_questions = all(run["data"][name] == data[name] for name in ("checksum", "split_checksum"))
        # Without digests of its tables, a cell was written by an earlier version.
        recorded = {**run, "questions": has_questions, "tables": run["tables"]}
    except (OSError, orjson.JSONDecodeError, KeyError, TypeError) as error:
        raise UserError(f"{path} is not that of a finished cell ({error!r})", making(path)) from error
    for name, value in {"questions": True, **declared(preset, cell)}.items():
        if recorded.get(name) != value:
            raise UserError(f"{path}: its {name} is not that of this suite as it stands", making(path))
    return run


def is_current(preset: config.Preset, cell: config.Cell) -> bool:
    """Return whether all files of a cell exist and match the present settings, code and questions."""
    needed = {*layout.cell_files(learned=config.methods(preset.extra)[cell.method].trained)}
    try:
        _current_run(preset, cell)
        return needed <= {*os.listdir(layout.cell(preset.name, cell))}
    except UserError:
        return False


def check_tables(folder: Path, recorded: Mapping[str, str]) -> None:
    """Raise a UserError if a table of a cell is missing, or has another SHA-256 than its ``run.json`` recorded."""
    for name, expected in recorded.items():
        is_there = (folder / name).is_file()
        if not is_there or sha256(folder / name) != expected:
            what = "is damaged: its SHA-256 is not the one in run.json" if is_there else "is missing"
            cure = f"delete {folder / 'run.json'} and {making(folder / 'run.json')} (calls stay in its log)"
            raise UserError(f"{folder / name} {what}", cure)


def write_settings(preset: config.Preset) -> None:
    """Write the settings of a run for its jobs; an equal file keeps its time."""
    text = _HEAD + yaml.safe_dump(config.settings(preset), sort_keys=False, width=120, allow_unicode=True)
    path = layout.settings(preset.name)
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        write_atomically(path, text)


def made_of_data(preset: config.Preset, benchmark: str) -> str:
    """Return the digest of all that decides the prepared questions of a benchmark."""
    return digest([of_data(preset, benchmark), fingerprint_of("harness/benchmarks", "config/benchmarks.yaml")])


def note_made_of(path: Path, made_of: str) -> None:
    """Write the digest of the inputs of a job, once all its files exist."""
    write_atomically(path, f"{made_of}\n")


def is_made_of(path: Path, made_of: str, files: Iterable[Path]) -> bool:
    """Return whether all files of a job exist, made of the inputs with this digest."""
    try:
        return path.read_text(encoding="utf-8").strip() == made_of and all(file.exists() for file in files)
    except OSError:
        return False


@cache
def _content(name: str) -> Any:
    return read_yaml(config.FOLDER / name)
