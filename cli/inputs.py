"""Inputs of every job of the DAG, and whether its outputs are current."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from analysis import registry
from cli import reports
from harness.errors import UserError
from harness.runner import config_hash, layout
from harness.runner.config import Cell
from harness.runner.run import Run


class Inputs(NamedTuple):
    """Files that a job reads, and whether its outputs are current.

    They are if they exist, their own record says that they were made from today's settings, code and inputs, and the
    outputs of every job before it are current. No time of a file counts, so a copy of a run is as current as the run.
    """

    files: list[Path]
    is_current: bool


class Jobs:
    """The jobs of a preset."""

    def __init__(self, run: Run) -> None:
        self.run = run
        # Many jobs wait for the same ones.
        self.data, self.cell = functools.cache(self._data), functools.cache(self._cell)
        self.artefact = functools.cache(self._artefact)

    def _data(self, benchmark: str) -> Inputs:
        """Return the inputs of the prepared questions of a benchmark: none."""
        self.run.check_benchmark(benchmark)
        record = layout.made_of(self.run.name, f"data/{benchmark}")
        outputs = self.questions(benchmark)
        return Inputs([], config_hash.is_made_of(record, config_hash.made_of_data(self.run, benchmark), outputs))

    def health(self, benchmark: str) -> Inputs:
        """Return the inputs of a check of servers, which must take the longest question."""
        if not self.run.served:
            raise UserError(f"preset {self.run.name} asks no servers")
        is_current = self._checked(benchmark).exists() and self.data(benchmark).is_current
        return Inputs(self.questions(benchmark), is_current)

    def _cell(self, cell: Cell) -> Inputs:
        """Return the inputs of a cell: questions, the check of servers, further cells that it depends on."""
        config = self.run.cell(cell)
        # Simulated backbones know the questions of all benchmarks.
        known = self.run.benchmarks if self.run.endpoints == "simulated" else [cell.benchmark]
        files, before = self.questions(*known), [*map(self.data, known)]
        if self.run.served:
            files.append(self._checked(cell.benchmark))
            before.append(self.health(cell.benchmark))
        others = [Cell(**config.matched.names)] if config.matched else []
        before += map(self.cell, others)
        is_current = config_hash.is_current(config) and all(inputs.is_current for inputs in before)
        files += [layout.cell(self.run.name, other) / "run.json" for other in others]
        return Inputs(files, is_current)

    def _artefact(self, key: str) -> Inputs:
        """Return the inputs of a table or figure of ``config/artefacts.yaml``."""
        entry = registry.artefact(key)
        entry.check(self.run)
        return self._report(key, map(self.cell, entry.cells_of(self.run)))

    def page(self) -> Inputs:
        """Return the inputs of the page: the artefacts of the run."""
        before = (self.artefact(artefact.key) for artefact in registry.of_run(self.run))
        return self._report("page", before)

    def inspect_logs(self) -> Inputs:
        """Return the inputs of the logs for Inspect: the cells of the main table."""
        return self._report("inspect", map(self.cell, self.run.cells()))

    def questions(self, *benchmarks: str) -> list[Path]:
        """Return the manifests and the questions of benchmarks, all of the preset unless some are named."""
        keys = benchmarks or self.run.benchmarks
        return [path(self.run.name, key) for key in keys for path in (layout.manifest, layout.items)]

    def _checked(self, benchmark: str) -> Path:
        return layout.served(self.run.name, benchmark).with_suffix(".checked")

    def _report(self, name: str, before: Iterable[Inputs]) -> Inputs:
        is_current = all(inputs.is_current for inputs in before) and reports.is_current(name, self.run)
        return Inputs(reports.report(name, self.run).inputs, is_current)
