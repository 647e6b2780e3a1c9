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
from harness.errors import StoppedError
from harness.files import digest, sha256, write_atomically
from harness.fingerprint import code_of
from harness.llm.call_log import ATTEMPT_LOG, AttemptLog, CallLog
from harness.llm.client import note_served
from harness.llm.request import NOT_SENT, Served
from harness.runner import config_hash, layout
from harness.runner.evaluation import evaluate, progress, questions_in_flight
from harness.runner.method import build, settings_of
from harness.runner.plan import Plan
from harness.runner.results import write
from harness.runner.setup import as_served, endpoints_of, is_simulated, open_runtime
from harness.training.loop import CHECKPOINT, Training, delete_checkpoints

logger = logging.getLogger(__name__)


async def run(plan: Plan) -> dict[str, Any]:
    """Run or resume a cell; return the content of ``run.json``.

    Raises:
        UserError: if its log is in use, an endpoint is gone, or the disk is full.
        StoppedError: if it is cancelled.
    """
    with CallLog(layout.call_log(plan.preset.name, plan.cell)) as log:
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
    async with AsyncExitStack() as stack:
        attempts = stack.enter_context(AttemptLog(plan.folder / ATTEMPT_LOG))
        runtime, served = await open_runtime(plan, log, attempts, stack)
        if not plan.preset.recorded:
            note_served(plan.folder, served.values())
        method = build(plan.method.module, plan.setting, plan.method.config, trained=plan.method.trained)
        servers = endpoints_of(plan)
        in_flight = plan.preset.in_flight or questions_in_flight(servers.values())
        identity = _identity(plan, served, runtime.tools.sandbox.level)
        seconds: dict[str, float] = {}
        if plan.method.trained:
            facts = _training_facts(plan, runtime, served)
            training = Training(
                plan.train,
                runtime,
                folder=plan.folder,
                facts=facts,
                label=str(plan.cell),
                has_call=log.__contains__,
                in_flight=in_flight,
                keep_epochs=plan.preset.epoch_checkpoints,
            )
            with progress(runtime.client, training.so_far):
                await method.fit(training)
            training.finish()
            checkpoint = sha256(plan.folder / CHECKPOINT)
            identity |= {"encoder": facts["encoder"], "checkpoint": checkpoint}
            seconds = training.seconds
        answered = await evaluate(method, plan.test, runtime, str(plan.cell), in_flight=in_flight)
        timing = {
            "started": started,
            "wall_s": time.perf_counter() - clock,
            "host": platform.node(),
            "platform": platform.platform(),
            "python": platform.python_version(),
            "endpoints": {key: endpoint.url for key, endpoint in servers.items()},
            "training_s": seconds,
            "calls": {**asdict(runtime.client.counts), "failed_attempts": attempts.failed},
        }
    result = write(plan.folder, answered, identity, method.utility if plan.method.trained else None)
    write_atomically(plan.folder / "timing.json", orjson.dumps(timing, option=orjson.OPT_INDENT_2))
    if not plan.preset.epoch_checkpoints:
        delete_checkpoints(plan.folder)
    return result


def _identity(plan: Plan, served: Mapping[str, Served], sandbox: str) -> dict[str, Any]:
    return {
        **config_hash.declared(plan.preset, plan.cell),
        "benchmark_title": plan.data.title,
        "simulated": is_simulated(plan, served),
        "notes": _notes(plan, served),
        "data": {
            "source": plan.data.source,
            "splits": plan.data.splits,
            "checksum": plan.data.checksum,
            "split_checksum": plan.data.split_checksum,
            "n_test": len(plan.test),
            "n_train": len(plan.train) if plan.method.trained else 0,
        },
        "config": settings_of(plan.method.module, plan.method.config).model_dump(mode="json"),
        "backbones": {
            key: {
                "model": model.model,
                "parameters_b": plan.backbones[key].parameters_b,
                "prices": [plan.backbones[key].price_in, plan.backbones[key].price_out],
                "served_by": model.owned_by,
                **model.details,
                **({"weights": plan.backbones[key].weights} if plan.backbones[key].weights else {}),
                "revision": as_served(plan.backbones[key], model).revision,
                "revision_confirmed": model.revision is not None,
            }
            for key, model in served.items()
        },
        "sandbox": sandbox,
        "rule_version": plan.benchmark.rule_version,
        **({"matched": plan.matched._asdict()} if plan.matched else {}),
    }


def _training_facts(plan: Plan, runtime: Runtime, served: Mapping[str, Served]) -> dict[str, Any]:
    """Return the facts of a training in its checkpoints; ``identity`` covers all that can change the result."""
    settings = config_hash.of_cell(plan.preset, plan.cell)
    settings["preset"]["limit"].pop("test")
    encoder = runtime.embeddings.encoder.identity
    inputs = {
        "settings": settings,
        "code": code_of(plan.method.module),
        "data": [plan.data.checksum, plan.data.split_checksum],
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
        "training_seed": plan.seed,
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
