"""What identifies the run behind a table, short enough to stand below it."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from analysis.results import Cell

_SHORT = 12
# A commit of a repository of weights; other revisions, such as that of the simulator, are names.
_COMMIT = re.compile(r"[0-9a-f]{40}")


def short(digest: str) -> str:
    """The leading characters of a hash, enough to find it again."""
    return digest[:_SHORT]


def answered(backbone: Mapping[str, Any]) -> str:
    """What answered under the name of a backbone: its weights, and their revision where one is known.

    The revision is in its short form; that of the simulator names its world, its code and its ``length_scale``.

    Args:
        backbone: Its identity in ``run.json``.
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
    """Identity of a table: a hash over the run ids of its cells, whatever their order."""
    lines = "\n".join(sorted(cell.run.run_id for cell in cells))
    return hashlib.sha256(lines.encode()).hexdigest()


def provenance(cells: Sequence[Cell]) -> tuple[tuple[str, str], ...]:
    """Name and value of whatever tells one run from another."""
    runs = [cell.run for cell in cells]
    seeds = sorted({run.seed for run in runs})
    return (
        ("run", short(table_run_id(cells))),
        ("preset", _listed(run.preset for run in runs)),
        ("cells", str(len(runs))),
        ("seeds", ", ".join(map(str, seeds))),
        ("data", _listed(f"{run.benchmark} {short(run.data.checksum)}" for run in runs)),
        ("source", _listed(f"{run.data.source}, splits {run.data.splits}" for run in runs)),
        ("code", _listed(short(run.code) for run in runs)),
        ("rules", _listed(f"{run.benchmark} {run.rule_version}" for run in runs)),
        ("sandbox", _listed(run.sandbox for run in runs)),
        ("backbones", _backbones(cells)),
    )


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

    So do those of several simulated worlds, each of which has all of them.
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
