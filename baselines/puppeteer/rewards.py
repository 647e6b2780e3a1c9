"""What training maximises: the verdict at the end of a path, less what its steps cost (D-PUP-6)."""

from __future__ import annotations

import math
from collections import defaultdict

import numpy as np
from numpy.typing import NDArray

from baselines.puppeteer.actions import TERMINATE
from baselines.puppeteer.config import Config
from baselines.puppeteer.trace import Trace
from harness.results import Answered

Array = NDArray[np.float64]


def step_weight(step: int, max_steps: int) -> float:
    """C(ℓ) = 0.1 · ln(1 + (ℓ+1)/(D+1)) / ln 2: later steps weigh more, at most 0.1.

    Args:
        step: Steps ℓ already on the path.
        max_steps: The limit D.
    """
    return 0.1 * math.log1p((step + 1) / (max_steps + 1)) / math.log(2)


def step_reward(step: int, tokens: int, parameters_b: float, config: Config) -> float:
    """-C(ℓ) · (2 N · tokens / 1e5) · κ, never positive.

    Args:
        step: Steps ℓ already on the path.
        tokens: Prompt and completion tokens of all calls of the step.
        parameters_b: Parameters N of the backbone, in billions.
        config: Gives D and κ.
    """
    return -step_weight(step, config.max_steps) * (2 * parameters_b * tokens / 1e5) * config.step_weight


def terminal_reward(correct: bool) -> float:
    """1 or -1, without upstream's bonus for length."""
    return 1.0 if correct else -1.0


def returns(trace: Trace, correct: bool, parameters_b: float, config: Config) -> Array:
    """R of every choice: its own reward, and γ times the returns of all choices that follow directly upon it.

    Along a single path this is R_t = r_t + γ R_{t+1}. Where paths share a beginning, a shared choice is credited with
    what all of them bring and pays for its own step once (D-PUP-6).

    Args:
        trace: The choices of one question.
        correct: The verdict on its answer, which is the terminal reward of each of its paths.
        parameters_b: Parameters N of the backbone, in billions.
        config: Gives D, κ and γ.

    Returns:
        Shape (choices,).
    """
    found = np.array([step_reward(choice.step, choice.tokens, parameters_b, config) for choice in trace])
    for place in reversed(range(len(trace))):
        choice = trace[place]
        if choice.action == TERMINATE:
            found[place] += terminal_reward(correct)
        if choice.parent is not None:
            found[choice.parent] += config.gamma * found[place]
    return found


def utility(answered: Answered, parameters_b: float, config: Config) -> float:
    """The return of a whole question, from its record alone, so that trained and untrained policies can be compared.

    With one path it equals R of the first choice. With several, each step of each path is paid once, discounted by its
    place, and the verdict counts once, at the end of the longest path.

    Args:
        answered: A graded question, of training or test.
        parameters_b: Parameters N of the backbone, in billions.
        config: Gives D, κ and γ.
    """
    trajectory = answered.trajectory
    tokens: defaultdict[tuple[int, int], int] = defaultdict(int)
    for call in trajectory.calls:
        if call.is_step:
            tokens[call.step, call.slot] += call.prompt_tokens + call.completion_tokens
    rewards = (
        config.gamma ** (step - 1) * step_reward(step - 1, used, parameters_b, config)
        for (step, _), used in tokens.items()
    )
    return config.gamma**trajectory.depth * terminal_reward(answered.verdict.correct) + math.fsum(rewards)
