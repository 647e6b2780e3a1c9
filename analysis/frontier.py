"""The Pareto frontier of accuracy and cost: the points that no other point beats."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def on_frontier(cost: pd.Series, accuracy: pd.Series) -> pd.Series:
    """Whether no other point is at least as good in both respects and better in one; missing where either is missing.

    Equal points do not beat each other, so they are in or out together.
    """
    c, a = cost.to_numpy(float), accuracy.to_numpy(float)
    beats = (c[:, None] <= c) & (a[:, None] >= a) & ((c[:, None] < c) | (a[:, None] > a))
    return pd.Series(~beats.any(axis=0), cost.index, dtype=object).where(cost.notna() & accuracy.notna())


def draw(panel: Axes, cost: pd.Series, accuracy: pd.Series, **style: Any) -> None:
    """The best accuracy that a cost can buy, as steps from the cheapest point to the edge of the panel."""
    low, high = panel.get_xlim()
    best = pd.DataFrame({"cost": cost, "accuracy": accuracy})[on_frontier(cost, accuracy).eq(True)].sort_values("cost")
    if len(best):
        ends = best.tail(1).assign(cost=lambda last: last["cost"].clip(lower=high))
        steps = pd.concat([best, ends])
        panel.plot(steps["cost"], steps["accuracy"], drawstyle="steps-post", **style)
    panel.set_xlim(low, high)
