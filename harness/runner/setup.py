"""Opening the runtime of a plan: endpoints, call log, sandbox and embeddings."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from contextlib import AsyncExitStack
from pathlib import Path

from harness.agents.code_tools import CodeTools
from harness.agents.runtime import ErrorShare, Runtime
from harness.benchmarks import Tools
from harness.benchmarks.math_verifier import MathVerifier
from harness.database import Cache
from harness.errors import UserError
from harness.llm import endpoints
from harness.llm.backbones import Backbone
from harness.llm.budget import Spending
from harness.llm.call_log import AttemptLog, CallLog, CallLogReader
from harness.llm.client import ChatClient, InProcess, Recorded
from harness.llm.encoder import Embeddings, SentenceEncoder
from harness.llm.request import Served
from harness.runner import config, layout
from harness.runner.plan import Plan
from harness.runner.simulation import check_simulator, simulated_endpoint
from harness.sandbox import Sandbox
from harness.sandbox.jail.confinement import FULL

logger = logging.getLogger(__name__)


async def open_runtime(
    plan: Plan, log: CallLog, attempts: AttemptLog, stack: AsyncExitStack
) -> tuple[Runtime, Mapping[str, Served]]:
    """Open :func:`runtime_of` a cell, with the logs that may answer it, its vectors and the cache of this machine."""
    shared = [stack.enter_context(CallLogReader(path)) for path in plan.shared]
    servers = endpoints_of(plan)
    client = ChatClient(servers, log, attempts, shared, in_process(plan), spending_of(plan, log.path))
    cache = stack.enter_context(Cache(layout.cache()))
    folder = layout.RESULTS / plan.preset.name if plan.preset.recorded else plan.folder
    recorded = stack.enter_context(Cache(folder / layout.VECTORS))
    return await runtime_of(plan, client, servers, Sandbox(cache=cache), cache, stack, recorded)


async def runtime_of(
    plan: Plan,
    client: ChatClient,
    servers: Mapping[str, endpoints.Endpoint],
    sandbox: Sandbox,
    cache: Cache,
    stack: AsyncExitStack,
    recorded: Cache | None = None,
) -> tuple[Runtime, Mapping[str, Served]]:
    """Open the runtime of a plan until the stack is closed; return it with the served models.

    Raises UserError for an endpoint that does not reply or serves another model, or if programs cannot be confined.
    """
    await stack.enter_async_context(client)
    served = {key: await client.served(key, backbone.model) for key, backbone in plan.backbones.items()}
    check_simulator(plan.preset, served)
    await stack.enter_async_context(sandbox)
    check_confinement(sandbox.level, served)
    verifier = await stack.enter_async_context(MathVerifier(cache=cache))
    embeddings = await stack.enter_async_context(Embeddings(SentenceEncoder(), cache, recorded))
    places = {backbone: endpoint.url for backbone, endpoint in servers.items()}
    runtime = Runtime(
        client=client,
        backbones={key: as_served(plan.backbones[key], model) for key, model in served.items()},
        benchmark=plan.benchmark,
        tools=Tools(sandbox, verifier),
        code_tools=CodeTools(sandbox),
        embeddings=embeddings,
        seed=plan.seed,
        errors=ErrorShare(plan.preset.max_error_share, places, f"gmr retry --preset {plan.preset.name}"),
        greedy=config.is_greedy(plan.preset, plan.method),
    )
    return runtime, served


def check_confinement(level: str, served: Mapping[str, Served]) -> None:
    """Raise a UserError for real models if only resource limits confine their programs; warn for simulated ones.

    That is for all methods and benchmarks, because roles may run programs on any question.
    """
    if level == FULL:
        return
    real = [key for key, model in served.items() if not model.simulated]
    if real:
        raise UserError(
            f"this machine can hold programs by limits of resources alone (sandbox level {level}), which is not enough "
            f"for what real models write ({', '.join(real)}); `gmr sandbox` says what is missing, and a Linux "
            "virtual machine or container has it. Presets with simulated backbones work here"
        )
    logger.warning(
        f"sandbox level {level}: limits of resources alone hold the programs of the simulated backbones; real models "
        "would be refused here (gmr sandbox)"
    )


def is_simulated(plan: Plan, served: Mapping[str, Served]) -> bool:
    """Return whether a backbone is no trained model: simulated, or of weights that stand in for others."""
    return any(model.simulated or plan.backbones[key].stand_in for key, model in served.items())


def as_served(backbone: Backbone, served: Served) -> Backbone:
    """Return the backbone with the revision that its server reports; UserError if the configuration pins another."""
    pinned = backbone.revision if not served.simulated else None
    if pinned and served.revision and pinned != served.revision:
        raise UserError(
            f"{backbone.key} is pinned to revision {pinned} but its server has {served.revision}; "
            "serve the pinned revision, or correct config/backbones.yaml"
        )
    return backbone.model_copy(update={"revision": served.revision or backbone.revision})


def spending_of(plan: Plan, log: Path | None = None) -> Spending | None:
    """Return the tracker of the preset's budget, None if it has none; ``log`` is the one this process writes."""
    name, budget = plan.preset.name, plan.preset.budget
    if budget is None:
        return None
    return Spending(name, budget, lambda: sorted(layout.logs(name)), config.backbones(plan.preset).values(), log)


def endpoints_of(plan: Plan) -> dict[str, endpoints.Endpoint]:
    """Return the endpoint of each backbone that the cell may ask."""
    if plan.preset.recorded:
        return dict.fromkeys(plan.backbones, endpoints.IN_PROCESS)
    if plan.preset.simulated:
        return dict.fromkeys(plan.backbones, endpoints.simulated())
    return config.servers(plan.preset, plan.backbones)


def in_process(plan: Plan) -> InProcess | None:
    """Return the backbones in this process, or None if servers reply."""
    if plan.preset.recorded:
        return Recorded(plan.folder)
    return simulated_endpoint(plan.preset) if plan.preset.simulated and not endpoints.simulated_url() else None
