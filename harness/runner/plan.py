"""Plan of a cell: its preset, method, backbones and data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

import orjson

from harness.benchmarks import Benchmark, benchmark
from harness.benchmarks.items import Item
from harness.benchmarks.prepare import Prepared, read
from harness.errors import UserError, making
from harness.llm.backbones import Backbone
from harness.runner import config, layout
from harness.runner.config import Cell, MethodEntry, Preset
from harness.runner.method import Matched, Setting
from harness.runner.results import check_tables, read_rows


@dataclass(frozen=True)
class Plan:
    """Inputs of a cell."""

    preset: Preset
    cell: Cell
    method: MethodEntry
    backbones: Mapping[str, Backbone]  # that the cell may ask
    benchmark: Benchmark
    data: Prepared
    folder: Path
    shared: tuple[Path, ...]

    @property
    def test(self) -> list[Item]:
        """Return the test questions that the preset uses."""
        return self.data.test[: self.preset.limit.used_questions(len(self.data.test), self.preset.limit.test)]

    @property
    def train(self) -> list[Item]:
        """Return the training questions that the preset uses."""
        return self.data.train[: self.preset.limit.used_questions(len(self.data.train), self.preset.limit.train)]

    @property
    def seed(self) -> int:
        """Return the seed of all chance in the cell."""
        return self.cell.seed + self.method.seed_offset

    @property
    def setting(self) -> Setting:
        """Return the setting for the method."""
        return Setting(
            backbone=self.cell.backbone,
            pool=self.backbones,
            benchmark=self.cell.benchmark,
            domain=self.benchmark.role_domain,
            seed=self.seed,
            max_epochs=self.preset.limit.epochs,
            matched=self.matched,
        )

    @property
    def matched(self) -> Matched | None:
        """Return what the cell has to meet, None if nothing; UserError while the cell that says so is not finished."""
        cell = config.matched(self.preset, self.cell)
        if cell is None:
            return None
        entry, folder = config.methods(self.preset.extra)[cell.method], layout.cell(self.preset.name, cell)
        if not (run := folder / "run.json").exists():
            problem = f"{self.cell} has to meet the cost or the depth of {cell}, which is not finished"
            raise UserError(problem, making(run))
        check_tables(folder, orjson.loads(run.read_bytes())["tables"])
        cost = f"cost_{entry.compared_cost}"
        rows = list(read_rows(folder / "items.parquet", [cost, "depth"]))
        return Matched(cell.method, fmean(row[cost] for row in rows), fmean(row["depth"] for row in rows))


def plan(preset: Preset, cell: Cell) -> Plan:
    """Return the plan of a cell; UserError for a name that the preset lacks, or data missing or altered."""
    config.check_cell(preset, cell)
    entry, backbones = config.methods(preset.extra)[cell.method], config.backbones(preset)
    return Plan(
        preset=preset,
        cell=cell,
        method=entry,
        backbones={key: backbones[key] for key in config.backbones_of(preset, cell)},
        benchmark=benchmark(cell.benchmark),
        data=read(layout.manifest(preset.name, cell.benchmark), layout.items(preset.name, cell.benchmark)),
        folder=layout.cell(preset.name, cell),
        shared=tuple(layout.call_log(preset.name, other) for other in config.sharing(preset, cell)),
    )
