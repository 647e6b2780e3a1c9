"""Which files make a run, and whether all of them are there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from analysis import registry
from analysis.registry import Artefact
from analysis.sensitivity import plan as worlds_of
from harness.errors import UserError
from harness.recording import FOLDER
from harness.results import TABLES
from harness.runner import config, finished, layout
from harness.runner.config import Preset
from harness.runner.plan import Plan, plan
from harness.training.loop import CHECKPOINT
from harness.training.loop import TABLES as TRAINING_TABLES
from workflow.bundling.settings import settings
from workflow.shown import is_study


@dataclass(frozen=True)
class Contents:
    """A finished run.

    Attributes:
        preset: The run.
        artefacts: What it makes.
        cells: Its cells, those in changed worlds included.
        runs: ``run.json`` of each of them.
        timings: Folders of its timing jobs.
        worlds: Names of the presets that have a simulated world.
    """

    preset: Preset
    artefacts: Sequence[str]
    cells: Sequence[Plan]
    runs: Sequence[dict[str, Any]]
    timings: Sequence[Path]
    worlds: Sequence[str]


def collect(preset: Preset, names: Sequence[str]) -> Contents:
    """The finished cells behind some artefacts.

    Args:
        preset: The run.
        names: Keys of ``config/artefacts.yaml``.

    Raises:
        UserError: The folder replays a run, or something is missing; the message says how much, and names the first.
    """
    if FOLDER.exists():
        raise UserError("this folder replays a bundle; copy that instead")
    wanted = [registry.artefact(name) for name in names]
    for one in wanted:
        one.check(preset)
    plans = [*_plans(preset, wanted), *_world_plans(preset, wanted)]
    timings = list(dict.fromkeys(layout.timing(preset.name, cell) for one in wanted for cell in one.timings_of(preset)))
    missing: list[str] = []
    runs = [found for each in plans if (found := _run(each, missing)) is not None]
    missing += [f"{folder / 'timing.json'} is missing" for folder in timings if not (folder / "timing.json").exists()]
    if missing:
        raise UserError(
            f"the run is incomplete: {len(missing)} of {len(plans) + len(timings)} cells and timings are missing, the "
            f"first because: {missing[0]}. To bundle less, name what with --artefact"
        )
    worlds = dict.fromkeys(each.preset.name for each in plans if each.preset.simulated)
    return Contents(preset, names, plans, runs, timings, list(worlds))


def files(contents: Contents) -> Iterator[Path]:
    """The files of a run that are bundled as they are; questions, logs and embeddings are not among them."""
    for name in contents.worlds:
        yield layout.world(name)
    for key in contents.preset.benchmarks:
        yield layout.manifest(contents.preset.name, key)
    for folder in contents.timings:
        yield folder / "timing.json"
    for each in contents.cells:
        yield from _of_cell(each)


def logs(contents: Contents) -> Iterator[Path]:
    """The call logs of a run."""
    for each in contents.cells:
        yield layout.call_log(each.preset.name, each.cell)


def _of_cell(each: Plan) -> Iterator[Path]:
    yield from (each.folder / name for name in ("run.json", *(f"{table}.parquet" for table in TABLES)))
    if each.method.trained:
        yield from (each.folder / f"{table}.parquet" for table in TRAINING_TABLES)
        yield each.folder / CHECKPOINT


def _plans(preset: Preset, wanted: Sequence[Artefact]) -> list[Plan]:
    cells = [cell for one in wanted for cell in one.cells_of(preset)]
    if is_study(preset):
        cells += config.cells(preset)
    return [plan(preset, cell) for cell in dict.fromkeys(cells)]


def _world_plans(preset: Preset, wanted: Sequence[Artefact]) -> list[Plan]:
    pairs = [
        (world.preset, cell)
        for one in wanted
        if one.worlds
        for world in worlds_of(preset)
        for cell in world.cells
        if world.preset != preset.name or cell not in one.cells_of(preset)
    ]
    return [plan(_changed(preset, name), cell) for name, cell in dict.fromkeys(pairs)]


def _changed(preset: Preset, name: str) -> Preset:
    return config.preset(name, settings(preset)) if name != preset.name else preset


def _finished(each: Plan) -> dict[str, Any]:
    """``run.json`` of a cell whose files are there.

    Raises:
        UserError: Says what is missing.
    """
    run = finished.identity(each)
    log = layout.call_log(each.preset.name, each.cell)
    for file in (log, *_of_cell(each)):
        if not file.exists():
            raise UserError(f"{file} is missing; remove {each.folder / 'run.json'} and run its cell again")
    return run


def _run(each: Plan, missing: list[str]) -> dict[str, Any] | None:
    try:
        return _finished(each)
    except UserError as error:
        missing.append(str(error))
        return None
