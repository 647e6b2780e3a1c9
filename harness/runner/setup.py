"""Opening a runtime: endpoints, call log, sandbox and embeddings, as a plan wants them."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Mapping
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

from harness.agents.code_tools import CodeTools
from harness.agents.error_share import ErrorShare, places_of
from harness.agents.runtime import Runtime
from harness.benchmarks import Tools
from harness.benchmarks.math_verifier import MathVerifier
from harness.benchmarks.prepare import read
from harness.errors import UserError
from harness.llm import endpoints
from harness.llm.backbones import Backbone
from harness.llm.budget import Spending
from harness.llm.call_log import CALL_LOG, AttemptLog, CallLog, CallLogReader
from harness.llm.client import ChatClient, InProcess, Recorded
from harness.llm.database import Cache
from harness.llm.embeddings import Embeddings
from harness.llm.encoder import SentenceEncoder
from harness.llm.request import Served
from harness.runner import layout
from harness.runner.config import Preset
from harness.runner.plan import Plan
from harness.sandbox import Sandbox
from harness.sandbox.jail.confinement import FULL

if TYPE_CHECKING:
    from harness.simulator import SimulatedEndpoint

logger = logging.getLogger(__name__)


async def open_runtime(
    plan: Plan, log: CallLog, attempts: AttemptLog, stack: AsyncExitStack
) -> tuple[Runtime, Mapping[str, Served]]:
    """Reach the backbones of a plan and set up all else that its trajectories need, until the stack is closed.

    Returns:
        The runtime, and what each endpoint says of the model it serves.

    Raises:
        UserError: An endpoint does not answer, or serves another model; or it serves a real one, and this machine
            cannot confine the programs of real models.
    """
    client = await stack.enter_async_context(_client(plan, log, attempts, stack))
    served = {key: await client.served(key, plan.backbones[key].model) for key in plan.rows}
    check_calibration(plan, served)
    cache = stack.enter_context(Cache(layout.cache()))
    sandbox = await stack.enter_async_context(Sandbox(cache=cache))
    check_confinement(sandbox.level, served)
    return await runtime_of(plan, client, served, sandbox, cache, endpoints_of(plan), stack), served


async def runtime_of(
    plan: Plan,
    client: ChatClient,
    served: Mapping[str, Served],
    sandbox: Sandbox,
    cache: Cache,
    servers: Mapping[str, endpoints.Endpoint],
    stack: AsyncExitStack,
) -> Runtime:
    """The runtime over backbones that were reached; its verifier and encoder are closed with the stack."""
    verifier = await stack.enter_async_context(MathVerifier(cache=cache))
    embeddings = await stack.enter_async_context(Embeddings(SentenceEncoder(), cache))
    return Runtime(
        client=client,
        backbones={key: as_served(plan.backbones[key], one) for key, one in served.items()},
        benchmark=plan.benchmark,
        tools=Tools(sandbox, verifier),
        code_tools=CodeTools(sandbox),
        embeddings=embeddings,
        seed=plan.seed,
        errors=ErrorShare(plan.preset.max_error_share, places_of(servers)),
        greedy=plan.preset.greedy,
    )


def check_confinement(level: str, served: Mapping[str, Served]) -> None:
    """Refuse real models where nothing but limits would hold the programs they write; warn where they are simulated.

    Every method and benchmark counts, for roles may run programs on any question.

    Args:
        level: Of the sandbox.
        served: What each endpoint says of its model.

    Raises:
        UserError: A model is real, and the level is the weakest.
    """
    if level == FULL:
        return
    real = [key for key, one in served.items() if not one.simulated]
    if real:
        raise UserError(
            f"this machine can hold programs by limits of resources alone (sandbox level {level}), which is not enough "
            f"for what real models write ({', '.join(real)}); `gmr sandbox` says what is missing, and a Linux "
            "virtual machine or container has it. Presets with simulated backbones work here"
        )
    logger.warning(
        "sandbox level %s: limits of resources alone hold the programs of the simulated backbones; real models would "
        "be refused here (gmr sandbox)",
        level,
    )


def as_served(backbone: Backbone, served: Served) -> Backbone:
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
    return backbone.model_copy(update={"revision": served.revision or backbone.revision})


def _client(plan: Plan, log: CallLog, attempts: AttemptLog, stack: AsyncExitStack) -> ChatClient:
    shared = [stack.enter_context(CallLogReader(path)) for path in plan.shared]
    return ChatClient(endpoints_of(plan), log, attempts, shared, in_process(plan), spending_of(plan))


def spending_of(plan: Plan) -> Spending | None:
    """What keeps a cell within the budget of its preset; ``None`` where it has none.

    Raises:
        UserError: A log of the preset is damaged.
    """
    name, budget = plan.preset.name, plan.preset.budget
    if budget is None:
        return None
    return Spending(name, budget, lambda: sorted((layout.RESULTS / name).rglob(CALL_LOG)), plan.backbones.values())


def endpoints_of(plan: Plan) -> dict[str, endpoints.Endpoint]:
    """The endpoint of each backbone the cell may ask."""
    if plan.preset.recorded:
        return dict.fromkeys(plan.rows, endpoints.IN_PROCESS)
    if plan.preset.simulated:
        return dict.fromkeys(plan.rows, endpoints.simulated())
    return endpoints.load(endpoints.declared_in(), plan.rows)


def in_process(plan: Plan) -> InProcess | None:
    """What answers in this process; ``None`` where servers do."""
    if plan.preset.recorded:
        return Recorded(plan.folder, SentenceEncoder().identity)
    return simulated_endpoint(plan.preset) if plan.preset.simulated and not endpoints.simulated_url() else None


def check_calibration(plan: Plan, served: Mapping[str, Served]) -> None:
    """Refuse simulated backbones of another server that are not those this process would simulate itself.

    Raises:
        UserError: The server has another calibration, other code or other lengths, or does not simulate.
    """
    url = endpoints.simulated_url()
    if not plan.preset.simulated or plan.preset.recorded or url is None:
        return
    from harness.simulator.endpoint import revision_of

    calibration = layout.calibration(plan.preset.name)
    if not calibration.exists():
        raise UserError(f"{calibration} is missing; make it with `snakemake --cores all {calibration}`")
    expected = revision_of(hashlib.sha256(calibration.read_bytes()).hexdigest(), plan.preset.length_scale)
    for key, one in served.items():
        if one.revision != expected:
            raise UserError(
                f"{url}, named by {endpoints.SIMULATED_URL}, does not serve {key} as preset {plan.preset.name} has it "
                f"(revision {one.revision}, expected {expected}); start it with `gmr simulate --preset "
                f"{plan.preset.name}` and the same --set, in this checkout"
            )


def simulated_endpoint(preset: Preset) -> SimulatedEndpoint:
    """The simulated backbones of a preset, with every benchmark it has."""
    from harness.simulator import Calibration, SimulatedEndpoint

    pools = {key: read(layout.manifest(preset.name, key), layout.items(preset.name, key)) for key in preset.benchmarks}
    return SimulatedEndpoint(Calibration.load(layout.calibration(preset.name), pools), length_scale=preset.length_scale)
