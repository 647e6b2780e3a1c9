"""Read presets: file, overrides and recordings are merged and checked before anything runs."""

import json
import shlex
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from harness.benchmarks import catalogue
from harness.errors import UserError, check_names
from harness.files import Many, check, check_entries, read_yaml
from harness.llm import archive, recordings
from harness.llm import backbones as backbone_files
from harness.llm.backbones import Backbone, Endpoint
from harness.runner import config, layout
from harness.runner.config import Keys, MethodEntry
from harness.runner.layout import SINGLE
from harness.runner.run import PresetName, Run

# Settings that determine the keys of calls. A preset inherits them from its recordings unless it sets them.
_DECIDES_CALLS = ("data", "splits", "weights", "length_scale", "limit", "decoding")


def resolve(name: str, overrides: Mapping[str, Any] | None = None) -> Run:
    """Read a preset, apply overrides, and check every name it uses (UserError).

    If the overrides have all required keys, as in a bundle, no file is read.
    """
    path = _path(name)
    changed = overrides or {}
    in_file = _in_file(name, changed)
    where = f"{path}{' with ' + ', '.join(map(str, changed)) + ' overridden' if changed else ''}"
    if not changed.keys() <= Keys.model_fields.keys():
        where = "keys given for this run"
    keys: Keys = check(_with_recorded({**in_file, **changed}, where), Keys, where)
    if Path(archive.METADATA).exists():
        raise UserError(
            f"{Path.cwd()} is an unpacked bundle, where nothing is run; list the bundle in `recordings` elsewhere"
        )
    check(keys.servers, Mapping[str, Endpoint], f"servers of preset {name}")
    recorded = [recordings.opened(recordings.located(each)) for each in keys.recordings or ()]
    names = [each.path.name for each in recorded]
    if twice := [each for each in names if names.count(each) > 1]:
        raise UserError(f"{where}: two recordings are called {twice[0]}, by which results name them; rename one")
    simulated = any(each.simulated for each in recorded) if recorded else keys.endpoints == "simulated"
    entries, methods = config.methods(keys.extra), keys.methods
    if "extra" in changed and "methods" not in changed:
        further = [key for key in entries if key not in config.methods()]
        methods = tuple(dict.fromkeys([*methods, *further]))
    declared = _declared(keys, name)
    paper = backbone_files.load(config.FOLDER / "backbones.yaml")
    dearest = max((declared[key].price_out for key in keys.backbones if key in declared), default=0.0)
    run = Run(
        **{**dict(keys), "methods": methods},
        name=name,
        simulated=simulated,
        entries=entries,
        declared=declared,
        recorded=recorded,
        cost_factor=max(backbone.price_out for backbone in paper.values()) / dearest if dearest else 1.0,
    )
    _check_backbones(run, path.name)
    _check_limits(run, path.name)
    for noun, choices in (("benchmark", catalogue.keys()), ("method", entries), ("backbone", declared)):
        named = "given for this run" if f"{noun}s" in changed else f"named in config/presets/{path.name}"
        named += f", with weights {run.weights}" if run.weights else ""
        check_names(noun, getattr(run, f"{noun}s"), choices, f"config/{noun}s.yaml; {named}")
    check_names("method", filter(None, [run.reference]), entries, f"config/methods.yaml; reference of {path.name}")
    if run.splits == "all" and (learning := [key for key in run.methods if entries[key].trained]):
        problem = f"{path.name} has splits: all, which leaves no training questions for {learning[0]}"
        raise UserError(problem, "use official, or methods that do not learn")
    if run.splits == "resampled" and (not run.recorded or run.limit.train is None or run.limit.test or run.limit.share):
        problem = f"{path.name} has splits: resampled, which divides the questions of recordings by one number"
        raise UserError(problem, "name `recordings`, and set `limit: {train: n}` without `test` and `share`")
    check_names("large backbone", run.large or (), declared, f"the backbones of {path.name}")
    return run


def methods_of(name: str, overrides: Mapping[str, Any]) -> Mapping[str, MethodEntry]:
    """Load the methods that a preset knows. Checks no other key, since overrides may be meant for another preset."""
    return config.methods({**_in_file(name, overrides), **overrides}.get("extra"))


def making_with(run: Run, target: object) -> str:
    """Return a hint with the command that makes a file with all keys of a run, for the end of a message."""
    return f"make it with `{command(run, target)}`"


def command(run: Run, target: object) -> str:
    """Return the command that makes a file with all keys of a run."""
    return " ".join(["snakemake --cores all", str(target), *map(shlex.quote, options(run))])


def options(run: Run) -> list[str]:
    """Return Snakemake's options for the keys in which a run differs from the file of its preset; empty if in none."""
    usual, given = _usual(run), dict[str, Any]()
    if usual is None or usual.extra != run.extra:
        given = {"extra": run.extra}
        usual = _usual(run, **given)
    if usual is None:
        return ["--configfile", str(layout.settings(run.name)), "--config", f"preset={run.name}"]
    given |= {key: value for key, value in run.settings.items() if value != usual.settings[key]}
    words = [f"{key}={value if isinstance(value, str) else json.dumps(value)}" for key, value in given.items()]
    return ["--config", f"preset={run.name}", *words] if words else []


def departures(run: Run) -> str:
    """Say what of its preset the tables of a run do not show, and what they show; empty if they show all of it."""
    usual, lacking = _usual(run) or run, []
    for key in ("benchmarks", "methods", "backbones"):
        if missing := [name for name in getattr(usual, key) if name not in getattr(run, key)]:
            lacking.append(f"its {key} {', '.join(missing)}, but {', '.join(getattr(run, key))}")
    return f"tables of preset {run.name} do not show {'; nor '.join(lacking)}" if lacking else ""


def _usual(run: Run, **given: Any) -> Run | None:
    """Resolve the preset of a run by its file and the given keys. None if it has no file, or needs other keys."""
    with suppress(UserError):
        return resolve(run.name, given)
    return None


def _path(name: str) -> Path:
    return config.FOLDER / "presets" / f"{name}.yaml"


def _in_file(name: str, overrides: Mapping[str, Any]) -> dict[str, Any]:
    """Read the keys in the file of a preset. Empty if the overrides have all required keys."""
    check(name, PresetName, f"preset {name!r}")
    if overrides.keys() >= {key for key, field in Keys.model_fields.items() if field.is_required()}:
        return {}
    check_names("preset", [name], config.preset_names(), "config/presets/")
    document: dict[str, Any] = check(read_yaml(_path(name)), dict[str, Any], _path(name))
    if isinstance(pool := document.get("pool"), str):
        path = config.FOLDER / "pools" / f"{pool}.yaml"
        shared = check(read_yaml(path), dict[str, Any], path)
        document["pool"] = {key: shared[key] for key in document.get("backbones", ()) if key in shared}
    return document


def _declared(keys: Keys, name: str) -> Mapping[str, Backbone]:
    """All backbones that a preset may use, with its ``weights``: declared backbones, then those in its ``pool``."""
    pool = check_entries(keys.pool, Backbone, f"pool of preset {name}") if keys.pool else {}
    declared = {**backbone_files.load(config.FOLDER / "backbones.yaml"), **pool}
    if keys.weights is None:
        return declared
    return backbone_files.with_weights(declared, config.FOLDER / "weights.yaml", keys.weights)


def _with_recorded(document: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Add the settings of the recordings that determine calls. Raises UserError if two recordings differ in a key.

    The preset may override single fields of an entry in the recorded ``pool``.
    """
    paths = check(document.get("recordings") or (), Many[str], "recordings")
    if bool(paths) != ("recorded" in str(document.get("endpoints"))):
        either = "`endpoints: recorded` (or `[recorded, served]`)"
        raise UserError(f"{where}: {either} and `recordings` need each other; set both")
    found: dict[str, Any] = {"pool": {}, "benchmarks": [], "backbones": []} if paths else {}
    own = check(document.get("pool") or {}, dict[str, dict[str, Any]], f"{where}: pool")
    for path in paths:
        recorded = recordings.opened(recordings.located(path)).settings
        with recordings.data_of(Path(path)):
            for key in ("benchmarks", "backbones"):
                found[key] = list(dict.fromkeys([*found[key], *recorded[key]]))
            decides = {key: recorded[key] for key in _DECIDES_CALLS if key in recorded and key not in document}
            pool = {name: {**entry, **own.get(name, {})} for name, entry in (recorded.get("pool") or {}).items()}
        for known, given, where in ((found, decides, ""), (found["pool"], pool, "pool.")):
            for key, value in given.items():
                if known.setdefault(key, value) != value:
                    raise UserError(f"{path}: its {where}{key} differs from earlier recordings; set the key")
    pool = {**own, **found.get("pool", {})}
    return {**found, **document, **({"pool": pool} if pool else {})}


def _check_limits(run: Run, name: str) -> None:
    bounds = [bound for bound in (run.limit.train, run.limit.test) if isinstance(bound, Mapping)]
    limited = {key for bound in bounds for key in bound} - {"default"}
    for key, named in (("limit", sorted(limited)), ("noise_floor", run.noise_floor)):
        # A run of a subset of the benchmarks may keep limits for the others.
        check_names("benchmark", named, catalogue.keys(), f"config/benchmarks.yaml; named by {key} of {name}")
    if run.noise_floor and run.simulated:
        raise UserError(f"{name} has noise_floor, but simulated replies do not vary; remove it")
    if run.noise_floor and SINGLE not in run.methods:
        raise UserError(f"{name} has noise_floor, which repeats {SINGLE}; add {SINGLE} to its methods")


def _check_backbones(run: Run, name: str) -> None:
    declared, simulated = run.declared, run.simulated
    if simulated and (run.weights or run.pool):
        raise UserError(f"{name} has weights or a pool, but simulated backbones have none; remove the key")
    if not run.pool:
        return
    taken = set(run.pool) & set(backbone_files.load(config.FOLDER / "backbones.yaml"))
    if taken and not any(isinstance(each, recordings.TableRecording) for each in run.recorded):
        raise UserError(f"{name}: {min(taken)} is in config/backbones.yaml already; remove or rename it")
    used = [declared[key] for key in run.backbones if key in declared]
    priced = {backbone.key for backbone in used if backbone.price is not None}
    if priced and (unpriced := {backbone.key for backbone in used} - priced):
        raise UserError(
            f"{name}: {min(priced)} has a price and {min(unpriced)} has none; costs need one unit, so set "
            "the prices of all backbones, or of none"
        )
    names = [backbone.model for backbone in used]
    if twice := [model for model in names if names.count(model) > 1]:
        raise UserError(f"{name}: two backbones are {twice[0]!r}, but `model` identifies a call; use distinct names")
