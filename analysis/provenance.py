"""Identity of the runs behind a table."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from analysis.results import Cell, Run, short

# A commit of a repository of weights; other revisions, such as that of the simulator, are names.
_COMMIT = re.compile(r"[0-9a-f]{40}")
SIMULATED = "SIMULATED BACKBONES: no language model was asked; the measured numbers say nothing about real models"


def warning(simulated: bool) -> str:
    """The sentence about simulated backbones, or nothing for a run on real ones."""
    return SIMULATED if simulated else ""


def answered(backbone: Mapping[str, Any]) -> str:
    """What answered under the name of a backbone, an identity of ``run.json``: its weights, and a known revision.

    The revision is in its short form; that of the simulator names its calibration, its code and its ``length_scale``.
    """
    return f"{backbone['model']}{_revision(backbone)}"


def served(backbone: Mapping[str, Any]) -> str:
    """The same with the server, if it is known; a revision that the configuration states and none confirmed says so."""
    return f"{backbone['model']}{_served(backbone)}"


def by_server(backbone: Mapping[str, Any]) -> str:
    """What is said of the server behind the name of a backbone; nothing where it did not introduce itself."""
    server = backbone.get("served_by")
    return f" by {server}" if server else ""


def table_run_id(cells: Iterable[Cell]) -> str:
    """Identity of a table: a hash over the run ids of its cells, in any order."""
    lines = "\n".join(sorted(cell.run.run_id for cell in cells))
    return hashlib.sha256(lines.encode()).hexdigest()


def provenance(cells: Sequence[Cell]) -> dict[str, str]:
    """Name and value of each setting that tells one run from another, short enough for a line below a table."""
    runs = [cell.run for cell in cells]
    return {
        "run": short(table_run_id(cells)),
        "preset": _listed(run.preset for run in runs),
        "cells": str(len(runs)),
        "seeds": ", ".join(map(str, sorted({run.seed for run in runs}))),
        "data": _listed(f"{run.benchmark} {short(run.data.checksum)}" for run in runs),
        "source": _listed(f"{run.data.source}, splits {run.data.splits}" for run in runs),
        "code": _listed(short(run.code) for run in runs),
        "rules": _listed(f"{run.benchmark} {run.rule_version}" for run in runs),
        "sandbox": _listed(run.sandbox for run in runs),
        "backbones": _backbones(cells),
    }


def identity(cells: Sequence[Cell]) -> dict[str, str]:
    """What identifies runs, as columns of a tidy table.

    Several seeds are joined by a space, ascending, and what differs between the cells is in their order; the backbones
    are ``key=model at revision by served_by``, joined by a semicolon (:func:`served`).
    """
    backbones = {f"{key}={served(backbone)}" for cell in cells for key, backbone in cell.run.backbones.items()}
    return {
        "seeds": " ".join(map(str, sorted({cell.run.seed for cell in cells}))),
        "run_id": _of(cells, lambda run: run.run_id),
        "config_hash": _of(cells, lambda run: run.config_hash),
        "code": _of(cells, lambda run: run.code),
        "data_checksum": _of(cells, lambda run: run.data.checksum),
        "backbones": "; ".join(sorted(backbones)),
    }


def _of(cells: Sequence[Cell], of: Callable[[Run], str]) -> str:
    """One value where all cells agree, else one a cell."""
    values = [of(cell.run) for cell in cells]
    return values[0] if len(set(values)) == 1 else " ".join(values)


def _revision(backbone: Mapping[str, Any]) -> str:
    revision = backbone.get("revision")
    if not revision:
        return ""
    return f" at {short(revision) if _COMMIT.fullmatch(revision) else revision}"


def _served(backbone: Mapping[str, Any]) -> str:
    revision = _revision(backbone)
    doubt = " (not confirmed)" if revision and not backbone.get("revision_confirmed") else ""
    return f"{revision}{doubt}{by_server(backbone)}"


def _backbones(cells: Iterable[Cell]) -> str:
    """Those that one server answered in one revision, as the simulator does, share what follows their names.

    So do runs on several calibrations, each of which has all of them.
    """
    found: dict[str, set[str]] = {}
    for cell in cells:
        for key, backbone in cell.run.backbones.items():
            found.setdefault(_served(backbone), set()).add(f"{key} = {backbone['model']}")
    servers: dict[str, list[str]] = {}
    for server, names in sorted(found.items()):
        servers.setdefault(", ".join(sorted(names)), []).append(server)
    return "; ".join(sorted(f"{names}{','.join(places)}" for names, places in servers.items()))


def _listed(values: Iterable[str]) -> str:
    return "; ".join(sorted(set(values)))
