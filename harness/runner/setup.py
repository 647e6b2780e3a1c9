"""Opening the runtime of a planned cell: backbones, sandbox, verifier and embeddings."""

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
from harness.llm.backbones import Backbone
from harness.llm.budget import Spending
from harness.llm.client import ChatClient
from harness.llm.encoder import Embeddings, SentenceEncoder
from harness.llm.endpoints import SIMULATED_URL
from harness.llm.request import Served
from harness.runner import layout
from harness.runner.plan import Plan
from harness.sandbox import Sandbox
from harness.sandbox.jail.confinement import FULL

logger = logging.getLogger(__name__)


async def open_runtime(
    plan: Plan, client: ChatClient, sandbox: Sandbox, cache: Cache, stack: AsyncExitStack, vectors: Cache | None = None
) -> tuple[Runtime, Mapping[str, Served]]:
    """Open the runtime of a cell until the stack is closed; return it with the served models.

    Sentence embeddings come from ``vectors``, the file that records them, if there is one, then from ``cache``.
    Raises UserError for an endpoint that does not reply or serves another model, or if programs cannot be confined.
    """
    await stack.enter_async_context(client)
    served = {key: await client.served(key, backbone.model) for key, backbone in plan.backbones.items()}
    _check_simulator(plan, served)
    await stack.enter_async_context(sandbox)
    check_confinement(sandbox.level, served)
    verifier = await stack.enter_async_context(MathVerifier(cache=cache))
    embeddings = await stack.enter_async_context(Embeddings(SentenceEncoder(), cache, vectors))
    urls = {key: endpoint.url for key, endpoint in plan.endpoints.items()}
    runtime = Runtime(
        client=client,
        backbones={key: as_served(plan.backbones[key], model) for key, model in served.items()},
        benchmark=plan.benchmark,
        tools=Tools(sandbox, verifier),
        code_tools=CodeTools(sandbox),
        embeddings=embeddings,
        seed=plan.setting.seed,
        errors=ErrorShare(plan.preset.max_error_share, urls, f"gmr retry --preset {plan.preset.name}"),
        greedy=plan.greedy,
    )
    return runtime, served


def spending_of(plan: Plan, log: Path | None = None) -> Spending | None:
    """Return the tracker of the preset's budget, None if it has none; ``log`` is the one this process writes."""
    name, budget = plan.preset.name, plan.preset.budget
    return None if budget is None else Spending(name, budget, lambda: sorted(layout.logs(name)), plan.declared, log)


def _check_simulator(plan: Plan, served: Mapping[str, Served]) -> None:
    """Raise a UserError if a server simulates other questions, by other code or lengths, than this process would."""
    name, expected = plan.preset.name, plan.simulated_revision
    for key, model in served.items():
        if expected not in (None, model.revision):
            raise UserError(
                f"{plan.endpoints[key].url}, named by {SIMULATED_URL}, does not serve {key} as preset {name} does (it "
                f"has revision {model.revision}, expected {expected}); start it with `gmr simulate --preset {name}` "
                "and the same --set, in this checkout"
            )


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
