"""Gated-Memory Routing as a method of the suite: its updates (paper, Optimization), then one trajectory a question."""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from gmr.config import Advantage, Config, pool_of
from gmr.policy import Evaluation, Snapshot, Trace, Vector, evaluate
from gmr.rollout import GatedRollout
from gmr.router import Router
from harness.agents.trajectory import Answered, Context
from harness.benchmarks.items import Item
from harness.runner.method import Setting
from harness.training.learning import Choices, Learning, PolicyGradient, check_on_policy, seed_of
from harness.training.loop import COLLAPSED_ENTROPY, TrainingStep

logger = logging.getLogger(__name__)
Array = NDArray[np.float64]


def utility(answered: Answered, config: Config) -> float:
    """Return u = R - λ_c · Cost(τ), with R in {0, 1} and the cost of the ``charged`` calls (D-GMR-7)."""
    trajectory = answered.trajectory
    cost = trajectory.cost_steps if config.charged == "steps" else trajectory.cost_total
    return float(answered.verdict.correct) - config.lambda_c * cost


def advantages(utilities: Array, kind: Advantage = "centred") -> Array:
    """Return A_i = u_i - mean of its group, for utilities (questions, G); zero if all of a group are equal.

    ``standardised`` divides by the sample standard deviation of the group, which the paper drops on purpose.
    """
    centred: Array = utilities - utilities.mean(axis=1, keepdims=True)
    # The mean of equal numbers need not be that number in floating point, and no rounding error is to be learned from.
    equal = np.all(utilities == utilities[:, :1], axis=1, keepdims=True)
    if kind == "standardised":
        centred /= np.where(equal, 1.0, utilities.std(axis=1, ddof=1, keepdims=True))
    return np.where(equal, 0.0, centred)


def loss(evaluation: Evaluation, advantage: Array, vae: torch.Tensor, config: Config) -> torch.Tensor:
    """Return ℒ = -mean(log π_i A_i) + α L_VAE - c_H H̄, the mean over all B · G trajectories."""
    policy = -(evaluation.log_prob * torch.from_numpy(advantage)).mean()
    return policy + config.vae_weight * vae - config.entropy_weight * evaluation.mean_entropy


def training_log(
    utilities: Array, rewards: Array, advantage: Array, traces: Sequence[Trace], evaluation: Evaluation
) -> dict[str, float]:
    """Return shares and mean entropies in nats of an update, for arrays of shape (questions, G)."""
    steps = [step for trace in traces for step in trace.steps]
    retrieved = [z for step in steps for z in step.retrieved]
    return {
        "utility": float(utilities.mean()),
        "equal_reward_groups": float(np.mean(np.ptp(rewards, axis=1) == 0)),
        "zero_advantage_groups": float(np.mean(np.all(advantage == 0, axis=1))),
        "steps": float(len(steps)),
        "write_rate": float(np.mean([step.written for step in steps])),
        "empty_memory": float(np.mean([not any(step.written for step in trace.steps) for trace in traces])),
        **({"retrieved": float(np.mean(retrieved))} if retrieved else {}),
        **{f"entropy_{name}": value for name, value in evaluation.entropies.items()},
        **{f"max_probability_{name}": value for name, value in evaluation.top.items()},
    }


def vae_noise(router: Router, seed: int, update: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the standard normal noise of one update for both autoencoders, shapes (R, 128) and (M, 128)."""
    generator = torch.Generator().manual_seed(seed_of("vae", seed, update))
    shapes = [latents.shape for latents in router.latents()]
    roles, backbones = (torch.randn(shape, generator=generator, dtype=torch.float64) for shape in shapes)
    return roles, backbones


def learn(
    learning: Learning[Router],
    answered: Sequence[Answered],
    traces: Sequence[Trace],
    config: Config,
    noise: tuple[int, int],
) -> dict[str, float]:
    """Take one step of the optimiser, with L_VAE noise of (seed, update), and return the training log.

    Raises RuntimeError if the rollouts were sampled by another policy.
    """
    utilities = np.array([utility(rollout, config) for rollout in answered]).reshape(-1, config.group)
    rewards = np.array([float(rollout.verdict.correct) for rollout in answered]).reshape(-1, config.group)
    advantage = advantages(utilities, config.advantage)
    evaluation = evaluate(learning.network, traces)
    check_on_policy(evaluation.log_prob.detach().numpy(), [trace.log_prob for trace in traces])
    vae = learning.network.vae_loss(*vae_noise(learning.network, *noise))
    total = loss(evaluation, advantage.ravel(), vae, config)
    learning.step(total)
    log = training_log(utilities, rewards, advantage, traces, evaluation)
    return {**log, "loss": total.item(), "vae_loss": vae.item()}


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
        greedy, config = self.config.decode == "greedy", self.config
        if self._setting.matched is not None:
            depth = self._setting.matched.depth
            most = math.floor(depth) + context.bernoulli(0, "one step more", depth % 1)
            config = config.model_copy(update={"max_depth": most})
        return await GatedRollout(self.policy, self.pool, config, greedy=greedy).solve(item, context)

    def utility(self, answered: Answered) -> float:
        """Return u = R - λ_c · Cost(τ)."""
        return utility(answered, self.config)

    def build(self, profiles: Mapping[str, NDArray[np.floating]]) -> Router:
        """Return a router over the profiles of roles and backbones."""
        return Router(self.config, profiles["roles"], profiles["backbones"])

    def choices(self) -> Choices:
        """Return key and profile of the roles and backbones."""
        return self.pool.to_facts()

    def frozen(self, network: Router) -> Snapshot:
        """Return the decisions of the router with its present parameters."""
        return Snapshot(network)

    def rollout(self, policy: Snapshot) -> GatedRollout:
        """Return a rollout with sampled decisions."""
        return GatedRollout(policy, self.pool, self.config)

    def learn(
        self, learning: Learning[Router], answered: Sequence[Answered], traces: Sequence[Trace], step: TrainingStep
    ) -> dict[str, float]:
        """Take one step of the optimiser and return its log; warn once if the choice of backbones collapses."""
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
    """Role or backbone, and the probability that the router chooses it."""

    key: str
    probability: float


@dataclass(frozen=True, slots=True)
class FirstDecision:
    """Probabilities at the first step, before any model is called; those of later steps depend on replies."""

    roles: tuple[Option, ...]  # the most probable first
    backbones: tuple[Option, ...]  # given the first role, in the order of the pool


def first_decision(method: GMR, question: Vector) -> FirstDecision:
    """Return the probabilities at the first step, for a question embedding of shape (384,)."""
    pool, (roles, backbones) = method.pool, method.policy.first_probabilities(question)
    role_options = (Option(role.key, float(p)) for role, p in zip(pool.roles, roles, strict=True))
    return FirstDecision(
        tuple(sorted(role_options, key=lambda option: -option.probability)),
        tuple(Option(backbone.key, float(p)) for backbone, p in zip(pool.backbones, backbones, strict=True)),
    )
