"""One cell of the DAG: prepared data, a method, a client with its call log, evaluation, results."""

from __future__ import annotations

import hashlib
import json
import logging
import platform
import time
from collections.abc import Iterable, Mapping
from contextlib import AsyncExitStack
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from harness import config, layout
from harness.backbones import Backbone
from harness.backbones import load as load_backbones
from harness.benchmarks import Benchmark, Tools, benchmark
from harness.benchmarks.math_verifier import MathVerifier
from harness.benchmarks.prepare import Prepared, read
from harness.config import Cell, MethodEntry, Preset
from harness.embeddings import Embeddings
from harness.encoder import SentenceEncoder
from harness.errors import UserError
from harness.evaluate import evaluate
from harness.files import ROOT, code_of, write_atomically
from harness.items import Item
from harness.llm import endpoints
from harness.llm.attempts import AttemptLog
from harness.llm.call_log import CallLog, Seal, SealedLog
from harness.llm.client import ChatClient, Served
from harness.llm.transport import ChatEndpoint
from harness.method import Learner, Setting, build
from harness.progress import Progress
from harness.results import write
from harness.sandbox import Sandbox
from harness.training import CHECKPOINT, Training
from harness.workbench import Workbench
from harness.workplace import ErrorShare, Workplace

if TYPE_CHECKING:
    from harness.simulator import SimulatedEndpoint


logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Plan:
    """Everything a cell is made of, before it runs."""

    preset: Preset
    cell: Cell
    method: MethodEntry
    backbones: Mapping[str, Backbone]
    benchmark: Benchmark
    data: Prepared
    folder: Path
    shared: tuple[Path, ...]

    @property
    def test(self) -> list[Item]:
        """The test questions this preset asks."""
        return self.data.test[: self.preset.limit.test]

    @property
    def train(self) -> list[Item]:
        """The training questions this preset uses."""
        return self.data.train[: self.preset.limit.train]

    @property
    def rows(self) -> tuple[str, ...]:
        """The backbones this cell may ask."""
        return config.backbones_of(self.preset, self.cell)

    @property
    def setting(self) -> Setting:
        """What the method is told."""
        return Setting(
            backbone=self.cell.backbone,
            pool={key: self.backbones[key] for key in self.rows},
            benchmark=self.cell.benchmark,
            domain=self.benchmark.role_domain,
            seed=self.cell.seed,
            max_epochs=self.preset.limit.epochs,
        )


def plan(preset: Preset, cell: Cell) -> Plan:
    """Collect what a cell needs.

    Raises:
        UserError: A name that is not in the preset, or data that is missing or altered.
    """
    config.check_cell(preset, cell)
    entry = config.methods()[cell.method]
    return Plan(
        preset=preset,
        cell=cell,
        method=entry,
        backbones=load_backbones(ROOT / "config" / "backbones.yaml"),
        benchmark=benchmark(cell.benchmark),
        data=read(layout.manifest(preset.name, cell.benchmark), layout.items(preset.name, cell.benchmark)),
        folder=layout.cell(preset.name, cell),
        shared=tuple(layout.seal(preset.name, other) for other in config.sharing(preset, cell)),
    )


async def run(plan: Plan) -> dict[str, Any]:
    """Run a cell to its end, or go on where an earlier process stopped.

    Returns:
        The content of ``run.json``.

    Raises:
        UserError: The log is being written by another process, an endpoint is gone, the disk is full.
    """
    started, clock = time.time(), time.perf_counter()
    async with AsyncExitStack() as stack:
        log = stack.enter_context(CallLog(layout.call_log(plan.preset.name, plan.cell)))
        if len(log):
            logger.info("%s: %d finished calls in its log", plan.cell, len(log))
        attempts = AttemptLog(plan.folder / "attempts.jsonl")
        stack.callback(attempts.close)
        workplace, served = await open_workplace(plan, log, attempts, stack)
        method = build(plan.method.module, plan.setting, plan.method.config)
        used, trained, seconds = await _train(plan, method, workplace, served)
        answered = await evaluate(
            method,
            plan.test,
            workplace,
            Progress(str(plan.cell), len(plan.test)),
            in_flight=plan.preset.in_flight,
        )
        seal = log.seal(used | {call.key for one in answered for call in one.trajectory.calls})
        identity = {**_identity(plan, served, workplace.tools.sandbox.level), **trained}
        timing = {
            "started": started,
            "wall_s": time.perf_counter() - clock,
            "host": platform.node(),
            "platform": platform.platform(),
            "python": platform.python_version(),
            "endpoints": {key: endpoint.url for key, endpoint in _endpoints(plan).items()},
            "training_s": seconds,
            "calls": {**asdict(workplace.client.counts), "failed_attempts": attempts.failed},
        }
    result = write(plan.folder, answered, identity)
    write_atomically(layout.seal(plan.preset.name, plan.cell), orjson.dumps(seal._asdict(), option=orjson.OPT_INDENT_2))
    write_atomically(plan.folder / "timing.json", orjson.dumps(timing, option=orjson.OPT_INDENT_2))
    return result


async def open_workplace(
    plan: Plan, log: CallLog, attempts: AttemptLog, stack: AsyncExitStack
) -> tuple[Workplace, Mapping[str, Served]]:
    """Reach the backbones of a plan and set up all else that its trajectories need, until the stack is closed.

    Returns:
        The workplace, and what each endpoint says of the model it serves.

    Raises:
        UserError: An endpoint does not answer, or serves another model.
    """
    client = await stack.enter_async_context(_client(plan, log, attempts))
    served = {key: await client.served(key, plan.backbones[key].model) for key in plan.rows}
    sandbox = await stack.enter_async_context(Sandbox())
    verifier = await stack.enter_async_context(MathVerifier())
    encoder = SentenceEncoder()
    embeddings = await stack.enter_async_context(
        Embeddings(encoder, layout.embeddings(encoder.identity, plan.cell.benchmark), _name(plan))
    )
    workplace = Workplace(
        client=client,
        backbones={key: _as_served(plan.backbones[key], one) for key, one in served.items()},
        benchmark=plan.benchmark,
        tools=Tools(sandbox, verifier),
        workbench=Workbench(sandbox),
        embeddings=embeddings,
        seed=plan.cell.seed,
        errors=ErrorShare(plan.preset.max_error_share),
    )
    return workplace, served


async def _train(
    plan: Plan, method: Learner, workplace: Workplace, served: Mapping[str, Served]
) -> tuple[set[str], dict[str, Any], dict[str, float]]:
    """Train a method that learns, or go on with it.

    Returns:
        Keys of the calls it used, what ``run.json`` says of the training, and its seconds by phase.
    """
    if not plan.method.trained:
        return set(), {}, {}
    facts = _training_facts(plan, workplace, served)
    training = Training(plan.train, workplace, plan.folder, facts, str(plan.cell))
    await method.fit(training)
    used = training.finish()
    checkpoint = hashlib.sha256((plan.folder / CHECKPOINT).read_bytes()).hexdigest()
    return used, {"encoder": facts["encoder"], "checkpoint": checkpoint}, training.seconds


def _as_served(backbone: Backbone, served: Served) -> Backbone:
    """The backbone with the revision its server reports, which then is part of every call's identity.

    Raises:
        UserError: The configuration pins another revision.
    """
    pinned = backbone.revision if not served.simulated else None
    if pinned and served.revision and pinned != served.revision:
        raise UserError(
            f"{backbone.key} is pinned to revision {pinned} but its server has {served.revision}; "
            "serve the pinned revision, or correct config/backbones.yaml"
        )
    return replace(backbone, revision=served.revision or backbone.revision)


def _client(plan: Plan, log: CallLog, attempts: AttemptLog) -> ChatClient:
    return ChatClient(_endpoints(plan), log, attempts, [_sealed(path) for path in plan.shared], _in_process(plan))


def _endpoints(plan: Plan) -> dict[str, endpoints.Endpoint]:
    if plan.preset.simulated:
        return dict.fromkeys(plan.rows, endpoints.simulated())
    return endpoints.load(ROOT / "config" / "endpoints.yaml", plan.rows)


def _in_process(plan: Plan) -> ChatEndpoint | None:
    return simulated_endpoint(plan.preset) if plan.preset.simulated else None


def simulated_endpoint(preset: Preset) -> SimulatedEndpoint:
    """The simulated backbones of a preset, with every benchmark it has."""
    from harness.simulator import SimulatedEndpoint, World

    pools = {key: read(layout.manifest(preset.name, key), layout.items(preset.name, key)) for key in preset.benchmarks}
    return SimulatedEndpoint(World.load(layout.world(preset.name), pools), length_scale=preset.length_scale)


def _sealed(path: Path) -> SealedLog:
    try:
        seal = Seal(**json.loads(path.read_text()))
    except (OSError, ValueError, TypeError) as error:
        raise UserError(f"{path} is not a seal ({error}); rerun the cell that makes it") from error
    return SealedLog(path.with_name(layout.CALL_LOG), seal)


def _identity(plan: Plan, served: Mapping[str, Served], sandbox: str) -> dict[str, Any]:
    settings = config.identity(plan.preset, plan.cell)
    simulated = any(one.simulated for one in served.values())
    return {
        "preset": plan.preset.name,
        "method": plan.cell.method,
        "method_title": plan.method.title,
        "benchmark": plan.cell.benchmark,
        "benchmark_title": plan.data.title,
        "backbone": plan.cell.backbone,
        "seed": plan.cell.seed,
        "simulated": simulated,
        "calibrated": simulated and plan.method.calibrated,
        "notes": _notes(plan, served.values()),
        "data": {
            "source": plan.data.source,
            "splits": plan.data.splits,
            "checksum": plan.data.checksum,
            "split_checksum": plan.data.split_checksum,
            "n_test": len(plan.test),
        },
        "config_hash": hashlib.sha256(orjson.dumps(settings, option=orjson.OPT_SORT_KEYS)).hexdigest(),
        "code": code_of(plan.method.module),
        "backbones": {
            key: {
                "model": one.model,
                "served_by": one.owned_by,
                **one.details,
                "revision": _as_served(plan.backbones[key], one).revision,
                "revision_confirmed": one.revision is not None,
            }
            for key, one in served.items()
        },
        "sandbox": sandbox,
        "rule_version": plan.benchmark.rule_version,
    }


def _training_facts(plan: Plan, workplace: Workplace, served: Mapping[str, Served]) -> dict[str, Any]:
    """What a checkpoint says of its training; ``identity`` covers all that can change what is learned."""
    settings = config.identity(plan.preset, plan.cell)
    settings["preset"]["limit"].pop("test")
    encoder = workplace.embeddings.encoder.identity
    made_of = {
        "settings": settings,
        "code": code_of(plan.method.module),
        "data": [plan.data.checksum, plan.data.split_checksum],
        "revisions": {key: one.revision for key, one in workplace.backbones.items()},
        "encoder": encoder,
        "sandbox": workplace.tools.sandbox.level,
    }
    return {
        "identity": hashlib.sha256(orjson.dumps(made_of, option=orjson.OPT_SORT_KEYS)).hexdigest(),
        "preset": plan.preset.name,
        "simulated": any(one.simulated for one in served.values()),
        "method": plan.cell.method,
        "module": plan.method.module,
        "config": dict(plan.method.config),
        "backbone": plan.cell.backbone,
        "benchmark": plan.cell.benchmark,
        "seed": plan.cell.seed,
        "encoder": encoder,
    }


def _name(plan: Plan) -> str:
    """The plan's folder as the name of a file that no other plan writes."""
    return "-".join(plan.folder.relative_to(layout.RESULTS).parts)


def _notes(plan: Plan, served: Iterable[Served]) -> list[str]:
    scales = sorted({str(one.details["length_scale"]) for one in served if "length_scale" in one.details} - {"1"})
    limit = plan.preset.limit
    bounds = {"training questions": limit.train, "epochs": limit.epochs} if plan.method.trained else {}
    kept = [f"{bound} {what}" for what, bound in {**bounds, "test questions": limit.test}.items() if bound is not None]
    return [*(f"length_scale {scale}" for scale in scales), *([f"limit: {', '.join(kept)}"] if kept else [])]
