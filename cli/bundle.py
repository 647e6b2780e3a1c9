"""Bundle: the results of a preset as one file, which unpacks to a folder where Snakemake makes every report again.

A tar archive, compressed by Zstandard: first ``manifest.json``, then the files it lists, in the order of their names.
The same run makes the same bytes.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tarfile
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp
from typing import Any, BinaryIO

import orjson
import yaml
import zstandard

from analysis import registry
from cli.app import last_run
from cli.reports import artefacts_of
from harness.benchmarks.prepare import prepare
from harness.errors import UserError, making
from harness.files import ROOT, read_yaml, whole_file, writing
from harness.fingerprint import fingerprint, sources
from harness.llm import call_log
from harness.llm.backbones import ABOUT
from harness.llm.client import SERVERS
from harness.runner import config, layout, reuse
from harness.runner.config import Preset
from harness.runner.plan import plan

_MANIFEST = "manifest.json"
# Settings that change no result: how fast and how far a run may go, what it keeps, and where its servers are.
_NO_SETTINGS = {"in_flight", "budget", "epoch_checkpoints", "recorded", "servers"}
_NO_RESULTS = {"config", "endpoints", "endpoints.hosted.example", "faults", "licences", "throughput"}
# One time for all files, so that none is newer than what was made from it.
_TIME = 946_684_800


def pack(name: str, out: Path, *, questions: bool, checkpoints: bool = False) -> dict[str, Any]:
    """Write what the reports and a replay of a preset read into one file.

    Without ``questions`` it has no questions and prompts: calls have only their key (a hash) and their reply. Trained
    routers, which a replay trains again, are in it with ``checkpoints``.

    Returns the manifest, and in ``unfinished`` why cells were left out. Raises UserError if nothing is finished, the
    folder was itself unpacked, or a file changed meanwhile.
    """
    preset = last_run(name)
    if preset.recorded:
        raise UserError("this folder was unpacked from a bundle; pass that file on instead")
    settings = {key: value for key, value in config.settings(preset).items() if key not in _NO_SETTINGS}
    files, runs, unfinished = _finished(preset)
    if not checkpoints:
        files = {path for path in files if path.name != layout.CHECKPOINT}
    artefacts = map(registry.artefact, artefacts_of(preset))
    with writing(out), TemporaryDirectory(prefix=f".{out.name}.", dir=out.parent) as folder:
        # What Snakemake reads in the folder that it is unpacked to.
        defaults, head = Path(folder) / "config.yaml", Path(folder) / _MANIFEST
        defaults.write_bytes(yaml.safe_dump({"preset": name, "recorded": True, **settings}, encoding="utf-8"))
        members = {"config/config.yaml": defaults, **_further_methods(preset)}
        for number, path in enumerate(sorted(files)):
            if path.name == call_log.CALL_LOG:
                members[str(path)] = Path(folder) / str(number)
                call_log.copy(path, members[str(path)], prompts=questions)
            elif questions or not path.name.endswith(".items.jsonl"):
                members[str(path)] = path
        manifest: dict[str, Any] = {
            "preset": name,
            "settings": settings,
            "simulated": any(run["simulated"] for run in runs.values()),
            "questions": questions,
            "reports": [artefact.key for artefact in artefacts if set(artefact.inputs(preset)) <= files],
            "cells": {folder: run["run_id"] for folder, run in runs.items()},
            "code": _code(),
            "methods": [*_further_methods(preset)],
            "licences": _licences(preset),
            "files": {member: _entry(path) for member, path in members.items()},
        }
        head.write_bytes(orjson.dumps(manifest, option=orjson.OPT_INDENT_2) + b"\n")
        _write(out, {_MANIFEST: head, **members}, manifest["files"])
    return {**manifest, "unfinished": unfinished}


def unpack(path: Path, folder: Path) -> dict[str, Any]:
    """Unpack a bundle into a new folder, check every file, prepare questions that it lacks; return its manifest.

    Raises UserError if the file is no bundle, damaged or of other code, the folder exists, or the questions cannot be
    had or are others.
    """
    if folder.exists():
        raise UserError(f"{folder} exists; name a new folder")
    try:
        file = path.open("rb")
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}") from error
    with file, writing(folder):
        folder.parent.mkdir(parents=True, exist_ok=True)
        part = Path(mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
        try:
            manifest = _extract(path, file, part)
            if not manifest["questions"]:
                _prepare(manifest["preset"], manifest["settings"], part)
            part.chmod(0o755)
            part.rename(folder)
        finally:
            shutil.rmtree(part, ignore_errors=True)
    return manifest


def _finished(preset: Preset) -> tuple[set[Path], dict[str, dict[str, Any]], list[str]]:
    """Return the files of a preset, ``run.json`` of its finished cells by folder, and why others are not finished."""
    files: set[Path] = set()
    runs: dict[str, dict[str, Any]] = {}
    unfinished: list[str] = []
    results = layout.RESULTS / preset.name
    for cell in layout.cells(preset.name):
        try:
            cell_plan = plan(preset, cell)
            runs[str(cell_plan.folder)] = reuse.identity(cell_plan)
        except UserError as error:
            unfinished.append(str(error))
        else:
            names = (*layout.cell_files(learned=cell_plan.method.trained), call_log.CALL_LOG, SERVERS)
            files |= {cell_plan.folder / name for name in names}
    for pattern in ("data/[!.]*", "calibration.json", "timings/*/*/*/seed*/timing.json"):
        files |= {*results.glob(pattern)}
    for pattern in ("data/*", "calibration.*", "timings/*/*/*/seed*"):
        files |= {*results.glob(f"made_of/{pattern}")}
    if not runs:
        cure = [*unfinished, making(f"all --config preset={preset.name}")][0]
        raise UserError(f"preset {preset.name} has no finished cell here", cure)
    return files, runs, unfinished


def _further_methods(preset: Preset) -> dict[str, Path]:
    """Return the sources in the folder of a preset's further methods; UserError if that is not below this one."""
    folder = Path(preset.extra or "").resolve().parent
    if preset.extra is not None and Path.cwd() not in folder.parents:
        raise UserError(f"{folder} is not below {Path.cwd()}, where a bundle could have it; move it, and run again")
    return {str(file.relative_to(Path.cwd())): file for file in (sources(folder) if preset.extra else ())}


def _write(out: Path, members: Mapping[str, Path], entries: Mapping[str, Any]) -> None:
    compressor = zstandard.ZstdCompressor(level=9, write_checksum=True)
    with whole_file(out) as file:
        with compressor.stream_writer(file, closefd=False) as packed, tarfile.open(fileobj=packed, mode="w|") as tar:
            for name, path in members.items():
                with path.open("rb") as source:
                    info = tarfile.TarInfo(name)
                    info.size, info.mtime = path.stat().st_size, _TIME
                    tar.addfile(info, source)
        if changed := [name for name, entry in entries.items() if _entry(members[name]) != entry]:
            raise UserError(f"{changed[0]} changed meanwhile; bundle again when no job of the preset runs")


def _copy(archive: tarfile.TarFile, member: tarfile.TarInfo, folder: Path) -> None:
    # By hand, because extract has no filters before Python 3.11.4.
    target = folder / member.name
    if not target.resolve().is_relative_to(folder.resolve()):
        raise tarfile.ExtractError(f"{member.name} would lie outside the destination")
    target.parent.mkdir(parents=True, exist_ok=True)
    source = archive.extractfile(member)
    with target.open("xb") as out:
        shutil.copyfileobj(source, out)  # type: ignore[arg-type]  # the member is a regular file
    os.utime(target, (member.mtime, member.mtime))


def _extract(path: Path, file: BinaryIO, folder: Path) -> dict[str, Any]:
    """Extract a bundle into a folder, check every file against the manifest, and return that."""
    expected = manifest = None
    try:
        with tarfile.open(fileobj=zstandard.ZstdDecompressor().stream_reader(file), mode="r|") as tar:
            for member in tar:
                if not member.isreg() or member.name not in ([_MANIFEST] if expected is None else expected):
                    raise UserError(f"{path} is no bundle of this suite: {member.name} is none of its files")
                _copy(tar, member, folder)
                if expected is None:
                    manifest = orjson.loads((folder / _MANIFEST).read_bytes())
                    if (code := manifest["code"])["sha256"] != _code()["sha256"]:
                        cure = "its maker alone has these" if code["dirty"] else "check that commit out"
                        raise UserError(f"{path} was made by other code: {whose(code)}; {cure}")
                    expected = dict(manifest["files"])
                elif _entry(folder / member.name) != expected.pop(member.name):
                    raise UserError(f"{path} was altered: {member.name} is not what its manifest says; fetch it again")
    except (tarfile.TarError, zstandard.ZstdError, orjson.JSONDecodeError, KeyError, TypeError) as error:
        raise UserError(f"{path} is damaged or no bundle of this suite ({error}); fetch it again") from error
    if manifest is None or expected:
        raise UserError(f"{path} was cut off: {next(iter(expected or [_MANIFEST]))} is missing; fetch it again")
    return manifest


def _prepare(preset: str, settings: Mapping[str, Any], folder: Path) -> None:
    """Prepare the questions that a bundle was made without; UserError if they are others than the recorded ones."""
    for manifest in sorted((folder / layout.RESULTS / preset / "data").glob("*.json")):
        items = folder / layout.items(preset, manifest.stem)
        content = manifest.read_bytes()
        recorded = orjson.loads(content)
        prepare(manifest.stem, settings["data"], settings["splits"], items, manifest)
        prepared = orjson.loads(manifest.read_bytes())
        if others := [name for name in recorded if recorded[name] != prepared.get(name) and name != "source"]:
            raise UserError(f"the questions of {manifest.stem} are not those of the recorded run: {others[0]} differs")
        manifest.write_bytes(content)
        for file in (manifest, items):
            os.utime(file, (_TIME, _TIME))


def _entry(path: Path) -> dict[str, Any]:
    with path.open("rb") as file:
        return {"size": os.fstat(file.fileno()).st_size, "sha256": hashlib.file_digest(file, "sha256").hexdigest()}


def whose(code: Mapping[str, Any]) -> str:
    """Return in words whose code made a bundle; ``code`` is that entry of its manifest."""
    if code["commit"] is None:
        source = "code of no known commit"
    else:
        source = f"commit {code['commit']}{' with changes that are in no commit' if code['dirty'] else ''}"
    return f"{source}, digest {code['sha256'][:12]}"


def _code() -> dict[str, Any]:
    """Return commit (None without a repository), whether code differs from it, and digest of what decides results."""
    files = sorted(file for file in (ROOT / "config").glob("*.yaml") if file.stem not in _NO_RESULTS)
    parts = [*(ROOT / folder for folder in ("harness", "baselines", "gmr", "analysis")), *files]
    changes = _git("status", "--porcelain", "--", *map(str, parts))
    return {"commit": _git("rev-parse", "HEAD"), "dirty": bool(changes), "sha256": fingerprint(parts)}


def _git(*words: str) -> str | None:
    """Return what git prints about the checkout; None without git or a repository."""
    try:
        return subprocess.check_output(["git", "-C", str(ROOT), *words], stderr=subprocess.DEVNULL, text=True).strip()  # noqa: S603, S607
    except (OSError, subprocess.CalledProcessError):
        return None


def _licences(preset: Preset) -> dict[str, Any]:
    """Return licence and attribution of everything in a bundle that is the work of others, by kind and key."""
    known = read_yaml(ROOT / "config" / "licences.yaml")
    for key in preset.pool:
        about = config.backbones(preset)[key].model_dump(include=set(ABOUT))
        if all(about.values()):
            known["backbones"][key] = about
    used: dict[str, Any] = {"questions": preset.benchmarks if preset.data == "real" else ()}
    if preset.weights in known["weights"]:
        used["weights"] = [preset.weights]
    elif not preset.simulated:
        used["backbones"] = preset.backbones
    for kind, keys in used.items():
        if lacking := [key for key in keys if key not in known[kind]]:
            where = f"`pool` of preset {preset.name}" if lacking[0] in preset.pool else "config/licences.yaml"
            raise UserError(f"{where} does not say the licence and attribution of {lacking[0]}; add both")
    licences = {kind: {key: known[kind][key] for key in keys} for kind, keys in used.items() if keys}
    return {"suite": known["suite"], "encoder": known["encoder"], **licences}
