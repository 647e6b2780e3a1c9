"""Load a finished cell and check that code, configuration and data still match."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import orjson

from harness.errors import UserError, making
from harness.files import digest, sha256
from harness.fingerprint import code_of
from harness.llm.backbones import Backbone
from harness.runner import config_hash
from harness.runner.method import Method, build
from harness.runner.plan import Plan
from harness.runner.results import check_tables
from harness.training.loop import CHECKPOINT, checkpoint


def identity(plan: Plan) -> dict[str, Any]:
    """Read ``run.json`` of a finished cell; UserError if there is none of this code, these settings and questions."""
    path = plan.folder / "run.json"
    try:
        run: dict[str, Any] = orjson.loads(path.read_bytes())
        data = run["data"]
        questions = data["checksum"], data["split_checksum"], data["n_test"]
        tables = run["tables"]
        recorded = {"config_hash": run["config_hash"], "questions": questions, "code": run["code"]}
    except FileNotFoundError as error:
        raise UserError(f"{plan.cell} of {plan.preset.name} is not finished", making(path)) from error
    except (orjson.JSONDecodeError, KeyError, TypeError) as error:
        raise UserError(f"{path} is not that of a finished cell ({error!r})", making(path)) from error
    now = {
        "config_hash": digest(config_hash.of_cell(plan.preset, plan.cell)),
        "questions": (plan.data.checksum, plan.data.split_checksum, len(plan.test)),
        "code": code_of(plan.method.module),
    }
    for name, value in now.items():
        if recorded[name] != value:
            raise UserError(f"{path}: its {name} is not that of this suite as it stands", making(path))
    check_tables(plan.folder, tables)
    return run


def check_backbones(plan: Plan, cell: Mapping[str, Any], backbones: Mapping[str, Backbone]) -> None:
    """Raise a UserError if a backbone has another name or revision, as its servers report now, than in the cell."""
    for key, backbone in backbones.items():
        recorded = cell["backbones"][key]
        if (recorded["model"], recorded["revision"]) != (backbone.model, backbone.revision):
            raise UserError(
                f"{plan.cell} asked {recorded['model']} of revision {recorded['revision']}; {key} is now "
                f"{backbone.model} of revision {backbone.revision}",
                making(plan.folder / "run.json"),
            )


def trained_method(plan: Plan, cell: Mapping[str, Any]) -> Method:
    """Load the method as it answered the test; UserError if its checkpoint is gone, damaged or another one."""
    method: Any = build(plan.method.module, plan.setting, plan.method.config, trained=plan.method.trained)
    if plan.method.trained:
        path = plan.folder / CHECKPOINT
        trained = checkpoint.load(path)
        if sha256(path) != cell["checkpoint"]:
            raise UserError(f"{path} is not what the cell answered with", making(plan.folder / "run.json"))
        method.load(trained)
    return cast(Method, method)
