"""Gated-Memory Routing as a method of the suite: training on its questions, then one trajectory a question."""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from gmr.config import Config, pool_of
from gmr.policy import Snapshot, Trace
from gmr.rollout import GatedRollout
from gmr.router import Router
from gmr.training import learn, utility
from harness.agents.runtime import Context
from harness.agents.trajectory import DRAWN_DECIMALS, Answered
from harness.benchmarks.items import Item
from harness.runner.method import Setting
from harness.training.learning import Choices, Learning, PolicyGradient
from harness.training.loop import COLLAPSED_ENTROPY, TrainingStep

logger = logging.getLogger(__name__)


class GMR(PolicyGradient[Router, Snapshot, Trace]):
    """Router over a pool of roles and backbones, trained by group-relative policy gradient (D-GMR-10)."""

    def __init__(self, setting: Setting, config: Config) -> None:
        super().__init__(epochs=setting.epochs(config.epochs), batch=config.batch, group=config.group, lr=config.lr)
        self.config = config
        self.pool = pool_of(config, setting)
        self._setting = setting
        self._warned = False

    async def solve(self, item: Item, context: Context) -> str:
        """Return the answer of one trajectory, decided as ``decode`` says.

        An entry that matches another method has no more steps than that: a number drawn between the two whole ones
        around its mean depth, so that without halting the mean depth is the same (D-BASE-5).
        """
        policy = self.policy.greedy if self.config.decode == "greedy" else self.policy
        config = self.config
        if self._setting.matched is not None:
            depth = self._setting.matched.depth
            one_more = context.uniform(0, "one step more") < round(depth % 1, DRAWN_DECIMALS)
            config = config.model_copy(update={"max_depth": math.floor(depth) + one_more})
        return await GatedRollout(policy, self.pool, config).solve(item, context)

    def utility(self, answered: Answered) -> float:
        """Return u = R - λ_c · Cost(τ), with the cost in the paper's unit (D-GMR-7)."""
        return utility(answered, self.config)

    def build(self, profiles: Mapping[str, NDArray[np.floating]]) -> Router:
        """Return a router over the embedded profiles of roles (R, 384) and backbones (M, 384)."""
        return Router(self.config, profiles["roles"], profiles["backbones"])

    def choices(self) -> Choices:
        """Return key and profile of the roles and backbones."""
        roles = [[role.key, role.profile] for role in self.pool.roles]
        return {"roles": roles, "backbones": [[backbone.key, backbone.profile] for backbone in self.pool.backbones]}

    def frozen(self, network: Router) -> Snapshot:
        """Return the router's decisions without gradient, until its next update."""
        return Snapshot(network)

    def rollout(self, policy: Snapshot) -> GatedRollout:
        """Return a rollout with sampled decisions."""
        return GatedRollout(policy, self.pool, self.config)

    def learn(
        self, learning: Learning[Router], answered: Sequence[Answered], traces: Sequence[Trace], step: TrainingStep
    ) -> dict[str, float]:
        """Take one step of the optimiser and return its log; warn once if the choice of backbones collapses."""
        measures = learn(learning, answered, traces, self.config, self._setting.seed, step.update)
        entropy = measures.get("entropy_backbone", math.inf)
        if not self._warned and entropy < COLLAPSED_ENTROPY:
            self._warned = True
            logger.warning(
                "%s, seed %d: the entropy of the backbone choice is %.3f nats after %d of %d updates: the router "
                "has all but settled on one (a smaller lr or a larger entropy_weight delays this)",
                self._setting.benchmark,
                self._setting.seed,
                entropy,
                step.update,
                step.of,
            )
        return measures


build = GMR
