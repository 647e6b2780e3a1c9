"""The parts of the configuration that results depend on."""

from __future__ import annotations

import dataclasses
from functools import cache
from typing import Any

from harness.files import read_yaml
from harness.llm import backbones
from harness.runner import config


def of_data(chosen: config.Preset) -> dict[str, Any]:
    """The part of a preset that decides which questions are used."""
    return {"data": chosen.data, "splits": chosen.splits}


def of_cell(chosen: config.Preset, cell: config.Cell) -> dict[str, Any]:
    """The part of the configuration that can change the results of one cell, and no other part."""
    entry = config.methods()[cell.method]
    declared = backbones.load(config.FOLDER / "backbones.yaml", chosen.weights)
    pool = config.backbones_of(chosen, cell)
    limit = chosen.limit.model_dump(include=None if entry.trained else {"test", "share"})
    learning = {"encoder": _encoder()} if entry.trained else {}
    served = {
        "endpoints": chosen.endpoints,
        **({"length_scale": chosen.length_scale} if chosen.simulated else {}),
        **({"decoding": chosen.decoding} if chosen.greedy else {}),
        **({"simulator": dict(chosen.simulator)} if chosen.simulator else {}),
    }
    return {
        "cell": dataclasses.asdict(cell),
        "module": entry.module,
        "seed_offset": entry.seed_offset,
        "config": dict(entry.config),
        # Only keys of the file, so that a default that is added changes no cell.
        "backbones": {key: declared[key].model_dump(exclude={"key"}, exclude_unset=True) for key in pool},
        # Their order too: it decides which of them a draw hits, and a dictionary is compared without one.
        "pool": list(pool),
        "preset": {**of_data(chosen), "limit": limit, **served},
        **learning,
    }


@cache
def _encoder() -> Any:
    return read_yaml(config.FOLDER / "encoder.yaml")
