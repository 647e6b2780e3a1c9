"""Plan of a cell: all that it needs, resolved once, with every error that a user can make in a configuration."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

import orjson
import pyarrow.parquet as pq

from harness.benchmarks.base import Benchmark
from harness.benchmarks.catalogue import benchmark
from harness.benchmarks.prepare import FOREIGN, Prepared, read
from harness.errors import UserError, making
from harness.llm import endpoints
from harness.llm.backbones import load as load_backbones
from harness.llm.client import InProcess
from harness.llm.endpoints import Endpoint
from harness.runner import config, layout
from harness.runner.config import Limit
from harness.runner.layout import Cell
from harness.runner.method import Matched, Setting, settings_of
from harness.runner.results import TEST_SPLIT, check_tables
from harness.runner.run import CellConfig, Identity, Run

if TYPE_CHECKING:
    from harness.simulator.endpoint import SimulatedEndpoint


@dataclass(frozen=True)
class Plan:
    """All that a cell needs to be run: its configuration, and what that names, opened."""

    run: Run
    cell: CellConfig
    identity: Identity  # of the cell, by the code that runs it
    folder: Path
    config: Any  # of the method, its module's ``Config``
    setting: Setting  # for the method
    benchmark: Benchmark
    questions: Prepared  # those that the limits of the preset leave
    endpoints: Mapping[str, Endpoint]  # of the backbones that the cell may ask
    in_process: InProcess | None  # backbones that reply in this process, None if servers or recordings reply
    is_foreign: bool  # the questions, and their checks, are the word of a recording
    in_flight: int  # questions answered at the same time


def plan(run: Run, of: Cell) -> Plan:
    """Return the plan of a cell.

    Raises:
        UserError: for a name or a setting that is not valid, questions that are missing or altered, a backbone without
            a server or a stated skill, a cell to be matched that is not finished, or nothing to train on.
    """
    cell = run.cell(of)
    entry, is_simulated = cell.entry, run.endpoints == "simulated"
    # Simulated backbones know the questions of all benchmarks.
    prepared = _read(run, run.benchmarks if is_simulated else (cell.benchmark,))
    used, loaded = _limited(prepared[cell.benchmark], cell.limit), benchmark(cell.benchmark)
    if entry.trained and not used.train:
        raise UserError(f"{cell.benchmark} has no question to train {cell.method} on here; train with other splits")
    in_process: InProcess | None = None
    servers: Mapping[str, Endpoint] = dict.fromkeys(cell.backbones, endpoints.IN_PROCESS)
    if is_simulated:
        in_process = simulated_endpoint(run, prepared)
    elif run.served:
        servers = run.servers_of(cell.backbones)
    setting = Setting(
        backbone=cell.backbone,
        pool=cell.backbones,
        benchmark=cell.benchmark,
        domain=loaded.role_domain,
        seed=cell.seed + entry.seed_offset,
        max_epochs=cell.limit.epochs,
        cost_factor=run.cost_factor,
        matched=None if cell.matched is None else _means(cell, cell.matched),
    )
    return Plan(
        run=run,
        cell=cell,
        identity=cell.identity,
        folder=layout.cell(run.name, cell),
        config=settings_of(entry.module, entry.config),
        setting=setting,
        benchmark=loaded,
        questions=used,
        endpoints=servers,
        in_process=in_process,
        is_foreign=used.source.startswith(FOREIGN),
        # Twice the calls that all servers take keep them full while other replies are graded or embedded.
        in_flight=run.in_flight or 2 * sum(server.max_in_flight for server in servers.values()),
    )


def questions(run: Run, benchmark_key: str) -> Prepared:
    """Read the questions of a benchmark that the limits of a run leave; UserError if they are missing or altered."""
    return _limited(_read(run, [benchmark_key])[benchmark_key], run.limit.of(benchmark_key))


def _limited(whole: Prepared, limit: Limit) -> Prepared:
    train = whole.train[: limit.used_questions(len(whole.train), limit.train)]
    test = whole.test[: limit.used_questions(len(whole.test), limit.test)]
    return dataclasses.replace(whole, train=train, test=test)


def _read(run: Run, benchmarks: Sequence[str]) -> dict[str, Prepared]:
    paths = {key: (layout.manifest(run.name, key), layout.items(run.name, key)) for key in benchmarks}
    return {key: read(*files) for key, files in paths.items()}


def _means(cell: Cell, other: CellConfig) -> Matched:
    """Return the cost and the depth that a cell has to meet; UserError while the other one is not finished."""
    folder = layout.cell(other.run.name, other)
    if not (run := folder / "run.json").exists():
        problem = f"{cell} has to meet the cost or the depth of {other}, which is not finished"
        raise UserError(problem, making(run))
    check_tables(folder, orjson.loads(run.read_bytes())["tables"])
    cost = f"cost_{other.entry.compared_cost}"
    is_test = [("split", "=", TEST_SPLIT)]
    columns = pq.read_table(folder / "items.parquet", columns=[cost, "depth"], filters=is_test).to_pydict()
    return Matched(other.method, cost=fmean(columns[cost]), depth=fmean(columns["depth"]))


def simulated_endpoint(run: Run, prepared: Mapping[str, Prepared]) -> SimulatedEndpoint:
    """Open all simulated backbones, which know some questions; UserError if one of the run has no stated skill."""
    from harness.simulator import response_model
    from harness.simulator.endpoint import SimulatedEndpoint

    values = response_model.load()
    for key in run.backbones:
        values.skill(key)
    # All backbones of the project, so that their revision does not depend on those of the preset.
    declared = load_backbones(config.FOLDER / "backbones.yaml")
    backbones = [backbone for key, backbone in declared.items() if key in values.backbones]
    pools = {key: questions.pool for key, questions in prepared.items()}
    return SimulatedEndpoint(values, backbones, pools, run.length_scale)
