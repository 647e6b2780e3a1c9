"""Timing of a method: answer the test set of a finished cell once more, with nothing cached.

A cell itself answers from logs and caches, trains, grades and shares the machine. Here its trained method answers all
test questions in one pass, a fixed number at a time; an interrupted pass starts over. No simulated backbone is timed.
"""

from __future__ import annotations

import dataclasses
import logging
import os
import platform
import time
from collections.abc import Collection, Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast

import orjson

from harness.agents.trajectory import Trajectory
from harness.benchmarks.items import Item
from harness.database import Cache
from harness.errors import UserError, making
from harness.files import sha256, write_atomically
from harness.llm.backbones import Backbone
from harness.llm.call_log import ATTEMPT_LOG, AttemptLog, CallLog
from harness.llm.client import ChatClient
from harness.llm.request import Reply, Request
from harness.runner import config_hash, layout
from harness.runner.cell import is_simulated, open_runtime, spending_of
from harness.runner.config import Cell, Preset
from harness.runner.evaluation import of_each
from harness.runner.method import Method, build
from harness.runner.plan import Plan, plan
from harness.sandbox import Sandbox
from harness.training import checkpoint

logger = logging.getLogger(__name__)

SCHEMA_VERSION = 1
FILE = "timing.json"
# Questions in flight, for all methods. With far fewer, servers have nothing to batch; with far more, a test set of some
# hundred questions takes as long as its longest one.
CONCURRENCY = 32


async def run(preset: Preset, cell: Cell) -> dict[str, Any]:
    """Time the method of a finished cell, write ``timing.json`` and return its content.

    The time includes everything from the questions to the texts of their answers: the method's computing, embeddings,
    tools of roles, calls and their retries. It excludes loading the method and the sentence encoder, and grading.
    Raises UserError if the backbones are simulated, the cell is not finished or not current, an endpoint is gone or too
    many questions failed.
    """
    if preset.simulated:
        raise UserError(f"{cell} of {preset.name} is simulated; only calls of real models take a time to be measured")
    finished = config_hash.finished_run(preset, cell)
    planned = plan(preset, cell)
    in_flight, number = min(preset.in_flight or CONCURRENCY, CONCURRENCY), len(planned.questions.test)
    calls, measured = await timed(planned, finished, in_flight)
    timing = {
        "schema": SCHEMA_VERSION,
        "preset": preset.name,
        **dataclasses.asdict(cell),
        "cell": {name: finished.get(name) for name in ("run_id", "config_hash", "code", "checkpoint")},
        "n": number,
        "seconds_per_query": measured["seconds"] / number,
        "concurrency": in_flight,
        "calls": len(calls),
        "failed_calls": sum(call["error"] is not None for call in calls),
        "prompt_tokens": sum(call["prompt_tokens"] for call in calls),
        "completion_tokens": sum(call["completion_tokens"] for call in calls),
        "host": {"node": platform.node(), "platform": platform.platform(), "processors": os.cpu_count()},
        **measured,
    }
    path = layout.timing(preset.name, cell) / FILE
    write_atomically(path, orjson.dumps(timing, option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS))
    made_of = layout.made_of(preset.name, layout.timing_name(cell))
    config_hash.note_made_of(made_of, config_hash.made_of_timing(preset, cell))
    logger.info("%s: %.1f s, %.2f s a question", cell, timing["seconds"], timing["seconds_per_query"])
    return timing


async def timed(plan: Plan, finished: Mapping[str, Any], in_flight: int) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Answer all test questions once more; return the calls, and the seconds by the clock."""
    if plan.preset.recorded:
        raise UserError(f"{plan.cell} was not timed when the run was recorded, and no server is asked here")
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory(prefix="gmr-timing-")))
        log = stack.enter_context(CallLog(folder / layout.CALL_LOG))
        attempts = stack.enter_context(AttemptLog(folder / ATTEMPT_LOG))
        cache = stack.enter_context(Cache(folder / "cache.sqlite"))
        client = AskingAlways(plan.endpoints, log, attempts, spending=spending_of(plan))
        runtime, served = await open_runtime(plan, client, Sandbox(), cache, stack)
        _check_backbones(plan, finished, runtime.backbones)
        method = _trained_method(plan, finished)
        if plan.method.trained:
            runtime.embeddings.encoder.encode("The first text loads the model.")
        logger.info("%s: timing %d questions, %d at a time", plan.cell, len(plan.questions.test), in_flight)

        async def answer(item: Item) -> Trajectory:
            context = runtime.context(item)
            trajectory = context.close(await method.solve(item, context))
            runtime.errors.count_attempt(trajectory.failed_call)
            return trajectory

        def line(timed: Collection[Trajectory]) -> str:
            return f"{plan.cell}: {len(timed)}/{len(plan.questions.test)} questions timed"

        started = time.perf_counter()
        trajectories = await of_each(plan.questions.test, answer, runtime, in_flight, line)
        seconds = time.perf_counter() - started
    calls = [dataclasses.asdict(call) for trajectory in trajectories for call in trajectory.calls]
    return calls, {"simulated": is_simulated(plan, served), "seconds": seconds}


def _check_backbones(plan: Plan, finished: Mapping[str, Any], backbones: Mapping[str, Backbone]) -> None:
    """Raise a UserError if a backbone has another name or revision, as its servers report now, than in the cell."""
    for key, backbone in backbones.items():
        recorded = finished["backbones"][key]
        if (recorded["model"], recorded["revision"]) != (backbone.model, backbone.revision):
            raise UserError(
                f"{plan.cell} asked {recorded['model']} of revision {recorded['revision']}; {key} is now "
                f"{backbone.model} of revision {backbone.revision}",
                making(plan.folder / "run.json"),
            )


def _trained_method(plan: Plan, finished: Mapping[str, Any]) -> Method:
    """Load the method as it answered the test; UserError if its checkpoint is gone, damaged or another one."""
    method: Any = build(plan.method.module, plan.setting, plan.config, trained=plan.method.trained)
    if plan.method.trained:
        path = plan.folder / layout.CHECKPOINT
        trained = checkpoint.load(path)
        if sha256(path) != finished["checkpoint"]:
            raise UserError(f"{path} is not what the cell answered with", making(plan.folder / "run.json"))
        method.load(trained)
    return cast(Method, method)


class AskingAlways(ChatClient):
    """Client that sends every call, also one that is finished or in flight."""

    async def _reply(self, backbone: str, request: Request) -> Reply:
        return await self._ask(backbone, request)
