"""Benchmarks and rows that several statements are about, in the order in which reports list them."""

from __future__ import annotations

from analysis.published import load

#: The benchmarks of the ablations and of the cost tables, those of the tables of gates, and all of them.
TWO = ("gsm_hard", "humaneval")
GATED = ("gsm_hard", "mbpp", "humaneval")
ALL = ("gsm_hard", "humaneval", "math", "mbpp", "mmlu_pro")
BUT_MBPP = ("math", "gsm_hard", "humaneval", "mmlu_pro")
#: The main table from top to bottom.
ROWS = [(row.method, row.backbone) for row in load().rows]
