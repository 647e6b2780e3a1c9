"""One optimiser step from graded rollouts: REINFORCE without a baseline (D-PUP-8)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

import numpy as np
import torch
from numpy.typing import NDArray

from baselines.puppeteer.actions import KEYS, TERMINATE
from baselines.puppeteer.config import Config
from baselines.puppeteer.policy import Evaluation, Policy
from baselines.puppeteer.rewards import returns, utility
from baselines.puppeteer.trace import Trace
from harness.results import Answered
from harness.training.learning import Learning, check_on_policy

Array = NDArray[np.float64]


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
    """Choices of each action, paths a question, and how many paths the step limit ended."""
    choices = list(chain.from_iterable(traces))
    ends = [choice for choice in choices if choice.action == TERMINATE]
    counts = np.bincount([choice.action for choice in choices], minlength=len(KEYS))
    return {
        "paths": len(ends) / len(traces),
        "at_step_limit": sum(choice.step == config.max_steps for choice in ends) / len(ends),
        **{f"share_{key}": float(count) / len(choices) for key, count in zip(KEYS, counts, strict=True)},
    }
