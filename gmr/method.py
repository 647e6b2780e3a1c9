"""Gated-Memory Routing as a method of the suite: it learns from the training questions, then answers."""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping, Sequence

import numpy as np

from gmr.config import Config
from gmr.learning import new_router, restored
from gmr.objective import utility
from gmr.pool import Pool, pool_of
from gmr.rollout import Rollout
from gmr.router import Router, Snapshot
from gmr.trace import Trace
from gmr.update import learn
from harness.agents.trajectory import Context, Episode
from harness.benchmarks.items import Item
from harness.concurrency import gather
from harness.results import Answered
from harness.runner.method import Setting
from harness.training.checkpoint import Checkpoint
from harness.training.learning import Learning, updates
from harness.training.loop import Attempt, Place, Training

logger = logging.getLogger(__name__)

COLLAPSED_ENTROPY = 0.1


class GMR:
    """A router over a pool of roles and backbones, trained by group-relative policy gradient.

    Args:
        setting: Where it works.
        config: Which variant it is.
    """

    def __init__(self, setting: Setting, config: Config) -> None:
        self.config = config
        self.pool: Pool = pool_of(config, setting)
        self._setting = setting
        self._policy: Snapshot | None = None
        self._warned = False

    @property
    def policy(self) -> Snapshot:
        """The router as it decides now.

        Raises:
            RuntimeError: It was neither trained nor loaded.
        """
        if self._policy is None:
            raise RuntimeError("the router has no weights yet: call fit or load first")
        return self._policy

    async def solve(self, item: Item, context: Context) -> str:
        """One trajectory, with decisions as ``decode`` says."""
        return await Rollout(self.policy, self.pool, self.config, greedy=self.config.decode == "greedy").solve(
            item, context
        )

    def utility(self, answered: Answered) -> float:
        """U = R - λ_c · Cost(τ)."""
        return utility(answered, self.config)

    def load(self, checkpoint: Checkpoint) -> None:
        """Take over a trained router.

        Raises:
            UserError: It was trained with other roles, other backbones or another variant.
        """
        self._policy = restored(checkpoint, self.config, self.pool).network.snapshot()

    async def fit(self, training: Training) -> None:
        """Train for the epochs of the benchmark, a checkpoint after each (paper, Optimization; D-GMR-10)."""
        found = training.resume()
        learning = await self._begin(training) if found is None else restored(found, self.config, self.pool)
        done = int(found.facts["epoch"]) if found else 0
        for place, questions, ends_epoch in updates(
            training, done, self._setting.epochs(self.config.epochs), self.config.batch
        ):
            await self._update(learning, training, questions, place)
            if ends_epoch:
                self._save(training, place.epoch, learning)
        self._policy = learning.network.snapshot()

    async def _begin(self, training: Training) -> Learning[Router]:
        roles = np.stack([await training.embed(role.profile) for role in self.pool.roles])
        backbones = np.stack([await training.embed(backbone.profile) for backbone in self.pool.backbones])
        learning = Learning(new_router(self.config, roles, backbones, training.seed), self.config.lr)
        self._save(training, 0, learning)
        return learning

    def _save(self, training: Training, epoch: int, learning: Learning[Router]) -> None:
        training.save(epoch, learning.learned(), learning.moments(), self.pool.to_facts())

    async def _update(
        self, learning: Learning[Router], training: Training, questions: Sequence[Item], place: Place
    ) -> None:
        policy = learning.network.snapshot()

        async def rollout(item: Item, number: int) -> tuple[Attempt, Trace]:
            its = Rollout(policy, self.pool, self.config)
            attempt = await training.attempt(its.solve, item, Episode(place.epoch, number))
            return attempt, its.trace

        with training.timed("rollouts"):
            made = await gather(rollout(item, number) for item in questions for number in range(self.config.group))
        attempts = [attempt for attempt, _ in made]
        with training.timed("update"):
            measures = learn(
                learning,
                [attempt.answered for attempt in attempts],
                [trace for _, trace in made],
                self.config,
                (training.seed, place.update),
            )
        training.note(place, measures, attempts)
        self._warn_of_collapse(measures, place)

    def _warn_of_collapse(self, measures: Mapping[str, float], place: Place) -> None:
        entropy = measures.get("entropy_backbone", math.inf)
        if not self._warned and entropy < COLLAPSED_ENTROPY:
            self._warned = True
            logger.warning(
                "%s, seed %d: the entropy of the backbone choice is %.3f nats after %d of %d updates: the router "
                "has all but settled on one (a smaller lr, `score: cosine` or a larger entropy_weight delays this)",
                self._setting.benchmark,
                self._setting.seed,
                entropy,
                place.update,
                place.of,
            )


def build(setting: Setting, config: Config) -> GMR:
    """The method for one setting."""
    return GMR(setting, config)
