"""One question from the first choice to the answer, along one path or several (D-PUP-3, D-PUP-9)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from baselines.puppeteer import prompts
from baselines.puppeteer.actions import ACTIONS, KEYS, TERMINATE
from baselines.puppeteer.agents import act
from baselines.puppeteer.answer import close
from baselines.puppeteer.config import Config
from baselines.puppeteer.path import Path
from baselines.puppeteer.policy import Snapshot
from baselines.puppeteer.state import state_of
from baselines.puppeteer.trace import Choice, Trace
from harness.agents.trajectory import Context, Decision
from harness.benchmarks.items import Item
from harness.concurrency import gather

WIDEST_SPLIT = 3

Array = NDArray[np.float64]


class Rollout:
    """Walks one question and keeps the trace of its choices.

    Paths advance level by level: all decide in the order of their numbers, then all act at once, so that no latency
    shows in who gets the room for a split.

    Args:
        policy: The policy as it is now; it does not change while rollouts are under way.
        backbone: Key of the backbone behind all agents.
        config: Limits of paths and steps.
        greedy: Take the most probable action instead of sampling.
    """

    def __init__(self, policy: Snapshot, backbone: str, config: Config, *, greedy: bool = False) -> None:
        self._policy = policy
        self._backbone = backbone
        self._config = config
        self._greedy = greedy
        self._choices: list[Choice] = []
        self._question: NDArray[np.float32]

    @property
    def trace(self) -> Trace:
        """The choices made, complete once :meth:`solve` has returned."""
        return tuple(self._choices)

    async def solve(self, item: Item, context: Context) -> str:
        """Act until every path has terminated or done its last step, then close."""
        posed = prompts.posed(item)
        self._question = await context.embed(posed.question)
        paths = [Path()]
        while not all(path.ended for path in paths):
            paths = await self._level(paths, posed, context)
        return await close(paths, self._backbone, item, context)

    async def _level(self, paths: list[Path], item: Item, context: Context) -> list[Path]:
        """Every path decides, and splits where there is room; then those that go on act."""
        present, new = list(paths), list[Path]()
        for place, path in enumerate(paths):
            if not path.ended:
                room = self._config.paths - len(paths) - len(new)
                present[place], *others = self._decide(path, room, len(paths) + len(new), context)
                new += others
        return await gather(self._act(path, item, context) for path in [*present, *new])

    def _decide(self, path: Path, room: int, free_slot: int, context: Context) -> list[Path]:
        """The path, and copies of it as far as there is room, each with a next action.

        Draws are without replacement, each with the probability it has among what is left (D-PUP-9). The step limit
        ends a path by a choice that nobody drew, as upstream (D-PUP-12).
        """
        state = state_of(self._question, path.embeddings)
        if path.steps == self._config.max_steps:
            return [self._chosen(path, state, (), context, forced=TERMINATE)]
        barred: tuple[int, ...] = () if path.steps else (TERMINATE,)
        made: list[Path] = []
        for number in range(min(WIDEST_SPLIT, 1 + room)):
            one = path if number == 0 else replace(path, slot=free_slot + number - 1)
            made.append(self._chosen(one, state, barred, context))
            barred = (*barred, self._choices[-1].action)
        return made

    def _chosen(
        self, path: Path, state: Array, barred: tuple[int, ...], context: Context, *, forced: int | None = None
    ) -> Path:
        """Draw an action, or take the forced one, and record it."""
        log_probs = self._policy.log_probs(state, barred)
        action = self._draw(log_probs, path, context) if forced is None else forced
        log_prob = float(log_probs[action])
        context.decide(Decision(path.steps + 1, "action", path.slot, KEYS[action], len(KEYS) - len(barred), log_prob))
        self._choices.append(Choice(path.last, path.steps, state, barred, action, log_prob))
        return replace(path, last=len(self._choices) - 1, ended=action == TERMINATE)

    def _draw(self, log_probs: Array, path: Path, context: Context) -> int:
        return context.draw(path.steps + 1, "action", KEYS, np.exp(log_probs), path.slot, greedy=self._greedy)

    async def _act(self, path: Path, item: Item, context: Context) -> Path:
        if path.ended or path.last is None:
            return path
        choice = self._choices[path.last]
        after = await act(ACTIONS[choice.action], self._backbone, item, path, context)
        self._choices[path.last] = replace(choice, tokens=after.contributions[-1].tokens)
        return after
