"""Inputs of every job of the DAG, and whether its outputs are current: made from today's settings and code."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from analysis import registry
from cli import reports
from harness.errors import UserError
from harness.runner import config, config_hash, layout, simulation
from harness.runner.config import Cell, Preset


class Inputs(NamedTuple):
    """Files that a job reads, and whether its outputs are current; others are made again."""

    files: list[Path]
    is_current: bool


def data(preset: Preset, benchmark: str) -> Inputs:
    """Return the inputs of the prepared questions of a benchmark."""
    config.check_benchmark(preset, benchmark)
    code = config_hash.made_of_data(preset)
    return _inputs(preset, f"data/{benchmark}", code, [], questions(preset, [benchmark]))


def calibration(preset: Preset) -> Inputs:
    """Return the inputs of the calibration of simulated backbones: all questions."""
    outputs = [layout.calibration(preset.name)]
    return _inputs(preset, "calibration", simulation.made_of(), questions(preset, preset.benchmarks), outputs)


def health(preset: Preset, benchmark: str) -> list[Path]:
    """Return the inputs of a check of servers, which must take the longest question."""
    if preset.simulated:
        raise UserError(f"preset {preset.name} is simulated and has no servers")
    return questions(preset, [benchmark])


def cell(preset: Preset, cell: Cell) -> Inputs:
    """Return the inputs of a cell: questions, calibration or check of servers, further cells that it depends on."""
    config.check_cell(preset, cell)
    files = questions(preset, [cell.benchmark])
    if preset.simulated:
        files.append(layout.calibration(preset.name))
    elif not preset.recorded:
        files.append(layout.served(preset.name, cell.benchmark).with_suffix(".checked"))
    matched = config.matched(preset, cell)
    files += runs(preset, [*config.sharing(preset, cell), *([matched] if matched else [])])
    return Inputs(files, config_hash.is_current(preset, cell))


def cells(preset: Preset) -> list[Path]:
    """Return the files of the cells behind any artefact, with the seeds of the preset."""
    methods = config.methods(preset.extra)
    every = registry.all_cells(preset)
    return runs(preset, [cell for cell in every if cell.seed in config.seeds(preset, methods[cell.method])])


def timing(preset: Preset, cell: Cell) -> Inputs:
    """Return the inputs of the timing of a method: its finished cell."""
    outputs = [layout.timing(preset.name, cell) / "timing.json"]
    code = config_hash.made_of_timing(preset, cell)
    return _inputs(preset, layout.timing_name(cell), code, runs(preset, [cell]), outputs)


def artefact(preset: Preset, key: str) -> Inputs:
    """Return the inputs of a table or figure of ``config/artefacts.yaml``."""
    entry = registry.artefact(key)
    entry.check(preset)
    return _report(preset, key, entry.inputs(preset), entry.files)


def page(preset: Preset) -> Inputs:
    """Return the inputs of the page: every other report."""
    artefacts = map(registry.artefact, reports.artefacts_of(preset))
    files = [layout.report(preset.name, file) for artefact in artefacts for file in artefact.files]
    return _report(preset, "page", files, ["index.html", "cells.csv"])


def inspect_logs(preset: Preset) -> Inputs:
    """Return the inputs of the logs for Inspect: the cells of the main table."""
    return _report(preset, "inspect", runs(preset, config.cells(preset)), ["inspect"])


def questions(preset: Preset, benchmarks: Iterable[str]) -> list[Path]:
    """Return the manifests and the questions of benchmarks."""
    return [path(preset.name, key) for key in benchmarks for path in (layout.manifest, layout.items)]


def runs(preset: Preset, cells: Iterable[Cell]) -> list[Path]:
    """Return the files that say that cells are finished."""
    return [layout.cell(preset.name, cell) / "run.json" for cell in cells]


def _report(preset: Preset, name: str, files: list[Path], outputs: Iterable[str]) -> Inputs:
    paths = [layout.report(preset.name, output) for output in outputs]
    return _inputs(preset, f"reports/{name}", reports.made_of(name, preset), files, paths)


def _inputs(preset: Preset, name: str, made_of: str, files: list[Path], outputs: Iterable[Path]) -> Inputs:
    return Inputs(files, config_hash.is_made_of(layout.made_of(preset.name, name), made_of, outputs))
