"""Plan of a cell: everything it needs, loaded and checked before any call."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

import orjson
import pyarrow.parquet as pq

from harness.benchmarks.base import Benchmark
from harness.benchmarks.catalogue import benchmark
from harness.benchmarks.items import keyed_order
from harness.benchmarks.prepare import Prepared, read
from harness.errors import UserError
from harness.files import check
from harness.llm.backbones import Endpoint
from harness.llm.backbones import load as load_backbones
from harness.llm.encoder import SentenceEncoder, VectorCheck
from harness.runner import config, layout
from harness.runner.preset import making_with
from harness.runner.results import TEST_SPLIT, check_tables
from harness.runner.run import CellConfig, Run
from harness.runner.setting import Matched, Setting, settings_of

if TYPE_CHECKING:
    from harness.simulator.endpoint import SimulatedEndpoint

# Concurrent questions of a cell without servers.
_IN_FLIGHT = 64


@dataclass(frozen=True)
class Plan:
    """Resolved inputs of a cell."""

    cell: CellConfig
    folder: Path
    config: Any  # ``Config`` of the method's module
    setting: Setting
    benchmark: Benchmark
    questions: Prepared  # within the limits of the preset
    endpoints: Mapping[str, Endpoint]  # by backbone; empty if no server replies
    in_process: SimulatedEndpoint | None  # simulated backbones; None if servers or recordings reply
    in_flight: int  # concurrent questions
    vectors: VectorCheck = field(default_factory=VectorCheck)  # of recordings
    encoder: SentenceEncoder | None = None  # instead of that of config/encoder.yaml


def plan(run: Run, of: layout.Cell) -> Plan:
    """Load and check everything that a cell needs.

    Raises:
        UserError: if a name or setting is invalid, questions are missing or altered, a backbone has no server or no
            simulated skill, the cell to match is not finished, or there is no training question.
    """
    cell = run.cell(of)
    entry = cell.entry
    prepared = {key: _read(run, key) for key in cell.known_benchmarks}
    used = _used(run, cell.benchmark, cell.seed, prepared[cell.benchmark])
    if run.splits == "resampled" and not entry.trained:
        # Answered once for all splits. Reports take the test questions of each.
        used = replace(used, train=[], test=[*used.train, *used.test])
    loaded = benchmark(cell.benchmark)
    if entry.trained and not used.train:
        raise UserError(f"{cell.benchmark} has no training questions for {cell.method}; choose other splits")
    if entry.trained and loaded.names_models and not used.train[0].question:
        raise UserError(f"{cell.benchmark} has no column question, which {cell.method} embeds", "add it to the table")
    servers = run.servers_of(cell.backbones) if run.served else {}
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
        cell=cell,
        folder=layout.cell(run.name, cell),
        config=settings_of(entry.module, entry.config),
        setting=setting,
        benchmark=loaded,
        questions=used,
        endpoints=servers,
        in_process=simulated_endpoint(run, prepared) if run.endpoints == "simulated" else None,
        # Twice the number of server slots keeps servers busy while other replies are graded or embedded.
        in_flight=run.in_flight or 2 * sum(server.max_in_flight for server in servers.values()) or _IN_FLIGHT,
    )


def questions(run: Run, benchmark_key: str, seed: int = 0) -> Prepared:
    """Read a benchmark's questions as a cell with a seed uses them. Raises UserError if they are missing or altered."""
    return _used(run, benchmark_key, seed, _read(run, benchmark_key))


def _used(run: Run, benchmark_key: str, seed: int, whole: Prepared) -> Prepared:
    """Limit questions as the run says. In a resampled run the seed draws those for training from the recorded ones."""
    limit = run.limit.of(benchmark_key)
    if run.splits != "resampled":
        return _limited(whole, limit)
    for path, settings in ((recording.path, recording.settings) for recording in run.recorded):
        if benchmark_key in settings["benchmarks"] and settings.get("splits") != run.splits:
            whole = _limited(whole, check(settings.get("limit") or {}, config.Limit, path).of(benchmark_key))
    answered = {item.id: item for item in (*whole.train, *whole.test)}
    drawn = [answered[id_] for id_ in keyed_order(answered, f"{benchmark_key}/split {seed}")]
    n_train = limit.used_questions(len(drawn), limit.train)
    if n_train == len(drawn):
        problem = f"limit: {{train: {limit.train}}} leaves no test question of {benchmark_key}"
        raise UserError(problem, f"the recordings answered {len(drawn)} questions; take fewer for training")
    return replace(whole, splits=run.splits, train=drawn[:n_train], test=drawn[n_train:])


def _limited(whole: Prepared, limit: config.Limit) -> Prepared:
    train = whole.train[: limit.used_questions(len(whole.train), limit.train)]
    test = whole.test[: limit.used_questions(len(whole.test), limit.test)]
    return replace(whole, train=train, test=test)


def _read(run: Run, benchmark_key: str) -> Prepared:
    return read(*layout.questions(run.name, benchmark_key))


def _means(cell: layout.Cell, other: CellConfig) -> Matched:
    """Mean cost and depth of the cell to match. Raises UserError if it is not finished."""
    folder = layout.cell(other.run.name, other)
    if not (run := folder / "run.json").exists():
        problem = f"{cell} matches the cost or depth of {other}, which is not finished"
        raise UserError(problem, making_with(other.run, run))
    check_tables(folder, orjson.loads(run.read_bytes())["tables"])
    cost = f"cost_{other.entry.compared_cost}"
    is_test = [("split", "=", TEST_SPLIT)]
    columns = pq.read_table(folder / "items.parquet", columns=[cost, "depth"], filters=is_test).to_pydict()
    return Matched(other.method, cost=fmean(columns[cost]), depth=fmean(columns["depth"]))


def simulated_endpoint(run: Run, prepared: Mapping[str, Prepared]) -> SimulatedEndpoint:
    """Create all simulated backbones, which know the given questions. Raises UserError if one has no skill."""
    from harness.simulator import endpoint, response_model

    values = response_model.load()
    for key in run.backbones:
        values.skill(key)
    # All declared backbones, so that the revision does not depend on the preset.
    declared = load_backbones(config.FOLDER / "backbones.yaml")
    backbones = [backbone for key, backbone in declared.items() if key in values.backbones]
    pools = {key: questions.pool for key, questions in prepared.items()}
    return endpoint.SimulatedEndpoint(values, backbones, pools, run.length_scale)
