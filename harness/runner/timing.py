"""Timing of a method: answer the test set of a finished cell once more, with nothing cached.

A cell itself answers from logs and caches, trains, grades and shares the machine. Here its trained method answers all
test questions in one pass, a fixed number at a time; an interrupted pass starts over. Servers of simulated backbones
are modelled (``engine`` of ``config/simulator.yaml``): the time is theirs and the true time of everything around them.
"""

from __future__ import annotations

import dataclasses
import logging
import os
import platform
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import orjson

from harness.agents.runtime import Runtime
from harness.agents.trajectory import Trajectory
from harness.benchmarks.items import Item
from harness.database import Cache
from harness.errors import UserError
from harness.files import write_atomically
from harness.llm.call_log import ATTEMPT_LOG, AttemptLog, CallLog
from harness.llm.client import ChatClient
from harness.llm.endpoints import Endpoint
from harness.llm.request import Reply, Request
from harness.runner import config_hash, layout, reuse
from harness.runner.evaluation import of_each, progress
from harness.runner.method import Method
from harness.runner.plan import Plan
from harness.runner.setup import endpoints_of, is_simulated, runtime_of, spending_of
from harness.runner.simulation import simulated_endpoint
from harness.sandbox import Sandbox
from harness.simulator.parameters import EngineParameters

logger = logging.getLogger(__name__)

SCHEMA_VERSION = 1
FILE = "timing.json"
# Questions in flight, for all methods. With far fewer, servers have nothing to batch; with far more, a test set of some
# hundred questions takes as long as its longest one.
CONCURRENCY = 32
# Requests at once for each modelled server.
_EACH = 64


async def run(plan: Plan) -> dict[str, Any]:
    """Time the method of a finished cell, write ``timing.json`` and return its content.

    The time includes everything from the questions to the texts of their answers: the method's computing, embeddings,
    tools of roles, calls and their retries. It excludes loading the method and the sentence encoder, and grading.
    Raises UserError as :mod:`~harness.runner.reuse` does, or if an endpoint is gone or too many questions failed.
    """
    cell = reuse.identity(plan)
    in_flight = min(plan.preset.in_flight or CONCURRENCY, CONCURRENCY)
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory(prefix="gmr-timing-")))
        servers, engine = await stack.enter_async_context(servers_of(plan))
        log = stack.enter_context(CallLog(folder / layout.CALL_LOG))
        attempts = stack.enter_context(AttemptLog(folder / ATTEMPT_LOG))
        cache = stack.enter_context(Cache(folder / "cache.sqlite"))
        client = AskingAlways(servers, log, attempts, spending=spending_of(plan))
        runtime, served = await runtime_of(plan, client, servers, Sandbox(), cache, stack)
        reuse.check_backbones(plan, cell, runtime.backbones)
        method = reuse.trained_method(plan, cell)
        if plan.method.trained:
            runtime.embeddings.encoder.encode("The first text loads the model.")
        logger.info("%s: timing %d questions, %d at a time", plan.cell, len(plan.test), in_flight)
        started = time.perf_counter()
        trajectories = await answer_all(method, plan.test, runtime, in_flight, str(plan.cell))
        seconds = time.perf_counter() - started
    calls = [call for trajectory in trajectories for call in trajectory.calls]
    timing = {
        "schema": SCHEMA_VERSION,
        "preset": plan.preset.name,
        **dataclasses.asdict(plan.cell),
        "simulated": is_simulated(plan, served),
        "cell": {name: cell.get(name) for name in ("run_id", "config_hash", "code", "checkpoint")},
        "n": len(trajectories),
        "seconds": seconds,
        "seconds_per_query": seconds / len(trajectories),
        "concurrency": in_flight,
        "calls": len(calls),
        "failed_calls": sum(call.error is not None for call in calls),
        "prompt_tokens": sum(call.prompt_tokens for call in calls),
        "completion_tokens": sum(call.completion_tokens for call in calls),
        "engine": None if engine is None else engine.model_dump(),
        "host": {"node": platform.node(), "platform": platform.platform(), "processors": os.cpu_count()},
    }
    path = layout.timing(plan.preset.name, plan.cell) / FILE
    write_atomically(path, orjson.dumps(timing, option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS))
    made_of = layout.made_of(plan.preset.name, layout.timing_name(plan.cell))
    config_hash.note_made_of(made_of, config_hash.made_of_timing(plan.preset, plan.cell))
    logger.info("%s: %.1f s, %.2f s a question", plan.cell, seconds, timing["seconds_per_query"])
    return timing


async def answer_all(
    method: Method, items: Sequence[Item], runtime: Runtime, in_flight: int, label: str
) -> list[Trajectory]:
    """Let a method answer every question, ``in_flight`` at a time, without grading. Raises as :func:`run`."""
    done = 0
    runtime.errors.plan(len(items))

    async def answer(item: Item) -> Trajectory:
        nonlocal done
        context = runtime.context(item)
        trajectory = context.close(await method.solve(item, context))
        runtime.errors.count_attempt(trajectory.failed_call)
        done += 1
        return trajectory

    with progress(runtime.client, lambda: f"{label}: {done}/{len(items)} questions timed"):
        return await of_each(items, answer, in_flight)


class AskingAlways(ChatClient):
    """Client that sends every call, also one that is finished or in flight."""

    async def _reply(self, backbone: str, request: Request) -> Reply:
        return await self._ask(backbone, request)


@asynccontextmanager
async def servers_of(plan: Plan) -> AsyncIterator[tuple[Mapping[str, Endpoint], EngineParameters | None]]:
    """Open the endpoints of a plan; for simulated backbones, a modelled server on a free port, with its speed."""
    if plan.preset.recorded:
        raise UserError(f"{plan.cell} was not timed when the run was recorded, and no server is asked here")
    if not plan.preset.simulated:
        yield endpoints_of(plan), None
        return
    from aiohttp import web

    from harness.simulator.server import ServerBehaviour, application

    endpoint = simulated_endpoint(plan.preset)
    engine = endpoint.calibration.engine
    runner = web.AppRunner(application(endpoint, ServerBehaviour(engine)), access_log=None)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        url = f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
        yield dict.fromkeys(plan.backbones, Endpoint(url=url, max_in_flight=_EACH)), engine
    finally:
        await runner.cleanup()
