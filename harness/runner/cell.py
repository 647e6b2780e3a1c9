"""Run a cell: train a method that learns, answer and grade the test questions, write results."""

from __future__ import annotations

import asyncio
import logging
import platform
import time
from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import asdict
from typing import Any

import orjson

from harness.agents.runtime import Runtime
from harness.database import Cache
from harness.errors import StoppedError
from harness.files import digest, sha256, write_atomically
from harness.llm.call_log import ATTEMPT_LOG, CALL_LOG, AttemptLog, CallLog, CallLogReader
from harness.llm.client import ChatClient, note_served
from harness.llm.request import NOT_SENT, Served
from harness.runner import layout
from harness.runner.evaluation import evaluate, progress
from harness.runner.method import build
from harness.runner.plan import Plan
from harness.runner.results import write
from harness.runner.setup import is_simulated, open_runtime, spending_of
from harness.sandbox import Sandbox
from harness.training.loop import CHECKPOINT, Training, delete_checkpoints

logger = logging.getLogger(__name__)


async def run(plan: Plan) -> dict[str, Any]:
    """Run or resume a cell; return the content of ``run.json``.

    Raises:
        UserError: if its log is in use, an endpoint is gone, or the disk is full.
        StoppedError: if it is cancelled.
    """
    with CallLog(plan.folder / CALL_LOG) as log:
        if len(log):
            logger.info("%s: %d finished calls in its log", plan.cell, len(log))
        try:
            return await _run(plan, log)
        except asyncio.CancelledError as error:
            raise StoppedError(
                f"{len(log)} finished calls of {plan.cell} are kept, and the same command resumes with them"
            ) from error


async def _run(plan: Plan, log: CallLog) -> dict[str, Any]:
    started, clock = time.time(), time.perf_counter()
    method = build(plan.method.module, plan.setting, plan.config, trained=plan.method.trained)
    async with AsyncExitStack() as stack:
        attempts = stack.enter_context(AttemptLog(plan.folder / ATTEMPT_LOG))
        shared = [stack.enter_context(CallLogReader(path)) for path in plan.shared_logs]
        cache, vectors = (stack.enter_context(Cache(path)) for path in (layout.cache(), plan.vectors))
        client = ChatClient(plan.endpoints, log, attempts, shared, plan.in_process, spending_of(plan, log.path))
        runtime, served = await open_runtime(plan, client, Sandbox(cache=cache), cache, stack, vectors)
        if not plan.preset.recorded:
            note_served(plan.folder, served.values())
        seconds: dict[str, float] = {}
        if plan.method.trained:
            training = Training(
                plan.questions.train,
                runtime,
                folder=plan.folder,
                facts=_training_facts(plan, runtime, served),
                label=str(plan.cell),
                has_call=log.__contains__,
                in_flight=plan.in_flight,
                keep_epochs=plan.preset.epoch_checkpoints,
            )
            with progress(client, training.so_far):
                await method.fit(training)
            training.finish()
            seconds = training.seconds
        answered = await evaluate(method, plan.questions.test, runtime, str(plan.cell), in_flight=plan.in_flight)
        record = _record(plan, runtime, served)
        timing = {
            "started": started,
            "wall_s": time.perf_counter() - clock,
            "host": platform.node(),
            "platform": platform.platform(),
            "python": platform.python_version(),
            "endpoints": {key: endpoint.url for key, endpoint in plan.endpoints.items()},
            "training_s": seconds,
            "calls": {**asdict(client.counts), "failed_attempts": attempts.failed},
        }
    result = write(plan.folder, answered, record, method.utility if plan.method.trained else None)
    write_atomically(plan.folder / "timing.json", orjson.dumps(timing, option=orjson.OPT_INDENT_2))
    if not plan.preset.epoch_checkpoints:
        delete_checkpoints(plan.folder)
    return result


def _record(plan: Plan, runtime: Runtime, served: Mapping[str, Served]) -> dict[str, Any]:
    """Return the content of ``run.json`` but for the hashes of tables: all that identifies the results."""
    questions, trained = plan.questions, plan.method.trained
    record = {
        **plan.record,
        "benchmark_title": questions.title,
        "simulated": is_simulated(plan, served),
        "notes": _notes(plan, served),
        "data": {
            "source": questions.source,
            "splits": questions.splits,
            "checksum": questions.checksum,
            "split_checksum": questions.split_checksum,
            "n_test": len(questions.test),
            "n_train": len(questions.train) if trained else 0,
        },
        "config": plan.config.model_dump(mode="json"),
        "backbones": {key: _backbone_record(plan, runtime, key, model) for key, model in served.items()},
        "sandbox": runtime.tools.sandbox.level,
        "rule_version": plan.benchmark.rule_version,
    }
    if plan.setting.matched is not None:
        record["matched"] = plan.setting.matched._asdict()
    if trained:
        record["encoder"] = runtime.embeddings.encoder.identity
        record["checkpoint"] = sha256(plan.folder / CHECKPOINT)
    return record


def _backbone_record(plan: Plan, runtime: Runtime, key: str, served: Served) -> dict[str, Any]:
    backbone = runtime.backbones[key]
    return {
        "model": served.model,
        "parameters_b": backbone.parameters_b,
        "prices": [backbone.price_in, backbone.price_out],
        "served_by": served.owned_by,
        **served.details,
        **({"weights": backbone.weights} if backbone.weights else {}),
        "revision": backbone.revision,
        "revision_confirmed": served.revision is not None,
    }


def _training_facts(plan: Plan, runtime: Runtime, served: Mapping[str, Served]) -> dict[str, Any]:
    """Return the facts of a training in its checkpoints; ``identity`` covers all that can change the result."""
    preset = plan.settings["preset"]
    limit = {name: bound for name, bound in preset["limit"].items() if name != "test"}
    encoder = runtime.embeddings.encoder.identity
    inputs = {
        "settings": {**plan.settings, "preset": {**preset, "limit": limit}},
        "code": plan.record["code"],
        "data": [plan.questions.checksum, plan.questions.split_checksum],
        "revisions": {key: backbone.revision for key, backbone in runtime.backbones.items()},
        "encoder": encoder,
        "sandbox": runtime.tools.sandbox.level,
    }
    return {
        "identity": digest(inputs),
        "preset": plan.preset.name,
        "simulated": is_simulated(plan, served),
        **asdict(plan.cell),
        "module": plan.method.module,
        "config": dict(plan.method.config),
        "training_seed": plan.setting.seed,
        "encoder": encoder,
    }


def _notes(plan: Plan, served: Mapping[str, Served]) -> list[str]:
    """Return notes on how the setting differs from the paper's."""
    backbones = plan.backbones.values()
    notes = sorted({f"weights {backbone.weights}" for backbone in backbones if backbone.weights})
    for key, model in served.items():
        if model.quantisation and not plan.backbones[key].weights:
            notes.append(f"{key} of weights in {model.quantisation}, as its server says")
        if NOT_SENT in model.details:
            notes.append(f"{key} asked without {model.details[NOT_SENT]}, which its server does not take")
    if any(backbone.price for backbone in backbones):
        notes.append("costs at the prices that the pool states")
    merged = [backbone.key for backbone in backbones if backbone.system == "merge"]
    notes += [f"system message merged into the user's for {', '.join(merged)}"] if merged else []
    if plan.preset.decoding == "greedy":
        notes.append("greedy decoding everywhere")
    scales = {str(model.details.get("length_scale", 1)) for model in served.values()}
    notes += [f"length_scale {scale}" for scale in sorted(scales - {"1"})]
    limit = plan.preset.limit
    bounds = {"training questions": limit.train, "epochs": limit.epochs} if plan.method.trained else {}
    limits = [] if limit.share is None else [f"{100 * limit.share:g}% of the questions"]
    for name, bound in {**bounds, "test questions": limit.test}.items():
        if bound is not None:
            limits.append(f"{bound} {name if bound != 1 else name.removesuffix('s')}")
    return [*notes, f"limit: {', '.join(limits)}"] if limits else notes
