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

from harness.benchmarks import Benchmark, benchmark
from harness.benchmarks.prepare import FOREIGN, Prepared, read
from harness.errors import UserError, making
from harness.llm import endpoints
from harness.llm.backbones import Backbone
from harness.llm.backbones import load as load_backbones
from harness.llm.client import InProcess
from harness.llm.endpoints import Endpoint
from harness.llm.recordings import Recording
from harness.runner import config, config_hash, layout
from harness.runner.config import Cell, MethodEntry, Preset
from harness.runner.method import Matched, Setting, settings_of
from harness.runner.results import TEST_SPLIT

if TYPE_CHECKING:
    from harness.simulator.endpoint import SimulatedEndpoint


@dataclass(frozen=True)
class Plan:
    """All that a cell needs; what runs it opens no configuration."""

    preset: Preset
    cell: Cell
    folder: Path
    method: MethodEntry
    config: Any  # of the method, its module's ``Config``
    setting: Setting  # for the method
    benchmark: Benchmark
    questions: Prepared  # those that the limits of the preset leave
    backbones: Mapping[str, Backbone]  # that the cell may ask
    endpoints: Mapping[str, Endpoint]  # of these backbones
    in_process: InProcess | None  # backbones that reply in this process, None if servers or recordings reply
    recorded: Sequence[Recording]  # that answer calls
    foreign: bool  # the questions, and their checks, are the word of a recording
    all_backbones: Sequence[Backbone]  # of the whole preset, whose calls its budget counts
    vectors: Path  # file of the sentence embeddings that the cell uses
    answers_training: bool  # it answers the training questions, too
    in_flight: int  # questions answered at the same time
    greedy: bool  # calls have temperature 0, but for samples of one prompt
    settings: Mapping[str, Any]  # that can change its results
    record: Mapping[str, Any]  # part of ``run.json`` that follows from configuration and code


def plan(preset: Preset, cell: Cell) -> Plan:
    """Return the plan of a cell.

    Raises:
        UserError: for a name or a setting that is not valid, questions that are missing or altered, a backbone without
            a server or a stated skill, a cell to be matched that is not finished, or nothing to train on.
    """
    config.check_cell(preset, cell)
    entry, declared = config.methods(preset.extra)[cell.method], config.backbones(preset)
    backbones = {key: declared[key] for key in config.backbones_of(preset, cell)}
    folder, loaded = layout.cell(preset.name, cell), benchmark(cell.benchmark)
    asked = questions(preset, cell.benchmark)
    if entry.trained and not asked.train:
        raise UserError(f"{cell.benchmark} has no question to train {cell.method} on here; train with other splits")
    in_process: InProcess | None = None
    servers: Mapping[str, Endpoint] = dict.fromkeys(backbones, endpoints.IN_PROCESS)
    if preset.endpoints == "simulated":
        in_process = simulated_endpoint(preset)
    elif preset.served:
        servers = config.servers(preset, backbones)
    setting = Setting(
        backbone=cell.backbone,
        pool=backbones,
        benchmark=cell.benchmark,
        domain=loaded.role_domain,
        seed=cell.seed + entry.seed_offset,
        max_epochs=preset.limit.epochs,
        cost_factor=config.cost_factor(preset),
        matched=_matched(preset, cell),
    )
    return Plan(
        preset=preset,
        cell=cell,
        folder=folder,
        method=entry,
        config=settings_of(entry.module, entry.config),
        setting=setting,
        benchmark=loaded,
        questions=asked,
        backbones=backbones,
        endpoints=servers,
        in_process=in_process,
        recorded=preset.recorded,
        foreign=asked.source.startswith(FOREIGN),
        all_backbones=list(declared.values()),
        vectors=folder / layout.VECTORS,
        answers_training=preset.answer_training and not entry.trained,
        # Twice the calls that all servers take keep them full while other replies are graded or embedded.
        in_flight=preset.in_flight or 2 * sum(server.max_in_flight for server in servers.values()),
        greedy=config.is_greedy(preset, entry),
        settings=config_hash.of_cell(preset, cell),
        record=config_hash.declared(preset, cell),
    )


def questions(preset: Preset, benchmark_key: str) -> Prepared:
    """Read the questions of a benchmark that the limits of a preset leave; UserError if they are missing or altered."""
    whole, limit = _prepared(preset, benchmark_key), preset.limit.of(benchmark_key)
    train = whole.train[: limit.used_questions(len(whole.train), limit.train)]
    test = whole.test[: limit.used_questions(len(whole.test), limit.test)]
    return dataclasses.replace(whole, train=train, test=test)


def _prepared(preset: Preset, benchmark_key: str) -> Prepared:
    return read(layout.manifest(preset.name, benchmark_key), layout.items(preset.name, benchmark_key))


def _matched(preset: Preset, cell: Cell) -> Matched | None:
    """Return what a cell has to meet, None if nothing; UserError while the cell that says so is not finished."""
    other = config.matched(preset, cell)
    if other is None:
        return None
    entry, folder = config.methods(preset.extra)[other.method], layout.cell(preset.name, other)
    if not (run := folder / "run.json").exists():
        problem = f"{cell} has to meet the cost or the depth of {other}, which is not finished"
        raise UserError(problem, making(run))
    config_hash.check_tables(folder, orjson.loads(run.read_bytes())["tables"])
    cost = f"cost_{entry.compared_cost}"
    is_test = [("split", "=", TEST_SPLIT)]
    columns = pq.read_table(folder / "items.parquet", columns=[cost, "depth"], filters=is_test).to_pydict()
    return Matched(other.method, cost=fmean(columns[cost]), depth=fmean(columns["depth"]))


def simulated_endpoint(preset: Preset) -> SimulatedEndpoint:
    """Open all simulated backbones, for the benchmarks of a preset; UserError if one of its own has no stated skill."""
    from harness.simulator import parameters
    from harness.simulator.endpoint import SimulatedEndpoint

    values = parameters.load()
    for key in preset.backbones:
        values.skill(key)
    # All backbones of the project, so that their revision does not depend on those of the preset.
    declared = load_backbones(config.FOLDER / "backbones.yaml")
    backbones = [backbone for key, backbone in declared.items() if key in values.backbones]
    pools = {key: _prepared(preset, key).pool for key in preset.benchmarks}
    return SimulatedEndpoint(values, backbones, pools, preset.length_scale)
