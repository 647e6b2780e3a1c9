"""The parts of the configuration that results depend on."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

from harness.files import ROOT
from harness.llm import backbones
from harness.runner import config
from harness.yaml_files import parse


def of_data(chosen: config.Preset) -> dict[str, Any]:
    """The part of a preset that decides which questions are used."""
    return {"data": chosen.data, "splits": chosen.splits}


def of_cell(chosen: config.Preset, cell: config.Cell, root: Path = ROOT) -> dict[str, Any]:
    """The part of the configuration that can change the results of one cell, and no other part."""
    entry = config.methods(root)[cell.method]
    declared = backbones.declared(root / "config" / "backbones.yaml", chosen.weights)
    limit = dataclasses.asdict(chosen.limit)
    if not entry.trained:
        limit = {name: limit[name] for name in ("test", "share")}
    encoder = {"encoder": parse(root / "config" / "encoder.yaml")} if entry.trained else {}
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
        "backbones": {key: declared[key] for key in config.backbones_of(chosen, cell, root)},
        # Their order too: it decides which of them a draw hits, and a dictionary is compared without one.
        "pool": list(config.backbones_of(chosen, cell, root)),
        "preset": {**of_data(chosen), "limit": limit, **served},
        **encoder,
    }
