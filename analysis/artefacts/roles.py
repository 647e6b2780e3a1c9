"""GMR with fewer roles: half of each domain, or those of the question's domain alone (D-GMR-6)."""

from __future__ import annotations

from analysis.source import Source
from analysis.tables import Table
from analysis.variant_table import build as build_table
from analysis.variants import Design, factor

_DESIGN = Design(
    label="roles",
    caption="GMR with all 26 roles and with fewer of them: accuracy and cost, published beside measured.",
    printed=("roles13", "ablation"),
    reference="gmr",
    change=factor,
    change_title="Cost against",
    change_note="Cost: that of a question as a multiple of the cost with all roles.",
    note=(
        "13 of 26 roles: drawn once, 6 of mathematics, 4 of code, 3 of knowledge; the paper prints its accuracy and no "
        "cost. Roles of the domain: 12 for GSM-Hard, 7 for HumanEval; the paper has no such run (D-GMR-6)."
    ),
)


def build(source: Source) -> Table:
    """Build the table from the full pool of roles and whichever variant is among the cells.

    Raises:
        UserError: When a cell cannot be read or the cells do not belong in one table.
    """
    return build_table(source, _DESIGN)
