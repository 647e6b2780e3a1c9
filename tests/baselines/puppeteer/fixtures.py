"""Fixtures for Puppeteer: whole questions on a counting client, and a deterministic policy."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from baselines.puppeteer.agents import KEYS, TERMINATE
from baselines.puppeteer.method import Puppeteer
from baselines.puppeteer.policy import Config, PuppeteerRollout, Trace
from harness.agents.trajectory import TEST, Episode, Trajectory
from harness.benchmarks.items import CodeTask, Item
from harness.llm.request import Reply, Request
from harness.scripted import setting
from tests.fixtures import Client, walked

MATHS = Item("q0", "toy", "What is 6 times 7?", "right")
VISIBLE = ("assert double(1) == 2", "assert double('a') == 'aa'")
CODE = Item("c0", "toy", "Write double(x).", "", code=CodeTask("double", "", "assert 0  # hidden", VISIBLE))


def config(**changes: Any) -> Config:
    return Config(**{"epochs": {"default": 1}, **changes})


def method(seed: int = 0, max_epochs: int | None = None, **changes: Any) -> Puppeteer:
    return Puppeteer(setting(seed=seed, benchmark="toy", max_epochs=max_epochs), config(**changes))


class Counting(Client):
    """Client whose n-th reply is the n-th text. The last text repeats with its number; without texts, n is the answer.

    The n-th reply reports 90 + n prompt tokens.
    """

    def __init__(self, *texts: str | Reply) -> None:
        super().__init__(self._next)
        self.texts = texts

    def _next(self, backbone: str, request: Request) -> Reply:
        number = len(self.asked)
        text: str | Reply = f"Text {number}. The answer is {number}"
        if self.texts:
            text = self.texts[number - 1] if number <= len(self.texts) else f"{self.texts[-1]} #{number}"
        return text if isinstance(text, Reply) else Reply(text, 90 + number, 10, "stop", request.model)


class Certain:
    """Fake policy with a scripted order of preferred actions for each step."""

    def __init__(self, *plans: str) -> None:
        self.plans = [plan.split() for plan in plans]
        self.states: list[NDArray[np.float64]] = []

    def log_probs(self, state: NDArray[np.float64], step: int) -> NDArray[np.float64]:
        if step == len(self.states):
            self.states.append(state)
        plan = self.plans[step] if step < len(self.plans) else ["terminate"]
        logits = np.full(len(KEYS), -200.0)
        for rank, key in enumerate(plan):
            logits[KEYS.index(key)] = 50.0 - 60 * rank
        logits[[TERMINATE] if step == 0 else []] = -np.inf
        return logits - np.log(np.exp(logits).sum())


async def walk(
    policy: Any,
    client: Client,
    item: Item = MATHS,
    *,
    code_tools: Any = None,
    seed: int = 0,
    episode: Episode = TEST,
    **changes: Any,
) -> tuple[Trajectory, Trace]:
    rollout = PuppeteerRollout(policy, "small", config(**changes))
    return await walked(rollout, client, item, seed, episode, code_tools=code_tools)


async def planned(*keys: str, client: Client, item: Item = MATHS, code_tools: Any = None) -> Trajectory:
    trajectory, _ = await walk(Certain(*keys), client, item, code_tools=code_tools)
    assert [decision.choice for decision in trajectory.decisions][: len(keys)] == list(keys)
    return trajectory
