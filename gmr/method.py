"""Gated-Memory Routing as a method of the suite: it learns from the training questions, then answers."""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gmr.config import Config, pool_of
from gmr.policy import Snapshot, Trace, Vector
from gmr.rollout import GatedRollout
from gmr.router import Router
from gmr.training import learn, new_router, utility
from harness.agents.trajectory import Answered, Context
from harness.benchmarks.items import Item
from harness.runner.method import Setting
from harness.training.checkpoint import Checkpoint
from harness.training.learning import Choices, Learning, PolicyGradient, network_of
from harness.training.loop import COLLAPSED_ENTROPY, Training, TrainingStep

logger = logging.getLogger(__name__)


class GMR(PolicyGradient[Router, Snapshot, Trace]):
    """A router over a pool of roles and backbones, trained by group-relative policy gradient (D-GMR-10)."""

    def __init__(self, setting: Setting, config: Config) -> None:
        epochs = setting.epochs(config.epochs)
        super().__init__(epochs=epochs, batch=config.batch, group=config.group, lr=config.lr)
        self.config = config
        self.pool = pool_of(config, setting)
        self._setting = setting
        self._warned = False

    async def solve(self, item: Item, context: Context) -> str:
        """One trajectory, with decisions as ``decode`` says."""
        greedy = self.config.decode == "greedy"
        return await GatedRollout(self.policy, self.pool, self.config, greedy=greedy).solve(item, context)

    def utility(self, answered: Answered) -> float:
        """U = R - λ_c · Cost(τ)."""
        return utility(answered, self.config)

    async def begin(self, training: Training) -> Router:
        """A router as initialised by the training seed."""
        roles = np.stack([await training.embed(role.profile) for role in self.pool.roles])
        backbones = np.stack([await training.embed(backbone.profile) for backbone in self.pool.backbones])
        return new_router(self.config, roles, backbones, training.seed)

    def like(self, checkpoint: Checkpoint) -> Router:
        """A router over the profiles that the checkpoint holds."""
        tensors = network_of(checkpoint.tensors)
        return Router(self.config, tensors["role_profiles"], tensors["backbone_profiles"])

    def choices(self) -> Choices:
        """The roles and backbones of the pool."""
        return self.pool.to_facts()

    def frozen(self, network: Router) -> Snapshot:
        """The decisions of the router as it is now."""
        return Snapshot(network)

    def rollout(self, policy: Snapshot) -> GatedRollout:
        """One trajectory, its decisions sampled."""
        return GatedRollout(policy, self.pool, self.config)

    def learn(
        self, learning: Learning[Router], answered: Sequence[Answered], traces: Sequence[Trace], step: TrainingStep
    ) -> dict[str, float]:
        """One step of the optimiser; warns once where the choice of backbones has collapsed."""
        measures = learn(learning, answered, traces, self.config, (self._setting.seed, step.update))
        entropy = measures.get("entropy_backbone", math.inf)
        if not self._warned and entropy < COLLAPSED_ENTROPY:
            self._warned = True
            logger.warning(
                "%s, seed %d: the entropy of the backbone choice is %.3f nats after %d of %d updates: the router "
                "has all but settled on one (a smaller lr or a larger entropy_weight delays this)",
                *(self._setting.benchmark, self._setting.seed, entropy, step.update, step.of),
            )
        return measures


build = GMR


@dataclass(frozen=True, slots=True)
class Option:
    """One role or backbone, and the probability with which the router takes it."""

    key: str
    probability: float


@dataclass(frozen=True, slots=True)
class FirstDecision:
    """The first step of a trajectory before any model is asked; of later ones nothing can be said without replies."""

    roles: tuple[Option, ...]  # the most probable first
    backbones: tuple[Option, ...]  # given the first role, in the order of the pool


def first_decision(router: GMR, question: Vector) -> FirstDecision:
    """What a router would do first, for the embedding of a question, shape (384,)."""
    pool, (of_roles, of_backbones) = router.pool, router.policy.first(question)
    roles = (Option(one.key, float(p)) for one, p in zip(pool.roles, of_roles, strict=True))
    backbones = (Option(one.key, float(p)) for one, p in zip(pool.backbones, of_backbones, strict=True))
    return FirstDecision(tuple(sorted(roles, key=lambda one: -one.probability)), tuple(backbones))
