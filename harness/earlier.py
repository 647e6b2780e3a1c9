"""Names of earlier versions and their present ones; files that have them are still read."""

from __future__ import annotations

from collections.abc import Mapping

#: Methods, as an entry of a user may extend them.
METHODS: Mapping[str, str] = {"masrouter_kappa_20": "masrouter_cost_weight_20"}
#: Settings of a method, by its module.
SETTINGS: Mapping[str, Mapping[str, str]] = {
    "baselines.masrouter": {"kappa": "cost_weight"},
    "baselines.puppeteer": {"step_weight": "cost_weight"},
}
