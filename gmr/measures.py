"""What the training log holds of one update (docs/gmr.md, Training)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from gmr.padded import Evaluation
from gmr.trace import Trace

Array = NDArray[np.float64]


def of_rewards(utilities: Array, rewards: Array, advantages: Array) -> dict[str, float]:
    """Mean utility, and how many groups had nothing to tell apart.

    Args:
        utilities: Shape (questions, G).
        rewards: 0 or 1, same shape.
        advantages: Same shape.
    """
    return {
        "utility": float(utilities.mean()),
        "equal_reward_groups": float(np.mean(np.ptp(rewards, axis=1) == 0)),
        "zero_advantage_groups": float(np.mean(np.all(advantages == 0, axis=1))),
    }


def of_traces(traces: Sequence[Trace]) -> dict[str, float]:
    """Depth, and what became of responses and records.

    ``retrieved`` is Σ retrieved / Σ available over all steps; it is absent where nothing was ever available.
    """
    steps = [step for trace in traces for step in trace.steps]
    offered = [seen for step in steps for seen in step.retrieved]
    measures = {
        "steps": float(len(steps)),
        "write_rate": float(np.mean([step.written for step in steps])),
        "empty_memory": float(np.mean([not any(step.written for step in trace.steps) for trace in traces])),
    }
    return {**measures, "retrieved": float(np.mean(offered))} if offered else measures


def of_policy(evaluation: Evaluation) -> dict[str, float]:
    """Mean entropy of every enabled module, in nats, and how sure the two choices are."""
    entropies = {
        f"entropy_{name}": total.item() / count for name, (total, count) in evaluation.entropies.items() if count
    }
    return {**entropies, **{f"max_probability_{name}": value for name, value in evaluation.top.items()}}
