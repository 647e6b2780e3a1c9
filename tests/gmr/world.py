"""A small world for whole trajectories: a pool of plain roles, a client that answers at once, a training."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gmr.config import Config, Pool
from gmr.method import GMR
from gmr.rollout import Rollout, Trace
from gmr.router import Router, Snapshot
from harness.agents.error_share import ErrorShare
from harness.agents.roles import role
from harness.agents.runtime import Runtime
from harness.agents.trajectory import TEST, Context, Episode, Trajectory
from harness.benchmarks.items import Item
from harness.llm.encoder import Encoded
from harness.llm.request import Reply, Request
from harness.training.loop import Training
from tests.exact import Exact
from tests.fake_encoder import FakeEncoder
from tests.gmr.made import router
from tests.scripted import backbones, setting

RULES = "End with a line that says: The answer is <number>."
SMALL, LARGE = 0, 1
# Words that stand for what a sentence encoder reads.
LONGEST = 50
# Roles that need no tool; the third one has a second call.
CRITIC, HISTORIAN, REFLECTOR, INSPECTOR = range(4)
POOL = Pool(
    tuple(map(role, ("Commonsense/Critic", "Commonsense/Historian", "Commonsense/Reflector", "Math/Inspector"))),
    tuple(backbones().values()),
)
ITEMS = tuple(
    Item(id=f"q{number}", benchmark="toy", question=f"Question {number}?", gold="right") for number in range(8)
)


@cache
def embedding(text: str) -> NDArray[np.float32]:
    """What stands for a text in every test."""
    return FakeEncoder().encode(text).vector


class Embeddings:
    """Stands where the cache of embeddings does."""

    encoder = FakeEncoder(max_tokens=LONGEST)

    async def embed(self, text: str) -> Encoded:
        return Encoded(embedding(text), len(text.split()))


Answering = Callable[[str, Request], str | Reply]


class Client:
    """Answers at once, as a function of backbone and request; may fail, and may answer out of order.

    Args:
        answering: The text of a reply, or the reply.
        tokens: Prompt and completion tokens of every reply.
        late: Turns of the event loop that an answer takes, as a function of how many were asked before.
    """

    def __init__(
        self,
        answering: Answering = lambda backbone, request: f"{backbone} says so",
        tokens: tuple[int, int] = (100, 10),
        late: Callable[[int], int] = lambda number: 0,
    ) -> None:
        self.answering, self.tokens, self.late = answering, tokens, late
        self.asked: list[tuple[str, Request]] = []

    async def complete(self, backbone: str, request: Request) -> Reply:
        self.asked.append((backbone, request))
        for _ in range(self.late(len(self.asked))):
            await asyncio.sleep(0)
        reply = self.answering(backbone, request)
        return reply if isinstance(reply, Reply) else Reply(reply, *self.tokens, "stop", request.model)


def right_if(backbone: str) -> Answering:
    """Only one backbone is ever right."""
    return lambda asked, request: "right" if asked == backbone else "wrong"


class Ruled(Exact):
    output_rules = RULES


def config(**changes: Any) -> Config:
    """A configuration with a pool of roles that need no tool."""
    return Config(**{"epochs": {"default": 1}, "role_subset": {"Commonsense": 2}, **changes})


def method(seed: int = 0, max_epochs: int | None = None, **changes: Any) -> GMR:
    """The method over :data:`POOL`."""
    made = GMR(setting("pool", seed=seed, benchmark="toy", max_epochs=max_epochs), config(**changes))
    made.pool = POOL
    return made


def runtime(client: Any, seed: int = 0, limit: float = 1.0) -> Runtime:
    """A runtime without tools, where the answer is graded by :class:`Exact`."""
    parts: Mapping[str, Any] = {"benchmark": Ruled(), "tools": None, "code_tools": None, "embeddings": Embeddings()}
    return Runtime(client=client, backbones=backbones(), seed=seed, errors=ErrorShare(limit), **parts)


def training(
    folder: Path, client: Any, items: Sequence[Item] = ITEMS[:4], seed: int = 0, identity: str = "one"
) -> Training:
    """A training in a folder, new or to be gone on with."""
    facts = {"identity": identity, "method": "gmr"}
    return Training(items, runtime(client, seed), folder, facts, "toy cell", lambda key: True, 64)


async def walk(
    policy: Snapshot,
    settings: Config,
    client: Any,
    item: Item = ITEMS[0],
    *,
    seed: int = 0,
    episode: Episode = TEST,
    greedy: bool = False,
    pool: Pool = POOL,
) -> tuple[Trajectory, Trace]:
    """One rollout at a context of its own: what the context recorded, and the trace."""
    context: Context = runtime(client, seed).context(item, episode)
    rollout = Rollout(policy, pool, settings, greedy=greedy)
    return context.close(await rollout.solve(item, context)), rollout.trace


def content(folder: Path) -> dict[str, bytes]:
    """Every file below a folder."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


class Plan(NamedTuple):
    """One step as it is to happen; a gate that is ``None`` is off."""

    role: int
    backbone: int
    sees: tuple[bool, ...] | None = ()
    writes: bool | None = True
    halts: bool | None = False


class Scripted:
    """Stands where a Snapshot does and is certain of every decision; its state is the number of steps done."""

    def __init__(self, *plans: Plan) -> None:
        self.plans = plans
        self.responses: list[Any] = []

    def begin(self, question: Any) -> int:
        self.question = question
        return 0

    async def state(self, memory: int) -> int:
        return memory

    def roles(self, state: int) -> Any:
        return np.eye(len(POOL.roles))[self.plans[state].role]

    def backbones(self, state: int, role: int) -> Any:
        assert role == self.plans[state].role
        return np.eye(len(POOL.backbones))[self.plans[state].backbone]

    def retrieval(self, state: int, role: int, backbone: int) -> Any:
        sees = self.plans[state].sees
        return None if sees is None else np.array(sees, dtype=float)

    def write(self, state: int, response: Any) -> float | None:
        self.responses.append(response)
        writes = self.plans[state].writes
        return None if writes is None else float(writes)

    def advance(self, state: int, role: int, backbone: int, response: Any, written: bool) -> tuple[int, float | None]:
        halts = self.plans[state].halts
        return state + 1, None if halts is None else float(halts)


def snapshot(seed: int = 0, **changes: Any) -> Snapshot:
    """The decisions of a router off its starting point, over the pool of this world."""
    made = router(seed)
    profiles = [np.stack([embedding(each.profile) for each in part]) for part in (POOL.roles, POOL.backbones)]
    whole = Router(made.config.model_copy(update=changes), *profiles)
    weights = made.state_dict()
    for name, value in whole.state_dict().items():
        if value.shape == weights[name].shape:
            value.copy_(weights[name])
    return whole.snapshot()
