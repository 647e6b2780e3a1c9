"""Puppeteer as a method of the suite: rewards, REINFORCE without a baseline, training and test (D-PUP-6, D-PUP-8)."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from itertools import chain

import numpy as np
import torch
from numpy.typing import NDArray

from baselines.puppeteer.agents import ACTIONS, KEYS
from baselines.puppeteer.policy import Config, Evaluation, Policy, PuppeteerRollout, Trace
from harness.agents.trajectory import Answered
from harness.runner.method import Setting
from harness.training.checkpoint import Checkpoint
from harness.training.learning import Choices, Learning, PolicyGradient, check_on_policy, seeded
from harness.training.loop import Training, TrainingStep

Array = NDArray[np.float64]


def step_weight(step: int, max_steps: int) -> float:
    """C(ℓ) = 0.1 · ln(1 + (ℓ+1)/(D+1)) / ln 2: later steps weigh more, at most 0.1."""
    return 0.1 * math.log1p((step + 1) / (max_steps + 1)) / math.log(2)


def step_reward(step: int, tokens: int, parameters_b: float, config: Config) -> float:
    """-C(ℓ) · (2 N · tokens / 1e5) · κ, never positive, after ℓ steps, with N in billions."""
    return -step_weight(step, config.max_steps) * (2 * parameters_b * tokens / 1e5) * config.step_weight


def terminal_reward(correct: bool) -> float:
    """1 or -1, without upstream's bonus for length."""
    return 1.0 if correct else -1.0


def returns(trace: Trace, correct: bool, parameters_b: float, config: Config) -> Array:
    """R_t = r_t + γ R_{t+1} of every choice of a question, shape (choices,)."""
    found = np.array([step_reward(choice.step, choice.tokens, parameters_b, config) for choice in trace])
    found[-1] += terminal_reward(correct)
    for place in reversed(range(1, len(trace))):
        found[place - 1] += config.gamma * found[place]
    return found


def utility(answered: Answered, parameters_b: float, config: Config) -> float:
    """R of the first choice, from the record of the question alone, so that trained and untrained policies compare."""
    trajectory = answered.trajectory
    tokens: defaultdict[int, int] = defaultdict(int)
    for call in trajectory.calls:
        if call.is_step:
            tokens[call.step] += call.prompt_tokens + call.completion_tokens
    rewards = (
        config.gamma ** (step - 1) * step_reward(step - 1, used, parameters_b, config) for step, used in tokens.items()
    )
    return config.gamma**trajectory.depth * terminal_reward(answered.verdict.correct) + math.fsum(rewards)


def loss(evaluation: Evaluation, traces: Sequence[Trace], gains: Sequence[Array], config: Config) -> torch.Tensor:
    """The sum over questions of (Σ -log π(a) R) - c_H times the mean entropy of the question's draws."""
    policy = -(evaluation.log_prob * torch.from_numpy(np.concatenate(gains))).sum()
    entropies = _entropies(evaluation, traces, config)
    return policy - config.entropy_weight * torch.stack([entropy.mean() for entropy in entropies]).sum()


def _entropies(evaluation: Evaluation, traces: Sequence[Trace], config: Config) -> list[torch.Tensor]:
    """Entropies of the choices that were drawn, by question: an end that the step limit forces was not (D-PUP-12)."""
    of_all = evaluation.entropy.split([len(trace) for trace in traces])
    drawn = (torch.tensor([choice.step < config.max_steps for choice in trace]) for trace in traces)
    return [entropy[places] for entropy, places in zip(of_all, drawn, strict=True)]


def _measures(traces: Sequence[Trace], config: Config) -> dict[str, float]:
    choices = list(chain.from_iterable(traces))
    counts = np.bincount([choice.action for choice in choices], minlength=len(KEYS))
    return {
        "at_step_limit": sum(trace[-1].step == config.max_steps for trace in traces) / len(traces),
        **{f"share_{key}": float(count) / len(choices) for key, count in zip(KEYS, counts, strict=True)},
    }


class Puppeteer(PolicyGradient[Policy, Policy, Trace]):
    """Ten agents on one backbone, and a policy that says which is next, sampled at the test as well (D-PUP-4)."""

    def __init__(self, setting: Setting, config: Config) -> None:
        super().__init__(epochs=setting.epochs(config.epochs), batch=config.batch, lr=config.lr)
        self.config = config
        self._backbone = setting.one_backbone
        self._parameters_b = setting.pool[self._backbone].parameters_b

    def utility(self, answered: Answered) -> float:
        """The discounted rewards of a question: its verdict, less what its steps cost (D-PUP-6)."""
        return utility(answered, self._parameters_b, self.config)

    async def begin(self, training: Training) -> Policy:
        """A policy as initialised by the training seed."""
        return seeded(Policy, "puppeteer", "initial weights", training.seed)

    def like(self, checkpoint: Checkpoint) -> Policy:
        """Every policy has the same shape."""
        return Policy()

    def choices(self) -> Choices:
        """The ten actions."""
        return {"actions": [[action.key, action.profile] for action in ACTIONS]}

    def rollout(self, policy: Policy) -> PuppeteerRollout:
        """A walk whose actions are sampled."""
        return PuppeteerRollout(policy, self._backbone, self.config)

    def learn(
        self, learning: Learning[Policy], answered: Sequence[Answered], traces: Sequence[Trace], step: TrainingStep
    ) -> dict[str, float]:
        """Take one step of the optimiser; returns what the training log holds of it."""
        pairs = zip(answered, traces, strict=True)
        gains = [returns(trace, one.verdict.correct, self._parameters_b, self.config) for one, trace in pairs]
        choices = list(chain.from_iterable(traces))
        evaluation = learning.network.evaluate(choices)
        check_on_policy(evaluation.log_prob.detach().numpy(), [choice.log_prob for choice in choices])
        total = loss(evaluation, traces, gains, self.config)
        learning.step(total)
        return {
            "loss": total.item(),
            "entropy": torch.cat(_entropies(evaluation, traces, self.config)).mean().item(),
            "return": float(np.concatenate(gains).mean()),
            "utility": float(np.mean([self.utility(one) for one in answered])),
            **_measures(traces, self.config),
        }


build = Puppeteer
