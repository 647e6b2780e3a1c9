"""A small world for whole questions: a policy that is certain of itself, a client that answers at once, a training."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from baselines.puppeteer.agents import ACTIONS, KEYS
from baselines.puppeteer.method import Puppeteer
from baselines.puppeteer.policy import Config, Rollout, Trace
from harness.agents.error_share import ErrorShare
from harness.agents.runtime import Runtime
from harness.agents.trajectory import TEST, Context, Episode, Trajectory
from harness.benchmarks.items import CodeTask, Item, Status, Verdict
from harness.llm.encoder import Encoded
from harness.llm.request import Message, Reply, Request
from harness.training.loop import Training
from tests.fake_encoder import FakeEncoder
from tests.scripted import backbones, setting

RULES = "End with a line that says: The answer is <number>."
MATHS = Item("q0", "toy", "What is 6 times 7?", "right")
VISIBLE = ("assert double(1) == 2", "assert double('a') == 'aa'")
CODE = Item("c0", "toy", "Write double(x).", "", code=CodeTask("double", "", "assert 0  # hidden", VISIBLE))
ITEMS = tuple(Item(f"q{number}", "toy", f"Question {number}?", "right") for number in range(6))
NAMES = {action.key: action.name for action in ACTIONS}


@cache
def embedding(text: str) -> NDArray[np.float32]:
    """What stands for a text in every test."""
    return FakeEncoder().encode(text).vector


class Embeddings:
    encoder = FakeEncoder(max_tokens=50)

    async def embed(self, text: str) -> Encoded:
        return Encoded(embedding(text), len(text.split()))


Answering = Callable[[Request, int], str | Reply]


def _counting(request: Request, number: int) -> Reply:
    return Reply(f"Text {number}. The answer is {number}", 90 + number, 10, "stop", request.model)


class Client:
    """Answers as a function of the request and of how many were asked before; may answer out of order.

    Args:
        answering: The text of a reply, or the reply. Unless given, the n-th reply says that the answer is n, and
            reports 90 + n prompt tokens instead of 90.
        late: Turns of the event loop that an answer takes, as a function of how many were asked before.
    """

    def __init__(self, answering: Answering | None = None, late: Callable[[int], int] = lambda number: 0) -> None:
        self.answering = answering or _counting
        self.late = late
        self.asked: list[tuple[str, Request]] = []

    async def complete(self, backbone: str, request: Request) -> Reply:
        self.asked.append((backbone, request))
        number = len(self.asked)
        for _ in range(self.late(number)):
            await asyncio.sleep(0)
        reply = self.answering(request, number)
        return reply if isinstance(reply, Reply) else Reply(reply, 90, 10, "stop", request.model)

    @property
    def conversations(self) -> list[tuple[Message, ...]]:
        return [request.messages for _, request in self.asked]

    @property
    def users(self) -> list[str]:
        """The last message of each request."""
        return [request.messages[-1].content for _, request in self.asked]


class Certain:
    """Stands where a Snapshot does and knows, for each state in turn, which actions come first.

    Args:
        plans: For each decision in turn, the actions in the order of preference.
    """

    def __init__(self, *plans: str) -> None:
        self.plans = [plan.split() for plan in plans]
        self.states: list[NDArray[np.float64]] = []
        self.barred: list[tuple[int, ...]] = []

    def log_probs(self, state: NDArray[np.float64], barred: Sequence[int] = ()) -> NDArray[np.float64]:
        if not any(np.array_equal(state, seen) for seen in self.states):
            self.states.append(state)
        place = next(at for at, seen in enumerate(self.states) if np.array_equal(state, seen))
        self.barred.append(tuple(barred))
        plan = self.plans[place] if place < len(self.plans) else ["terminate"]
        logits = np.full(len(KEYS), -50.0)
        for rank, key in enumerate(plan):
            logits[KEYS.index(key)] = 50.0 - 0.5 * rank
        logits[list(barred)] = -np.inf
        return logits - np.log(np.exp(logits).sum())


class Exact:
    """A benchmark whose questions are answered by the word ``right``, wherever it stands."""

    key = "toy"
    output_rules = RULES

    def extract(self, item: Item, text: str) -> str | None:
        return text.rpartition("answer is ")[2] or None

    async def grade(self, item: Item, text: str, tools: Any) -> Verdict:
        return Verdict("right" in text, text, Status.GRADED)


def config(**changes: Any) -> Config:
    return Config(**{"epochs": {"default": 1}, **changes})


def runtime(client: Any, seed: int = 0, code_tools: Any = None) -> Runtime:
    parts: dict[str, Any] = {"benchmark": Exact(), "tools": None, "code_tools": code_tools, "embeddings": Embeddings()}
    return Runtime(client=client, backbones=backbones(), seed=seed, errors=ErrorShare(1.0), **parts)


def training(folder: Path, client: Any, items: Sequence[Item] = ITEMS, seed: int = 0) -> Training:
    facts = {"identity": "one", "method": "puppeteer"}
    return Training(items, runtime(client, seed, NoPrograms()), folder, facts, "toy cell", lambda key: True, 64)


class NoPrograms:
    """A code_tools that finds no program in any text."""

    async def value(self, text: str) -> None:
        return None


def method(seed: int = 0, max_epochs: int | None = None, **changes: Any) -> Puppeteer:
    return Puppeteer(setting(seed=seed, benchmark="toy", max_epochs=max_epochs), config(**changes))


async def walk(
    policy: Any,
    client: Any,
    item: Item = MATHS,
    *,
    code_tools: Any = None,
    seed: int = 0,
    episode: Episode = TEST,
    greedy: bool = False,
    **changes: Any,
) -> tuple[Trajectory, Trace]:
    """One rollout at a context of its own: what the context recorded, and the trace."""
    context: Context = runtime(client, seed, code_tools or NoPrograms()).context(item, episode)
    rollout = Rollout(policy, "small", config(**changes), greedy=greedy)
    return context.close(await rollout.solve(item, context)), rollout.trace


async def planned(*keys: str, client: Any, item: Item = MATHS, code_tools: Any = None, **changes: Any) -> Trajectory:
    """A single path whose actions go as planned."""
    trajectory, _ = await walk(Certain(*keys), client, item, code_tools=code_tools, greedy=True, **changes)
    assert [decision.choice for decision in trajectory.decisions][: len(keys)] == list(keys)
    return trajectory


def content(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
