"""What a router chose while it learned: the share of each backbone, role, mode or action, by epoch and in the test.

A training tries every question once an epoch, so epochs are of the same questions and their shares compare.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from analysis.learning.measures import shares
from analysis.results import Cell
from analysis.traces import read_table
from analysis.training_view.lines import rounded

if TYPE_CHECKING:
    import pandas as pd

TEST = "test"
MOST = 7
_TITLES: Mapping[str, str] = {
    "backbone": "Backbones",
    "role": "Roles",
    "mode": "Modes",
    "action": "Actions",
    "agents": "Sizes of the teams",
    "task": "Kinds of task",
}
# Which of some replies was handed on: nothing that a policy chose.
_NO_POLICY = {"short_cut", "ensemble"}
_GATE = {"yes", "no"}
_DRAWN = ("name", "choice", "options", "log_prob")
_EPOCHS = (
    "Share of what was chosen in each epoch; last, in the test, with the policy that was trained. Nothing stands "
    "before the first epoch, because an untrained policy tries no training question."
)
_UNTRAINED = "Left as initialised: nothing was trained, so there is the test alone."
_UNIFORM = "Drawn uniformly: the module that would choose is off."


def charts(cells: Mapping[int, Cell]) -> list[dict[str, Any]]:
    """The charts of a method on one benchmark, as the page takes them.

    Args:
        cells: Cells by seed.

    Raises:
        UserError: A table of decisions is missing or damaged.
    """
    counted = {seed: counts(cell) for seed, cell in cells.items()}
    names = sorted({name for found in counted.values() for name in found}, key=_place)
    return [_chart(name, {seed: found[name] for seed, found in counted.items() if name in found}) for name in names]


def counts(cell: Cell) -> dict[str, pd.DataFrame]:
    """How often each option was chosen, by kind of choice: a row an option, a column an epoch, the last the test.

    Gates are no choices; their shares are measures of the training log.

    Raises:
        UserError: A table of decisions is missing or damaged.
    """
    trained = read_table(cell.folder / "training_decisions.parquet", ("epoch", *_DRAWN))
    tested = read_table(cell.folder / "decisions.parquet", _DRAWN).assign(epoch=TEST)
    return dict(_counted(trained, tested))


def _counted(trained: pd.DataFrame, tested: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame]]:
    import pandas as pd

    every = pd.concat([trained.astype({"epoch": str}), tested])
    columns = [*map(str, sorted(trained["epoch"].unique())), TEST]
    for name, rows in every.groupby("name"):
        if name not in _NO_POLICY and not set(rows["choice"]) <= _GATE:
            table = rows.groupby(["choice", "epoch"]).size().unstack(fill_value=0)
            found = table.reindex(columns=columns, fill_value=0).astype(int)
            found.attrs["uniform"] = not shares(rows, str(name))
            yield str(name), found


def _place(name: str) -> tuple[int, str]:
    known = list(_TITLES)
    return (known.index(name) if name in known else len(known), name)


def _chart(name: str, tables: Mapping[int, pd.DataFrame]) -> dict[str, Any]:
    """Options beyond the most used stand together; of several seeds there is the mean of their shares, too."""
    import pandas as pd

    total = pd.concat([table.sum(axis=1) for table in tables.values()]).groupby(level=0).sum()
    ranked = sorted(total.index, key=lambda option: (-total[option], option))
    most = ranked if len(ranked) <= MOST + 1 else ranked[:MOST]
    found = {str(seed): _percent(table, most, ranked) for seed, table in tables.items()}
    if len(found) > 1:
        found["mean"] = sum(found.values()) / len(found)
    options = [*most, *([f"{len(ranked) - MOST} others"] if len(most) < len(ranked) else [])]
    return {
        "key": f"choice_{name}",
        "title": f"{_TITLES.get(name, name)} chosen",
        "about": _about(tables),
        "options": options,
        "seeds": {seed: _shares(shares) for seed, shares in found.items()},
    }


def _percent(table: pd.DataFrame, most: Sequence[str], ranked: Sequence[str]) -> pd.DataFrame:
    """Shares in percent: a row an option, a last one for the others where there are any, a column an epoch."""
    import pandas as pd

    whole = table.reindex(ranked, fill_value=0)
    kept = whole.loc[list(most)]
    others = (whole.sum() - kept.sum()).to_frame("").T
    rows = kept if len(most) == len(ranked) else pd.concat([kept, others])
    return 100 * rows / whole.sum()


def _about(tables: Mapping[int, pd.DataFrame]) -> str:
    drawn = f" {_UNIFORM}" if all(table.attrs["uniform"] for table in tables.values()) else ""
    epochs = any(len(table.columns) > 1 for table in tables.values())
    return f"{_EPOCHS if epochs else _UNTRAINED}{drawn}"


def _shares(shares: pd.DataFrame) -> dict[str, Any]:
    """Columns in which something was chosen, and the shares of each option in them."""
    chosen = shares.dropna(axis=1)
    return {"columns": list(chosen.columns), "shares": [[rounded(value) for value in row] for row in chosen.to_numpy()]}
