"""Teams on a client that answers by role, routers off their starting point, and one that decides as planned."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from baselines.masrouter.method import Config, MASRouter, Pool, TeamRollout
from baselines.masrouter.router import Choices, Router, TeamPlan, Trace
from baselines.masrouter.team import MODES
from harness.agents.code_tools import CodeTools
from harness.agents.roles import by_domain, catalogue
from harness.agents.trajectory import TEST, Episode, Trajectory
from harness.benchmarks.items import Item
from harness.llm.request import Request
from harness.sandbox import Execution, Outcome, Program, Sandbox
from harness.training.learning import seeded
from tests.fixtures import ITEMS, Client, embedding, walked
from tests.scripted import backbones, setting

MODE_NAMES = [mode.key for mode in MODES]
BACKBONES = tuple(backbones().values())


def config(**changes: Any) -> Config:
    return Config(**{"epochs": {"default": 1}, "kappa": {"default": 200}, **changes})


def pool(domain: str = "Commonsense") -> Pool:
    return Pool(domain, by_domain(domain), BACKBONES)


def method(seed: int = 0, max_epochs: int | None = None, domain: str = "Commonsense", **changes: Any) -> MASRouter:
    cell = setting("pool", seed=seed, benchmark="toy", domain=domain, max_epochs=max_epochs)
    return MASRouter(cell, config(**changes))


def router(seed: int = 0, domain: str = "Commonsense", moved: float = 0.0) -> Router:
    """Return a router as initialised, or moved off its starting point at random."""
    choices = method(domain=domain).choices().items()
    texts = {kind: np.stack([embedding(profile) for _, profile in pairs]) for kind, pairs in choices}
    network = seeded(lambda: Router(texts, 6), "initial weights", seed)
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in network.parameters():
            parameter += moved * torch.randn(parameter.shape, generator=generator, dtype=torch.float64)
    return network


class Planned:
    """Stands where a Router does; its decisions are settled beforehand."""

    def __init__(self, mode: str, roles: Sequence[str], llms: Sequence[str], domain: str = "Commonsense") -> None:
        names = [role.name for role in by_domain(domain)]
        keys = [backbone.key for backbone in BACKBONES]
        self.choices = Choices(
            MODE_NAMES.index(mode), tuple(map(names.index, roles)), tuple(keys.index(key) for key in llms)
        )

    def decide(self, question: Any, noise: Any, uniforms: Any) -> TeamPlan:
        zero, roles = torch.zeros(1), torch.zeros(1, 6, 12)
        return TeamPlan((self.choices,), zero, torch.zeros(1, 3), zero, torch.zeros(1, 6), roles, torch.zeros(1, 2))


def role_of(request: Request) -> str:
    """Name of the role whose description opens the system text; empty for the final node."""
    opening = request.messages[0].content
    return next((role.name for role in catalogue() if opening.startswith(role.description)), "")


def by_role(backbone: str, request: Request) -> str:
    """Return what was said, so that it tells who said it and in which turn."""
    name = role_of(request)
    if not name:
        return "the end"
    turn = "second" if len(request.messages) > 2 else "first"
    late = " later" if "previous round" in request.messages[1].content else ""
    return f"{name} {turn}{late}"


class Passing(Sandbox):
    """Passes programs that hold a word, and notes what it is given."""

    def __init__(self, word: str = "GOOD") -> None:
        self.word = word
        self.given: list[Program] = []

    async def run(self, program: Program) -> Execution:
        self.given.append(program)
        return Execution(Outcome.PASSED if self.word in program.source else Outcome.WRONG_ANSWER, "")


def code_tools(sandbox: Sandbox | None = None) -> CodeTools:
    return CodeTools(sandbox or Passing())


async def walk(
    network: Any,
    client: Client,
    item: Item = ITEMS[0],
    *,
    domain: str = "Commonsense",
    seed: int = 0,
    episode: Episode = TEST,
    sandbox: Sandbox | None = None,
    greedy: bool = False,
    **changes: Any,
) -> tuple[Trajectory, Trace]:
    rollout = TeamRollout(network, pool(domain), config(**changes))
    return await walked(rollout, client, item, seed, episode, code_tools=code_tools(sandbox), greedy=greedy)
