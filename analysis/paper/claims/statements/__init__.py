"""The statements of the paper with a number in them or behind them, in our words (docs/report.md)."""

from __future__ import annotations

from analysis.paper.claims.declaration import Claim
from analysis.paper.claims.statements import ablations, appendices, main_results

#: In the order of a report.
CLAIMS = tuple(
    value
    for module in (main_results, ablations, appendices)
    for value in vars(module).values()
    if isinstance(value, Claim)
)
