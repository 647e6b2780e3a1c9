"""The sweeps of the paper: the methods that differ in one setting alone, and what each has of it."""

from __future__ import annotations

from collections.abc import Sequence

from harness.errors import UserError
from harness.runner.config import methods
from harness.runner.method import settings_of

#: The weight λ_c of cost.
COST_WEIGHTS = ("gmr_lambda_10", "gmr", "gmr_lambda_50")
#: The most steps φ of a trajectory.
DEPTHS = ("gmr_depth_2", "gmr_depth_4", "gmr", "gmr_depth_8", "gmr_depth_10")


def values(names: Sequence[str], setting: str) -> dict[str, float]:
    """What the methods of a sweep have of its setting, ascending.

    Args:
        names: Keys of ``config/methods.yaml``.
        setting: ``lambda_c`` or ``max_depth``.

    Raises:
        UserError: A method of the sweep is not configured.
    """
    known = methods()
    missing = [name for name in names if name not in known]
    if missing:
        raise UserError(f"config/methods.yaml has no method {missing[0]}, which is in the sweep of {setting}; add it")
    found = {name: getattr(settings_of(known[name].module, known[name].config), setting) for name in names}
    return dict(sorted(found.items(), key=lambda one: one[1]))
