"""Puppeteer as a method of the suite: rewards and REINFORCE without a baseline (D-PUP-6, D-PUP-8)."""

import math
from collections import Counter
from collections.abc import Sequence
from itertools import chain

import numpy as np
import torch
from numpy.typing import NDArray

from baselines.puppeteer.agents import ACTIONS, KEYS
from baselines.puppeteer.policy import Config, Evaluation, Policy, PuppeteerRollout, Trace
from harness.method import Answered
from harness.runner.setting import Setting
from harness.training.learning import Choices, Learning, PolicyGradient, check_on_policy, seeded
from harness.training.loop import Training, TrainingStep

Array = NDArray[np.float64]


def step_reward(step: int, tokens: int, parameters_b: float, config: Config) -> float:
    """Compute -C(ℓ) · (2 N · tokens / 1e5) · κ with C(ℓ) = 0.1 · ln(1 + (ℓ+1)/(D+1)) / ln 2.

    ℓ is the number of finished steps, N the number of parameters in billions. Later steps weigh more, up to C = 0.1.
    """
    weight = 0.1 * math.log1p((step + 1) / (config.max_steps + 1)) / math.log(2)
    return -weight * (2 * parameters_b * tokens / 1e5) * config.cost_weight


def returns(trace: Trace, correct: bool, parameters_b: float, config: Config) -> Array:
    """Compute R_t = r_t + γ R_{t+1} for all choices of a question, shape (choices,). The last reward includes ±1."""
    rewards = np.array([step_reward(choice.step, choice.tokens, parameters_b, config) for choice in trace])
    rewards[-1] += 1.0 if correct else -1.0
    for t in reversed(range(len(trace) - 1)):
        rewards[t] += config.gamma * rewards[t + 1]
    return rewards


def loss(evaluation: Evaluation, traces: Sequence[Trace], gains: Sequence[Array], config: Config) -> torch.Tensor:
    """Compute Σ over questions of (Σ -log π(a) R - c_H · mean entropy)."""
    policy = -(evaluation.log_prob * torch.from_numpy(np.concatenate(gains))).sum()
    entropies = _entropies(evaluation, traces, config)
    return policy - config.entropy_weight * torch.stack([entropy.mean() for entropy in entropies]).sum()


def _entropies(evaluation: Evaluation, traces: Sequence[Trace], config: Config) -> list[torch.Tensor]:
    """Split the entropies by question, without terminations forced by the step limit."""
    entropies = evaluation.entropy.split([len(trace) for trace in traces])
    is_drawn = (torch.tensor([choice.step < config.max_steps for choice in trace]) for trace in traces)
    return [entropy[mask] for entropy, mask in zip(entropies, is_drawn, strict=True)]


def _measures(traces: Sequence[Trace], config: Config) -> dict[str, float]:
    choices = list(chain.from_iterable(traces))
    counts = np.bincount([choice.action for choice in choices], minlength=len(KEYS))
    return {
        "at_step_limit": sum(trace[-1].step == config.max_steps for trace in traces) / len(traces),
        **{f"share_{key}": float(count) / len(choices) for key, count in zip(KEYS, counts, strict=True)},
    }


class Puppeteer(PolicyGradient[Policy, Trace]):
    """Ten agents on one backbone. A policy samples the next agent, also at test time (D-PUP-4)."""

    def __init__(self, setting: Setting, config: Config) -> None:
        super().__init__(epochs=setting.epochs(config.epochs), batch=config.batch, lr=config.lr)
        self.config = config
        self._backbone = setting.one_backbone
        self._parameters_b = setting.pool[self._backbone].parameters_b

    def utility(self, answered: Answered) -> float:
        """Compute the return of the first choice from the calls: discounted verdict minus step costs (D-PUP-6)."""
        trajectory, config = answered.trajectory, self.config
        tokens = Counter[int]()
        for call in trajectory.calls:
            if call.is_step:
                tokens[call.step] += call.prompt_tokens + call.completion_tokens
        rewards = (
            config.gamma ** (step - 1) * step_reward(step - 1, used, self._parameters_b, config)
            for step, used in tokens.items()
        )
        terminal = 1.0 if answered.verdict.correct else -1.0
        return config.gamma**trajectory.depth * terminal + math.fsum(rewards)

    async def begin(self, training: Training) -> Policy:
        return seeded(Policy, "puppeteer", "initial weights", training.seed)

    def build(self, profiles: object) -> Policy:
        """Build a policy. It does not use profiles."""
        return Policy()

    def choices(self) -> Choices:
        return {"actions": [[action.key, action.profile] for action in ACTIONS]}

    def rollout(self, network: Policy) -> PuppeteerRollout:
        return PuppeteerRollout(network, self._backbone, self.config)

    def learn(
        self, learning: Learning[Policy], answered: Sequence[Answered], traces: Sequence[Trace], step: TrainingStep
    ) -> dict[str, float]:
        pairs = zip(traces, answered, strict=True)
        gains = [returns(trace, graded.verdict.correct, self._parameters_b, self.config) for trace, graded in pairs]
        choices = list(chain.from_iterable(traces))
        evaluation = learning.network.evaluate(choices)
        check_on_policy(evaluation.log_prob.detach().numpy(), [choice.log_prob for choice in choices])
        total = loss(evaluation, traces, gains, self.config)
        learning.step(total)
        return {
            "loss": total.item(),
            "entropy": torch.cat(_entropies(evaluation, traces, self.config)).mean().item(),
            "return": float(np.concatenate(gains).mean()),
            "utility": float(np.mean([self.utility(graded) for graded in answered])),
            **_measures(traces, self.config),
        }


build = Puppeteer
