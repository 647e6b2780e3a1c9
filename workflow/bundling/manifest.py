"""What a bundle says of itself: the run, its code, and the terms under which its parts are published."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harness.errors import UserError
from harness.files import ROOT
from harness.runner.config import Preset
from harness.yaml_files import parse
from workflow.bundling.contents import Contents
from workflow.bundling.settings import settings
from workflow.bundling.source import code, commit

_LICENCES = ROOT / "config" / "licences.yaml"


def facts(contents: Contents, *, questions: bool) -> dict[str, Any]:
    """What the manifest says beside the list of files.

    Args:
        contents: The run.
        questions: Whether the bundle holds the questions and what was asked about them.

    Raises:
        UserError: Nothing is known of the licence of a part.
    """
    preset = contents.preset
    return {
        "preset": preset.name,
        "settings": settings(preset),
        "simulated": any(run["simulated"] for run in contents.runs),
        "questions": questions,
        "artefacts": list(contents.artefacts),
        "cells": [
            {"preset": each.preset.name, "cell": str(each.cell), "run_id": run["run_id"]}
            for each, run in zip(contents.cells, contents.runs, strict=True)
        ],
        "code": {"commit": commit(), "sha256": code()},
        "licences": _licences(preset),
    }


def _licences(preset: Preset) -> list[dict[str, str]]:
    known = parse(_LICENCES)
    suite = {"of": "everything else", **known["suite"]}
    found = [{"of": "the sentence encoder behind the embeddings", **known["encoder"]}, suite]
    if preset.weights in known["weights"]:
        found.append({"of": "the replies", **known["weights"][preset.weights]})
    elif not preset.simulated:
        found += [_licence(known["backbones"], key, f"the replies of {key}") for key in preset.backbones]
    if preset.data == "real":
        found += [_licence(known["questions"], key, f"the questions of {key}") for key in preset.benchmarks]
    return found


def _licence(known: Mapping[str, Mapping[str, str]], key: str, what: str) -> dict[str, str]:
    if key not in known:
        raise UserError(f"config/licences.yaml says nothing of {key}; add its licence and who made it")
    return {"of": what, **known[key]}
