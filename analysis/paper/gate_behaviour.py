"""Behaviour of the gates on the test questions: depth, write rate, retrieved fraction by step, empty memories.

The statistics of calls and decisions also serve the paper's statements.
"""

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from analysis.exhibit import NOT_RUN, Entry, signed
from analysis.finished_cells import FinishedCell, identity
from analysis.frames import Results
from analysis.statistics import Ratio, estimates, mean_of
from analysis.table import Table, entries, join_values, results_table, row_labels
from harness.runner.layout import POOL

#: Steps of a trajectory at which records can be stored, counted from 0.
STEPS = range(1, 6)
_WHOLE, _EARLIER = "Trajectories", "Retrieved of earlier steps"
_POOLED, _MEAN = "Retrieved of stored, pooled", "Retrieved of stored, mean of cases"
_OF_PRINT = ["printed", "unit", "digits", "printed_digits"]
# By ratio of :func:`of_gates`: section and title of the row, the paper's measure, unit, decimals of both values.
_MEASURES = pd.DataFrame(
    [
        ("depth", _WHOLE, "mean depth", "depth", 1, 2, 2),
        ("write_rate", _WHOLE, "steps written (%)", "write_rate", 100, 1, 1),
        ("empty_memory", _WHOLE, "nothing stored at the end (%)", "empty_memory", 100, 1, 1),
        *((f"retrieved_earlier_{k}", _EARLIER, f"step {k} (%)", f"retrieved_{k}", 100, 1, 0) for k in STEPS),
        *((f"retrieved_{k}", _POOLED, f"step {k} (%)", f"retrieved_{k}", 100, 1, 0) for k in STEPS),
        *((f"retrieved_mean_{k}", _MEAN, f"step {k} (%)", f"retrieved_{k}", 100, 1, 0) for k in STEPS),
    ],
    columns=["measure", "section", "title", *_OF_PRINT],
).set_index("measure")


def build(results: Results) -> Table:
    """Return one row per measure."""
    frames = {key: _frame(results, key) for key in results.benchmarks}
    titles = {key: (results.benchmarks[key], results.questions(key)) for key in frames}
    groups = {titles[key]: _group(results, frame) for key, frame in frames.items()}
    rows = row_labels(_MEASURES, "section", "section", "title", heads=("", "Measure"))
    frame = pd.concat(frames.values()).drop(columns=_OF_PRINT)
    return results_table(results, rows, groups, frame)


def _frame(results: Results, benchmark: str) -> pd.DataFrame:
    cells = [cell for cell in results.cells if cell.run.benchmark == benchmark]
    method, unit, seeds = cells[0].run.method, _MEASURES["unit"], [cell.run.seed for cell in cells]
    ratios = [of_gates(cell) for cell in cells]
    ends = {name: estimate[:3] for name, estimate in estimates(ratios).items()}
    estimated = pd.DataFrame(ends, index=["measured", "low", "high"]).T
    values, cases = (
        pd.DataFrame([{key: getattr(ratio, name) for key, ratio in seed.items()} for seed in ratios], seeds).T
        for name in ("value", "cases")
    )
    by_seed = values.reindex(unit.index).mul(unit, axis=0)
    table = results.printed("gate_behaviour")
    printed = table.loc[place].to_dict() if (place := (method, POOL, benchmark)) in table.index else {}
    return _MEASURES.join(estimated.mul(unit, axis=0)).assign(
        **identity([cell.run for cell in cells]),
        method=method,
        benchmark=benchmark,
        published=_MEASURES["printed"].map(printed),
        by_seed=by_seed.apply(join_values, axis=1),
        # Seed 0 alone, if there are several seeds: the paper has one training.
        seed0=by_seed[0] if len(cells) > 1 and 0 in by_seed else None,
        cases=cases.reindex(unit.index).fillna(0).mean(axis=1),
    )


def _group(results: Results, frame: pd.DataFrame) -> dict[str, list[Entry]]:
    def texts(name: str, digits: str = "digits") -> pd.Series:
        return frame.apply(lambda row: "" if pd.isna(row[name]) else f"{row[name]:.{row[digits]}f}", axis=1)

    measured, low, high, first = map(texts, ("measured", "low", "high", "seed0"))
    # The difference of the values as printed.
    apart = results.compared(measured.where(measured != "").astype(float) - frame["published"])
    beside = [signed(gap, digits) if pd.notna(gap) else "" for gap, digits in zip(apart, frame["digits"], strict=True)]
    alone = "; seed 0: " + first.replace("", NOT_RUN) if frame["seed0"].notna().any() else ""
    below = ((low + "–" + high).replace("–", "") + alone).str.removeprefix("; ")
    return {
        "Publ.": entries(texts("published", "printed_digits")),
        "Meas.": entries(measured, missing=NOT_RUN, beside=pd.Series(beside), below=below),
        "Cases": entries(frame["cases"].where(frame["measured"].notna(), 0).round(1), "{:g}"),
    }


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
