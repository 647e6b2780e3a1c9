"""Corrections for multiple statements: family-wise error of primary endpoints, false discovery rate of the others."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from statsmodels.stats.contingency_tables import mcnemar
from statsmodels.stats.multitest import multipletests

from analysis.paper.claims.declaration import Claim
from analysis.paper.claims.judge import FAILS, HOLDS, UNDECIDED, judge
from analysis.paper.claims.measured import Run
from analysis.paper.claims.numbers import MASROUTER
from analysis.statistics import TAIL, paired
from tests.analysis.cells import Cell, claim, run_of


def leads(wins: Mapping[str, tuple[int, int]], primary: Sequence[str] = ()) -> tuple[list[Claim], Run]:
    """Return claims that a row is ahead of MASRouter on MBPP, with so many questions won and lost of 200."""
    correct: dict[Cell, Any] = {(*MASROUTER, "mbpp", 0): [True] * 100 + [False] * 100}
    chosen = []
    for name, (won, lost) in wins.items():
        correct[name, "pool", "mbpp", 0] = [False] * lost + [True] * (100 - lost + won) + [False] * (100 - won)
        ahead = claim(lambda n, name=name: n.lead(name, MASROUTER, "mbpp"), key=name, primary=name in primary)
        chosen.append(ahead)
    return chosen, run_of(correct)


def test_secondary_statements_stand_where_benjamini_and_hochberg_say() -> None:
    counts = [(6, 0), (9, 1), (20, 2), (0, 8), (12, 8), (7, 1), (3, 0)]
    judged = [parts[0] for parts in judge(*leads({f"row_{number}": count for number, count in enumerate(counts)}))]
    p = np.array([mcnemar([[0, won], [lost, 0]], exact=True).pvalue for won, lost in counts])
    decided = [HOLDS if won > lost else FAILS for won, lost in counts]
    rejected = multipletests(p, 0.05, method="fdr_bh")[0]
    assert [part["claim_outcome"] for part in judged] == np.where(p < 0.05, decided, UNDECIDED).tolist()
    assert [part.get("stands", False) for part in judged] == rejected.tolist()
    # Some are decided by themselves and do not stand.
    assert 0 < rejected.sum() < (p < 0.05).sum()


def test_primary_endpoints_share_a_risk_of_five_percent() -> None:
    # p = 0.031 is enough of one endpoint and not of two; 0.004 of both.
    alone = judge(*leads({"gmr": (6, 0)}, primary=["gmr"]))
    assert alone[0][0]["claim_outcome"] == HOLDS
    both = judge(*leads({"gmr": (6, 0), "full_history": (9, 0), "cot": (6, 0)}, primary=["gmr", "full_history"]))
    judged = [parts[0] for parts in both]
    assert [part["outcome"] for part in judged] == [UNDECIDED, HOLDS, HOLDS]
    # What is printed is the interval that decides.
    assert [part["confidence"] for part in judged] == [97.5, 97.5, 95]
    for part, wins, tail in zip(judged, (6, 9, 6), (TAIL / 2, TAIL / 2, TAIL), strict=True):
        assert (part["low"], part["high"]) == pytest.approx([100 * end for end in paired(wins, 0, 200, tail)])
