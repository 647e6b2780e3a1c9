"""A small world for teams: a client that answers by role, a router that decides as planned, a training."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from baselines.masrouter.method import Config, MASRouter, Pool, Rollout, new_router
from baselines.masrouter.router import Choices, Decided, Router, Texts, Trace
from baselines.masrouter.team import MODES
from harness.agents.code_tools import CodeTools
from harness.agents.error_share import ErrorShare
from harness.agents.roles import by_domain, catalogue
from harness.agents.runtime import Runtime
from harness.agents.trajectory import TEST, Episode, Trajectory
from harness.benchmarks.items import Item, Status, Verdict
from harness.llm.encoder import Encoded
from harness.llm.request import Reply, Request
from harness.sandbox import Execution, Outcome, Program, Sandbox
from harness.training.loop import Training
from tests.fake_encoder import FakeEncoder
from tests.scripted import backbones, setting

RULES = "End with a line that says: The answer is <number>."
ITEMS = tuple(Item(id=f"q{n}", benchmark="toy", question=f"Question {n}?", gold="right") for n in range(8))
MODE_NAMES = [mode.name for mode in MODES]
BACKBONES = tuple(backbones().values())


@cache
def embedding(text: str) -> NDArray[np.float32]:
    """What stands for a text in every test."""
    return FakeEncoder().encode(text).vector


def config(**changes: Any) -> Config:
    return Config(**{"epochs": {"default": 1}, "kappa": {"default": 200}, **changes})


def pool(domain: str = "Commonsense") -> Pool:
    return Pool(domain, by_domain(domain), BACKBONES)


def texts(of: Pool) -> Texts:
    return Texts(*(np.stack([embedding(profile) for _, profile in of.to_facts()[kind]]) for kind in Texts._fields))


def router(seed: int = 0, domain: str = "Commonsense", moved: float = 0.0, max_agents: int = 6) -> Router:
    """A router as initialised, or moved off its starting point at random."""
    made = new_router(config(max_agents=max_agents), texts(pool(domain)), seed)
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in made.parameters():
            parameter += moved * torch.randn(parameter.shape, generator=generator, dtype=torch.float64)
    return made


class Planned:
    """Stands where a Router does; its decisions are settled beforehand."""

    def __init__(self, mode: str, roles: Sequence[str], chosen: Sequence[str], domain: str = "Commonsense") -> None:
        names = [role.name for role in by_domain(domain)]
        keys = [backbone.key for backbone in BACKBONES]
        self.choices = Choices(
            MODE_NAMES.index(mode), tuple(map(names.index, roles)), tuple(keys.index(key) for key in chosen)
        )

    def decide(self, question: Any, noise: Any, choose: Any) -> Decided:
        zero = torch.zeros(1)
        return Decided((self.choices,), zero, torch.zeros(1, 3), zero, torch.zeros(1, 6), torch.zeros(1, 2))


Answering = Callable[[str, Request], str | Reply]


def role_of(request: Request) -> str:
    """Name of the role whose description opens the system text; empty for the final node."""
    opening = request.messages[0].content
    return next((role.name for role in catalogue() if opening.startswith(role.description)), "")


def by_role(backbone: str, request: Request) -> str:
    """What was said, so that it tells who said it and in which turn."""
    name = role_of(request)
    if not name:
        return "the end"
    turn = "second" if len(request.messages) > 2 else "first"
    late = " later" if "previous round" in request.messages[1].content else ""
    return f"{name} {turn}{late}"


class Client:
    """Answers as a function of backbone and request, at once or later.

    Args:
        answering: The text of a reply, or the reply.
        late: Turns of the event loop that an answer takes, as a function of how many were asked before.
        tokens: Prompt and completion tokens of every reply.
    """

    def __init__(
        self,
        answering: Answering = by_role,
        late: Callable[[int], int] = lambda number: 0,
        tokens: tuple[int, int] = (100, 10),
    ) -> None:
        self.answering, self.late, self.tokens = answering, late, tokens
        self.asked: list[tuple[str, Request]] = []

    async def complete(self, backbone: str, request: Request) -> Reply:
        self.asked.append((backbone, request))
        for _ in range(self.late(len(self.asked))):
            await asyncio.sleep(0)
        reply = self.answering(backbone, request)
        return reply if isinstance(reply, Reply) else Reply(reply, *self.tokens, "stop", request.model)


def right_if(key: str) -> Answering:
    """Only one backbone is ever right."""
    return lambda backbone, request: "right" if backbone == key else "wrong"


class Passing(Sandbox):
    """Passes programs that hold a word, and notes what it is given."""

    def __init__(self, word: str = "GOOD") -> None:
        self.word = word
        self.given: list[Program] = []

    async def run(self, program: Program) -> Execution:
        self.given.append(program)
        return Execution(Outcome.PASSED if self.word in program.source else Outcome.WRONG_ANSWER, "", "")


class Exact:
    """Right when the text is the gold answer."""

    key = "toy"
    output_rules = RULES

    def extract(self, item: Item, text: str) -> str | None:
        return text

    async def grade(self, item: Item, text: str, tools: Any) -> Verdict:
        return Verdict(text == item.gold, text, Status.GRADED)


class Embeddings:
    """Stands where the cache of embeddings does."""

    encoder = FakeEncoder()

    async def embed(self, text: str) -> Encoded:
        return Encoded(embedding(text), len(text.split()))


def runtime(client: Any, seed: int = 0, sandbox: Sandbox | None = None, *, greedy: bool = False) -> Runtime:
    parts: dict[str, Any] = {"benchmark": Exact(), "tools": None, "embeddings": Embeddings(), "greedy": greedy}
    bench = CodeTools(sandbox or Passing())
    return Runtime(client=client, backbones=backbones(), seed=seed, errors=ErrorShare(1.0), code_tools=bench, **parts)


async def walk(
    made: Any,
    client: Any,
    item: Item = ITEMS[0],
    *,
    domain: str = "Commonsense",
    seed: int = 0,
    episode: Episode = TEST,
    sandbox: Sandbox | None = None,
    greedy: bool = False,
    **changes: Any,
) -> tuple[Trajectory, Trace]:
    """One rollout at a context of its own: what the context recorded, and the trace."""
    context = runtime(client, seed, sandbox, greedy=greedy).context(item, episode)
    rollout = Rollout(made, pool(domain), config(**changes))
    return context.close(await rollout.solve(item, context)), rollout.trace


def method(seed: int = 0, max_epochs: int | None = None, domain: str = "Commonsense", **changes: Any) -> MASRouter:
    its = setting("pool", seed=seed, benchmark="toy", domain=domain, max_epochs=max_epochs)
    return MASRouter(its, config(**changes))


def training(folder: Path, client: Any, items: Sequence[Item] = ITEMS[:4], seed: int = 0) -> Training:
    """A training in a folder, new or to be gone on with."""
    facts = {"identity": "one", "method": "masrouter"}
    return Training(items, runtime(client, seed), folder, facts, "toy cell", lambda key: True, 64)


def content(folder: Path) -> dict[str, bytes]:
    """Every file below a folder."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
