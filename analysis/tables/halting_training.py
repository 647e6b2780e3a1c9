"""Savings of halting in training: depth and executed steps of the rollouts, with and without it."""

from __future__ import annotations

from typing import Any

import pandas as pd

from analysis import columns, notes
from analysis.columns import entries, format_series, stack_benchmarks
from analysis.exhibit import NOT_RUN, Entry, signed
from analysis.finished_cells import FinishedCell, updates
from analysis.frames import IDENTITY, Results
from analysis.source import Source
from analysis.table import Table
from harness.errors import UserError

HALTING, NONE = "gmr", "gmr_no_halting"
_RATIO = "ratio"
_TITLES = {HALTING: "Halting (GMR)", NONE: "No halting", _RATIO: "No halting / halting"}
_MEASURES = ["depth", "steps"]
_SIZE = ["questions", "epochs", "group"]
_TRAINING = ["method", "benchmark", "seed", *_MEASURES, *_SIZE]
_NOTES = (
    (
        "Publ.: from the paper. Meas.: this run; next to it, unless simulated, measured minus published, next to steps "
        "measured over published, since the totals follow from the size of the training. Steps in thousands."
    ),
    (
        "Depth: mean over all training rollouts. Steps: executed by all of them, aggregation calls not counted, so "
        "depth times rollouts; rollouts are training questions × epochs × rollouts of a question, as above the "
        "columns. The paper names no number of rollouts: its steps without halting, 6 a rollout, are those of about "
        "320 × 6 rollouts on HumanEval (32 questions × 10 epochs) and 1330 × 6 on GSM-Hard (266 questions × 5 epochs)."
    ),
    (
        "A training is one draw: one seed has no interval. Several seeds: their mean, below it their standard "
        "deviation and seed 0."
    ),
    f"{NOT_RUN}: not run.",
)
_COLUMNS = ["method", "benchmark", "measure", "published", "measured", "by_seed", *_SIZE, *IDENTITY]


def build(source: Source) -> Table:
    """Return rows with halting, without, and their ratio; raises UserError for a cell that was not trained."""
    results = source.results()
    cells = [cell for cell in results.cells if cell.run.method in _TITLES]
    trainings = pd.DataFrame(map(_training, cells), columns=_TRAINING).sort_values("seed", kind="stable")
    # The same for all trainings of a benchmark, unless cells of different settings lie in one run.
    size_texts = trainings[_SIZE].astype(str).agg(" × ".join, axis=1).groupby(trainings["benchmark"])
    sizes = size_texts.agg(lambda texts: " or ".join(texts.unique()))
    frame = _frame(results, trainings)
    keys = ["method", "benchmark"]
    tidy = frame.drop(index=_RATIO, level="method").reset_index().dropna(subset="measured")
    tidy = tidy.join(trainings.groupby(keys)[_SIZE].first(), on=keys)
    tidy = tidy.join(results.measured.droplevel("backbone")[IDENTITY], on=keys)
    groups: dict[tuple[str, str], dict[str, list[Entry]]] = {}
    for key, title in results.benchmarks.items():
        parts = [frame.loc[key].loc[rows] for rows in ([HALTING, NONE], [_RATIO])]
        groups |= stack_benchmarks([{(title, sizes[key]): _columns(results, part)} for part in parts])
    return columns.table(
        results,
        label="halting-training",
        caption="Depth and executed steps of the training rollouts, with and without halting.",
        rows=[("ratio" if key == _RATIO else "trainings", title) for key, title in _TITLES.items()],
        heads=("Training",),
        groups=groups,
        legend=[*_NOTES, notes.DEPTH, *notes.protocol(results)],
        frame=tidy[_COLUMNS],
    )


def _training(cell: FinishedCell) -> tuple[Any, ...]:
    """Return the values of :data:`_TRAINING`."""
    run, log = cell.run, updates(cell)
    if log.empty:
        raise UserError(f"{cell.folder}: nothing was trained; expected one epoch at least; run it again with epochs")
    steps = float(log["steps"].sum())
    size = (run.data.n_train, log["epoch"].nunique(), run.config["group"])
    return run.method, run.benchmark, run.seed, steps / log["trajectories"].sum(), steps, *size


def _frame(results: Results, trainings: pd.DataFrame) -> pd.DataFrame:
    names = ["benchmark", "method", "measure"]
    values = _with_ratio(trainings.set_index(["benchmark", "seed", "method"])[_MEASURES])
    frame = values.groupby(names).agg(measured="mean", sd="std", by_seed=columns.join_values)
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
        ratio = results.compared(rows["measured"] / rows["published"])
        difference = results.compared(rows["measured"] - rows["published"])
        beside = format_series(ratio, "×{:.2f}") if are_totals else format_series(difference, signed)
        below = format_series(unit * rows["sd"], f"sd {form}")
        below += format_series(unit * rows["seed0"].where(rows["sd"].notna()), f"; seed 0: {form}")
        printed, title = "{:.2f}" if is_ratio else "{:.1f}", measure.capitalize()
        fields[f"{title} publ."] = entries(unit * rows["published"], printed)
        fields[f"{title} meas."] = entries(unit * rows["measured"], form, NOT_RUN, beside=beside, below=below)
    return fields
