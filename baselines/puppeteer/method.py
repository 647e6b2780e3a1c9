"""Puppeteer as a method of the suite: rewards, REINFORCE without a baseline, training and test (D-PUP-6, D-PUP-8)."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from itertools import chain

import numpy as np
import torch
from numpy.typing import NDArray

from baselines.puppeteer.agents import KEYS, to_facts
from baselines.puppeteer.policy import Config, Evaluation, Policy, Rollout, Snapshot, Trace
from harness.agents.results import Answered
from harness.agents.trajectory import Context
from harness.benchmarks.items import Item
from harness.runner.method import Setting
from harness.training.checkpoint import Checkpoint
from harness.training.learning import Learning, check_on_policy, refuse_other_choices, seeded, train
from harness.training.loop import Training, TrainingStep

Array = NDArray[np.float64]


def step_weight(step: int, max_steps: int) -> float:
    """C(ℓ) = 0.1 · ln(1 + (ℓ+1)/(D+1)) / ln 2: later steps weigh more, at most 0.1.

    Args:
        step: Steps ℓ already done.
        max_steps: The limit D.
    """
    return 0.1 * math.log1p((step + 1) / (max_steps + 1)) / math.log(2)


def step_reward(step: int, tokens: int, parameters_b: float, config: Config) -> float:
    """-C(ℓ) · (2 N · tokens / 1e5) · κ, never positive.

    Args:
        step: Steps ℓ already done.
        tokens: Prompt and completion tokens of all calls of the step.
        parameters_b: Parameters N of the backbone, in billions.
        config: Gives D and κ.
    """
    return -step_weight(step, config.max_steps) * (2 * parameters_b * tokens / 1e5) * config.step_weight


def terminal_reward(correct: bool) -> float:
    """1 or -1, without upstream's bonus for length."""
    return 1.0 if correct else -1.0


def returns(trace: Trace, correct: bool, parameters_b: float, config: Config) -> Array:
    """R_t = r_t + γ R_{t+1} of every choice, shape (choices,).

    Args:
        trace: The choices of one question.
        correct: The verdict on its answer.
        parameters_b: Parameters N of the backbone, in billions.
        config: Gives D, κ and γ.
    """
    found = np.array([step_reward(choice.step, choice.tokens, parameters_b, config) for choice in trace])
    found[-1] += terminal_reward(correct)
    for place in reversed(range(1, len(trace))):
        found[place - 1] += config.gamma * found[place]
    return found


def utility(answered: Answered, parameters_b: float, config: Config) -> float:
    """R of the first choice, from the record of the question alone, so that trained and untrained policies compare.

    Args:
        answered: A graded question, of training or test.
        parameters_b: Parameters N of the backbone, in billions.
        config: Gives D, κ and γ.
    """
    trajectory = answered.trajectory
    tokens: defaultdict[int, int] = defaultdict(int)
    for call in trajectory.calls:
        if call.is_step:
            tokens[call.step] += call.prompt_tokens + call.completion_tokens
    rewards = (
        config.gamma ** (step - 1) * step_reward(step - 1, used, parameters_b, config) for step, used in tokens.items()
    )
    return config.gamma**trajectory.depth * terminal_reward(answered.verdict.correct) + math.fsum(rewards)


def learn(
    learning: Learning[Policy],
    answered: Sequence[Answered],
    traces: Sequence[Trace],
    parameters_b: float,
    config: Config,
) -> dict[str, float]:
    """Take one step of the optimiser.

    Args:
        learning: The policy that made the choices, unchanged since; it is changed here.
        answered: The graded questions.
        traces: Their choices, in the same order.
        parameters_b: Parameters N of the backbone, in billions.
        config: Weights of the objective.

    Returns:
        What the training log holds of the update.

    Raises:
        RuntimeError: The log-probabilities computed again differ from those sampled.
    """
    pairs = zip(answered, traces, strict=True)
    gains = [returns(trace, one.verdict.correct, parameters_b, config) for one, trace in pairs]
    choices = list(chain.from_iterable(traces))
    evaluation = learning.network.evaluate(choices)
    check_on_policy(evaluation.log_prob.detach().numpy(), [choice.log_prob for choice in choices])
    total = loss(evaluation, traces, gains, config)
    learning.step(total)
    return {
        "loss": total.item(),
        "entropy": torch.cat(_entropies(evaluation, traces, config)).mean().item(),
        "return": float(np.concatenate(gains).mean()),
        "utility": float(np.mean([utility(one, parameters_b, config) for one in answered])),
        **_measures(traces, config),
    }


def loss(evaluation: Evaluation, traces: Sequence[Trace], gains: Sequence[Array], config: Config) -> torch.Tensor:
    """The sum over questions of (Σ -log π(a) R) - c_H times the mean entropy of the question's draws.

    Args:
        evaluation: Of the choices of all questions, one question after the other.
        traces: These choices, question by question.
        gains: Returns R of the choices, one array a question.
        config: Gives c_H and D.
    """
    policy = -(evaluation.log_prob * torch.from_numpy(np.concatenate(gains))).sum()
    entropies = _entropies(evaluation, traces, config)
    return policy - config.entropy_weight * torch.stack([entropy.mean() for entropy in entropies]).sum()


def _entropies(evaluation: Evaluation, traces: Sequence[Trace], config: Config) -> list[torch.Tensor]:
    """Entropies of the choices that were drawn, by question: an end that the step limit forces was not (D-PUP-12)."""
    of_all = evaluation.entropy.split([len(trace) for trace in traces])
    drawn = (torch.tensor([choice.step < config.max_steps for choice in trace]) for trace in traces)
    return [entropy[places] for entropy, places in zip(of_all, drawn, strict=True)]


def _measures(traces: Sequence[Trace], config: Config) -> dict[str, float]:
    """Choices of each action, and the share of questions that the step limit ended."""
    choices = list(chain.from_iterable(traces))
    counts = np.bincount([choice.action for choice in choices], minlength=len(KEYS))
    return {
        "at_step_limit": sum(trace[-1].step == config.max_steps for trace in traces) / len(traces),
        **{f"share_{key}": float(count) / len(choices) for key, count in zip(KEYS, counts, strict=True)},
    }


class Puppeteer:
    """Ten agents on one backbone, and a policy that says which of them is next.

    Args:
        setting: Where it works; the row is a backbone.
        config: How the policy is trained and how it decides.

    Raises:
        UserError: The row is no backbone.
    """

    def __init__(self, setting: Setting, config: Config) -> None:
        self.config = config
        self._setting = setting
        self._parameters_b = setting.pool[setting.one_backbone].parameters_b
        self._policy: Snapshot | None = None

    @property
    def policy(self) -> Snapshot:
        """The policy as it decides now.

        Raises:
            RuntimeError: It was neither trained nor loaded.
        """
        if self._policy is None:
            raise RuntimeError("the policy has no weights yet: call fit or load first")
        return self._policy

    async def solve(self, item: Item, context: Context) -> str:
        """One question, with actions chosen as ``selection`` says; the policy is frozen (D-PUP-8)."""
        greedy = self.config.selection == "greedy"
        return await Rollout(self.policy, self._setting.backbone, self.config, greedy=greedy).solve(item, context)

    def utility(self, answered: Answered) -> float:
        """The discounted rewards of a question: its verdict, less what its steps cost (D-PUP-6)."""
        return utility(answered, self._parameters_b, self.config)

    def load(self, checkpoint: Checkpoint) -> None:
        """Take over a trained policy.

        Raises:
            UserError: It was trained with other actions.
        """
        self._policy = self.restored(checkpoint).network.snapshot()

    async def fit(self, training: Training) -> None:
        """Train for the epochs of the benchmark, a checkpoint after each."""
        batch = self.config.batch if self.config.update == "batched" else 1
        network = await train(self, training, epochs=self._setting.epochs(self.config.epochs), batch=batch)
        self._policy = network.snapshot()

    async def begin(self, training: Training) -> Learning[Policy]:
        """A policy as initialised by the training seed."""
        return Learning(seeded(Policy, "puppeteer", "initial weights", training.seed), self.config.lr)

    def restored(self, checkpoint: Checkpoint) -> Learning[Policy]:
        """A policy as a checkpoint left it.

        Raises:
            UserError: It was trained with other actions.
        """
        refuse_other_choices(checkpoint.facts, self.facts())
        learning = Learning(Policy(), self.config.lr)
        learning.restore(checkpoint.tensors)
        return learning

    def facts(self) -> dict[str, list[list[str]]]:
        """The actions that a trained policy is bound to."""
        return to_facts()

    def rollouts(self, network: Policy) -> Callable[[], Rollout]:
        """Walks of the policy as it is now, with actions sampled."""
        policy = network.snapshot()
        return lambda: Rollout(policy, self._setting.backbone, self.config)

    def learn(
        self, learning: Learning[Policy], answered: Sequence[Answered], traces: Sequence[Trace], step: TrainingStep
    ) -> dict[str, float]:
        """One step of the optimiser."""
        return learn(learning, answered, traces, self._parameters_b, self.config)


def build(setting: Setting, config: Config) -> Puppeteer:
    """The method for one row."""
    return Puppeteer(setting, config)
