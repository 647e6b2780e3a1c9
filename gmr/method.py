"""GMR as a method of the suite: policy-gradient training, then one trajectory per test question."""

import math
from collections.abc import Mapping, Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from gmr.config import Config, pool_of
from gmr.rollout import GatedRollout
from gmr.router import Router
from gmr.training import Trace, advantages, evaluate, loss, training_log
from harness.agents.trajectory import DRAWN_DECIMALS, Trajectory
from harness.errors import UserError
from harness.method import Answered, Context, Item
from harness.runner.setting import Setting
from harness.training.learning import Choices, Learning, PolicyGradient, check_on_policy, seed_of
from harness.training.loop import TrainingStep


class GMR(PolicyGradient[Router, Trace]):
    """Router over a pool of roles and backbones, trained by group-relative policy gradient (D-GMR-10)."""

    def __init__(self, setting: Setting, config: Config) -> None:
        super().__init__(epochs=setting.epochs(config.epochs), batch=config.batch, group=config.group, lr=config.lr)
        self.config = config
        self.pool = pool_of(config, setting)
        self._setting = setting
        if setting.matched is not None and setting.matched.depth > config.max_depth:
            depth = f"the mean depth of {setting.matched.method}, {setting.matched.depth:.2f}"
            raise UserError(f"the entry matches {depth}, which exceeds max_depth {config.max_depth}; raise max_depth")

    async def solve(self, item: Item, context: Context) -> str:
        """Run one trajectory with decisions sampled or greedy (``decode``).

        If the entry is matched to another method, ``max_depth`` is drawn from the two integers around that method's
        mean depth. If halting is off, both methods then have the same mean depth.
        """
        config = self.config
        if self._setting.matched is not None:
            depth = self._setting.matched.depth
            one_more = context.uniform(0, "one step more") < round(depth % 1, DRAWN_DECIMALS)
            config = config.model_copy(update={"max_depth": math.floor(depth) + one_more})
        rollout = GatedRollout(self.network, self.pool, config, greedy=config.decode == "greedy")
        return await rollout.solve(item, context)

    def utility(self, answered: Answered) -> float:
        """Compute u = R - λ_c · Cost(τ) with R in {0, 1}. Cost(τ) is relative to the pool (D-GMR-5)."""
        return float(answered.verdict.correct) - self._weighted_cost(answered.trajectory)

    def _weighted_cost(self, trajectory: Trajectory) -> float:
        cost = trajectory.cost_steps if self.config.charged == "steps" else trajectory.cost_total
        return self.config.lambda_c * self._setting.cost_factor * cost

    def build(self, profiles: Mapping[str, NDArray[np.floating]]) -> Router:
        """Build a router from the profile embeddings of ``roles`` (R, 384) and ``backbones`` (M, 384)."""
        return Router(self.config, profiles["roles"], profiles["backbones"])

    def choices(self) -> Choices:
        roles = [[role.key, role.profile] for role in self.pool.roles]
        return {"roles": roles, "backbones": [[backbone.key, backbone.profile] for backbone in self.pool.backbones]}

    def rollout(self, network: Router) -> GatedRollout:
        return GatedRollout(network, self.pool, self.config)

    def learn(
        self, learning: Learning[Router], answered: Sequence[Answered], traces: Sequence[Trace], step: TrainingStep
    ) -> dict[str, float]:
        """Take one optimiser step and return its log. The noise of L_VAE depends only on seed and update number."""
        config = self.config
        rewards = np.array([float(rollout.verdict.correct) for rollout in answered]).reshape(-1, config.group)
        costs = np.array([self._weighted_cost(rollout.trajectory) for rollout in answered]).reshape(-1, config.group)
        advantage = advantages(rewards - costs, config.advantage)
        evaluation = evaluate(learning.network, traces)
        check_on_policy(evaluation.log_prob.detach().numpy(), [trace.log_prob for trace in traces])
        noise = torch.Generator().manual_seed(seed_of("vae", self._setting.seed, step.update))
        vae = learning.network.vae_loss(noise)
        total = loss(evaluation, advantage.ravel(), vae, config)
        learning.step(total)
        log = training_log(rewards, costs, advantage, traces, evaluation)
        return {**log, "loss": total.item(), "vae_loss": vae.item()}


build = GMR
