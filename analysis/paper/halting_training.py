"""Depth and executed steps of training rollouts, with and without halting."""

from typing import Any

import pandas as pd

from analysis.exhibit import NOT_RUN, Entry, signed
from analysis.finished_cells import FinishedCell, updates
from analysis.frames import IDENTITY, Results
from analysis.registry import Source
from analysis.table import Table, entries, format_series, join_values, labels_of, results_table, stack_benchmarks
from harness.errors import UserError

HALTING, NONE = "gmr", "gmr_no_halting"
_RATIO = "ratio"
_TITLES = {HALTING: "Halting (GMR)", NONE: "No halting", _RATIO: "No halting / halting"}
_MEASURES = ["depth", "steps"]
_SIZE = ["questions", "epochs", "group"]


def build(source: Source) -> Table:
    """Return a row with halting, a row without, and their ratio. Raises UserError for an untrained cell."""
    results = source.results()
    cells = [cell for cell in results.cells if cell.run.method in _TITLES]
    trainings = pd.DataFrame(map(_training, cells)).sort_values("seed", kind="stable")
    # One size per benchmark, unless cells of different settings are in one run.
    texts = trainings[_SIZE].astype(str).agg(" × ".join, axis=1).groupby(trainings["benchmark"])
    sizes = texts.agg(lambda texts: " or ".join(texts.unique()))
    frame = _frame(results, trainings)
    keys = ["method", "benchmark"]
    tidy = frame.drop(index=_RATIO, level="method").reset_index().dropna(subset="measured")
    tidy = tidy.join(trainings.groupby(keys)[_SIZE].first(), on=keys)
    groups: dict[tuple[str, str], dict[str, list[Entry]]] = {}
    for key, title in results.benchmarks.items():
        parts = [frame.loc[key].loc[rows] for rows in ([HALTING, NONE], [_RATIO])]
        groups |= stack_benchmarks([{(title, sizes[key]): _columns(results, part)} for part in parts])
    rows = (("ratio" if key == _RATIO else "trainings", title) for key, title in _TITLES.items())
    labels = labels_of(rows, ("Training",))
    tidy = tidy.join(results.measured.droplevel("backbone")[IDENTITY], on=keys)
    return results_table(results, "halting-training", source.caption, labels, groups, source.legend, tidy)


def _training(cell: FinishedCell) -> dict[str, Any]:
    run, log = cell.run, updates(cell)
    if log.empty:
        raise UserError(f"{cell.folder}: nothing was trained; expected one epoch at least; run it again with epochs")
    steps = float(log["steps"].sum())
    size = {"questions": run.data.n_train, "epochs": log["epoch"].nunique(), "group": run.config["group"]}
    measures = {"depth": steps / log["trajectories"].sum(), "steps": steps}
    return {"method": run.method, "benchmark": run.benchmark, "seed": run.seed, **measures, **size}


def _frame(results: Results, trainings: pd.DataFrame) -> pd.DataFrame:
    names = ["benchmark", "method", "measure"]
    values = _with_ratio(trainings.set_index(["benchmark", "seed", "method"])[_MEASURES])
    frame = values.groupby(names).agg(measured="mean", sd="std", by_seed=join_values)
    frame = frame.reindex(pd.MultiIndex.from_product([results.benchmarks, _TITLES, _MEASURES], names=names))
    seed0 = values[values.index.get_level_values("seed") == 0].droplevel("seed")
    printed = _with_ratio(results.printed("halting_training").droplevel("backbone"))
    return frame.assign(seed0=seed0.reorder_levels(names), published=printed.reorder_levels(names))


def _with_ratio(values: pd.DataFrame) -> pd.Series:
    wide = values[_MEASURES].rename_axis(columns="measure").stack().unstack("method").reindex(columns=[HALTING, NONE])
    return wide.assign(**{_RATIO: wide[NONE] / wide[HALTING]}).stack().dropna()


def _columns(results: Results, part: pd.DataFrame) -> dict[str, list[Entry]]:
    is_ratio = part.index[0][0] == _RATIO
    fields: dict[str, list[Entry]] = {}
    for measure, rows in part.groupby("measure"):
        are_totals = measure == "steps" and not is_ratio
        form, unit = ("{:.1f}", 1e-3) if are_totals else ("{:.2f}", 1.0)
        ratio, difference = rows["measured"] / rows["published"], rows["measured"] - rows["published"]
        beside = results.compared(ratio if are_totals else difference)
        below = format_series(unit * rows["sd"], f"sd {form}")
        below += format_series(unit * rows["seed0"].where(rows["sd"].notna()), f"; seed 0: {form}")
        fields[f"{measure.capitalize()} publ."] = entries(unit * rows["published"], "{:.2f}" if is_ratio else "{:.1f}")
        fields[f"{measure.capitalize()} meas."] = entries(
            unit * rows["measured"],
            form,
            NOT_RUN,
            beside=format_series(beside, "×{:.2f}" if are_totals else signed),
            below=below,
        )
    return fields
