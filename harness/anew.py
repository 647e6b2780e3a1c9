"""A runtime where everything is done as if for the first time, for measuring how long it takes.

No call, embedding or verdict of an earlier run is known, and what is kept lies in a folder to be thrown away. Simulated
backbones answer at once, so they stand behind servers whose speed is modelled.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import NamedTuple

from harness.agents.code_tools import CodeTools
from harness.agents.error_share import ErrorShare, places_of
from harness.agents.runtime import Runtime
from harness.benchmarks import Tools
from harness.benchmarks.math_verifier import MathVerifier
from harness.cache import Cache
from harness.llm.attempts import AttemptLog
from harness.llm.call_log import CallLog
from harness.llm.client import ChatClient
from harness.llm.embeddings import Embeddings
from harness.llm.encoder import SentenceEncoder
from harness.llm.endpoints import Endpoint
from harness.llm.request import Reply, Request
from harness.llm.served import Served
from harness.runner import layout
from harness.runner.plan import Plan
from harness.runner.setup import as_served, check_confinement, endpoints_of, simulated_endpoint, spending_of
from harness.sandbox import Sandbox
from harness.simulator.parameters import EngineParameters

# Requests at once for each modelled server.
_EACH = 64


class AskingAlways(ChatClient):
    """A client that asks the server every time, also for what it has asked before or is just asking."""

    async def complete(self, backbone: str, request: Request) -> Reply:
        """The outcome of a call, from the server.

        Raises:
            UserError: The endpoint is down or refuses the key.
        """
        return await self._ask(backbone, request)


class Servers(NamedTuple):
    """Where backbones answer, and the speed of the servers where it is modelled."""

    endpoints: Mapping[str, Endpoint]
    engine: EngineParameters | None


@asynccontextmanager
async def servers_of(plan: Plan) -> AsyncIterator[Servers]:
    """Those of ``config/endpoints.yaml``; for simulated backbones, modelled ones on a free port of this machine.

    Raises:
        UserError: There is no world, or no endpoint for a backbone.
    """
    if not plan.preset.simulated:
        yield Servers(endpoints_of(plan), None)
        return
    from aiohttp import web

    from harness.simulator.server import Manners, application

    endpoint = simulated_endpoint(plan.preset)
    engine = endpoint.world.settings.engine
    runner = web.AppRunner(application(endpoint, Manners(engine)), access_log=None)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        yield Servers(_at(f"http://127.0.0.1:{runner.addresses[0][1]}/v1", plan), engine)
    finally:
        await runner.cleanup()


async def open_anew(
    plan: Plan, servers: Servers, folder: Path, stack: AsyncExitStack
) -> tuple[Runtime, Mapping[str, Served]]:
    """Set up all that trajectories need, until the stack is closed.

    Args:
        plan: Of the cell.
        servers: Where its backbones answer.
        folder: An empty one, for what is kept meanwhile.
        stack: What is opened is closed with it.

    Returns:
        The runtime, and what each endpoint says of the model it serves.

    Raises:
        UserError: An endpoint does not answer, or serves another model; or it serves a real one, and this machine
            cannot confine the programs of real models.
    """
    log = stack.enter_context(CallLog(folder / layout.CALL_LOG))
    attempts = AttemptLog(folder / "attempts.jsonl")
    stack.callback(attempts.close)
    client = await stack.enter_async_context(AskingAlways(servers.endpoints, log, attempts, spending=spending_of(plan)))
    served = {key: await client.served(key, plan.backbones[key].model) for key in plan.rows}
    sandbox = await stack.enter_async_context(Sandbox())
    check_confinement(sandbox.level, served)
    cache = stack.enter_context(Cache(folder / "cache.sqlite"))
    verifier = await stack.enter_async_context(MathVerifier())
    embeddings = await stack.enter_async_context(Embeddings(SentenceEncoder(), cache))
    runtime = Runtime(
        client=client,
        backbones={key: as_served(plan.backbones[key], one) for key, one in served.items()},
        benchmark=plan.benchmark,
        tools=Tools(sandbox, verifier),
        code_tools=CodeTools(sandbox),
        embeddings=embeddings,
        seed=plan.seed,
        errors=ErrorShare(plan.preset.max_error_share, places_of(servers.endpoints)),
        greedy=plan.preset.greedy,
    )
    return runtime, served


def _at(url: str, plan: Plan) -> dict[str, Endpoint]:
    """One address for all backbones, each of which still gets as many requests at once as at a server of its own."""
    return dict.fromkeys(plan.rows, Endpoint((url,), max_in_flight=_EACH * len(plan.rows)))
