"""Identity of the runs behind a table."""

import hashlib
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from analysis.finished_cells import RunInfo, answered, short
from harness.files import digest

# Family and size of a model, and the bits of its weights.
_SIZED = re.compile(r"(.+?)-(\d[\d.]*[BM])(?:-Instruct)?(?:-.*)?")
_BITS = re.compile(r"I?Q(\d)")


def served(backbone: Mapping[str, Any]) -> str:
    """Return weights, revision and server of a backbone. An unconfirmed revision says so."""
    doubt = " (not confirmed)" if backbone.get("revision") and not backbone.get("revision_confirmed") else ""
    server = f" by {backbone['served_by']}" if backbone.get("served_by") else ""
    return f"{answered(backbone)}{doubt}{server}"


def models_in_words(runs: Iterable[RunInfo]) -> str:
    """Name the models of some cells, such as "Qwen2.5-Coder 0.5B and 1.5B, 4-bit weights"."""
    sizes: defaultdict[str, dict[str, None]] = defaultdict(dict)
    weights: dict[str, None] = {}
    for backbone in (backbone for run in runs for backbone in run.backbones.values()):
        name = str(backbone["model"]).rpartition("/")[2].partition(":")[0]
        sized = _SIZED.fullmatch(name)
        sizes[sized[1] if sized else name][sized[2] if sized else ""] = None
        kind = str(backbone.get("quantisation") or backbone.get("weights") or "")
        weights[f"{bits[1]}-bit weights" if (bits := _BITS.match(kind)) else kind and f"{kind} weights"] = None
    models = (f"{family} {' and '.join(of)}".strip() for family, of in sizes.items())
    return ", ".join(filter(None, (*models, *weights)))


def provenance(runs: Sequence[RunInfo]) -> dict[str, str]:
    """Return the settings that distinguish runs by name, each on one line."""
    run_ids = "\n".join(sorted(run.run_id for run in runs))
    return {
        "run": short(hashlib.sha256(run_ids.encode()).hexdigest()),
        "preset": _listed(run.preset for run in runs),
        "cells": str(len(runs)),
        "seeds": ", ".join(map(str, sorted({run.seed for run in runs}))),
        "data": _listed(f"{run.benchmark} {short(run.data.checksum)}" for run in runs),
        "source": _listed(f"{run.data.source}, splits {run.data.splits}" for run in runs),
        "code": _listed(short(run.code) for run in runs),
        "rules": _listed(f"{run.benchmark} {run.rule_version}" for run in runs),
        "sandbox": _listed(run.sandbox for run in runs),
        "backbones": _backbones(runs),
    }


def answers_of(runs: Iterable[RunInfo]) -> str:
    """Digest the answers of some cells, in any order. It does not depend on code, machine or recordings."""
    return short(digest(sorted([run.cell, run.answers] for run in runs)))


def identity(runs: Sequence[RunInfo]) -> dict[str, str]:
    """Return the identity columns of a tidy table. Differing values are in the order of the runs."""

    def joined(value_of: Callable[[RunInfo], str]) -> str:
        values = list(map(value_of, runs))
        return values[0] if len(set(values)) == 1 else " ".join(values)

    return {
        "swept": str(runs[0].swept[1]) if runs[0].swept else "",
        "seeds": " ".join(map(str, sorted({run.seed for run in runs}))),
        "run_id": joined(lambda run: run.run_id),
        "config_hash": joined(lambda run: run.config_hash),
        "code": joined(lambda run: run.code),
        "data_checksum": joined(lambda run: run.data.checksum),
        "backbones": _backbones(runs),
    }


def _backbones(runs: Iterable[RunInfo]) -> str:
    return _listed(f"{key}={served(backbone)}" for run in runs for key, backbone in run.backbones.items())


def _listed(values: Iterable[str]) -> str:
    return "; ".join(sorted(set(values)))
