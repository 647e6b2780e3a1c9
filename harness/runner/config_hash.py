"""The parts of the configuration that results depend on, and whether finished cells are of them."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

import orjson
import yaml

from harness.files import digest, read_yaml, write_atomically
from harness.fingerprint import code_of, fingerprint_of
from harness.llm.backbones import ABOUT
from harness.runner import config, layout

_HEAD = "# The settings of the last run of this preset, overrides included; its jobs read them.\n"


def of_data(chosen: config.Preset) -> dict[str, Any]:
    """The part of a preset that decides which questions are used."""
    return {"data": chosen.data, "splits": chosen.splits}


def of_cell(chosen: config.Preset, cell: config.Cell) -> dict[str, Any]:
    """The part of the configuration that can change the results of one cell, and no other part."""
    entry = config.methods()[cell.method]
    declared = config.backbones(chosen)
    pool = config.backbones_of(chosen, cell)
    limit = chosen.limit.model_dump(include=None if entry.trained else {"test", "share"})
    learning = {"encoder": _encoder()} if entry.trained else {}
    served = {
        "endpoints": chosen.endpoints,
        **({"length_scale": chosen.length_scale} if chosen.simulated else {}),
        **({"decoding": chosen.decoding} if chosen.greedy else {}),
    }
    return {
        "cell": dataclasses.asdict(cell),
        "module": entry.module,
        "seed_offset": entry.seed_offset,
        "config": dict(entry.config),
        # Only keys of the file, so that a default that is added changes no cell.
        "backbones": {key: declared[key].model_dump(exclude={"key", *ABOUT}, exclude_unset=True) for key in pool},
        # Their order too: it decides which of them a draw hits, and a dictionary is compared without one.
        "pool": list(pool),
        "preset": {**of_data(chosen), "limit": limit, **served},
        **learning,
    }


def declared(chosen: config.Preset, cell: config.Cell) -> dict[str, Any]:
    """Return what ``run.json`` says of a cell that follows from the configuration and the code alone."""
    entry = config.methods()[cell.method]
    return {
        "preset": chosen.name,
        **dataclasses.asdict(cell),
        "method_title": entry.title,
        "module": entry.module,
        "compared_cost": entry.compared_cost,
        "config_hash": digest(of_cell(chosen, cell)),
        "code": code_of(entry.module),
    }


def is_current(chosen: config.Preset, cell: config.Cell) -> bool:
    """Return whether every file of a cell is there, of the settings and the code as they are now."""
    folder = layout.cell(chosen.name, cell)
    needed = {*layout.cell_files(learned=config.methods()[cell.method].trained)}
    if chosen.recorded:
        needed -= {layout.CHECKPOINT}  # of which a bundle has none unless asked
    try:
        if not needed <= {*os.listdir(folder)}:
            return False
        run = orjson.loads((folder / "run.json").read_bytes())
    except (OSError, orjson.JSONDecodeError):
        return False
    return all(run.get(name) == value for name, value in declared(chosen, cell).items())


def write_settings(chosen: config.Preset) -> None:
    """Write the settings of a run where its jobs read them; a file that is the same already keeps its time."""
    text = _HEAD + yaml.safe_dump(config.settings(chosen), sort_keys=False, width=120, allow_unicode=True)
    path = layout.settings(chosen.name)
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        write_atomically(path, text)


def made_of_data(chosen: config.Preset) -> str:
    """Return the digest of what decides the prepared questions of a benchmark."""
    return digest([of_data(chosen), fingerprint_of("harness/benchmarks", "config/benchmarks.yaml")])


def made_of_timing(chosen: config.Preset, cell: config.Cell) -> str:
    """Return the digest of what decides, besides the cell, how its method is timed."""
    return digest([chosen.in_flight, chosen.endpoints, code_of(config.methods()[cell.method].module)])


def note_made_of(path: Path, made_of: str) -> None:
    """Write what the files of a job were made of, once they are all there."""
    write_atomically(path, f"{made_of}\n")


def is_made_of(path: Path, made_of: str, files: Iterable[Path] = ()) -> bool:
    """Return whether the files of a job are all there, and were made of this."""
    try:
        return path.read_text(encoding="utf-8").strip() == made_of and all(file.exists() for file in files)
    except OSError:
        return False


@cache
def _encoder() -> Any:
    return read_yaml(config.FOLDER / "encoder.yaml")
