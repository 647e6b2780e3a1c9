"""The ablations: one module of GMR switched off at a time and trained anew (paper, Ablation Study)."""

from __future__ import annotations

from analysis.source import Source
from analysis.tables import Table
from analysis.variant_table import build as build_table
from analysis.variants import Design, factor

_DESIGN = Design(
    label="ablation",
    caption="GMR with one of its modules switched off: accuracy and cost, published beside measured.",
    printed=("ablation",),
    reference="gmr",
    change=factor,
    change_title="Cost against",
    change_note="Cost: that of a question as a multiple of the full system's.",
    note=(
        "Each row is trained anew, with the data and seeds of the full system. A random choice takes the place of the "
        "role allocator or the LLM router; without a gate everything is stored or shown; without halting every "
        "trajectory has all steps."
    ),
)


def build(source: Source) -> Table:
    """Build the table from the full system and whichever of its ablations are among the cells.

    Raises:
        UserError: When a cell cannot be read or the cells do not belong in one table.
    """
    return build_table(source, _DESIGN)
