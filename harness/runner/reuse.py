"""A finished cell taken up again: checked to be of this suite as it stands, its trained method ready to answer."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, cast

import orjson

from harness.errors import UserError
from harness.fingerprint import code_of
from harness.llm.backbones import Backbone
from harness.runner.method import Method, build
from harness.runner.plan import Plan
from harness.training.loop import CHECKPOINT, checkpoint


def identity(plan: Plan) -> dict[str, Any]:
    """``run.json`` of a finished cell; raises UserError where there is none of this code, settings and questions."""
    path = plan.folder / "run.json"
    try:
        found: dict[str, Any] = orjson.loads(path.read_bytes())
        data = found["data"]
        questions = data["checksum"], data["split_checksum"], data["n_test"]
        said = {"config_hash": found["config_hash"], "questions": questions, "code": found["code"]}
    except FileNotFoundError as error:
        raise UserError(f"{plan.cell} of {plan.preset.name} is not finished; {_again(plan)}") from error
    except (orjson.JSONDecodeError, KeyError, TypeError) as error:
        raise UserError(f"{path} does not tell of a finished cell ({error!r}); {_again(plan)}") from error
    now = {
        "config_hash": plan.config_hash,
        "questions": (plan.data.checksum, plan.data.split_checksum, len(plan.test)),
        "code": code_of(plan.method.module),
    }
    for name in now:
        if said[name] != now[name]:
            raise UserError(f"{path}: its {name} is not that of this suite as it stands; {_again(plan)}")
    return found


def check_backbones(plan: Plan, cell: Mapping[str, Any], backbones: Mapping[str, Backbone]) -> None:
    """Refuse backbones whose name or revision, as servers report them now, is not what the cell asked (UserError)."""
    for key, backbone in backbones.items():
        known = cell["backbones"][key]
        if (known["model"], known["revision"]) != (backbone.model, backbone.revision):
            raise UserError(
                f"{plan.cell} asked {known['model']} of revision {known['revision']}; {key} is now {backbone.model} of "
                f"revision {backbone.revision}; {_again(plan)}"
            )


def trained_method(plan: Plan, cell: Mapping[str, Any]) -> Method:
    """The method as it answered the test; raises UserError where its checkpoint is gone, damaged or another's."""
    method: Any = build(plan.method.module, plan.setting, plan.method.config, trained=plan.method.trained)
    if plan.method.trained:
        path = plan.folder / CHECKPOINT
        found = checkpoint.load(path)
        if hashlib.sha256(path.read_bytes()).hexdigest() != cell["checkpoint"]:
            raise UserError(f"{path} is not what the cell answered with; {_again(plan)}")
        method.load(found)
    return cast(Method, method)


def _again(plan: Plan) -> str:
    return f"make the cell first: `snakemake --cores all {plan.folder / 'run.json'}`"
