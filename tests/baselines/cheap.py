"""The cheap baselines that learn, over the pool of the tests."""

from __future__ import annotations

from typing import Any

from baselines import knn_router, self_consistency
from harness.runner.method import Matched
from tests.scripted import backbones, setting

# What one call of the dear backbone costs that reads 100 tokens and writes 10.
COST = backbones()["large"].cost(100, 10)


def consistency(cost: float = 2.5 * COST, **changes: Any) -> self_consistency.SelfConsistency:
    """Return self-consistency that has to meet a cost."""
    row = setting("pool", **{"benchmark": "toy", "matched": Matched("gmr", cost, 2.0), **changes})
    return self_consistency.build(row, self_consistency.Config())


def knn(neighbours: int = 1, cost_weight: float = 20.0, **changes: Any) -> knn_router.KNNRouter:
    row = setting("pool", **{"benchmark": "toy", **changes})
    return knn_router.build(row, knn_router.Config(neighbours=neighbours, cost_weight=cost_weight))
