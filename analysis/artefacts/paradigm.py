"""Three ways of routing: by the question alone, by the whole history, by a gated memory.

Paper, Routing-Paradigm Comparison; D-GMR-8.
"""

from __future__ import annotations

from analysis.source import Source
from analysis.tables import Table
from analysis.variant_table import build as build_table
from analysis.variants import Design, saving

_DESIGN = Design(
    label="paradigm",
    caption="Routing by the question alone (MASRouter), by the full history, and by a gated memory (GMR).",
    printed=("paradigm", "ablation"),
    reference="gmr",
    change=saving,
    change_title="Saved (%) by",
    change_note="Saved: how much less GMR spends on a question than the row, in percent; below zero it spends more.",
    note=(
        "Full-History and GMR without both memory gates are one configuration: by the paper's descriptions nothing "
        "separates them, although it prints different numbers for them. Here they differ in the seeds of training "
        "alone, so that the pair tells how far apart two trainings of one method end (D-GMR-8)."
    ),
    twins=("full_history", "gmr_no_memory_gates"),
)


def build(source: Source) -> Table:
    """Build the table.

    Raises:
        UserError: When a cell cannot be read or the cells do not belong in one table.
    """
    return build_table(source, _DESIGN)
