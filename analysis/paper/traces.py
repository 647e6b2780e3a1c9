"""Gate decisions and calls per step of a router on the test questions of a cell (paper, Gate Behavior)."""

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from analysis.finished_cells import FinishedCell
from analysis.frames import Results
from analysis.statistics import Ratio, mean_of
from harness.errors import UserError

STEPS = range(1, 6)


def by_benchmark(results: Results) -> dict[str, tuple[FinishedCell, ...]]:
    """Return the cells of the router by benchmark. Raises UserError for several routers."""
    routers = sorted({f"{method} with {backbone}" for method, backbone, _ in results.cells_by_row})
    if len(routers) > 1:
        raise UserError(f"cells of {', '.join(routers)}; expected those of one router; leave the others out")
    cells_of = {key: cells for (*_, key), cells in results.cells_by_row.items()}
    return {key: cells_of[key] for key in results.benchmarks}


def of_gates(cell: FinishedCell) -> dict[str, Ratio]:
    """Return the gate statistics (paper, Gate Behavior at Test Time) by name, except those without a case.

    For step k, from 0: ``retrieved_earlier_k`` is Σ retrieved / Σ k over the trajectories that reach it,
    ``retrieved_k`` is Σ retrieved / Σ stored, ``retrieved_mean_k`` the mean of that ratio over trajectories with
    something stored. A disabled gate makes no decision.

    Raises UserError if the table of decisions is missing or damaged.
    """
    depth, ids = cell.items["depth"].to_numpy(), list(cell.items["item_id"])
    decisions = cell.rows("decisions", ("step", "name", "choice"))
    steps = range(1, max(1, int(depth.max())) + 1)

    def draws(name: str, *choices: str) -> NDArray[np.int64]:
        """Count the draws of a gate by question and step, shape (n, deepest)."""
        rows = decisions[(decisions["name"] == name) & decisions["choice"].isin(choices)]
        return pd.crosstab(rows["item_id"], rows["step"]).reindex(index=ids, columns=steps, fill_value=0).to_numpy()

    considered, written = draws("write", "yes", "no").sum(axis=1), draws("write", "yes").sum(axis=1)
    available, retrieved = draws("retrieve", "yes", "no"), draws("retrieve", "yes")
    measures = {
        "depth": mean_of(depth),
        "write_rate": _ratio(written, considered),
        "empty_memory": _ratio((considered > 0) & (written == 0), considered > 0),
    }
    for step in STEPS[: len(steps) - 1]:
        stored, opened = available[:, step], retrieved[:, step]
        shares = np.divide(opened, stored, out=np.zeros(len(ids)), where=stored > 0)
        measures |= {
            f"retrieved_earlier_{step}": _ratio(opened, available.any() * step * (depth > step)),
            f"retrieved_{step}": _ratio(opened, stored),
            f"retrieved_mean_{step}": _ratio(shares, stored > 0),
        }
    return {name: ratio for name, ratio in measures.items() if ratio.cases}


def of_calls(cell: FinishedCell) -> dict[str, Ratio]:
    """Return ``later_prompt``, prompt tokens after the first step, and ``calls_BACKBONE``, shares of the calls.

    Failed calls are left out. Raises UserError if the table of calls is missing or damaged.
    """
    names = ("step", "backbone", "prompt_tokens", "is_step", "error")
    calls = cell.rows("calls", names).set_index("item_id")
    calls = calls[calls["is_step"].eq(True) & calls["error"].isna()]
    ratios = {"later_prompt": _by_question(cell, calls.loc[calls["step"] > 1, "prompt_tokens"])}
    for backbone in cell.run.backbones:
        ratios[f"calls_{backbone}"] = _by_question(cell, calls["backbone"] == backbone)._replace(is_share=True)
    return ratios


def redundancy(cell: FinishedCell) -> dict[str, Ratio]:
    """Return ``redundancy_stored`` and ``redundancy_refused``, mean cosines with the nearest stored contribution.

    Contributions to an empty memory do not count. Raises UserError if the table of decisions is missing or damaged.
    """
    decisions = cell.rows("decisions", ("step", "name", "choice"))
    names = ["redundancy", "write"]
    rows = decisions[decisions["name"].isin(names)]
    table = rows.pivot(index=["item_id", "step"], columns="name", values="choice").reindex(columns=names).dropna()
    cosines, written = table["redundancy"].astype(float), table["write"] == "yes"
    return {
        "redundancy_stored": _by_question(cell, cosines[written]),
        "redundancy_refused": _by_question(cell, cosines[~written]),
    }


def _by_question(cell: FinishedCell, values: pd.Series) -> Ratio:
    """Return the mean of values by question; a question may have several or none."""
    groups, ids = values.groupby(level="item_id"), cell.items["item_id"]
    sums, counts = (sizes.reindex(ids, fill_value=0).to_numpy(dtype=float) for sizes in (groups.sum(), groups.size()))
    return Ratio(sums, counts, is_share=False)


def _ratio(numerators: NDArray[Any], denominators: NDArray[Any]) -> Ratio:
    return Ratio(numerators.astype(float), denominators.astype(float))
