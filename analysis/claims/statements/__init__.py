"""The statements of the paper with a number in them or behind them, in our words; docs/claims.md explains the verdicts.

A statement of several places is listed once. What ``holds`` asks of a run is what the paper says where it names a
threshold, and the direction where it names a value; a margin that is ours is called so in the note.
"""

from __future__ import annotations

from analysis.claims.declaration import Claim
from analysis.claims.statements import ablations, appendices, main_results

#: In the order of a report.
CLAIMS = tuple(
    one for module in (main_results, ablations, appendices) for one in vars(module).values() if isinstance(one, Claim)
)
